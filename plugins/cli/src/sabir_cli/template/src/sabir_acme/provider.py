"""Acme's endpoint, its key, and the client that carries ready bytes to it.

    access ──connect──▶ AcmeConnection ──open──▶ status, headers, byte chunks

Change: URL, the key's variable, the client. Here httpx2, a plain HTTP client, stands where a vendor's SDK would: that,
too, is given ready bytes by its own `post`, asked for as a stream, its retries off; it follows no redirect. It is
imported at the first send.
"""

from typing import TYPE_CHECKING, Any

from sabir import CallError, ModelInfo
from sabir.authoring import (
    Access,
    AsyncHTTPAnswer,
    Clients,
    Dialect,
    HTTPAnswer,
    KeySource,
    WireRequest,
    checked_client,
    packaged_models,
    read_endpoint,
    translate_raised,
    url_of_client,
)

from sabir_acme.dialect import CHAT

if TYPE_CHECKING:
    import httpx2

URL = "https://api.acme.example/v1"
VARIABLES = ("ACME_API_KEY",)
SECONDS = 600


class Acme:
    """The provider."""

    name = "acme"
    api_version = 1
    dialects = ("chat",)
    key_variables = VARIABLES

    def dialect(self, short_name: str) -> Dialect:
        """The only one."""
        return CHAT

    def endpoint(self, access: Access) -> str:
        """The endpoint's URL without what may be secret in it: the client's, the user's, Acme's own."""
        given = access.base_url if access.client is None else url_of_client("acme", access.client)
        return read_endpoint("acme", access, given or URL)

    def connect(self, access: Access) -> "AcmeConnection":
        """A connection; makes no client and reads no key before its first send."""
        return AcmeConnection(self.endpoint(access), access)

    def quirks(self, access: Access) -> frozenset[str]:
        """None: there is one endpoint, and it does as its reference says."""
        return frozenset()

    def models(self) -> tuple[ModelInfo, ...]:
        """The rows of models.toml."""
        return packaged_models("sabir_acme")


class AcmeConnection:
    """A waiting client, and one for each event loop; a client that the user gave is used and never closed."""

    def __init__(self, url: str, access: Access) -> None:
        self._url = url
        self._key = KeySource("acme", access.api_key, VARIABLES)
        self._given = access.client
        self._clients: Clients[httpx2.Client, httpx2.AsyncClient] = Clients()

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        from httpx2 import Client

        client = self._given or self._clients.sync(lambda: Client(base_url=self._url, timeout=SECONDS))
        client = checked_client(client, Client, "acme", "the waiting calls take an httpx2.Client")
        asked = client.build_request(**self._call(request))
        return HTTPAnswer(client.send(asked, stream=True, follow_redirects=False))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        from httpx2 import AsyncClient

        client = self._given or await self._clients.here(lambda: AsyncClient(base_url=self._url, timeout=SECONDS))
        client = checked_client(client, AsyncClient, "acme", "await takes an httpx2.AsyncClient")
        asked = client.build_request(**self._call(request))
        return AsyncHTTPAnswer(await client.send(asked, stream=True, follow_redirects=False))

    def _call(self, request: WireRequest) -> dict[str, Any]:
        """The request; the key goes with each, for a function may give another. A user's client has its own."""
        key = {} if self._given else {"Authorization": f"Bearer {self._key.read()}"}
        headers = {"Content-Type": "application/json", **key, **request.headers}
        call = {"method": "POST", "url": request.path, "content": request.body, "headers": headers}
        return {**call, **({"timeout": request.timeout} if request.timeout else {})}

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the client raised; None for what is not the wire's."""
        return translate_raised(error, "acme")

    def close(self) -> None:
        """Close the waiting client if this connection made it."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close both clients if this connection made them."""
        await self._clients.aclose()
