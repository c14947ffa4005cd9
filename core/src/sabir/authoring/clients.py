"""Helpers for connections: parsing base URLs, the lifetime of HTTP clients, and their responses.

a base URL ──read_base_url──▶ BaseURL: the URL to which paths are joined, the query, the authorization
Clients   one sync client, and an async client for each event loop, from its first use to the loop's end
HTTPAnswer, AsyncHTTPAnswer   a client's response for core

Explain errors of HTTP clients that a wrong environment variable for a proxy or certificates causes.

    with explaining_environment_errors("acme"):          ALL_PROXY=socks5://…, and socksio is not installed
        httpx2.Client()                        ──▶ ConnectionFailed: acme cannot be reached: ALL_PROXY names …

HTTP libraries read these variables when a client is created, and raise ImportError, ValueError or OSError without the
variable's name. The value is never shown, because the URL of a proxy may contain a password.
https://www.python-httpx.org/environment_variables/
"""

import os
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit
from weakref import WeakSet, finalize

from pydantic import SecretStr

from sabir.base.errors import SabirError, SettingsInvalid
from sabir.errors import ConnectionFailed

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class Closes(Protocol):
    """The interface of a sync client: it can be closed."""

    def close(self) -> object:
        """Close the client's connections."""


class ClosesLater(Protocol):
    """The interface of an async client: it can be closed."""

    def aclose(self) -> Awaitable[object]:
        """Close the client's connections."""


SyncClient = TypeVar("SyncClient", bound=Closes)
AsyncClient = TypeVar("AsyncClient", bound=ClosesLater)


class BaseURL(NamedTuple):
    """The parts of a base URL: `url`, to which paths are joined; `query`, to be added after the path; and
    `authorization`, the value of the header Authorization, or None.
    """

    url: str
    query: str
    authorization: SecretStr | None


def read_base_url(url: str) -> BaseURL:
    """Split a base URL into its parts. User and password become the value of an Authorization header, because HTTP
    clients log URLs.
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    basic = b64encode(unquote_to_bytes(name) + b":" + unquote_to_bytes(password)).decode("ascii")
    without_secrets = parts._replace(netloc=host, query="", fragment="").geturl()
    return BaseURL(without_secrets, parts.query, SecretStr(f"Basic {basic}") if at else None)


def url_of_client(provider: str, client: object) -> str:
    """Return the URL to which an SDK's client sends: its `base_url`. Raises SettingsInvalid if `client` has none."""
    if not (url := getattr(client, "base_url", None)):
        raise SettingsInvalid(f"client= of {provider} is of type {type(client).__name__}; pass a client of its SDK")
    return str(url)


class Clients(Generic[SyncClient, AsyncClient]):
    """The clients that a connection created: one sync client, and one async client for each event loop.

    An async client can be closed only in its event loop. So each async client has an async generator: a loop that ends
    closes its generators (`loop.shutdown_asyncgens()`, which `asyncio.run` calls), and the generator closes the client.
    If a loop was closed without this, its client is dropped when another loop requests a client. The sync client is
    closed when this object is freed, at the latest when the program ends.

    A forked child process starts without clients: it neither uses nor closes the clients of its parent.
    """

    def __init__(self) -> None:
        self._reset()
        _ALL_CLIENTS.add(self)

    def _reset(self) -> None:
        self._lock = Lock()
        self._sync: tuple[SyncClient, finalize[Any, Any]] | None = None
        self._by_loop: dict[AbstractEventLoop, tuple[AsyncClient, AsyncGenerator[None]]] = {}

    def sync(self, make: Callable[[], SyncClient]) -> SyncClient:
        """Return the sync client. Create it if there is none."""
        with self._lock:
            if self._sync is None:
                client = make()
                self._sync = client, finalize(self, client.close)
            return self._sync[0]

    async def here(self, make: Callable[[], AsyncClient]) -> AsyncClient:
        """Return the running event loop's client. Create it if there is none."""
        loop = _running_loop()
        entry = self._by_loop.get(loop)
        if entry is None:
            for other in list(self._by_loop):
                if other.is_closed():
                    self._by_loop.pop(other, None)
            client = make()
            entry = client, _close_with_loop(client, self._by_loop, loop)
            await anext(entry[1])  # this does not block; after this, the loop closes the generator at its end
            self._by_loop[loop] = entry
        return entry[0]

    def close(self) -> None:
        """Close the sync client. The next request creates a new one."""
        with self._lock:
            entry, self._sync = self._sync, None
        if entry:
            entry[1]()

    async def aclose(self) -> None:
        """Close the sync client and the running event loop's client. Clients of other loops stay open."""
        self.close()
        if entry := self._by_loop.pop(_running_loop(), None):
            await entry[1].aclose()

    def forget(self) -> None:
        """Drop all clients without closing them. Called in a forked child process."""
        if self._sync:
            self._sync[1].detach()
        _PARENT_CLIENTS.append((self._sync, self._by_loop))
        self._reset()


