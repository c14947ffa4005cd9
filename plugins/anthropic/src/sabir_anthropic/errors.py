"""The error table of Anthropic and of the clouds that serve its models: what each failure is for a caller.

    status, headers, body ──decode_error──▶ CallError        the words decide, else the type, else the status
    an `error` object in a body or stream ──report──▶ CallError
    what the SDK or its HTTP client raised ──translate──▶ CallError, without importing either

Types: https://platform.claude.com/docs/en/api/errors, and the exceptions of Bedrock beside them.
"""

from collections.abc import Mapping
from typing import Any

from sabir.authoring import (
    Failure,
    JSONValue,
    compile_words,
    is_a,
    kind_of_status,
    kind_of_words,
    refusal,
    reported,
    translate_raised,
    unwrapped,
)
from sabir.errors import (
    AuthenticationFailed,
    CallError,
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

_TYPES: Mapping[str, type[CallError]] = {
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
_WORDS = compile_words(
    (r"(prompt|input) is too long|exceed\w* (the )?(context|model's maximum)|context (window|size)", ContextTooLong),
    (r"credit balance is too low|(usage|spend\w*) limits?\b", QuotaExceeded),
    (r"content filter\w* policy", ContentFiltered),
)
_BY_WORDS = frozenset({None, 400, 403, 429})
"""Statuses whose words say more than their type does; None is that of a stream."""
_SDK = ("anthropic",)
_REQUEST_IDS = ("request-id", "x-amzn-requestid", "x-request-id")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """The error that a response of status ≥ 400 stands for; header names are lower case."""
    return refusal(status, headers, body, provider=provider, kind_of=_kind, request_ids=_REQUEST_IDS)


def report(error: JSONValue, *, provider: str, request_id: str | None = None) -> CallError:
    """The error that an `error` object stands for, where it came with status 200 or in a stream."""
    return reported(error, provider=provider, kind_of=_kind, request_id=request_id)


def _kind(found: Failure, status: int | None) -> type[CallError]:
    if status in _BY_WORDS and (kind := kind_of_words(found.message, _WORDS)):
        return kind
    if (word := found.kind.lower()) in _TYPES:
        return _TYPES[word]
    if status is None:
        return ServerFailed
    return Overloaded if status == 503 and "overloaded" in found.message.lower() else kind_of_status(status)


def translate(error: BaseException, provider: str) -> CallError | None:
    """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
    if is_a(error, "APIStatusError", _SDK):
        response: Any = error.response  # type: ignore[attr-defined]
        return decode_error(response.status_code, dict(response.headers), response.content, provider)
    error = unwrapped(error, *_SDK)
    if is_a(error, "AnthropicError", _SDK) and not is_a(error, "APIError", _SDK):
        return InvalidRequest(f"{provider} was not asked, for the SDK refuses to: {error}", provider=provider)
    return translate_raised(error, provider, _SDK)
