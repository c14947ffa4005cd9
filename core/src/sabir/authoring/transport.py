"""Connections that send ready bytes under the head that a vendor's SDK writes: its URL, key, headers and timeouts.

    client.chat(…) ─▶ SDK ─▶ an HTTP client's request hook: keep        nothing is sent
                                                             └─▶ head ─┐
                                     ready bytes ──────────────────────┴─▶ send ─▶ the answer, unread, for core

OwnClientConnection is for clients that a plugin makes. The SDK is asked once for each path, headers, timeout and key; a
second HTTP client sends, of the class that the SDK uses by default, with its limits, proxies and certificates. The
SDK's request is raised to the caller that asked for it, so that threads and tasks cannot take each other's.

No HTTP library is imported here: the code uses only the names of clients, requests and answers that httpx2 and its
relatives share, and all of their types are Any. A redirect is an answer like any other, and is not followed.

EventFrames cuts an answer in AWS's binary framing into events, whatever the chunks:

    length │ length of headers │ checksum │ headers │ payload │ checksum      numbers of four bytes, big-endian

A dialect names them in its `framings`: `{EventFrames.CONTENT_TYPE: partial(EventFrames, read)}`, where `read` makes
an event of a frame.
https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar

from sabir.authoring.checks import check_request
from sabir.authoring.credentials import (
    AsyncHTTPAnswer,
    Clients,
    HTTPAnswer,
    KeySource,
    Values,
    check_client,
    read_base_url,
)
from sabir.authoring.environment import explaining_environment_errors
from sabir.authoring.failures import ErrorTable
from sabir.base.errors import ProviderBroken
from sabir.base.failures import CallError, ResponseInvalid
from sabir.contract.dialect import ServerEvent
from sabir.contract.provider import WireRequest

LONGEST_FRAME = 25 * 2**20
"""The most bytes of a frame: 24 MiB of payload and 128 KiB of headers,
https://github.com/boto/botocore/blob/develop/botocore/eventstream.py"""

ReadFrame: TypeAlias = Callable[[Mapping[str, str], bytes], ServerEvent | None]
"""A frame's headers and payload → its event; None for a frame without meaning."""


class EventFrames:
    """Cuts a stream of frames into events; checksums are ignored, because the connection has its own."""

    CONTENT_TYPE = "application/vnd.amazon.eventstream"
    """That of such a stream."""

    was_invalid = False

    def __init__(self, read: ReadFrame) -> None:
        self._read = read
        self._bytes = bytearray()

    @property
    def kept(self) -> int:
        """How many bytes wait for the end of their frame."""
        return len(self._bytes)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are whole after this chunk; raises ResponseInvalid for a frame that is too long."""
        self._bytes += chunk
        return [event for frame in self._frames() if (event := self._read(*frame))]

    def close(self) -> list[ServerEvent]:
        """No events: a frame that was broken off is ignored."""
        return []

    def _frames(self) -> Iterator[tuple[dict[str, str], bytes]]:
        while len(self._bytes) >= 12:
            length, head = struct.unpack_from(">II", self._bytes)
            if length > LONGEST_FRAME:
                raise ResponseInvalid(f"a frame of the stream has {length} bytes; at most {LONGEST_FRAME} are allowed")
            if len(self._bytes) < max(length, 16):
                return
            frame = bytes(self._bytes[: max(length, 16)])
            del self._bytes[: len(frame)]
            yield dict(_headers(frame[12 : 12 + head])), frame[12 + head : length - 4]


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """The string headers, as all headers of a stream are: length, name, 7 (the type string), length, value."""
    while len(data) > 4 and data[1 + data[0] : 2 + data[0]] == b"\x07":
        name, rest = data[1 : 1 + data[0]], data[2 + data[0] :]
        size = int.from_bytes(rest[:2], "big")
        yield name.decode("utf-8", "replace"), rest[2 : 2 + size].decode("utf-8", "replace")
        data = rest[2 + size :]


Client = TypeVar("Client")
SyncSDK = TypeVar("SyncSDK")
AsyncSDK = TypeVar("AsyncSDK")


class CapturedRequest(BaseException):
    """A request that an SDK made, raised in place of an answer; an Exception would be caught by the SDK and retried.

    `client` is the HTTP client that was to send it, if the raiser knows it.
    """

    def __init__(self, request: Any, client: Any = None) -> None:
        super().__init__()
        self.request = request
        self.client = client

    @classmethod
    @contextmanager
    def caught(cls) -> "Iterator[list[CapturedRequest]]":
        """Within it an SDK is asked; afterwards the list holds the request that it made, or none that it did not."""
        found: list[CapturedRequest] = []
        try:
            yield found
        except cls as each:
            found.append(each)

    def send(self, body: bytes, opening: float | None = None) -> Any:
        """Send ready bytes as `send` does, by the client that was to send the request."""
        return send(self.client, self.request, body, opening)


def keep(request: Any) -> NoReturn:
    """A waiting client's request hook, which raises the request as a CapturedRequest."""
    raise CapturedRequest(request)


