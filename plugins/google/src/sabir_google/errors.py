"""The error table of Google's APIs: what each failure is for a caller.

    status, headers, body ──decode_error──▶ CallError        the details decide, else the words, else the status
    an `error` object in a body or stream ──report──▶ CallError
    what the SDK or its HTTP client raised ──translate──▶ CallError, without importing either

The vendor names neither a waiting time nor the kind of a limit in headers: both are among the error's details.
https://ai.google.dev/gemini-api/docs/troubleshooting and https://docs.cloud.google.com/apis/design/errors
"""

import re
from collections.abc import Iterator, Mapping

from sabir.authoring import (
    Failure,
    Fields,
    JSONValue,
    compile_words,
    decode_json,
    failure_of,
    fields,
    is_a,
    items,
    kind_of_status,
    kind_of_words,
    make_error,
    read_failure,
    retry_after,
    text,
    translate_raised,
)
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    CallTimedOut,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    NotJSON,
    Overloaded,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerFailed,
    Unavailable,
)

_STATUSES: Mapping[str, type[CallError]] = {
    "ABORTED": Unavailable,
    "CANCELLED": Unavailable,
    "DEADLINE_EXCEEDED": CallTimedOut,
    "FAILED_PRECONDITION": InvalidRequest,
    "INTERNAL": ServerFailed,
    "INVALID_ARGUMENT": InvalidRequest,
    "NOT_FOUND": ModelNotFound,
    "OUT_OF_RANGE": InvalidRequest,
    "PERMISSION_DENIED": PermissionDenied,
    "RESOURCE_EXHAUSTED": RateLimited,
    "UNAUTHENTICATED": AuthenticationFailed,
    "UNAVAILABLE": Unavailable,
}
"""The vendor's own name of a status."""
_KEY_REASONS = frozenset({"API_KEY_INVALID", "ACCESS_TOKEN_EXPIRED", "CREDENTIALS_MISSING"})
_WORDS = compile_words(
    (r"input token count|number of tokens allowed|maximum number of tokens", ContextTooLong),
    (r"context (length|window|size)", ContextTooLong),  # of servers that speak this wire for other models
    (r"api[ _]key (not valid|expired|not found)", AuthenticationFailed),
    (r"payload size exceeds", RequestTooLarge),
    (r"overloaded|experiencing high demand", Overloaded),
)
_SPENT = re.compile(r"spending cap|credits are depleted", re.IGNORECASE)
_DELAY = re.compile(r"(\d{1,9}(?:\.\d+)?)s")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """The error that a response of status ≥ 400 stands for; header names are lower case."""
    try:
        error = _error_of(decode_json(body))
    except NotJSON:
        error = {}
    found = read_failure(body)._replace(code=text(error.get("status")))
    delay = _delay(error)
    return make_error(
        _kind(found, error, status),
        found,
        provider=provider,
        status=status,
        retry_after=retry_after(headers) if delay is None else delay,
    )


def report(error: JSONValue, *, provider: str) -> CallError:
    """The error that an `error` object stands for, where it came with status 200 or in a stream."""
    said = fields(error)
    found = failure_of({"error": error})._replace(code=text(said.get("status")))
    kind = _kind(found, said, found.status or 500)
    return make_error(kind, found, provider=provider, status=found.status, retry_after=_delay(said))


def _error_of(body: JSONValue) -> Fields:
    """The `error` object of a body; of a stream that never began it is in a list of one."""
    return fields(fields(body[0] if isinstance(body, list) and body else body).get("error"))


def _kind(found: Failure, error: Fields, status: int) -> type[CallError]:
    if any(text(detail.get("reason")) in _KEY_REASONS for detail in _details(error, "ErrorInfo")):
        return AuthenticationFailed
    violations = [
        fields(each) for detail in _details(error, "QuotaFailure") for each in items(detail.get("violations"))
    ]
    if _SPENT.search(found.message) or any("PerDay" in text(each.get("quotaId")) for each in violations):
        return QuotaExceeded
    kind = _STATUSES.get(found.code) or kind_of_status(status)
    return kind_of_words(found.message, _WORDS) or kind if kind in (InvalidRequest, Unavailable) else kind


def _details(error: Fields, name: str) -> Iterator[Fields]:
    for detail in items(error.get("details")):
        if text(fields(detail).get("@type")).endswith(f".{name}"):
            yield fields(detail)


def _delay(error: Fields) -> float | None:
    """Seconds to wait, as RetryInfo says them."""
    delays = (_DELAY.fullmatch(text(detail.get("retryDelay"))) for detail in _details(error, "RetryInfo"))
    return next((float(delay[1]) for delay in delays if delay), None)


def translate(error: BaseException, provider: str) -> CallError | None:
    """The library error for what the SDK, its credentials or its HTTP client raised; None for all else."""
    if is_a(error, "GoogleAuthError", ("google.auth.exceptions",)):
        message = f"{provider} got no access from Google's credentials ({type(error).__name__}: {error}); renew them"
        return AuthenticationFailed(message, provider=provider)
    return translate_raised(error, provider)
