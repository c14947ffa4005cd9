"""The error table of Anthropic and of the clouds that serve its models: words decide, else the type, else the status.

Types: https://platform.claude.com/docs/en/api/errors, and the exceptions of Bedrock beside them.
"""

from sabir import errors
from sabir.authoring import ErrorRule, ErrorTable

_TYPES = {
    "invalid_request_error": errors.InvalidRequest,
    "authentication_error": errors.AuthenticationFailed,
    "billing_error": errors.QuotaExceeded,
    "permission_error": errors.PermissionDenied,
    "not_found_error": errors.ModelNotFound,
    "request_too_large": errors.RequestTooLarge,
    "rate_limit_error": errors.RateLimited,
    "timeout_error": errors.CallTimedOut,
    "api_error": errors.ServerFailed,
    "overloaded_error": errors.Overloaded,
    "throttlingexception": errors.RateLimited,
    "servicequotaexceededexception": errors.QuotaExceeded,
    "validationexception": errors.InvalidRequest,
    "accessdeniedexception": errors.PermissionDenied,
    "resourcenotfoundexception": errors.ModelNotFound,
    "modeltimeoutexception": errors.CallTimedOut,
    "serviceunavailableexception": errors.Unavailable,
    "internalserverexception": errors.ServerFailed,
    "modelstreamerrorexception": errors.ServerFailed,
}
_WORDS = ErrorRule.by_words(
    (r"(prompt|input) is too long|exceed\w* (the )?(context|model's maximum)", errors.ContextTooLong),
    (r"context (window|size)", errors.ContextTooLong),
    (r"credit balance is too low|(usage|spend\w*) limits?\b", errors.QuotaExceeded),
    (r"content filter\w* policy", errors.ContentFiltered),
    at=(None, 400, 403, 429),  # at other statuses the type says more than the words; None is a stream
)
ERRORS = ErrorTable(
    rules=(_WORDS, ErrorRule.by_codes(_TYPES), ErrorRule.by_words((r"overloaded", errors.Overloaded), at=(503,))),
    modules=("anthropic",),
    raised=(("APIError", None, ""), ("AnthropicError", errors.InvalidRequest, "was not asked, for the SDK refuses to")),
)
