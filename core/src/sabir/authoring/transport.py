"""Ready bytes, sent under the head that a vendor's SDK writes: its URL, its key, its headers, its timeouts.

    client.chat(…) ─▶ SDK ─▶ an HTTP client's request hook: keep        nothing is sent
                                                             └─▶ head ─┐
                                     ready bytes ──────────────────────┴─▶ send ─▶ the answer, unread, for core

OwnConnection is for clients that a plugin makes. The SDK is asked once for each path, headers, timeout and key; what
sends is a second HTTP client, of the class that the SDK takes by default, with its limits, proxies and certificates.
What a request became is raised to whoever asked for it, so that threads and tasks cannot take each other's.

No HTTP library is imported here: of clients, requests and answers those names are used that httpx2 and its kin share,
and all of their types are Any. A redirect is an answer like any other: nothing is sent to where it leads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar

from sabir.authoring.access import AsyncHTTPAnswer, Clients, HTTPAnswer, check_client, read_base_url
from sabir.authoring.credentials import KeySource, Values
from sabir.authoring.failures import ErrorTable
from sabir.base.errors import ProviderBroken
from sabir.base.failures import CallError
from sabir.contract.provider import WireRequest

Client = TypeVar("Client")
SyncSDK = TypeVar("SyncSDK")
AsyncSDK = TypeVar("AsyncSDK")


class Kept(BaseException):
    """A request that an SDK made, in place of an answer; no Exception, for an SDK would catch that and try again.

    `client` is the HTTP client that was to send it, where who kept it knows that.
    """

    def __init__(self, request: Any, client: Any = None) -> None:
        super().__init__()
        self.request = request
        self.client = client

    @classmethod
    @contextmanager
    def caught(cls) -> "Iterator[list[Kept]]":
        """Within it an SDK is asked; afterwards the list holds the request that it made, or none that it did not."""
        found: list[Kept] = []
        try:
            yield found
        except cls as each:
            found.append(each)

    def send(self, body: bytes) -> Any:
        """Send ready bytes under its head by its client, with that client's cookies; an async client's is awaited."""
        return send(self.client, self.request, body)


def keep(request: Any) -> NoReturn:
    """A waiting client's request hook that keeps what it is to send."""
    raise Kept(request)


async def keep_later(request: Any) -> NoReturn:
    """An async client's request hook that keeps what it is to send."""
    raise Kept(request)


def send(client: Any, head: Any, body: bytes) -> Any:
    """Send ready bytes under a head over an HTTP client, with that client's cookies; an async client's is awaited."""
    # A ready stream: to be given content, an HTTP library looks through the headers once more.
    how = {"cookies": client.cookies, "stream": type(head.stream)(body), "extensions": head.extensions}
    # No variable holds the headers: they show the key.
    request = type(head)(head.method, head.url, headers=_with_length(head.headers, len(body)), **how)
    return client.send(request, stream=True, follow_redirects=False)


def _with_length(headers: Any, length: int) -> Any:
    headers = headers.copy()
    headers["content-length"] = str(length)
    return headers


_Kind: TypeAlias = tuple[Any, ...]
"""What a head may depend on: the way to call, the key, and what the request says beside its body."""


class Library(NamedTuple):
    """An HTTP library as the SDK uses it by default: what makes its clients, and their TLS context.

    The context takes longest to make, so that all clients of a connection share one.
    """

    client: Callable[..., Any]
    async_client: Callable[..., Any]
    tls_context: Callable[[], Any]


class _Sender(NamedTuple):
    """The HTTP client that sends, and the lock under which the SDK is asked on its behalf."""

    client: Any
    lock: Any

    def close(self) -> None:
        self.client.close()

    async def aclose(self) -> None:
        await self.client.aclose()


class SDKConnection:
    """What every connection over an SDK has: the clients that it made, the provider's name, and its table of errors."""

    def __init__(self, name: str, errors: ErrorTable) -> None:
        self.name = name
        self._errors = errors
        self._clients: Clients[Any, Any] = Clients()

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
        return self._errors.translate(error, self.name)

    def close(self) -> None:
        """Close the waiting client if this connection made it."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close both clients if this connection made them."""
        await self._clients.aclose()


class ClientConnection(SDKConnection, ABC):
    """Over clients that take ready bytes: those that it makes itself, or the user's own, which is never closed.

    `kinds` are the classes, waiting and async, that a client given by the user may be of, as `module.Class`.
    """

    kinds: tuple[str, str] = ("", "")
    remedy = "give a client of its SDK"

    def __init__(self, name: str, errors: ErrorTable, given: Any = None) -> None:
        super().__init__(name, errors)
        self.client = given

    def make_sync(self) -> Any:
        """A waiting client; not asked for where the user gave one."""

    def make(self) -> Any:
        """An async client; not asked for where the user gave one."""

    @abstractmethod
    def send_sync(self, client: Any, request: WireRequest) -> Any:
        """Send once, and follow no redirect; return the HTTP client's response at its headers, whatever the status."""

    @abstractmethod
    async def send(self, client: Any, request: WireRequest) -> Any:
        """The same of an async client."""

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        client = self._clients.sync(self.make_sync) if self.client is None else self._checked(self.kinds[0])
        return HTTPAnswer(self.send_sync(client, request))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        client = await self._clients.here(self.make) if self.client is None else self._checked(self.kinds[1])
        return AsyncHTTPAnswer(await self.send(client, request))

    def _checked(self, kind: str) -> Any:
        check_client(self.client, kind, self.name, self.remedy)
        return self.client


