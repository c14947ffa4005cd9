"""One download as a generator without I/O: it yields steps, gets their results, and returns the medium.

    URL ──▶ FetchTarget ──LookUp──▶ addresses, all checked ──Connect──▶ status, headers ──Read, …──▶ FetchedMedia
                 ▲                                                            │
                 └───────────────────────── redirect ─────────────────────────┘

All decisions are made here; the drivers only look up names, open connections and read. An exception of a driver is
thrown into the generator, which raises an error with the URL. A step Connect uses the checked addresses, so that the
host of each URL is looked up only once.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias

import httpcore2
from pydantic import ConfigDict
from sabir.authoring import Frozen

from sabir_media.errors import AddressRefused, FetchFailed, FetchTimedOut, SizeRefused, refusal
from sabir_media.mimes import read_claim, verify_mime
from sabir_media.targets import Address, FetchTarget, Rules, address_refusal, find_refusal, follow_redirect, read_target


class FetchedMedia(Frozen):
    """A downloaded medium: its bytes, its MIME type (lower-case, without parameters), and the URL after redirects. In
    JSON the bytes are base64.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    data: bytes
    mime: str
    url: str


class Fetcher(Protocol):
    """The interface of objects that download media for `fetching`. GuardedFetcher implements it. Implement it yourself
    to download in another way, for example with credentials.
    """

    def fetch_sync(self, url: str) -> FetchedMedia:
        """Download a web URL and return the medium. Raises MediaRefused if the download is not allowed or fails."""

    async def fetch(self, url: str) -> FetchedMedia:
        """Async version of `fetch_sync`."""


class LookUp(NamedTuple):
    """The step that looks up a host name. Its result is the IP addresses as texts, `Sequence[str]`."""

    host: str
    port: int


class Connect(NamedTuple):
    """The step that closes the open connection, connects to one of the addresses, and sends the request for the target.
    Its result is a ResponseHead.
    """

    target: FetchTarget
    addresses: tuple[str, ...]


class Read(NamedTuple):
    """The step that reads more of the body. Its result is the next bytes, empty at the end."""


class ResponseHead(NamedTuple):
    """The status and headers of an HTTP response."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]

    def header(self, name: bytes) -> str | None:
        """Return the values of a header, joined by commas; None if the header is missing."""
        values = [value for key, value in self.headers if key.lower() == name]
        return b", ".join(values).decode("utf-8", "surrogateescape") if values else None


Step: TypeAlias = LookUp | Connect | Read
# The docstring of each step names the type of its result. A generator has one type for all sent values, hence Any.
Steps: TypeAlias = Generator[Step, Any, FetchedMedia]


class Download:
    """A running download. `step` is the next step; None at the end, when `media` is the downloaded medium."""

    step: Step | None
    media: FetchedMedia

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._advance(steps.send, None)

    def resume(self, step_result: Sequence[str] | ResponseHead | bytes) -> None:
        """Continue with the result of the present step. Raises MediaRefused if the result breaks a rule."""
        self._advance(self._steps.send, step_result)

    def fail(self, error: Exception) -> None:
        """End the download because of an exception of the present step, one of FAILURES: raises the MediaRefused for
        it.
        """
        self._advance(self._steps.throw, error)

    def _advance(self, continue_with: Callable[[Any], Step], value: object) -> None:
        try:
            self.step = continue_with(value)
        except StopIteration as end:
            self.step, self.media = None, end.value


_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LATER = "try again later"
_STATUS_REMEDIES = {
    401: "it needs credentials, which a fetch never sends: download it yourself and pass the bytes",
    403: "it may need credentials, which a fetch never sends: download it yourself and pass the bytes",
    404: "check the URL",
    410: "check the URL",
    429: _LATER,
}
_TIMED_OUT = "it took longer than `timeout`", "pass a larger timeout=, or download it yourself"
_NOT_HTTP = "the server closed the connection, or does not speak HTTP ({error})"
_FAILURES: tuple[tuple[type[Exception], type[FetchFailed], str, str], ...] = (
    (TimeoutError, FetchTimedOut, *_TIMED_OUT),
    (httpcore2.TimeoutException, FetchTimedOut, *_TIMED_OUT),
    (httpcore2.ConnectError, FetchFailed, "no connection ({error})", "check the URL and the network"),
    (httpcore2.NetworkError, FetchFailed, "the connection broke ({error})", _LATER),
    (httpcore2.ProtocolError, FetchFailed, _NOT_HTTP, "check the URL"),
    (OSError, FetchFailed, "its host was not found ({error})", "check the URL and the network"),
    (UnicodeError, FetchFailed, "its host was not found ({error})", "check the URL"),
)
"""Exception of a driver → the error class, its reason and its remedy. The first match counts."""
FAILURES = tuple(kind for kind, *_ in _FAILURES)
"""The exceptions of a driver that mean that the download failed. All other exceptions are raised unchanged."""


def fetch_steps(url: str, rules: Rules) -> Steps:
    """Yield the steps of a download, and return the medium. Raises MediaRefused at the first broken rule."""
    target = read_target(url, rules)
    for _ in range(rules.max_redirects + 1):
        with _convert_failures(target):
            head = yield from _open_target(target)
            if head.status not in _REDIRECTS:
                return (yield from _receive_body(target, head, rules))
        target = _next_target(target, head, rules)
    reason = f"it redirects more than {rules.max_redirects} times"
    raise refusal(FetchFailed, url, reason, "use the final URL, or pass a larger max_redirects=")


def _open_target(target: FetchTarget) -> Generator[Step, Any, ResponseHead]:
    """Look up the host if needed, check its addresses, and send the request. Return the response's head."""
    answers: Sequence[str] = (target.host,)
    if target.address is None:
        answers = yield LookUp(target.host, target.port)
    if not answers:
        raise refusal(FetchFailed, target.url, "its host has no address", "check the URL")
    refused = find_refusal(answers, _allow_any if target.permitted else address_refusal)
    if refused:
        remedy = f"to allow it, add '{target.host}:{target.port}' to allow_hosts"
        raise refusal(AddressRefused, target.url, f"its host has the address {refused}", remedy)
    head: ResponseHead = yield Connect(target, tuple(dict.fromkeys(answers)))
    return head


