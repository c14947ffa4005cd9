"""The SDK's clients, each with an HTTP client that carries ready bytes through it; imported at the first send.

    client.chat(…) ─▶ SDK ─▶ HTTPClient ─▶ the request with the SDK's URL, key and headers ─▶ the ready bytes in it

The SDK has no public method that takes bytes, and its typed ones would read the answer before giving it back; but it
takes an HTTP client. It never sees an answer or an error of the wire, so that it has nothing to try again.
"""

import httpx
from cohere import AsyncClientV2, ClientV2
from sabir.authoring.carrier import carriers

HTTPClient, AsyncHTTPClient = carriers(httpx.Client, httpx.AsyncClient, httpx.Response)
SECONDS = 300.0
"""The timeout that the SDK's own HTTP client has; one that is given to it has none by itself."""


def make_client(base_url: str, key: str) -> tuple[ClientV2, httpx.Client]:
    """A waiting client, and its HTTP client, which is to be closed."""
    carrier = HTTPClient(timeout=SECONDS, follow_redirects=True)
    return ClientV2(key, base_url=base_url, httpx_client=carrier), carrier


def make_async_client(base_url: str, key: str) -> tuple[AsyncClientV2, httpx.AsyncClient]:
    """An async client, and its HTTP client, which is to be closed."""
    carrier = AsyncHTTPClient(timeout=SECONDS, follow_redirects=True)
    return AsyncClientV2(key, base_url=base_url, httpx_client=carrier), carrier
