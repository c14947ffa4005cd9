"""Ready bytes, sent under the head that a vendor's SDK writes: its URL, its key, its headers, its timeouts.

    with Parcel() as parcel: client.chat(…) ─▶ SDK ─▶ HTTPClient.send ─▶ the request, as the SDK makes it
                                                ◀── an empty answer: nothing is to be read or tried again
    parcel.send(ready bytes) ─▶ HTTPClient's own send ─▶ the answer, unread, for core

A parcel is sent as often as one likes, each time with other bytes. OwnConnection keeps one for every path, headers and
timeout, so that the SDK is asked once. Threads and tasks have each their own parcel in the making; without one, the
clients do what those of their library do. Which library that is the plugin says, in a module that it imports at the
first send; none is imported here:

    HTTPClient, AsyncHTTPClient = carriers(httpx.Client, httpx.AsyncClient, httpx.Response)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, TypeAlias

from sabir.authoring.access import AsyncClient, Client, Clients, SyncClient
from sabir.authoring.answers import ENCODINGS, AsyncHTTPAnswer, HTTPAnswer
from sabir.contracts import WireRequest

_PARCEL: ContextVar["Parcel | None"] = ContextVar("_PARCEL", default=None)


class Parcel:
    """The request that the SDK makes within it, which is not sent until `send`; all of an HTTP library's types are Any.

    `made` stays None where the SDK asks no client of `carriers`. `url` is where it goes instead of the SDK's own.
    """

    made: Any = None
    url: Any = None
    own_send: Any = None
    cookies: Any = None

    def __enter__(self) -> "Parcel":
        self._token = _PARCEL.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _PARCEL.reset(self._token)

    def take(self, client: Any, request: Any, own_send: Any) -> None:
        """Keep what the SDK made. Cookies of the client's are not kept: they are as they are when something is sent."""
        self.made, self.own_send, self.cookies = request, own_send, client.cookies
        said = request.headers.get("cookie")
        if said and type(request)("POST", request.url, cookies=client.cookies).headers.get("cookie") == said:
            del request.headers["cookie"]

    def send(self, body: bytes) -> Any:
        """Send what was made, with the ready bytes for its body; an async client's is awaited."""
        made, headers = self.made, self.made.headers.copy()
        headers["content-length"] = str(len(body))
        headers["accept-encoding"] = ENCODINGS
        # A ready stream: to be given content, an HTTP library looks through the headers once more.
        how = {"headers": headers, "cookies": self.cookies, "stream": type(made.stream)(body)}
        return self.own_send(type(made)(made.method, self.url or made.url, **how, extensions=made.extensions))


def carriers(
    client: type[SyncClient], async_client: type[AsyncClient], response: type[Any]
) -> tuple[type[SyncClient], type[AsyncClient]]:
    """The classes of a waiting and an async client that carry parcels, by those of an HTTP library like httpx.

    One that nobody closed closes itself when it is no longer used, as the clients do that an SDK makes.
    """

    class HTTPClient(client):  # type: ignore[misc, valid-type]
        def send(self, request: Any, **how: Any) -> Any:
            if (parcel := _PARCEL.get()) is None:
                return super().send(request, **how)
            parcel.take(self, request, partial(super().send, **{**how, "stream": True}))
            return response(200, json={}, request=request)

        def __del__(self) -> None:
            with suppress(Exception):
                self.close()

    class AsyncHTTPClient(async_client):  # type: ignore[misc, valid-type]
        async def send(self, request: Any, **how: Any) -> Any:
            if (parcel := _PARCEL.get()) is None:
                return await super().send(request, **how)
            parcel.take(self, request, partial(super().send, **{**how, "stream": True}))
            return response(200, json={}, request=request)

        def __del__(self) -> None:
            with suppress(Exception):
                import asyncio

                if not self.is_closed:
                    asyncio.get_running_loop().create_task(self.aclose())

    return HTTPClient, AsyncHTTPClient


_Key: TypeAlias = tuple[object, ...]


class _Made(Generic[Client]):
    """A client of the SDK, its HTTP client, and the parcels that it made so far."""

    MOST = 64
    """How many parcels are kept: a caller may send other headers each time."""

    def __init__(self, client: Client, http_client: Any) -> None:
        self.client = client
        self.http_client = http_client
        self._parcels: dict[_Key, Parcel] = {}

    def find(self, request: WireRequest) -> Parcel | None:
        """The parcel for requests like this one."""
        return self._parcels.get(_key_of(request))

    @contextmanager
    def parcel(self, request: WireRequest) -> Iterator[Parcel]:
        """Within it, the SDK makes a parcel for requests like this one; it is kept."""
        with Parcel() as parcel:
            yield parcel
        if len(self._parcels) >= self.MOST:
            self._parcels.clear()
        self._parcels[_key_of(request)] = parcel


def _key_of(request: WireRequest) -> _Key:
    """What of a request the SDK's head for it may depend on."""
    return (request.path, request.timeout, *request.headers.items())


class OwnConnection(ABC, Generic[SyncClient, AsyncClient]):
    """A connection over the SDK's clients that the plugin makes itself; `translate` is missing yet.

    The SDK is asked for each kind of request once; then ready bytes go out by the HTTP client that it was given. So
    this is for clients whose heads stay as they are. A user's own client, which may renew a token, is asked each time.
    """

    def __init__(self) -> None:
        self._clients: Clients[_Made[SyncClient], _Made[AsyncClient]] = Clients()

    @abstractmethod
    def make_sync(self) -> tuple[SyncClient, Any]:
        """A waiting client of the SDK, and the HTTP client that carries its parcels."""

    @abstractmethod
    def make(self) -> tuple[AsyncClient, Any]:
        """An async client of the SDK, and the HTTP client that carries its parcels."""

    @abstractmethod
    def ask_sync(self, client: SyncClient, request: WireRequest) -> object:
        """Have the SDK make a request with any body; what it gives back is empty."""

    @abstractmethod
    async def ask(self, client: AsyncClient, request: WireRequest) -> object:
        """Have the SDK make a request with any body; what it gives back is empty."""

    def url_of(self, made: Any, request: WireRequest) -> Any:
        """Where a request goes that the SDK made; None for where the SDK sends it."""
        return None

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        made = self._clients.sync(lambda: _Made(*self.make_sync()))
        parcel = made.find(request)
        if parcel is None:
            with made.parcel(request) as parcel:
                self.ask_sync(made.client, request)
                parcel.url = self.url_of(parcel.made, request)
        return HTTPAnswer(parcel.send(request.body))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        made = self._clients.here(lambda: _Made(*self.make()))
        parcel = made.find(request)
        if parcel is None:
            with made.parcel(request) as parcel:
                await self.ask(made.client, request)
                parcel.url = self.url_of(parcel.made, request)
        return AsyncHTTPAnswer(await parcel.send(request.body))

    def close(self) -> None:
        """Close the waiting client."""
        if made := self._clients.take_sync():
            made.http_client.close()

    async def aclose(self) -> None:
        """Close the waiting client and this event loop's."""
        self.close()
        if made := self._clients.take_here():
            await made.http_client.aclose()
