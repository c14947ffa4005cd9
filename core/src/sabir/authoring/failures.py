"""Convert failures of vendors and SDKs to sabir's errors.

    an error body, or an error in a stream ──▶ Failure ──rules, then the status──▶ CallError
    an exception of the SDK or its HTTP client ──translate──▶ CallError, without importing either

Each message is one line with the remedy.
"""

import re
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeAlias

from sabir import errors
from sabir.authoring.clients import secrets_of, variables_behind
from sabir.authoring.efforts import named_efforts
from sabir.base.errors import NotJSON, conceal, one_line
from sabir.base.failures import CallError
from sabir.base.values import FrozenDict, JSONValue, decode_json
from sabir.contract.scope import DecodeScope

STATUSES: Mapping[int, type[CallError]] = {
    401: errors.AuthenticationFailed, 402: errors.QuotaExceeded, 403: errors.PermissionDenied,
    404: errors.ModelNotFound, 408: errors.CallTimedOut, 413: errors.RequestTooLarge,
    429: errors.RateLimited, 503: errors.Unavailable, 529: errors.Overloaded,
}  # fmt: skip
"""HTTP status → error class. `kind_of_status` returns the class for other statuses."""
REMEDIES: Mapping[type[CallError], str] = {
    errors.AuthenticationFailed: "check the key", errors.PermissionDenied: "use a key that may do this",
    errors.ModelNotFound: "check the model's name and the endpoint",
    errors.ContextTooLong: "send less, or use a model with a longer context",
    errors.RequestTooLarge: "send less, or upload media first",
    errors.QuotaExceeded: "add credit or raise the limit", errors.RateLimited: "send again later",
    errors.ContentFiltered: "change the request", errors.InvalidRequest: "change the request",
}  # fmt: skip
"""Error class → the remedy at the end of the message."""
_UNSUPPORTED = re.compile(
    r"(?i)unsupported|not (?:be )?(?:supported|permitted|allowed|enabled)|(?:does not|doesn't) (?:support|accept)"
    r"|deprecated|unrecognized|unknown (?:name|field|parameter|argument)|only works"
)
"""Matches error texts that refuse a parameter, or a value of a parameter, for one model."""
_LONGEST_REFUSAL = 300
"""The largest number of characters of such an error text in a message, so that the remedy after it is never cut."""
HTTP_MODULES = ("httpx2", "httpx", "ssl", "anyio", "builtins")
"""Modules of HTTP clients, whose exceptions may reach a connection with any SDK."""


