"""The error table of OpenAI and of the endpoints that speak its dialects: what each failure is for a caller.

    status, headers, body ──decode_error──▶ CallError        the code decides, else the words, else the status
    an `error` object in a body or stream ──report──▶ CallError
    what the SDK or its HTTP client raised ──translate──▶ CallError, without importing either

Codes: https://developers.openai.com/api/docs/guides/error-codes, and those of Azure, llama.cpp and others beside it.
"""

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from sabir.errors import (
    AuthenticationFailed,
    CallError,
    CallTimedOut,
    ConnectionFailed,
    ContentFiltered,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    NotJSON,
    Overloaded,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ResponseInvalid,
    ServerFailed,
    Unavailable,
)
from sabir.values import JSONValue, decode_json

_CODES: Mapping[str, type[CallError]] = {
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
}
_WORDS: tuple[tuple[re.Pattern[str], type[CallError]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"context (length|window|size)|prompt is too long|maximum (input|prompt) length", ContextTooLong),
        (r"insufficient (balance|credit|quota|funds)|exceeded your current quota|out of credits", QuotaExceeded),
        (r"content management policy|input was flagged|flagged as potentially", ContentFiltered),
        (r"model\b.{0,80}\b(not found|does not exist|is not available)", ModelNotFound),
    )
)
_INPUT_CODES = re.compile(r"image|data_residency_mismatch")
"""Codes of a failed response, which has no status, that blame what was sent."""
_STATUSES: Mapping[int, type[CallError]] = {
    401: AuthenticationFailed,
    402: QuotaExceeded,
    403: PermissionDenied,
    404: ModelNotFound,
    408: CallTimedOut,
    413: RequestTooLarge,
    429: RateLimited,
    503: Unavailable,
    529: Overloaded,
}
_REMEDIES: Mapping[type[CallError], str] = {
    AuthenticationFailed: "check the key",
    PermissionDenied: "use a key that may do this",
    ModelNotFound: "check the model's name and the endpoint",
    ContextTooLong: "send less, or use a model with a longer context",
    RequestTooLarge: "send less, or upload media first",
    QuotaExceeded: "add credit or raise the limit",
    RateLimited: "send again later",
    ContentFiltered: "change the request",
    InvalidRequest: "change the request",
}
_REQUEST_IDS = ("x-request-id", "apim-request-id", "request-id")


class Failure(NamedTuple):
    """What a provider says of a failure, whichever way it says it."""

    message: str = ""
    code: str = ""
    kind: str = ""
    status: int | None = None


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """The error that a response of status ≥ 400 stands for; header names are lower case."""
    text = body.decode("utf-8", "replace").strip()
    try:
        found = _failure(decode_json(text))
    except NotJSON:
        found = Failure("a page of HTML" if text[:200].lstrip().startswith("<") else text[:300])
    request_id = next((headers[name] for name in _REQUEST_IDS if name in headers), None)
    return _error(found, provider, status, request_id, _retry_after(headers))


def report(error: JSONValue, *, provider: str, request_id: str | None = None) -> CallError:
    """The error that an `error` object stands for, where it came with status 200 or in a stream."""
    found = _failure({"error": error})
    return _error(found, provider, found.status, request_id, None)


def _failure(body: JSONValue) -> Failure:
    """What the many shapes of an error body say: OpenAI's, FastAPI's `detail`, a list of one, a bare text."""
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


def _error(
    found: Failure, provider: str, status: int | None, request_id: str | None, retry_after: float | None
) -> CallError:
    kind = _kind(found, status)
    said = (found.message or found.code or found.kind or "no message").rstrip(" .")
    answered = f"{provider} answered {status}" if status else f"{provider} reported an error"
    remedy = f"; {_REMEDIES[kind]}" if kind in _REMEDIES else ""
    code = found.code or found.kind or None
    return kind(
        f"{answered}: {said}{remedy}",
        provider=provider,
        status=status,
        code=code,
        request_id=request_id,
        retry_after=retry_after,
    )


def _kind(found: Failure, status: int | None) -> type[CallError]:
    for word in (found.code.lower(), found.kind.lower()):
        if word in _CODES:
            return _CODES[word]
        if word.endswith("_spend_limit_exceeded"):
            return QuotaExceeded
    if status not in (401, 413):
        for pattern, kind in _WORDS:
            if pattern.search(found.message):
                return kind
    if status is None:
        is_ours = found.kind == "invalid_request_error" or _INPUT_CODES.search(found.code)
        return InvalidRequest if is_ours else ServerFailed
    if status == 503 and "overloaded" in found.message.lower():
        return Overloaded
    return _STATUSES.get(status) or (ServerFailed if status >= 500 else InvalidRequest)


def _retry_after(headers: Mapping[str, str]) -> float | None:
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


_RAISED: tuple[tuple[str, type[CallError], str], ...] = (
    ("APITimeoutError", CallTimedOut, "gave no answer in time; raise the timeout"),
    ("TimeoutException", CallTimedOut, "gave no answer in time; raise the timeout"),
    ("LocalProtocolError", InvalidRequest, "was not asked, for the request is no HTTP; check its headers"),
    ("UnicodeEncodeError", InvalidRequest, "was not asked, for a header is not ASCII; check them"),
    ("UnsupportedProtocol", InvalidRequest, "has no http(s) endpoint; check base_url"),
    ("InvalidURL", InvalidRequest, "has an endpoint that is no URL; check base_url"),
    ("DecodingError", ResponseInvalid, "answered with a body that cannot be decompressed"),
    ("TooManyRedirects", ResponseInvalid, "redirects in a circle; check base_url"),
    ("RequestError", ConnectionFailed, "cannot be reached, or broke off; check the network and base_url"),
    ("StreamError", ConnectionFailed, "was closed while its answer was read"),
    ("SSLError", ConnectionFailed, "cannot be reached safely; check its certificate"),
    ("EndOfStream", ConnectionFailed, "broke off"),
    ("APIConnectionError", ConnectionFailed, "cannot be reached; check the network and base_url"),
)
"""Class of what the SDK or its HTTP client raises, what it is for a caller, and the words; the first match counts."""
_SECRETIVE = frozenset({"LocalProtocolError", "UnicodeEncodeError", "InvalidURL"})
"""Classes whose own text may show a header's value or a password of the URL."""
_MODULES = ("openai", "httpx2", "httpx", "ssl", "anyio", "builtins")


def translate(error: BaseException, provider: str) -> CallError | None:
    """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
    if _is_a(error, "APIStatusError"):
        response: Any = error.response  # type: ignore[attr-defined]
        return decode_error(response.status_code, dict(response.headers), response.content, provider)
    if _is_a(error, "APIConnectionError") and error.__cause__ is not None:
        error = error.__cause__
    for name, kind, words in _RAISED:
        if _is_a(error, name):
            said = type(error).__name__ if name in _SECRETIVE else f"{type(error).__name__}: {error}".removesuffix(": ")
            return kind(f"{provider} {words} ({said})", provider=provider)
    return None


def _is_a(error: BaseException, name: str) -> bool:
    """Whether an error is of that class of a module that is loaded; nothing is imported for the question."""
    found = (getattr(sys.modules.get(module), name, None) for module in _MODULES)
    return any(isinstance(kind, type) and isinstance(error, kind) for kind in found)
