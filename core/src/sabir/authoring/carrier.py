"""HTTP clients that carry ready bytes through an SDK which has no public method for bytes, but takes an HTTP client.

    with Parcel() as parcel: client.chat(…) ─▶ SDK ─▶ HTTPClient.send ─▶ the request, with the SDK's URL, key, headers
                                                ◀── an empty answer: nothing is to be read or tried again
    parcel.send(ready bytes) ─▶ HTTPClient's own send ─▶ the answer, unread, for core

Threads and tasks have each their own parcel. Without one, the clients do what those of their library do. Which library
that is the plugin says, in a module that it imports at the first send; none is imported here:

    HTTPClient, AsyncHTTPClient = carriers(httpx.Client, httpx.AsyncClient, httpx.Response)
"""

from contextvars import ContextVar
from functools import partial
from typing import Any

from sabir.authoring.access import AsyncClient, SyncClient

_PARCEL: ContextVar["Parcel | None"] = ContextVar("_PARCEL", default=None)


class Parcel:
    """The request that the SDK makes within it, which is not sent until `send`; all of an HTTP library's types are Any.

    `made` stays None where the SDK asks no client of `carriers`.
    """

    made: Any = None
    own_send: Any = None

    def __enter__(self) -> "Parcel":
        self._token = _PARCEL.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _PARCEL.reset(self._token)

    def send(self, body: bytes, url: object = None) -> Any:
        """Send what was made, with the ready bytes for its body, perhaps elsewhere; an async client's is awaited."""
        made = self.made
        headers = {**made.headers, "content-length": str(len(body))}
        how = {"headers": headers, "content": body, "extensions": made.extensions}
        return self.own_send(type(made)(made.method, url or made.url, **how))


def carriers(
    client: type[SyncClient], async_client: type[AsyncClient], response: type[Any]
) -> tuple[type[SyncClient], type[AsyncClient]]:
    """The classes of a waiting and an async client that carry parcels, by those of an HTTP library like httpx."""

    class HTTPClient(client):  # type: ignore[misc, valid-type]
        def send(self, request: Any, **how: Any) -> Any:
            if (parcel := _PARCEL.get()) is None:
                return super().send(request, **how)
            parcel.made, parcel.own_send = request, partial(super().send, **{**how, "stream": True})
            return response(200, json={}, request=request)

    class AsyncHTTPClient(async_client):  # type: ignore[misc, valid-type]
        async def send(self, request: Any, **how: Any) -> Any:
            if (parcel := _PARCEL.get()) is None:
                return await super().send(request, **how)
            parcel.made, parcel.own_send = request, partial(super().send, **{**how, "stream": True})
            return response(200, json={}, request=request)

    return HTTPClient, AsyncHTTPClient
