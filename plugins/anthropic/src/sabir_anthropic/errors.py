"""The error table of Anthropic and of the clouds that serve its models: words decide, else the type, else the status.

Types: https://platform.claude.com/docs/en/api/errors, and the exceptions of Bedrock beside them.
"""

from sabir import errors
from sabir.authoring import ErrorRule, ErrorTable

_TYPES = {
    errors.InvalidRequest: "invalid_request_error validationexception",
    errors.AuthenticationFailed: "authentication_error",
    errors.QuotaExceeded: "billing_error servicequotaexceededexception",
    errors.PermissionDenied: "permission_error accessdeniedexception",
    errors.ModelNotFound: "not_found_error resourcenotfoundexception",
    errors.RequestTooLarge: "request_too_large",
    errors.RateLimited: "rate_limit_error throttlingexception",
    errors.CallTimedOut: "timeout_error modeltimeoutexception",
    errors.ServerFailed: "api_error internalserverexception modelstreamerrorexception",
    errors.Overloaded: "overloaded_error",
    errors.Unavailable: "serviceunavailableexception",
}
SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
    "effort": "reasoning_effort",
    "output_config.effort": "reasoning_effort",
    "thinking": "reasoning_effort",
    "tool_choice": "option_choice",
    "output_format": "response_format",
    "output_config.format": "response_format",
}
"""Parameter as errors name it → the setting that is sent in it."""
ERRORS = ErrorTable(
    rules=(
        ErrorRule.by_words(
            (r"(prompt|input) is too long|exceed\w* (the )?(context|model's maximum)", errors.ContextTooLong),
            (r"context (window|size)", errors.ContextTooLong),
            (r"credit balance is too low|(usage|spend\w*) limits?\b", errors.QuotaExceeded),
            (r"content filter\w* policy", errors.ContentFiltered),
            at=(None, 400, 403, 429),  # at other statuses the type says more than the words; None is a stream
        ),
        ErrorRule.by_codes({code: kind for kind, codes in _TYPES.items() for code in codes.split()}),
        ErrorRule.by_words((r"overloaded", errors.Overloaded), at=(503,)),
    ),
    modules=("anthropic",),
    settings=SETTINGS,
    raised=(("APIError", None, ""), ("AnthropicError", errors.InvalidRequest, "was not asked, for the SDK refuses to")),
)
