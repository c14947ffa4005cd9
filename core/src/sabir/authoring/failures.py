"""What failures have in common at every provider: statuses, waiting times, and what HTTP clients raise.

an error body ──read_failure──▶ Failure ── the plugin's codes and words ──make_error──▶ CallError
what the SDK or its HTTP client raised ──translate_raised──▶ CallError, without importing either
"""

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple, TypeAlias

from sabir import errors
from sabir.base.errors import NotJSON, one_line
from sabir.base.failures import CallError
from sabir.base.values import JSONValue, decode_json

Words: TypeAlias = Sequence[tuple[re.Pattern[str], type[CallError]]]
"""Words of an error's message, and what they make it; the first match counts."""

STATUSES: Mapping[int, type[CallError]] = {
    401: errors.AuthenticationFailed,
    402: errors.QuotaExceeded,
    403: errors.PermissionDenied,
    404: errors.ModelNotFound,
    408: errors.CallTimedOut,
    413: errors.RequestTooLarge,
    429: errors.RateLimited,
    503: errors.Unavailable,
    529: errors.Overloaded,
}
REMEDIES: Mapping[type[CallError], str] = {
    errors.AuthenticationFailed: "check the key",
    errors.PermissionDenied: "use a key that may do this",
    errors.ModelNotFound: "check the model's name and the endpoint",
    errors.ContextTooLong: "send less, or use a model with a longer context",
    errors.RequestTooLarge: "send less, or upload media first",
    errors.QuotaExceeded: "add credit or raise the limit",
    errors.RateLimited: "send again later",
    errors.ContentFiltered: "change the request",
    errors.InvalidRequest: "change the request",
}
HTTP_MODULES = ("httpx2", "httpx", "ssl", "anyio", "builtins")
"""Modules whose errors reach a provider's connection, whatever its SDK is."""


class Failure(NamedTuple):
    """What a provider says of a failure, whichever way it says it."""

    message: str = ""
    code: str = ""
    kind: str = ""
    status: int | None = None


def read_failure(body: bytes) -> Failure:
    """What the body of a refusal says, whatever it is."""
    said = body.decode("utf-8", "replace").strip()
    try:
        return failure_of(decode_json(said))
    except NotJSON:
        return Failure("a page of HTML" if said[:200].lstrip().startswith("<") else one_line(said, 300))


def failure_of(body: JSONValue) -> Failure:
    """What the many shapes of an error body say: an `error` object, a `detail`, a list of one, a bare text."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error") or body.get("detail") or body.get("errors") or body
        if isinstance(inner, list) and inner:
            inner = inner[0]
        body = inner if isinstance(inner, Mapping | str) else body
    if not isinstance(body, Mapping):
        return Failure(str(body))
    code, status = body.get("code"), body.get("status")
    numbers = (number for number in (status, code) if isinstance(number, int) and 400 <= number < 600)
    message = body.get("message") or body.get("msg") or body.get("detail") or ""
    return Failure(str(message), str(code or ""), str(body.get("type") or ""), next(numbers, None))


KindOf: TypeAlias = Callable[[Failure, int | None], type[CallError]]
"""A provider's own table: what it says of a failure, and the status where there is one → what that is."""


def make_error(
    kind: type[CallError],
    found: Failure,
    *,
    provider: str,
    status: int | None = None,
    request_id: str | None = None,
    retry_after: float | None = None,
) -> CallError:
    """The error of that kind in one line: who answered what, and the remedy. `retry_after` is in seconds."""
    said = (found.message or found.code or found.kind or "no message").rstrip(" .")
    answered = f"{provider} answered {status}" if status else f"{provider} reported an error"
    remedy = f"; {REMEDIES[kind]}" if kind in REMEDIES else ""
    message, code = f"{answered}: {said}{remedy}", found.code or found.kind or None
    return kind(message, provider=provider, status=status, code=code, request_id=request_id, retry_after=retry_after)


def refusal(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    provider: str,
    kind_of: KindOf,
    request_ids: Sequence[str] = (),
) -> CallError:
    """The error that a response of status ≥ 400 stands for; `request_ids` are the headers that may hold its id."""
    found, waiting = read_failure(body), retry_after(headers)
    kind = kind_of(found, status)
    request_id = next((headers[name] for name in request_ids if name in headers), None)
    return make_error(kind, found, provider=provider, status=status, request_id=request_id, retry_after=waiting)