def _allow_any(address: Address) -> None:
    """Return None for every address: all addresses of a host in `allow_hosts` are allowed."""


def _receive_body(target: FetchTarget, head: ResponseHead, rules: Rules) -> Generator[Step, Any, FetchedMedia]:
    """Read the body, and return the medium. Raises MediaRefused for a wrong status, type or size."""
    _check_status(target, head)
    claimed = read_claim(target.url, head.header(b"content-type"), rules.allowed_mimes)
    announced = head.header(b"content-length") or "0"
    if announced.isdecimal() and int(announced) > rules.max_bytes:
        raise _too_large(target, f"it has {announced} bytes", rules)
    body = bytearray()
    while True:
        chunk: bytes = yield Read()
        if not chunk:
            break
        body += chunk
        if len(body) > rules.max_bytes:
            raise _too_large(target, f"its body has {len(body)} bytes or more", rules)
    data = bytes(body)
    mime = verify_mime(target.url, claimed, data, rules.allowed_mimes)
    return FetchedMedia(data=data, mime=mime, url=target.url)


def _check_status(target: FetchTarget, head: ResponseHead) -> None:
    """Raise FetchFailed for a status other than 200, and for a compressed body."""
    if head.status != 200:
        remedy = _STATUS_REMEDIES.get(head.status, _LATER if head.status >= 500 else "check the URL")
        raise refusal(FetchFailed, target.url, f"the server answers {head.status}", remedy)
    encoding = head.header(b"content-encoding") or "identity"
    if encoding.lower() != "identity":
        reason = (
            f"the server sent it compressed ({encoding[:40]!r}), although the request asked for an uncompressed body"
        )
        raise refusal(FetchFailed, target.url, reason, "download it yourself and pass the bytes")


def _next_target(target: FetchTarget, head: ResponseHead, rules: Rules) -> FetchTarget:
    """Return the target of a redirect. Raises MediaRefused if its URL is missing, invalid or not allowed."""
    location = head.header(b"location")
    if not location:
        raise refusal(FetchFailed, target.url, f"the server answers {head.status} without a Location", "check the URL")
    return follow_redirect(target, location, rules)


def _too_large(target: FetchTarget, reason: str, rules: Rules) -> Exception:
    remedy = "pass a larger max_bytes=, or upload the file to the provider"
    return refusal(SizeRefused, target.url, f"{reason}, more than the limit of {rules.max_bytes} bytes", remedy)


@contextmanager
def _convert_failures(target: FetchTarget) -> Iterator[None]:
    """Convert an exception of FAILURES in the `with` block to a MediaRefused that names the target's URL."""
    try:
        yield
    except FAILURES as error:
        _, kind, reason, remedy = next(row for row in _FAILURES if isinstance(error, row[0]))
        raise refusal(kind, target.url, reason.format(error=error), remedy) from error
