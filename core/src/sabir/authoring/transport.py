"""Base classes of connections that send core's bytes with the URL, key, headers and timeouts of a vendor's SDK.

    client.chat(…) ─▶ SDK ─▶ an HTTP client's request hook: raise_captured      nothing is sent
                                                             └─▶ head ─┐       head: URL and headers
                                     ready bytes ──────────────────────┴─▶ send ─▶ the response, unread, for core

OwnClientConnection is for clients that a plugin creates. The SDK builds a request for each path, headers, timeout and
key, which is cached. A second HTTP client sends core's bytes: it has the class that the SDK uses by default, with the
SDK's limits, proxies and certificates. The request that the SDK built is raised as an exception to the caller, so that
threads and tasks cannot mix their requests up.

No HTTP library is imported here. The code uses only the names of clients, requests and responses that httpx2 and
similar libraries share, so all of their types are Any. Redirects are not followed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar
from urllib.parse import unquote

from sabir.authoring.clients import (  # isort: skip
    AsyncHTTPAnswer, Clients, HTTPAnswer, check_client, explaining_environment_errors, read_base_url,
)  # fmt: skip
from sabir.authoring.credentials import KeySource, Values
from sabir.authoring.failures import ErrorTable
from sabir.base.errors import ProviderBroken, SettingsInvalid, one_line
from sabir.base.failures import CallError
from sabir.contract.provider import WireRequest

HOP_BY_HOP = frozenset({
    "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers of a single connection, which the HTTP client sets itself. With a second value, two servers may disagree
about where the request ends: https://www.rfc-editor.org/rfc/rfc9112#section-11.2
"""


def check_request(request: WireRequest) -> None:
    """Raise SettingsInvalid for a header in HOP_BY_HOP, and for a path with `..`."""
    if names := sorted(name for name in request.headers if name.lower() in HOP_BY_HOP):
        raise SettingsInvalid(f"extra_headers has {', '.join(names)}, which the HTTP client sets itself; remove it")
    check_path(request.path)


def check_path(path: str) -> None:
    """Raise SettingsInvalid for a path with `..`, percent-encoded or not, because it would lead to another resource."""
    if ".." in unquote(unquote(path)):
        raise SettingsInvalid(f"the model's name makes the path {one_line(path, 100)!r}; expected a name without '..'")


Client = TypeVar("Client")
SyncSDK = TypeVar("SyncSDK")
AsyncSDK = TypeVar("AsyncSDK")


class CapturedRequest(BaseException):
    """A request that an SDK built. The HTTP client raises the request as an exception and does not send it. Used to get
    the URL and the headers that an SDK would send.

    `request` is the HTTP client's request object. `client` is the HTTP client for `send`, or None if not known. The
    class is a BaseException, because SDKs catch Exceptions and retry.
    """

    def __init__(self, request: Any, client: Any = None) -> None:
        super().__init__()
        self.request = request
        self.client = client

    @classmethod
    @contextmanager
    def caught(cls) -> "Iterator[list[CapturedRequest]]":
        """Return a context manager for the call of the SDK. `as` binds a list; a CapturedRequest that is raised in the
        block is appended to the list and not raised further.
        """
        captured: list[CapturedRequest] = []
        try:
            yield captured
        except cls as each:
            captured.append(each)

    def send(self, body: bytes, opening: float | None = None, method: str = "POST") -> Any:
        """Send `body` with the URL and the headers of the captured request, over `client`, which must not be None.
        Return the unread response; await the result if the client is async.

        `opening` is the limit in seconds for getting a free connection, and `method` the method, as in WireRequest.
        """
        return send(self.client, self.request, body, opening, method)


def raise_captured(request: Any) -> NoReturn:
    """Raise the request as a CapturedRequest. For the request hooks of a sync HTTP client."""
    raise CapturedRequest(request)


async def raise_captured_async(request: Any) -> NoReturn:
    """Raise the request as a CapturedRequest. For the request hooks of an async HTTP client."""
    raise CapturedRequest(request)