def reported(error: JSONValue, *, provider: str, kind_of: KindOf, request_id: str | None = None) -> CallError:
    """The error that an `error` object stands for, where it came with status 200 or in a stream."""
    found = failure_of({"error": error})
    kind = kind_of(found, found.status)
    return make_error(kind, found, provider=provider, status=found.status, request_id=request_id)


def kind_of_words(message: str, words: Words) -> type[CallError] | None:
    """What the words of a message make an error; None for words that say nothing."""
    return next((kind for pattern, kind in words if pattern.search(message)), None)


def compile_words(*rows: tuple[str, type[CallError]]) -> Words:
    """A table of words, as expressions without regard to case."""
    return tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in rows)


def kind_of_status(status: int) -> type[CallError]:
    """What a status of 400 and above says by itself."""
    return STATUSES.get(status) or (errors.ServerFailed if status >= 500 else errors.InvalidRequest)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        return max(seconds, 0.0) if seconds < float("inf") else None
    try:
        at = parsedate_to_datetime(headers["retry-after"])
        now = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return max((at - now).total_seconds(), 0.0)
    except (KeyError, ValueError, TypeError):
        return None


RAISED: tuple[tuple[str, type[CallError], str], ...] = (
    ("APITimeoutError", errors.CallTimedOut, "gave no answer in time; raise the timeout"),
    ("TimeoutException", errors.CallTimedOut, "gave no answer in time; raise the timeout"),
    ("LocalProtocolError", errors.InvalidRequest, "was not asked, for the request is no HTTP; check its headers"),
    ("UnicodeEncodeError", errors.InvalidRequest, "was not asked, for a header is not ASCII; check them"),
    ("UnsupportedProtocol", errors.InvalidRequest, "has no http(s) endpoint; check base_url"),
    ("InvalidURL", errors.InvalidRequest, "has an endpoint that is no URL; check base_url"),
    ("DecodingError", errors.ResponseInvalid, "answered with a body that cannot be decompressed"),
    ("TooManyRedirects", errors.ResponseInvalid, "redirects in a circle; check base_url"),
    ("RequestError", errors.ConnectionFailed, "cannot be reached, or broke off; check the network and base_url"),
    ("StreamError", errors.ConnectionFailed, "was closed while its answer was read"),
    ("SSLError", errors.ConnectionFailed, "cannot be reached safely; check its certificate"),
    ("EndOfStream", errors.ConnectionFailed, "broke off"),
    ("APIConnectionError", errors.ConnectionFailed, "cannot be reached; check the network and base_url"),
)
"""Class of what the SDK or its HTTP client raises, what it is for a caller, and the words; the first match counts."""
_SECRETIVE = frozenset({"LocalProtocolError", "UnicodeEncodeError", "InvalidURL"})
"""Classes whose own text may show a header's value or a password of the URL."""


def translate_raised(error: BaseException, provider: str, modules: Collection[str] = ()) -> CallError | None:
    """The library error for what an HTTP client, or an SDK in `modules`, raised; None for what is not the wire's."""
    modules = (*modules, *HTTP_MODULES)
    for name, kind, words in RAISED:
        if is_a(error, name, modules):
            said = type(error).__name__ if name in _SECRETIVE else f"{type(error).__name__}: {error}".removesuffix(": ")
            return kind(f"{provider} {words} ({said})", provider=provider)
    return None


def unwrapped(error: BaseException, module: str) -> BaseException:
    """What stands behind the connection error of a vendor's SDK; another error as it is."""
    cause = error.__cause__
    return cause if cause is not None and is_a(error, "APIConnectionError", (module,)) else error


def is_a(error: BaseException, name: str, modules: Collection[str]) -> bool:
    """Whether an error is of that class of a module that is loaded; nothing is imported for the question."""
    found = (getattr(sys.modules.get(module), name, None) for module in modules)
    return any(isinstance(kind, type) and isinstance(error, kind) for kind in found)
