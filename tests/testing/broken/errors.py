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
from sabir_testing.families.errors import NO_ANSWERS, PAGE, REFUSALS

from tests.testing.harness import Breakage, Delegate

Changed = Callable[[CallError], CallError]
"""An error → the wrong one that stands for it."""
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


class Misjudges(Delegate):
    """A dialect that reads some refusals wrongly: those with a page, or with a body of the vendor's."""

    def __init__(self, base: Any, status: int, change: Changed, *, of_page: bool = True) -> None:
        super().__init__(base)
        self.status, self.change, self.of_page = status, change, of_page

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        error: CallError = self.base.decode_error(status, headers, body, provider)
        is_meant = status == self.status and (body == PAGE) == self.of_page
        return self.change(error) if is_meant else error


class Raises(Delegate):
    """A dialect that fails at one body of a refusal."""

    def __init__(self, base: Any, body: bytes) -> None:
        super().__init__(base)
        self.body = body

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        if body == self.body:
            raise KeyError("message")
        error: CallError = self.base.decode_error(status, headers, body, provider)
        return error


class Credulous(Delegate):
    """A dialect that takes bodies for an empty answer that are none."""

    def __init__(self, base: Any, is_meant: Callable[[bytes], bool]) -> None:
        super().__init__(base)
        self.is_meant = is_meant

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        if self.is_meant(body):
            return Reply(messages=(), finish_reason="stop", origin=scope.origin())
        reply: Reply = self.base.decode(body, scope)
        return reply


class Baffled(Delegate):
    """A dialect that does not look for an error in an answer."""

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        if b'"error"' in body:
            raise ResponseInvalid("there are no parts")
        reply: Reply = self.base.decode(body, scope)
        return reply


def _with(error: CallError, **fields: Any) -> CallError:
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def _as(kind: type[CallError], error: CallError, words: str = "") -> CallError:
    """The same failure as another class, or in other words."""
    said = {name: getattr(error, name) for name in ("provider", "status", "code", "request_id", "retry_after")}
    return kind(words or str(error), **said)


def misjudging(status: int, change: Changed, *, of_page: bool = True) -> Breakage:
    """Acme with one refusal misread."""
    return Breakage(dialect=lambda base: Misjudges(base, status, change, of_page=of_page))


def mistaking(status: int) -> Breakage:
    """Acme with one status that is taken for another failure."""
    return misjudging(status, lambda error: _as(MISTAKEN[status], error))


def raising(body: bytes) -> Breakage:
    """Acme that fails at one body."""
    return Breakage(dialect=lambda base: Raises(base, body))


def believing(is_meant: Callable[[bytes], bool]) -> Breakage:
    """Acme that believes some bodies."""
    return Breakage(dialect=lambda base: Credulous(base, is_meant))


class WaitsInSeconds(Delegate):
    """A dialect that knows one form of retry-after."""

    has_seconds = True

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        error: CallError = self.base.decode_error(status, headers, body, provider)
        is_known = headers.get("retry-after", "").isdigit() == self.has_seconds
        return error if is_known else _with(error, retry_after=None)


class WaitsUntilDates(WaitsInSeconds):
    has_seconds = False


def _is_half(body: bytes) -> bool:
    return body.startswith(b'{"id"') and not body.endswith(b"}")


BROKEN: Mapping[str, Breakage] = {
    **{f"test_a_status_says_what_failed[{status}]": mistaking(status) for status in MISTAKEN},
    "test_a_refusal_keeps_its_status": misjudging(422, lambda error: _with(error, status=None)),
    "test_a_refusal_says_whether_to_send_again": misjudging(422, lambda error: _with(error, retryable=True)),
    "test_a_wait_in_seconds_is_kept": Breakage(dialect=WaitsUntilDates),
    "test_a_wait_until_a_date_is_kept": Breakage(dialect=WaitsInSeconds),
    "test_a_refusal_names_its_provider": misjudging(429, lambda error: _with(error, provider="acme")),
    **{f"test_a_refusal_of_any_body_is_an_error[{name}]": raising(body) for name, body in REFUSALS.items()},
    **{f"test_what_is_no_answer_is_no_reply[{name}]": believing(body.__eq__) for name, body in NO_ANSWERS.items()},
    "test_half_an_answer_is_no_reply": believing(_is_half),
    "test_an_error_says_what_the_vendor_said": misjudging(
        404, lambda error: _as(type(error), error, f"{error.provider} answered 404"), of_page=False
    ),
    "test_an_error_keeps_the_vendors_code": misjudging(404, lambda error: _with(error, code=None), of_page=False),
    "test_an_error_that_comes_as_an_answer_is_read": Breakage(dialect=Baffled),
}
