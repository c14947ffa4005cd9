"""Adapters that misread failures, or take for an answer what is none."""

from collections.abc import Callable, Mapping
from typing import Any

from sabir import CallError, RateLimited, Reply
from sabir.contract.scope import DecodeScope
from sabir.errors import (
    CallTimedOut,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ResponseInvalid,
    ServerFailed,
)
from sabir_testing.families.errors import ERROR_BODIES, INVALID_BODIES, PAGE

from tests.testing.harness import Breakage, changed

Headers = Mapping[str, str]
MISTAKEN: Mapping[int, type[CallError]] = {
    400: ModelNotFound,
    401: PermissionDenied,
    403: ModelNotFound,
    404: InvalidRequest,
    408: ServerFailed,
    413: PermissionDenied,
    422: PermissionDenied,
    429: Overloaded,
    500: Overloaded,
    502: CallTimedOut,
    503: RateLimited,
    504: RateLimited,
    529: RateLimited,
}
"""Status → a wrong class, as ready to be sent again as the right one."""


def misjudging(is_meant: Callable[[int, Headers, bytes], bool], change: Callable[[CallError], CallError]) -> Breakage:
    """Acme that reads some refusals wrongly."""

    def decode_error(own: Any, status: int, headers: Headers, body: bytes, provider: str) -> CallError:
        error: CallError = own(status, headers, body, provider)
        return change(error) if is_meant(status, headers, body) else error

    return changed(decode_error=decode_error)


def of_page(status: int, change: Callable[[CallError], CallError]) -> Breakage:
    """Acme that misreads a proxy's page of one status."""
    return misjudging(lambda given, headers, body: given == status and body == PAGE, change)


def of_vendor(status: int, change: Callable[[CallError], CallError]) -> Breakage:
    """Acme that misreads the vendor's own words of one status."""
    return misjudging(lambda given, headers, body: given == status and body != PAGE, change)


def waiting(*, for_seconds: bool) -> Breakage:
    """Acme that knows one form of `retry-after`."""
    return misjudging(
        lambda status, headers, body: headers.get("retry-after", "").isdigit() != for_seconds,
        lambda error: with_fields(error, retry_after=None),
    )


def mistaking(status: int) -> Breakage:
    """Acme with one status that is taken for another failure."""
    return of_page(status, lambda error: as_class(MISTAKEN[status], error))


def raising(at: bytes) -> Breakage:
    """Acme that fails at one body of a refusal."""

    def decode_error(own: Any, status: int, headers: Headers, body: bytes, provider: str) -> CallError:
        if body == at:
            raise KeyError("message")
        return own(status, headers, body, provider)

    return changed(decode_error=decode_error)


def believing(is_meant: Callable[[bytes], bool]) -> Breakage:
    """Acme that takes bodies for an empty answer that are none."""

    def decode(own: Any, body: bytes, scope: DecodeScope) -> Any:
        empty = Reply(messages=(), finish_reason="stop", origin=scope.origin())
        return empty if is_meant(body) else own(body, scope)

    return changed(decode=decode)


def baffled(own: Any, body: bytes, scope: DecodeScope) -> Any:
    """It does not look for an error in an answer."""
    if b'"error"' in body:
        raise ResponseInvalid("there are no parts")
    return own(body, scope)


def with_fields(error: CallError, **fields: Any) -> CallError:
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def as_class(kind: type[CallError], error: CallError, words: str = "") -> CallError:
    """The same failure as another class, or in other words."""
    said = {name: getattr(error, name) for name in ("provider", "status", "code", "request_id", "retry_after")}
    return kind(words or str(error), **said)


BROKEN: Mapping[str, Breakage] = {
    **{f"test_a_status_says_what_failed[{status}]": mistaking(status) for status in MISTAKEN},
    "test_a_refusal_keeps_its_status": of_page(422, lambda error: with_fields(error, status=None)),
    "test_a_refusal_says_whether_to_send_again": of_page(422, lambda error: with_fields(error, retryable=True)),
    "test_a_wait_in_seconds_is_kept": waiting(for_seconds=False),
    "test_a_wait_until_a_date_is_kept": waiting(for_seconds=True),
    "test_a_refusal_names_its_provider": of_page(429, lambda error: with_fields(error, provider="acme")),
    **{f"test_a_refusal_of_any_body_is_an_error[{name}]": raising(body) for name, body in ERROR_BODIES.items()},
    **{f"test_what_is_no_answer_is_no_reply[{name}]": believing(body.__eq__) for name, body in INVALID_BODIES.items()},
    "test_half_an_answer_is_no_reply": believing(lambda body: body[:5] == b'{"id"' and body[-1:] != b"}"),
    "test_an_error_says_what_the_vendor_said": of_vendor(
        404, lambda error: as_class(type(error), error, f"{error.provider} answered 404")
    ),
    "test_an_error_keeps_the_vendors_code": of_vendor(404, lambda error: with_fields(error, code=None)),
    "test_an_error_that_comes_as_an_answer_is_read": changed(decode=baffled),
}
