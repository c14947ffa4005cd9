"""How a provider's plugin reaches its endpoint: the URL, and the SDK's clients.

Access ──read_endpoint──▶ URL without secrets
a base URL ──read_base_url──▶ BaseURL: the URL to which paths are joined, the query behind them, the authorization
Clients   one waiting client, and one async client for each event loop, from its first use to the loop's end
"""

import os
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit
from weakref import WeakSet, finalize

from pydantic import SecretStr

from sabir.base.errors import SettingsInvalid

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class Closes(Protocol):
    """A waiting client."""

    def close(self) -> object:
        """Close its connections."""


class ClosesLater(Protocol):
    """An async client."""

    def aclose(self) -> Awaitable[object]:
        """Close its connections."""


SyncClient = TypeVar("SyncClient", bound=Closes)
AsyncClient = TypeVar("AsyncClient", bound=ClosesLater)


class BaseURL(NamedTuple):
    """A base URL in its parts: paths are joined to `url`, `query` goes behind them, `authorization` into the header."""

    url: str
    query: str
    authorization: SecretStr | None


def read_base_url(url: str) -> BaseURL:
    """A URL's parts. User and password become an Authorization header, because HTTP clients log URLs."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    basic = b64encode(unquote_to_bytes(name) + b":" + unquote_to_bytes(password)).decode("ascii")
    return BaseURL(
        parts._replace(netloc=host, query="", fragment="").geturl(),
        parts.query,
        SecretStr(f"Basic {basic}") if at else None,
    )


def url_of_client(provider: str, client: object) -> str:
    """The URL to which an SDK's client sends; raises SettingsInvalid for an object that is no such client."""
    if not (url := getattr(client, "base_url", None)):
        raise SettingsInvalid(f"client= of {provider} is of type {type(client).__name__}; give a client of its SDK")
    return str(url)


class Clients(Generic[SyncClient, AsyncClient]):
    """The clients that a connection made: a waiting one, and one for each event loop.

    An async client can be closed in its event loop alone. So each client has an async generator: a loop that ends
    closes its generators (`loop.shutdown_asyncgens()`, which `asyncio.run` calls), and the generator closes the client.
    If a loop was closed without that, its client is dropped when another loop asks for a client. The waiting client is
    closed when this object is freed, at the latest when the program ends.

    A forked child begins with no clients: it neither uses nor closes the inherited ones, because their connections
    belong to its parent.
    """

    def __init__(self) -> None:
        self._begin()
        _EVERY.add(self)

    def _begin(self) -> None:
        self._lock = Lock()
        self._sync: tuple[SyncClient, finalize[Any, Any]] | None = None
        self._by_loop: dict[AbstractEventLoop, tuple[AsyncClient, AsyncGenerator[None]]] = {}

    def sync(self, make: Callable[[], SyncClient]) -> SyncClient:
        """The waiting client, made now if there is none."""
        with self._lock:
            if self._sync is None:
                client = make()
                self._sync = client, finalize(self, client.close)
            return self._sync[0]

    async def here(self, make: Callable[[], AsyncClient]) -> AsyncClient:
        """The running event loop's client, made now if there is none."""
        loop = _running_loop()
        held = self._by_loop.get(loop)
        if held is None:
            for other in list(self._by_loop):
                if other.is_closed():
                    self._by_loop.pop(other, None)
            client = make()
            held = client, _closed_with_its_loop(client, self._by_loop, loop)
            await anext(held[1])  # this does not block; from here on the loop knows the generator
            self._by_loop[loop] = held
        return held[0]

    def close(self) -> None:
        """Close the waiting client; a new one is made at the next request for it."""
        with self._lock:
            held, self._sync = self._sync, None
        if held:
            held[1]()

    async def aclose(self) -> None:
        """Close the waiting client and the running event loop's client; clients of other loops stay open."""
        self.close()
        if held := self._by_loop.pop(_running_loop(), None):
            await held[1].aclose()

    def forget(self) -> None:
        """Start over without clients, in a forked child."""
        if self._sync:
            self._sync[1].detach()
        _OF_THE_PARENT.append((self._sync, self._by_loop))
        self._begin()


_EVERY: WeakSet[Clients[Any, Any]] = WeakSet()
_OF_THE_PARENT: list[object] = []
"""The clients that a forked child inherited; they are kept alive, because freeing a client closes it."""


def _forget_the_parents() -> None:
    for clients in list(_EVERY):
        clients.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents)


async def _closed_with_its_loop(
    client: ClosesLater, by_loop: "dict[AbstractEventLoop, Any]", loop: "AbstractEventLoop"
) -> AsyncGenerator[None]:
    """Wait at the yield until the generator is closed; then close the client."""
    try:
        yield
    finally:
        by_loop.pop(loop, None)
        await client.aclose()


def _running_loop() -> "AbstractEventLoop":
    import asyncio  # imported only where a loop runs; waiting callers do not need it

    return asyncio.get_running_loop()


def check_client(client: object, kind: str, provider: str, remedy: str) -> None:
    """Raise SettingsInvalid, with the remedy, for a client that is not of the class `module.Class`.

    The module may be a package that holds the class's module; nothing is imported for the check.
    """
    module, _, name = kind.rpartition(".")
    kinds = (each for each in type(client).__mro__ if each.__qualname__ == name)
    if not any(f"{each.__module__}.".startswith(f"{module}.") for each in kinds):
        raise SettingsInvalid(f"client= of {provider} is of type {type(client).__name__}; {remedy}")


_SECRETIVE = re.compile("auth|key|secret|token|sig|pass", re.IGNORECASE)
"""Words in the names of headers and query parameters that hold secrets."""


class _Answer:
    """An answer whose body has not been read, except that of a failed request."""

    def __init__(self, response: Any) -> None:  # an HTTP client's own response; no HTTP library is imported here
        self._response = response
        self.status: int = response.status_code
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys, tokens and passwords in the headers and the query that were sent, without `Bearer` and the like."""
        request = self._response.request
        sent = [*request.headers.items(), *parse_qsl(str(request.url.query, "ascii", "replace"))]
        return tuple(each for name, value in sent if _SECRETIVE.search(name) for each in _secrets_of(value))


def _secrets_of(value: str) -> Iterator[str]:
    """The key or token in a value; of basic authorization also the decoded user and password."""
    kind, _, secret = value.rpartition(" ")
    yield secret
    if kind.lower() == "basic":
        with suppress(ValueError):
            both = b64decode(secret).decode()
            yield from (both, both.partition(":")[2])


class HTTPAnswer(_Answer):
    """An answer to a waiting client."""

    def chunks(self) -> Iterator[bytes]:
        """The body's bytes as they arrive, decompressed."""
        found: Iterator[bytes] = self._response.iter_bytes()
        return found

    def close(self) -> None:
        """Close it; twice is harmless."""
        self._response.close()


class AsyncHTTPAnswer(_Answer):
    """An answer to an async client."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive, decompressed."""
        found: AsyncIterator[bytes] = self._response.aiter_bytes()
        return found

    async def aclose(self) -> None:
        """Close it; twice is harmless."""
        await self._response.aclose()
