"""The HTTP clients that carry ready bytes through the SDK: it adds the key or token and headers, and makes the URL.

    generate_content("…") ─▶ SDK ─▶ HTTPClient.send ─▶ parcel ─▶ the ready bytes, to the method asked for ─▶ the answer

The SDK has no public method that takes bytes, and its typed ones take a hundred milliseconds for a thousand messages;
but it takes HTTP clients (`HttpOptions.httpx_client`, `.httpx_async_client`). Of a user's client nobody can tell
whether it is made of these: before its first request, a call that leads nowhere looks who would carry it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from sabir.authoring.carrier import Parcel, carriers
from sabir.contracts import WireRequest
from sabir.errors import SettingsInvalid

HTTPClient, AsyncHTTPClient = carriers(httpx2.Client, httpx2.AsyncClient, httpx2.Response)


@contextmanager
def carried(request: WireRequest | None, unseen: str) -> Iterator[Parcel]:
    """Within it, the SDK makes a parcel; SettingsInvalid with `unseen` where none of these clients was asked.

    Without a request nothing is to be sent: what is no lack of access failed to reach the address.
    """
    with Parcel() as parcel:
        try:
            yield parcel
        except Exception as error:
            if request or parcel.made or type(error).__module__.startswith("google.auth"):
                raise
    if parcel.made is None:
        raise SettingsInvalid(unseen) from None


def url_of(made: httpx2.Request, request: WireRequest) -> httpx2.URL:
    """The URL that the SDK made, with the method that the request is for."""
    return httpx2.URL(f"{str(made.url).rpartition(':')[0]}:{request.path.rpartition(':')[2]}")


def send(parcel: Parcel, request: WireRequest) -> Any:
    """Send the ready bytes to the method that they are for; of an async client, the answer is awaited."""
    parcel.url = url_of(parcel.made, request)
    return parcel.send(request.body)