class OwnConnection(SDKConnection, ABC, Generic[SyncSDK, AsyncSDK]):
    """A connection over clients that the plugin makes itself.

    A head is learnt once. So this is for clients whose heads stay as they are but for the key; a user's own client,
    which may renew a token or sign, is asked each time. The SDK is given `self.base_url`, to which it joins paths: of
    the user's `base_url` the query is put behind them, and a user and password into the header, when a head is learnt.
    """

    MOST = 64
    """How many heads are kept: a caller may send other headers each time."""

    def __init__(self, name: str, errors: ErrorTable, key: KeySource, base_url: str = "") -> None:
        super().__init__(name, errors)
        self._key = key
        self.base_url, self._query, self._authorization = read_base_url(base_url)
        self._heads: dict[_Kind, Any] = {}
        self._sdks: dict[str, tuple[Values, Any]] = {}
        self._library: Library | None = None

    @abstractmethod
    def library(self) -> Library:
        """The HTTP library, as the SDK uses it by default; imported at the first send."""

    @abstractmethod
    def make_sync(self, keys: Mapping[str, str], http_client: Any) -> SyncSDK:
        """A waiting client of the SDK over an HTTP client that sends nothing; `keys` are by the credentials' names."""

    @abstractmethod
    def make(self, keys: Mapping[str, str], http_client: Any) -> AsyncSDK:
        """An async client of the SDK over an HTTP client that sends nothing; `keys` are by the credentials' names."""

    @abstractmethod
    def ask_sync(self, client: SyncSDK, request: WireRequest) -> object:
        """Have the SDK make a request with any body; it never has an answer."""

    @abstractmethod
    async def ask(self, client: AsyncSDK, request: WireRequest) -> object:
        """Have the SDK make a request with any body; it never has an answer."""

    def url_of(self, made: Any, request: WireRequest) -> Any:
        """Where a request goes that the SDK made; by default where the SDK sends it."""
        return made.url

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        kind = self._kind("waiting", request)
        sender = self._clients.sync(lambda: _Sender(self._loaded().client(), Lock()))
        head = self._heads.get(kind)
        if head is None:
            with sender.lock:
                head = self._heads.get(kind) or self._learn_sync(kind, request)
        return HTTPAnswer(send(sender.client, head, request.body))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        kind = self._kind("async", request)
        sender = await self._clients.here(self._sender)
        head = self._heads.get(kind)
        if head is None:
            async with sender.lock:
                head = self._heads.get(kind) or await self._learn(kind, request)
        return AsyncHTTPAnswer(await send(sender.client, head, request.body))

    def _sender(self) -> _Sender:
        import asyncio  # loaded where a loop runs; those who wait need none of it

        return _Sender(self._loaded().async_client(), asyncio.Lock())

    def _loaded(self) -> Library:
        """The library, whose clients trust by one context."""
        if self._library is None:
            client, async_client, tls_context = self.library()
            context = tls_context()
            client, async_client = partial(client, verify=context), partial(async_client, verify=context)
            self._library = Library(client, async_client, tls_context)
        return self._library

    def _kind(self, way: str, request: WireRequest) -> _Kind:
        return (way, self._key.read(), request.path, request.timeout, *request.headers.items())

    def _learn_sync(self, kind: _Kind, request: WireRequest) -> Any:
        sdk = self._sdk_of(kind, self.make_sync, self._loaded().client, keep)
        with Kept.caught() as found:
            self.ask_sync(sdk, request)
        return self._learnt(kind, found, request)

    async def _learn(self, kind: _Kind, request: WireRequest) -> Any:
        sdk = self._sdk_of(kind, self.make, self._loaded().async_client, keep_later)
        with Kept.caught() as found:
            await self.ask(sdk, request)
        return self._learnt(kind, found, request)

    def _sdk_of(
        self,
        kind: _Kind,
        make: Callable[..., Client],
        http_client: Callable[..., Any],
        hook: Callable[..., Any],
    ) -> Client:
        """The SDK's client that writes heads with this key, made now where the last one had another."""
        way, key, *_ = kind
        made_with, sdk = self._sdks.get(way, (None, None))
        if made_with != key:
            keys = ((name, value.get_secret_value()) for name, value in key)
            sdk = make(dict(keys), http_client(event_hooks={"request": [hook]}))
            self._sdks[way] = key, sdk
        return sdk  # type: ignore[return-value]  # of one way, all are of one class

    def _learnt(self, kind: _Kind, found: list[Kept], request: WireRequest) -> Any:
        """The head of a request that the SDK made, from now on kept."""
        if not found:
            raise ProviderBroken(f"{type(self).__name__} asked its SDK for {request.path}, and no request was made")
        head = found[0].request
        head.url = self.url_of(head, request)
        if self._query:
            queries = (self._query.encode(), head.url.query)
            head.url = head.url.copy_with(query=b"&".join(filter(None, queries)))
        if self._authorization is not None:
            head.headers["authorization"] = self._authorization.get_secret_value()
        if len(self._heads) >= self.MOST:
            self._heads.clear()
        self._heads[kind] = head
        return head
