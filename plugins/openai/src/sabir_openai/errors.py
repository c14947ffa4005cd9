"""The error table of OpenAI and of endpoints that speak its dialects: codes decide, else the words, else the status.

Codes: https://developers.openai.com/api/docs/guides/error-codes, and those of Azure, llama.cpp and others beside it.
"""

from sabir.authoring import ErrorRule, ErrorTable
from sabir.errors import (
    AuthenticationFailed,
    ContentFiltered,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerFailed,
)

_CODES = {
    "context_length_exceeded": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "context_window_exceeded": ContextTooLong,
    "insufficient_quota": QuotaExceeded,
    "billing_hard_limit_reached": QuotaExceeded,
    "billing_not_active": QuotaExceeded,
    "content_filter": ContentFiltered,
    "content_policy_violation": ContentFiltered,
    "image_content_policy_violation": ContentFiltered,
    "invalid_prompt": ContentFiltered,
    "bio_policy": ContentFiltered,
    "misalignment_policy_violation": ContentFiltered,
    "responsibleaipolicyviolation": ContentFiltered,
    "invalid_api_key": AuthenticationFailed,
    "authentication_error": AuthenticationFailed,
    "permission_error": PermissionDenied,
    "model_not_found": ModelNotFound,
    "deploymentnotfound": ModelNotFound,
    "rate_limit_exceeded": RateLimited,
    "rate_limit_error": RateLimited,
    "ratelimitreached": RateLimited,
    "overloaded_error": Overloaded,
    "server_error": ServerFailed,
    "vector_store_timeout": ServerFailed,
    "*_spend_limit_exceeded": QuotaExceeded,
}
_WORDS = ErrorRule.by_words(
    (r"context (length|window|size)|prompt is too long|maximum (input|prompt) length", ContextTooLong),
    (r"insufficient (balance|credit|quota|funds)|exceeded your current quota|out of credits", QuotaExceeded),
    (r"content management policy|input was flagged|flagged as potentially", ContentFiltered),
    (r"model\b.{0,80}\b(not found|does not exist|is not available)", ModelNotFound),
)
_BLAME_WHAT_WAS_SENT = ("*image*", "*data_residency_mismatch*", "invalid_request_error")
"""Codes of a failed response, which has no HTTP status."""
ERRORS = ErrorTable(
    rules=(
        ErrorRule.by_words((r"overloaded", Overloaded), at=(503,)),  # its type says no more than that the server failed
        ErrorRule.by_codes(_CODES),
        ErrorRule.by_status({401: AuthenticationFailed, 413: RequestTooLarge}),
        _WORDS,
        ErrorRule.by_codes(dict.fromkeys(_BLAME_WHAT_WAS_SENT, InvalidRequest), at=(None,)),
    ),
    modules=("openai",),
)
