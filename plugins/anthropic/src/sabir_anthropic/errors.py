"""The error table of Anthropic and of the clouds that serve its models: words decide, else the type, else the status.

Types: https://platform.claude.com/docs/en/api/errors, and the exceptions of Bedrock beside them.
"""

from sabir.authoring import ErrorRule, ErrorTable
from sabir.errors import (
    AuthenticationFailed,
    CallTimedOut,
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
    Unavailable,
)

_TYPES = {
    "invalid_request_error": InvalidRequest,
    "authentication_error": AuthenticationFailed,
    "billing_error": QuotaExceeded,
    "permission_error": PermissionDenied,
    "not_found_error": ModelNotFound,
    "request_too_large": RequestTooLarge,
    "rate_limit_error": RateLimited,
    "timeout_error": CallTimedOut,
    "api_error": ServerFailed,
    "overloaded_error": Overloaded,
    "throttlingexception": RateLimited,
    "servicequotaexceededexception": QuotaExceeded,
    "validationexception": InvalidRequest,
    "accessdeniedexception": PermissionDenied,
    "resourcenotfoundexception": ModelNotFound,
    "modeltimeoutexception": CallTimedOut,
    "serviceunavailableexception": Unavailable,
    "internalserverexception": ServerFailed,
    "modelstreamerrorexception": ServerFailed,
}
_WORDS = ErrorRule.by_words(
    (r"(prompt|input) is too long|exceed\w* (the )?(context|model's maximum)|context (window|size)", ContextTooLong),
    (r"credit balance is too low|(usage|spend\w*) limits?\b", QuotaExceeded),
    (r"content filter\w* policy", ContentFiltered),
    at=(None, 400, 403, 429),  # at other statuses the type says more than the words; None is a stream
)
ERRORS = ErrorTable(
    rules=(_WORDS, ErrorRule.by_codes(_TYPES), ErrorRule.by_words((r"overloaded", Overloaded), at=(503,))),
    modules=("anthropic",),
    raised=(("APIError", None, ""), ("AnthropicError", InvalidRequest, "was not asked, for the SDK refuses to")),
)