def send(client: Any, head: Any, body: bytes, opening: float | None = None, method: str = "POST") -> Any:
    """Send `body` with the URL and headers of the request `head` over an HTTP client, with the client's cookies. Return
    the unread response; await the result of an async client.

    `method` is the HTTP method, and `opening` is the limit in seconds for getting a free connection, as in WireRequest.
    """
    extensions = head.extensions
    if opening is not None and (timeouts := extensions.get("timeout")):
        extensions = {**extensions, "timeout": {**timeouts, "pool": opening}}
    # With the argument `content` instead of `stream`, the HTTP library would process the headers again.
    how = {"cookies": client.cookies, "stream": type(head.stream)(body), "extensions": extensions}
    # No variable contains the headers, because tools that report failures show variables, and headers contain the key.
    request = type(head)(method, head.url, headers=_with_length(head.headers, len(body)), **how)
    return client.send(request, stream=True, follow_redirects=False)


def _with_length(headers: Any, length: int) -> Any:
    headers = headers.copy()
    headers["content-length"] = str(length)
    return headers


_HeadKey: TypeAlias = tuple[Any, ...]
"""The key of the cache of headers: sync or async, the API key, and the request without its body."""


class Library(NamedTuple):
    """The HTTP library that an SDK uses. Returned by `OwnClientConnection.library`.

    `client`, `async_client` and `tls_context` are functions that create a sync client, an async client and a TLS
    context, with the SDK's defaults. The first two accept `verify=` and `event_hooks=`. All clients of a connection
    share one TLS context, because creating it is slow.
    """

    client: Callable[..., Any]
    async_client: Callable[..., Any]
    tls_context: Callable[[], Any]


class _Sender(NamedTuple):
    """The HTTP client that sends, and a lock, so that only one thread or task lets the SDK build a request."""

    client: Any
    lock: Any

    def close(self) -> None:
        self.client.close()

    async def aclose(self) -> None:
        await self.client.aclose()


class BaseConnection:
    """Base class of connections over an SDK: stores the clients, the provider's name and the ErrorTable."""

    url_source: str = "base_url"
    """Where the URL of the endpoint comes from, such as a variable's name, for errors. SDKProvider sets it."""

    def __init__(self, name: str, errors: ErrorTable) -> None:
        self.name = name
        self._errors = errors
        self._clients: Clients[Any, Any] = Clients()

    def translate(self, error: Exception) -> CallError | None:
        """Return the CallError for an exception of the SDK or its HTTP client, by the ErrorTable. Return None for other
        exceptions.
        """
        return self._errors.translate(error, self.name, self.url_source)

    def close(self) -> None:
        """Close the sync client if this connection created the client."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the sync client, and the async client of the running event loop, if this connection created them."""
        await self._clients.aclose()


