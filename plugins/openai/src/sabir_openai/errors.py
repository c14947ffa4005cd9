"""The error table of OpenAI, Azure and compatible endpoints. The first rule of ERRORS that matches decides.

Codes: https://developers.openai.com/api/docs/guides/error-codes, and codes of Azure, llama.cpp and others.
"""

from sabir import errors
from sabir.authoring import ErrorRule, ErrorTable

_CODES = {
    errors.ContextTooLong: (
        "context_length_exceeded exceed_context_size_error context_window_exceeded too_many_prompt_tokens"
    ),
    errors.QuotaExceeded: "insufficient_quota billing_hard_limit_reached billing_not_active *_spend_limit_exceeded",
    errors.ContentFiltered: (
        "content_filter content_policy_violation image_content_policy_violation "
        "invalid_prompt bio_policy misalignment_policy_violation responsibleaipolicyviolation"
    ),
    errors.AuthenticationFailed: "invalid_api_key authentication_error",
    errors.PermissionDenied: "permission_error",
    errors.ModelNotFound: "model_not_found deploymentnotfound",
    errors.RateLimited: "rate_limit_exceeded rate_limit_error ratelimitreached",
    errors.Overloaded: "overloaded_error",
    errors.ServerFailed: "server_error vector_store_timeout",
}
"""Error class → the codes and types of errors, in lower case, that mean this class."""
_REQUEST_ERRORS = ("*image*", "*data_residency_mismatch*", "invalid_request_error")
"""Codes that mean InvalidRequest if the error is in a response or an event and so has no HTTP status."""
SETTINGS = {
    "max_completion_tokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "seed": "seed",
    "random_seed": "seed",
    "reasoning_effort": "reasoning_effort",
    "reasoning.effort": "reasoning_effort",
    "tool_choice": "option_choice",
    "parallel_tool_calls": "parallel_options",
    "response_format": "response_format",
    "text.format": "response_format",
}
"""Request parameter of either dialect, as errors name it → the neutral setting that is sent in it."""
ERRORS = ErrorTable(
    rules=(
        # The type of such an error only says that the server failed.
        ErrorRule.by_words((r"overloaded", errors.Overloaded), at=(503,)),
        ErrorRule.by_codes({code: kind for kind, codes in _CODES.items() for code in codes.split()}),
        ErrorRule.by_status({401: errors.AuthenticationFailed, 413: errors.RequestTooLarge}),
        ErrorRule.by_words(
            (r"context (length|window|size)|prompt is too long|maximum (input|prompt) length", errors.ContextTooLong),
            (
                r"insufficient (balance|credit|quota|funds)|exceeded your current quota|out of credits",
                errors.QuotaExceeded,
            ),
            (r"content management policy|input was flagged|flagged as potentially", errors.ContentFiltered),
            (r"model\b.{0,80}\b(not found|does not exist|is not available)", errors.ModelNotFound),
        ),
        ErrorRule.by_codes(dict.fromkeys(_REQUEST_ERRORS, errors.InvalidRequest), at=(None,)),
    ),
    modules=("openai",),
    settings=SETTINGS,
)