async def keep_later(request: Any) -> NoReturn:
    """An async client's request hook, which raises the request as a CapturedRequest."""
    raise CapturedRequest(request)


def send(client: Any, head: Any, body: bytes, opening: float | None = None) -> Any:
    """Send ready bytes under a head over an HTTP client, with its cookies; await the result of an async client.

    `opening` is a WireRequest's: it also bounds the wait for a free connection.
    """
    extensions = head.extensions
    if opening is not None and (timeouts := extensions.get("timeout")):
        extensions = {**extensions, "timeout": {**timeouts, "pool": opening}}
    # A ready stream: given `content`, an HTTP library would read the headers once more.
    how = {"cookies": client.cookies, "stream": type(head.stream)(body), "extensions": extensions}
    # No variable holds the headers, because they show the key.
    request = type(head)(head.method, head.url, headers=_with_length(head.headers, len(body)), **how)
    return client.send(request, stream=True, follow_redirects=False)


def _with_length(headers: Any, length: int) -> Any:
    headers = headers.copy()
    headers["content-length"] = str(length)
    return headers


_Kind: TypeAlias = tuple[Any, ...]
"""What a head may depend on: the way to call (waiting or async), the key, and the request without its body."""


class Library(NamedTuple):
    """An HTTP library as the SDK uses it by default: the functions that make its clients and their TLS context.

    The context takes longest to make, so all clients of a connection share one.
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
    """The base of every connection over an SDK: the clients that it made, the provider's name, and its error table."""

    def __init__(self, name: str, errors: ErrorTable) -> None:
        self.name = name
        self._errors = errors
        self._clients: Clients[Any, Any] = Clients()

    def translate(self, error: Exception) -> CallError | None:
        """The library error for an exception of the SDK or its HTTP client; None if it is no failure of the wire."""
        return self._errors.translate(error, self.name)

    def close(self) -> None:
        """Close the waiting client if this connection made it."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close both clients if this connection made them."""
        await self._clients.aclose()


class ClientConnection(SDKConnection, ABC):
    """A connection over clients that take ready bytes: its own clients, or the user's client, which is never closed.

    `kinds` are the classes, waiting and async, that the user's client may have, as `module.Class`.
    """

    kinds: tuple[str, str] = ("", "")
    remedy = "give a client of its SDK"

    def __init__(self, name: str, errors: ErrorTable, given: Any = None) -> None:
        super().__init__(name, errors)
        self.client = given

    def make_sync(self) -> Any:
        """A waiting client; not called if the user gave a client."""

    def make(self) -> Any:
        """An async client; not called if the user gave a client."""

    @abstractmethod
    def send_sync(self, client: Any, request: WireRequest) -> Any:
        """Send once, follow no redirect, and return the response once its headers are there, whatever the status."""

    @abstractmethod
    async def send(self, client: Any, request: WireRequest) -> Any:
        """As `send_sync`, over an async client."""

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send the request, and return once the response's headers are there, whatever the status."""
        check_request(request)
        with explaining_environment_errors(self.name):
            client = self._clients.sync(self.make_sync) if self.client is None else self._checked(self.kinds[0])
        return HTTPAnswer(self.send_sync(client, request))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send the request, and return once the response's headers are there, whatever the status."""
        check_request(request)
        with explaining_environment_errors(self.name):
            client = await self._clients.here(self.make) if self.client is None else self._checked(self.kinds[1])
        return AsyncHTTPAnswer(await self.send(client, request))

    def _checked(self, kind: str) -> Any:
        check_client(self.client, kind, self.name, self.remedy)
        return self.client