class Failure(NamedTuple):
    """A failure as a vendor reports it, before it becomes an error class. Passed to the rules of an ErrorTable.

    `message`, `code` and `kind` (the vendor's error type) are "" if the vendor sent none. `status` is the HTTP status
    inside the body, from 400 to 599, or None. `body` is the JSON object that describes the failure; empty if there is
    none. `headers` are the headers of the response, with names in lower case; empty for an error in a stream.
    """

    message: str = ""
    code: str = ""
    kind: str = ""
    status: int | None = None
    body: Mapping[str, JSONValue] = FrozenDict()
    headers: Mapping[str, str] = FrozenDict()


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """One rule of an ErrorTable: it maps some failures of a vendor to error classes. Usually created by `by_codes`,
    `by_words` or `by_status`.

    `says` is a function of the Failure and the HTTP status (None for an error in a stream that names no status). It
    returns an error class, or None if the rule does not apply.
    """

    says: Callable[[Failure, int | None], type[CallError] | None]

    @classmethod
    def by_codes(cls, table: Mapping[str, type[CallError]], at: Collection[int | None] | None = None) -> "ErrorRule":
        """Return a rule that maps error codes and error types to error classes. Upper and lower case are equal, and `*`
        in a key of `table` matches any characters. The code is looked up before the type.

        `at` are the HTTP statuses for which the rule applies, with None for errors without a status; by default all.
        """
        rows = [(code.lower(), kind) for code, kind in table.items()]

        def says(failure: Failure, status: int | None) -> type[CallError] | None:
            words = [word.lower() for word in (failure.code, failure.kind) if word and (at is None or status in at)]
            return next((kind for word in words for code, kind in rows if fnmatchcase(word, code)), None)

        return cls(says)

    @classmethod
    def by_words(cls, *rows: tuple[str, type[CallError]], at: Collection[int | None] | None = None) -> "ErrorRule":
        """Return a rule that maps words in the error message to error classes. Each row is a regular expression, which
        is searched in the message, and an error class; case is ignored. The first row that matches decides.

        `at` are the HTTP statuses for which the rule applies, with None for errors without a status; by default all.
        """
        patterns = [(re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in rows]

        def says(failure: Failure, status: int | None) -> type[CallError] | None:
            matching = (kind for pattern, kind in patterns if pattern.search(failure.message))
            return next(matching, None) if at is None or status in at else None

        return cls(says)

    @classmethod
    def by_status(cls, table: Mapping[int, type[CallError]]) -> "ErrorRule":
        """Return a rule that maps HTTP statuses to error classes, for statuses with an unusual meaning."""
        return cls(lambda failure, status: table.get(status or 0))


Raised: TypeAlias = tuple[str, type[CallError] | None, str]
"""One row of `ErrorTable.raised`: the name of an exception class of the SDK; the error class, or None if the exception
is not a failure of the request and must be raised unchanged; and the message after the provider's name.
"""


@dataclass(frozen=True, kw_only=True)
class ErrorTable:
    """Maps a vendor's failures to sabir's error classes. The first of `rules` that applies decides, otherwise the HTTP
    status. `ErrorTable()` is enough for an API that uses statuses only.

    If an InvalidRequest reports a parameter of `settings` as unsupported, its message tells the user which setting to
    leave out or change.

    >>> from sabir.authoring import ErrorRule, ErrorTable
    >>> from sabir.errors import ContextTooLong
    >>> errors = ErrorTable(rules=(ErrorRule.by_codes({"too_long": ContextTooLong}),))
    >>> errors.decode(400, {}, b'{"error": {"code": "too_long", "message": "Too long"}}', "acme")
    ContextTooLong('acme answered 400: Too long; send less, or use a model with a longer context')
    """

    rules: tuple[ErrorRule, ...] = ()
    """The rules, in order. The first rule that applies decides."""
    modules: tuple[str, ...] = ()
    """The names of the SDK's modules, for example ("acme",). `translate` recognizes exceptions of these modules."""
    raised: tuple[Raised, ...] = ()
    """Further exceptions of the SDK that are failures of a request, or that must be raised unchanged. See Raised."""
    settings: Mapping[str, str] = FrozenDict()
    """Parameter of the API → the setting of sabir that is sent as this parameter, for remedies in messages."""
    wait: Callable[[Failure], float | None] | None = None
    """A function that reads from a Failure how many seconds to wait before a retry. If `wait` is None or returns None,
    the headers `retry-after-ms` and `retry-after` decide.
    """
    code_header: str = ""
    """The name, in lower case, of the response header with the vendor's error code; "" if the API sends no such header.
    The code in the header takes precedence over a code in the body.
    """

    def decode(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        """Return the CallError for a response with a status of 400 or more. Header names must be in lower case. Use as
        `Dialect.decode_error`.
        """
        text = body.decode("utf-8", "replace").strip()
        try:
            failure = failure_of(decode_json(text))
        except NotJSON:
            failure = Failure("a page of HTML" if text[:200].lstrip().startswith("<") else one_line(text, 300))
        code = headers.get(self.code_header) or failure.code
        return self._error(failure._replace(headers=headers, code=code), status, provider, retry_after(headers))

    def report(self, error: JSONValue, scope: DecodeScope) -> CallError:
        """Return the CallError for an error object in a response with status 200 or in a stream. The caller raises the
        error. Without a rule that applies and without a status in the object, the class is ServerFailed.
        """
        failure = failure_of({"error": error})
        reported = self._error(failure, failure.status, scope.target.provider)
        reported.request_id = scope.request_id
        return reported

    def translate(self, error: BaseException, provider: str, url_source: str = "base_url") -> CallError | None:
        """Return the CallError for an exception of the SDK or its HTTP client. None for other exceptions, and for those
        that `raised` excludes. Use in `Connection.translate`.

        `url_source` says where the endpoint's URL comes from, for messages; `SDKProvider.url_source` returns it.
        If the exception has a request, its keys and tokens are first removed from the texts of the exception itself.
        """
        with suppress(AttributeError, RuntimeError):  # the exception has no request; httpx raises RuntimeError
            conceal(error, secrets_of(error.request))  # type: ignore[attr-defined]
        if _is_a(error, "APIStatusError", self.modules):
            response: Any = error.response  # type: ignore[attr-defined]
            return self.decode(response.status_code, dict(response.headers), response.content, provider)
        if error.__cause__ is not None and _is_a(error, "APIConnectionError", self.modules):
            error = error.__cause__
        modules = (*self.modules, *HTTP_MODULES)
        for name, kind, text in (*RAISED, *self.raised):
            if _is_a(error, name, modules):
                variables = " and ".join(variables_behind(error)) if name in _BY_ENVIRONMENT else ""
                advice = text.replace("base_url", url_source) + (f"; also check {variables}" if variables else "")
                message = f"{provider} {advice} ({_describe_exception(error, name)})"
                return kind(message, provider=provider) if kind else None
        return None

    def _error(self, failure: Failure, status: int | None, provider: str, delay: float | None = None) -> CallError:
        """Return the error for a failure. The message names the provider, the status, the vendor's text and the remedy.

        `delay` is the seconds from the header `retry-after`, or None.
        """
        kinds = (rule.says(failure, status) for rule in self.rules)
        kind = next(filter(None, kinds), None) or kind_of_status(status or 500)
        text = (failure.message or failure.code or failure.kind or "no message").rstrip(" .")
        answered = f"{provider} answered {status}" if status else f"{provider} reported an error"
        remedy = f"; {REMEDIES[kind]}" if kind in REMEDIES else ""
        if kind is errors.InvalidRequest and (override := self._unsupported_remedy(failure)):
            text, remedy = one_line(text, _LONGEST_REFUSAL), f"; {override}"
        wait = self.wait(failure) if self.wait else None
        facts: dict[str, Any] = {"status": status, "code": failure.code or failure.kind or None}
        wait = delay if wait is None else wait
        return kind(f"{answered}: {text}{remedy}", provider=provider, retry_after=wait, **facts)

    def _unsupported_remedy(self, failure: Failure) -> str:
        """Return the remedy if the failure says that the model does not support a parameter; "" for other failures."""
        text, parameter = failure.message, failure.body.get("param")
        if not _UNSUPPORTED.search(text):
            return ""
        named = (name for name in self.settings if re.search(rf"(?i)(?<![\w.]){re.escape(name)}(?!\w)", text))
        name = parameter if isinstance(parameter, str) and parameter in self.settings else next(named, "")
        setting = self.settings.get(name, "")
        if setting == "reasoning_effort":
            return f"change {setting}, or pass model_facts={{'efforts': {named_efforts(text)}}}"
        return f"leave out {setting}, or pass model_facts={{'rejects': [{setting!r}]}} to drop it" if setting else ""


def failure_of(body: JSONValue) -> Failure:
    """Return the Failure for a parsed error body of a common form: an object with `error`, `detail` or `errors`, a list
    of such objects, or a text.

    A status that is a name is used instead of a `code` that is a number, because the name says more.
    """
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error") or body.get("detail") or body.get("errors") or body
        if isinstance(inner, list) and inner:
            inner = inner[0]
        body = inner if isinstance(inner, Mapping | str) else body
    if not isinstance(body, Mapping):
        return Failure(str(body))
    code, status = body.get("code"), body.get("status") or body.get("status_code")
    number = next((each for each in (status, code) if isinstance(each, int) and 400 <= each < 600), None)
    if isinstance(status, str) and not isinstance(code, str):
        code = status
    message = body.get("message") or body.get("msg") or body.get("detail") or ""
    return Failure(str(message), str(code or ""), str(body.get("type") or ""), number, body)


def kind_of_status(status: int) -> type[CallError]:
    """Return the error class for an HTTP status of 400 or more: by STATUSES, else ServerFailed from 500, else
    InvalidRequest.
    """
    return STATUSES.get(status) or (errors.ServerFailed if status >= 500 else errors.InvalidRequest)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from the headers `retry-after-ms` or `retry-after` (seconds or an HTTP date). Never
    negative. None if both headers are missing or invalid, or if a number in them is not finite. Names must be in lower
    case.
    """
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


_UNREACHABLE = "cannot be reached, or closed the connection early; check the network and base_url"
RAISED: tuple[Raised, ...] = (
    ("APITimeoutError", errors.CallTimedOut, "did not answer in time; raise the timeout"),
    ("TimeoutException", errors.CallTimedOut, "did not answer in time; raise the timeout"),
    ("LocalProtocolError", errors.InvalidRequest, "was not called: the request is not valid HTTP; check its headers"),
    ("UnicodeEncodeError", errors.InvalidRequest, "was not called, because a header is not ASCII; check the headers"),
    ("UnsupportedProtocol", errors.InvalidRequest, "has no http(s) endpoint; check base_url"),
    ("InvalidURL", errors.InvalidRequest, "has an endpoint that is not a URL; check base_url"),
    ("DecodingError", errors.ResponseInvalid, "answered with a body that cannot be decompressed"),
    ("TooManyRedirects", errors.ResponseInvalid, "redirects in a loop; check base_url"),
    ("RequestError", errors.ConnectionFailed, _UNREACHABLE),
    ("StreamError", errors.ConnectionFailed, "was closed before its answer was read completely"),
    ("SSLError", errors.ConnectionFailed, "cannot be reached safely; check its certificate"),
    ("EndOfStream", errors.ConnectionFailed, "broke off"),
    ("APIConnectionError", errors.ConnectionFailed, "cannot be reached; check the network and base_url"),
)
"""Rows for exceptions of SDKs and HTTP clients in general: class name, error class, end of the message. The first row
that matches decides.
"""
_BY_ENVIRONMENT = frozenset({"RequestError", "SSLError", "APIConnectionError"})
"""Exceptions that a proxy or a certificate named by an environment variable may cause."""
_SECRETIVE = frozenset({"LocalProtocolError", "UnicodeEncodeError", "InvalidURL"})
"""Exceptions whose text may contain a header's value or the URL's password."""


def _describe_exception(error: BaseException, name: str) -> str:
    """Return an exception's class name, and its text if the text cannot contain a secret."""
    class_name = type(error).__name__
    return class_name if name in _SECRETIVE else f"{class_name}: {error}".removesuffix(": ")


def _is_a(error: BaseException, name: str, modules: Collection[str]) -> bool:
    """Return whether an error is an instance of the class `name` of one of the modules. Imports nothing: only modules
    that are loaded count.
    """
    kinds = (getattr(sys.modules.get(module), name, None) for module in modules)
    return any(isinstance(kind, type) and isinstance(error, kind) for kind in kinds)