class ClientConnection(BaseConnection, ABC):
    """Base class of a connection over clients that can send a body of bytes: an HTTP client, or an SDK's client that
    accepts a body as bytes.

    A subclass implements `make_sync` and `make`, which create clients, and `send_sync` and `send`. `name` is the
    provider's name in errors, `errors` its ErrorTable. `client` is the user's own client, which is used instead of new
    clients and never closed; None means no such client. `kinds` are the classes that the user's sync and async client
    may have, as "module.Class"; `remedy` is the advice in the error for other objects.
    """

    kinds: tuple[str, str] = ("", "")
    """The classes of a user's sync and async client, as "module.Class". Instances of subclasses are accepted."""
    remedy: str = "pass a client of its SDK"
    """The advice in the error for a client of another class."""

    def __init__(self, name: str, errors: ErrorTable, client: Any = None) -> None:
        super().__init__(name, errors)
        self.client = client

    def make_sync(self) -> Any:
        """Return a new sync client. Called at the first sync request, and at the first one after the sync client was
        closed, unless the user passed a client.
        """

    def make(self) -> Any:
        """Return a new async client. Called in each event loop at the first request, and at the first one after the
        loop's client was closed, unless the user passed a client.
        """

    @abstractmethod
    def send_sync(self, client: Any, request: WireRequest) -> Any:
        """Send a request once, without following redirects, and return the HTTP library's response when its headers
        have arrived, for every status.
        """

    @abstractmethod
    async def send(self, client: Any, request: WireRequest) -> Any:
        """Async version of `send_sync`, with an async client."""

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send a request and return the response when its headers have arrived. Raises SettingsInvalid for a forbidden
        header (such as `host`), a path with "..", or a user's client of the wrong class, and ConnectionFailed if a
        wrong variable for a proxy or certificates prevents the creation of a client.
        """
        check_request(request)
        with explaining_environment_errors(self.name):
            client = self._clients.sync(self.make_sync) if self.client is None else self._check_client(self.kinds[0])
        return HTTPAnswer(self.send_sync(client, request))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Async version of `open_sync`."""
        check_request(request)
        with explaining_environment_errors(self.name):
            client = await self._clients.here(self.make) if self.client is None else self._check_client(self.kinds[1])
        return AsyncHTTPAnswer(await self.send(client, request))

    def _check_client(self, kind: str) -> Any:
        check_client(self.client, kind, self.name, self.remedy)
        return self.client