class OwnClientConnection(SDKConnection, ABC, Generic[SyncSDK, AsyncSDK]):
    """A connection over clients that the plugin makes itself.

    A head is learnt once, so this is for clients whose heads depend on nothing but the key; a user's own client, which
    may renew a token or sign, is asked each time. The SDK is given `self.base_url`, to which it joins paths. When a
    head is learnt, the query of the user's `base_url` is put behind the path, and its user and password into the
    header.
    """

    MOST = 64
    """The most heads that are kept: a caller may send other headers each time."""

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

    def addressed(self, request: WireRequest) -> WireRequest:
        """Return the request with the path that this endpoint has for it; by default unchanged."""
        return request

    def url_of(self, made: Any, request: WireRequest) -> Any:
        """The URL for a request that the SDK made; by default the SDK's own."""
        return made.url

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send the request, and return once the response's headers are there, whatever the status."""
        request = self.addressed(request)
        check_request(request)
        kind = self._kind("waiting", request)
        sender = self._clients.sync(lambda: _Sender(self._loaded().client(), Lock()))
        head = self._heads.get(kind)
        if head is None:
            with sender.lock:
                head = self._heads.get(kind) or self._learn_sync(kind, request)
        return HTTPAnswer(send(sender.client, head, request.body, request.opening))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send the request, and return once the response's headers are there, whatever the status."""
        request = self.addressed(request)
        check_request(request)
        kind = self._kind("async", request)
        sender = await self._clients.here(self._sender)
        head = self._heads.get(kind)
        if head is None:
            async with sender.lock:
                head = self._heads.get(kind) or await self._learn(kind, request)
        return AsyncHTTPAnswer(await send(sender.client, head, request.body, request.opening))

    def _sender(self) -> _Sender:
        import asyncio  # imported only where a loop runs; waiting callers do not need it

        return _Sender(self._loaded().async_client(), asyncio.Lock())

    def _loaded(self) -> Library:
        """The library, whose clients share one TLS context."""
        if self._library is None:
            client, async_client, tls_context = self.library()
            checked = explaining_environment_errors(self.name)
            context = checked(tls_context)()
            client, async_client = partial(client, verify=context), partial(async_client, verify=context)
            self._library = Library(checked(client), checked(async_client), tls_context)
        return self._library

    def _kind(self, way: str, request: WireRequest) -> _Kind:
        return (way, self._key.read(), request.path, request.timeout, *request.headers.items())

    def _learn_sync(self, kind: _Kind, request: WireRequest) -> Any:
        sdk = self._sdk_of(kind, self.make_sync, self._loaded().client, keep)
        with CapturedRequest.caught() as found:
            self.ask_sync(sdk, request)
        return self._learnt(kind, found, request)

    async def _learn(self, kind: _Kind, request: WireRequest) -> Any:
        sdk = self._sdk_of(kind, self.make, self._loaded().async_client, keep_later)
        with CapturedRequest.caught() as found:
            await self.ask(sdk, request)
        return self._learnt(kind, found, request)

    def _sdk_of(
        self,
        kind: _Kind,
        make: Callable[..., Client],
        http_client: Callable[..., Any],
        hook: Callable[..., Any],
    ) -> Client:
        """The SDK's client that writes heads with this key; a new client is made if the last one had another key."""
        way, key, *_ = kind
        made_with, sdk = self._sdks.get(way, (None, None))
        if made_with != key:
            keys = ((name, value.get_secret_value()) for name, value in key)
            sdk = make(dict(keys), http_client(event_hooks={"request": [hook]}))
            self._sdks[way] = key, sdk
        return sdk  # type: ignore[return-value]  # all clients of one way have one class

    def _learnt(self, kind: _Kind, found: list[CapturedRequest], request: WireRequest) -> Any:
        """The head of a request that the SDK made; it is kept from now on."""
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