_ALL_CLIENTS: WeakSet[Clients[Any, Any]] = WeakSet()
_PARENT_CLIENTS: list[object] = []
"""The clients of the parent process. They are kept alive in a forked child, because freeing a client closes it."""


def _forget_parent_clients() -> None:
    for clients in list(_ALL_CLIENTS):
        clients.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent_clients)


async def _close_with_loop(
    client: ClosesLater, by_loop: "dict[AbstractEventLoop, Any]", loop: "AbstractEventLoop"
) -> AsyncGenerator[None]:
    """Wait at the `yield` until the generator is closed, and then close the client."""
    try:
        yield
    finally:
        by_loop.pop(loop, None)
        await client.aclose()


def _running_loop() -> "AbstractEventLoop":
    import asyncio  # imported only where a loop runs; sync callers do not need it

    return asyncio.get_running_loop()


def check_client(client: object, kind: str, provider: str, remedy: str) -> None:
    """Raise SettingsInvalid, with the remedy, if a client is not an instance of the class `kind`, which is the text
    "module.Class".

    The class may be defined in a submodule of `module`. Nothing is imported for the check.
    """
    module, _, name = kind.rpartition(".")
    kinds = (each for each in type(client).__mro__ if each.__qualname__ == name)
    if not any(f"{each.__module__}.".startswith(f"{module}.") for each in kinds):
        raise SettingsInvalid(f"client= of {provider} is of type {type(client).__name__}; {remedy}")


_SECRET_NAME = re.compile("auth|key|secret|token|sig|pass", re.IGNORECASE)
"""Matches the names of headers and query parameters that contain secrets."""


class _HTTPResponse:
    """Base class of HTTPAnswer and AsyncHTTPAnswer: the response of an HTTP client, whose body has not been read."""

    def __init__(self, response: Any) -> None:  # an HTTP client's own response; no HTTP library is imported here
        self._response = response
        self.status: int = response.status_code
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys, tokens and passwords in the headers and the query that were sent, without prefixes such as
        "Bearer".
        """
        return secrets_of(self._response.request)


def secrets_of(request: Any) -> tuple[str, ...]:
    """Return the keys, tokens and passwords in the headers and the query of an HTTP client's request."""
    sent = [*request.headers.items(), *parse_qsl(str(request.url.query, "ascii", "replace"))]
    return tuple(each for name, value in sent if _SECRET_NAME.search(name) for each in _secrets_of(value))


def _secrets_of(value: str) -> Iterator[str]:
    """Yield the key or token in a header's value; for basic authorization also the decoded user and password."""
    kind, _, secret = value.rpartition(" ")
    yield secret
    if kind.lower() == "basic":
        with suppress(ValueError):
            both = b64decode(secret).decode()
            yield from (both, both.partition(":")[2])


class HTTPAnswer(_HTTPResponse):
    """A WireResponse that wraps the response of a sync HTTP client."""

    def chunks(self) -> Iterator[bytes]:
        """Return an iterator over the decompressed bytes of the body as they arrive."""
        chunks: Iterator[bytes] = self._response.iter_bytes()
        return chunks

    def close(self) -> None:
        """Close the response. A second call does nothing."""
        self._response.close()