class OwnClientConnection(BaseConnection, ABC, Generic[SyncSDK, AsyncSDK]):
    """Base class of a connection that lets the SDK build the URL and headers of a request once, and then sends core's
    bytes with a separate HTTP client.

    Use it for SDKs whose headers depend only on the key, the path, the timeout and extra headers. A subclass implements
    `library`, `make_sync`, `make`, `ask_sync` and `ask`. `name` is the provider's name in errors, `errors` its
    ErrorTable, `key` finds the API key. `base_url` is the endpoint. `self.base_url` is the endpoint without user,
    password and query; user and password are sent as an Authorization header, and the query with each request.
    """

    MOST = 64
    """The maximum number of cached sets of headers. One more set empties the cache."""

    def __init__(self, name: str, errors: ErrorTable, key: KeySource, base_url: str = "") -> None:
        super().__init__(name, errors)
        self._key = key
        self.base_url, self._query, self._authorization = read_base_url(base_url)
        self._heads: dict[_HeadKey, Any] = {}
        self._sdks: dict[str, tuple[Values, Any]] = {}
        self._library: Library | None = None

    @abstractmethod
    def library(self) -> Library:
        """Return the HTTP library as the SDK uses it by default. The result is cached. Import the library here, not at
        the top of the module.
        """

    @abstractmethod
    def make_sync(self, keys: Mapping[str, str], http_client: Any) -> SyncSDK:
        """Return a sync client of the SDK that uses `http_client`. `keys` maps names of credentials to their values.

        The SDK's client only builds requests: `http_client` raises each request instead of sending it.
        """

    @abstractmethod
    def make(self, keys: Mapping[str, str], http_client: Any) -> AsyncSDK:
        """Async version of `make_sync`: return an async client of the SDK."""

    @abstractmethod
    def ask_sync(self, client: SyncSDK, request: WireRequest) -> object:
        """Call the SDK so that it builds a request with the path and headers of `request`. The body does not matter.

        The HTTP client raises a CapturedRequest instead of sending, so this method does not return.
        """

    @abstractmethod
    async def ask(self, client: AsyncSDK, request: WireRequest) -> object:
        """Async version of `ask_sync`: call the SDK so that it builds a request. Nothing is sent."""

    def addressed(self, request: WireRequest) -> WireRequest:
        """Return the request to send, for endpoints that need another path. By default, return `request`."""
        return request

    def url_of(self, built: Any, request: WireRequest) -> Any:
        """Return the URL to send to. `built` is the request that the SDK built. By default, return `built.url`."""
        return built.url

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send a request and return the response when its headers have arrived. Raises SettingsInvalid for a forbidden
        header (such as `host`) or a path with "..", CredentialsMissing, ProviderBroken if the SDK builds no request,
        and ConnectionFailed if a wrong variable for a proxy or certificates prevents the creation of a client.
        """
        request = self.addressed(request)
        key = self._head_key("sync", request)
        sender = self._clients.sync(lambda: _Sender(self._load_library().client(), Lock()))
        head = self._heads.get(key)
        if head is None:
            check_request(request)
            with sender.lock:
                head = self._heads.get(key) or self._build_head_sync(key, request)
        return HTTPAnswer(send(sender.client, head, request.body, request.opening, request.method))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send a request with the connection's own async HTTP client. Async version of `open_sync`."""
        request = self.addressed(request)
        key = self._head_key("async", request)
        sender = await self._clients.here(self._create_sender)
        head = self._heads.get(key)
        if head is None:
            check_request(request)
            async with sender.lock:
                head = self._heads.get(key) or await self._build_head(key, request)
        return AsyncHTTPAnswer(await send(sender.client, head, request.body, request.opening, request.method))

    def _create_sender(self) -> _Sender:
        import asyncio  # imported only where a loop runs; sync callers do not need it

        return _Sender(self._load_library().async_client(), asyncio.Lock())

    def _load_library(self) -> Library:
        """Return the HTTP library, whose clients share one TLS context."""
        if self._library is None:
            client, async_client, tls_context = self.library()
            checked = explaining_environment_errors(self.name)
            context = checked(tls_context)()
            client, async_client = partial(client, verify=context), partial(async_client, verify=context)
            self._library = Library(checked(client), checked(async_client), tls_context)
        return self._library

    def _head_key(self, mode: str, request: WireRequest) -> _HeadKey:
        return (mode, self._key.read(), request.path, request.timeout, *request.headers.items())

    def _build_head_sync(self, key: _HeadKey, request: WireRequest) -> Any:
        """Let the SDK build the URL and the headers of a request, and cache them under `key`."""
        sdk = self._builder_client(key, self.make_sync, self._load_library().client, raise_captured)
        with CapturedRequest.caught() as captured:
            self.ask_sync(sdk, request)
        return self._store_head(key, captured, request)

    async def _build_head(self, key: _HeadKey, request: WireRequest) -> Any:
        """Async version of `_build_head_sync`."""
        sdk = self._builder_client(key, self.make, self._load_library().async_client, raise_captured_async)
        with CapturedRequest.caught() as captured:
            await self.ask(sdk, request)
        return self._store_head(key, captured, request)

    def _builder_client(
        self, kind: _HeadKey, make: Callable[..., Client], http_client: Callable[..., Any], hook: Callable[..., Any]
    ) -> Client:
        """Return the SDK's client that builds requests with this key. A new client is created if the last one had
        another key.
        """
        mode, key, *_ = kind
        last_key, sdk = self._sdks.get(mode, (None, None))
        if last_key != key:
            keys = ((name, value.get_secret_value()) for name, value in key)
            sdk = make(dict(keys), http_client(event_hooks={"request": [hook]}))
            self._sdks[mode] = key, sdk
        return sdk  # type: ignore[return-value]  # all clients of one mode have one class

    def _store_head(self, key: _HeadKey, captured: list[CapturedRequest], request: WireRequest) -> Any:
        """Return the request that the SDK built, with its URL and headers completed, and cache it."""
        if not captured:
            raise ProviderBroken(f"{type(self).__name__} called its SDK for {request.path}, and no request was built")
        head = captured[0].request
        head.url = self.url_of(head, request)
        if types := [text for name, text in request.headers.items() if name.lower() == "content-type"]:
            head.headers["content-type"] = types[0]
        if self._query:
            queries = (self._query.encode(), head.url.query)
            head.url = head.url.copy_with(query=b"&".join(filter(None, queries)))
        if self._authorization is not None:
            head.headers["authorization"] = self._authorization.get_secret_value()
        if len(self._heads) >= self.MOST:
            self._heads.clear()
        self._heads[key] = head
        return head
