"""Acme's URL and key, and the HTTP client that sends requests.

Change: the attributes of Acme, and the client. Here httpx2, a plain HTTP client, is used in place of a vendor's SDK.
With an SDK, pass the ready bytes to the `post` method of its client, ask for a streamed response, and turn off its
retries and redirects. The client's package is imported when the first request is sent.
"""

from typing import Any

from sabir.authoring import (
    Access,
    ClientConnection,
    Connection,
    Credential,
    Dialect,
    KeySource,
    SDKProvider,
    WireRequest,
)

from sabir_acme.dialect import CHAT
from sabir_acme.errors import ERRORS

SECONDS = 600


class Acme(SDKProvider):
    """The provider `acme`. The docstring of SDKProvider in sabir.authoring explains the attributes."""

    name = "acme"
    api_version = 2
    dialects = ("chat",)
    credentials = (Credential(variables=("ACME_API_KEY",)),)
    url = "https://api.acme.example/v1"
    package = "sabir_acme"

    def dialect(self, short_name: str) -> Dialect:
        """Return the provider's only dialect."""
        return CHAT

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Return a connection over clients that are created at the first request."""
        return AcmeConnection(self.endpoint(access), key)

    def connect_user_client(self, client: object) -> Connection:
        """Return a connection over the user's own client, which has its own URL and key."""
        return AcmeConnection("", None, client)


class AcmeConnection(ClientConnection):
    """A connection over a sync client, and an async client for each event loop; or over the user's client, which is
    never closed.
    """

    kinds = ("httpx2.Client", "httpx2.AsyncClient")
    remedy = "sync calls need an httpx2.Client, async calls an httpx2.AsyncClient"

    def __init__(self, url: str, key: KeySource | None, client: object = None) -> None:
        super().__init__("acme", ERRORS, client)
        self._url, self._key = url, key

    def make_sync(self) -> Any:
        """Return a new sync client."""
        from httpx2 import Client

        return Client(base_url=self._url, timeout=SECONDS)

    def make(self) -> Any:
        """Return a new async client, for one event loop."""
        from httpx2 import AsyncClient

        return AsyncClient(base_url=self._url, timeout=SECONDS)

    def send_sync(self, client: Any, request: WireRequest) -> Any:
        """Send a request, and return the response when its headers have arrived, for every status."""
        return client.send(self._build_request(client, request), stream=True, follow_redirects=False)

    async def send(self, client: Any, request: WireRequest) -> Any:
        """Async version of `send_sync`."""
        return await client.send(self._build_request(client, request), stream=True, follow_redirects=False)

    def _build_request(self, client: Any, request: WireRequest) -> Any:
        """Return the client's request. The key is read for each request, because a function passed as `api_key=` may
        return another key each time.
        """
        key = {"Authorization": f"Bearer {self._key.text()}"} if self._key else {}
        headers = {"Content-Type": "application/json", **key, **request.headers}
        timeout = {"timeout": request.timeout} if request.timeout else {}
        return client.build_request(request.method, request.path, content=request.body, headers=headers, **timeout)
