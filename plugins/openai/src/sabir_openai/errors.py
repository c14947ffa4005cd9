"""The error table of OpenAI and of endpoints that speak its dialects: codes decide, else the words, else the status.

Codes: https://developers.openai.com/api/docs/guides/error-codes, and those of Azure, llama.cpp and others beside it.
"""

from sabir import errors
from sabir.authoring import ErrorRule, ErrorTable

_CODES = {
    "context_length_exceeded": errors.ContextTooLong,
    "exceed_context_size_error": errors.ContextTooLong,
    "context_window_exceeded": errors.ContextTooLong,
    "insufficient_quota": errors.QuotaExceeded,
    "billing_hard_limit_reached": errors.QuotaExceeded,
    "billing_not_active": errors.QuotaExceeded,
    "content_filter": errors.ContentFiltered,
    "content_policy_violation": errors.ContentFiltered,
    "image_content_policy_violation": errors.ContentFiltered,
    "invalid_prompt": errors.ContentFiltered,
    "bio_policy": errors.ContentFiltered,
    "misalignment_policy_violation": errors.ContentFiltered,
    "responsibleaipolicyviolation": errors.ContentFiltered,
    "invalid_api_key": errors.AuthenticationFailed,
    "authentication_error": errors.AuthenticationFailed,
    "permission_error": errors.PermissionDenied,
    "model_not_found": errors.ModelNotFound,
    "deploymentnotfound": errors.ModelNotFound,
    "rate_limit_exceeded": errors.RateLimited,
    "rate_limit_error": errors.RateLimited,
    "ratelimitreached": errors.RateLimited,
    "overloaded_error": errors.Overloaded,
    "server_error": errors.ServerFailed,
    "vector_store_timeout": errors.ServerFailed,
    "*_spend_limit_exceeded": errors.QuotaExceeded,
}
_WORDS = ErrorRule.by_words(
    (r"context (length|window|size)|prompt is too long|maximum (input|prompt) length", errors.ContextTooLong),
    (r"insufficient (balance|credit|quota|funds)|exceeded your current quota|out of credits", errors.QuotaExceeded),
    (r"content management policy|input was flagged|flagged as potentially", errors.ContentFiltered),
    (r"model\b.{0,80}\b(not found|does not exist|is not available)", errors.ModelNotFound),
)
_BLAME_WHAT_WAS_SENT = ("*image*", "*data_residency_mismatch*", "invalid_request_error")
"""Codes of a failed response, which has no HTTP status."""
ERRORS = ErrorTable(
    rules=(
        # The type of these says no more than that the server failed.
        ErrorRule.by_words((r"overloaded", errors.Overloaded), at=(503,)),
        ErrorRule.by_codes(_CODES),
        ErrorRule.by_status({401: errors.AuthenticationFailed, 413: errors.RequestTooLarge}),
        _WORDS,
        ErrorRule.by_codes(dict.fromkeys(_BLAME_WHAT_WAS_SENT, errors.InvalidRequest), at=(None,)),
    ),
    modules=("openai",),
)