class AsyncHTTPAnswer(_HTTPResponse):
    """An AsyncWireResponse that wraps the response of an async HTTP client."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Return an async iterator over the decompressed bytes of the body as they arrive."""
        chunks: AsyncIterator[bytes] = self._response.aiter_bytes()
        return chunks

    async def aclose(self) -> None:
        """Close the response. A second call does nothing."""
        await self._response.aclose()


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
"""Variables that name a proxy. A variable of the same name in lower case takes precedence."""
FILES = {
    "SSL_CERT_FILE": "names no readable file of certificates",
    "SSL_CERT_DIR": "names no readable folder of certificates",
    "SSLKEYLOGFILE": "names a file that cannot be written",
}
"""Variables that Python or OpenSSL reads for a TLS context → what is wrong if the context cannot be created."""
SCHEMES = ("http", "https", "socks5", "socks5h")
"""Schemes of the proxies that HTTP libraries support."""

_URL = f"not the URL of a proxy (expected: {', '.join(SCHEMES)})"
_EXPECTED = {"NO_PROXY": "not a list of hosts"}
"""Variable → the fault in a message about its value. The other variables must have the URL of a proxy."""


@contextmanager
def explaining_environment_errors(who: str) -> Iterator[None]:
    """Return a context manager that explains errors caused by proxy and certificate variables, such as `HTTPS_PROXY`.

    Use it around code that creates HTTP clients; it can also decorate a function. If a wrong variable explains an
    exception in the block, ConnectionFailed is raised instead; its message names the variable and the remedy, and it is
    not retryable. Other exceptions are raised unchanged. `who` is the name of the provider or server for the message.
    """
    try:
        yield
    except Exception as error:
        fault = None if isinstance(error, SabirError) else _fault_of(error)
        if fault is None:
            raise
        failure = ConnectionFailed(f"{who} cannot be reached: the variable {fault}, or unset it", provider=who)
        failure.retryable = False
        raise failure from error


def variables_behind(error: BaseException) -> list[str]:
    """Return the names of the set variables that may be the reason why a connection failed: those of certificates if
    the error's text contains "certificate", else those of proxies.
    """
    is_about_certificates = "certificate" in str(error).lower()
    return [name for name in FILES if os.environ.get(name)] if is_about_certificates else list(_proxies())


def _proxies(*further: str) -> dict[str, str]:
    """Return the values of the variables in PROXIES and `further` that are set, by the name in use (lower
    case first).
    """
    names = (name.lower() if name.lower() in os.environ else name for name in (*PROXIES, *further))
    return {name: value for name in names if (value := os.environ.get(name))}


def _fault_of(error: Exception) -> str | None:
    """Return a text with the variable that made the creation of a client fail, its fault, and the remedy. None if no
    variable explains the error.
    """
    faults: list[str] = []
    if isinstance(error, ImportError):
        missing = "names a SOCKS proxy, and the package socksio is not installed; install socksio"
        faults = [f"{name} {missing}" for name, value in _proxies().items() if value.lower().startswith("socks")]
    elif isinstance(error, OSError):
        # The error for SSLKEYLOGFILE has the file's name, the error for certificates has no name.
        files = [name for name in FILES if (value := os.environ.get(name)) and error.filename in (None, value)]
        faults = [f"{name} {FILES[name]}; correct it" for name in files]
    elif isinstance(error, ValueError) or type(error).__name__ == "InvalidURL":
        wrong = [name for name, value in _proxies("NO_PROXY").items() if not _is_valid(name, value)]
        faults = [f"{name} is {_EXPECTED.get(name.upper(), _URL)}; correct it" for name in wrong]
    return next(iter(faults), None)


def _is_valid(name: str, value: str) -> bool:
    """Return whether the value of a proxy variable is a URL, or the value of NO_PROXY a list of hosts and networks."""
    if name.upper() == "NO_PROXY":
        return all(_is_host(host.strip().rpartition("://")[2]) for host in value.split(",") if host.strip())
    return _is_url(value if "://" in value else f"http://{value}")


def _is_host(text: str) -> bool:
    if "/" in text:
        with suppress(ValueError):
            return bool(ip_network(text, strict=False))
        return False
    return _is_url(f"http://[{text}]" if text.count(":") > 1 and not text.startswith("[") else f"http://{text}")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:
        return False
