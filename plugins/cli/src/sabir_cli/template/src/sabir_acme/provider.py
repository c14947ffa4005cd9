"""Acme's endpoint, its key, and the client that carries ready bytes to it.

Change: the attributes of Acme, and the client. Here httpx2, a plain HTTP client, stands where a vendor's SDK would: that,
too, is given ready bytes by its own `post`, asked for as a stream, its retries off; it follows no redirect. It is
imported at the first send.
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
    """The provider."""

    name = "acme"
    dialects = ("chat",)
    credentials = (Credential(variables=("ACME_API_KEY",)),)
    url = "https://api.acme.example/v1"
    package = "sabir_acme"

    def dialect(self, short_name: str) -> Dialect:
        """The only one."""
        return CHAT

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Over clients that are made at the first send."""
        return AcmeConnection(self.endpoint(access), key)

    def connect_user_client(self, client: object) -> Connection:
        """Over the user's own client, which has its own endpoint and key."""
        return AcmeConnection("", None, client)


class AcmeConnection(ClientConnection):
    """A waiting client, and one for each event loop; a client that the user gave is used and never closed."""

    kinds = ("httpx2.Client", "httpx2.AsyncClient")
    remedy = "the waiting calls take an httpx2.Client, await takes an httpx2.AsyncClient"

    def __init__(self, url: str, key: KeySource | None, client: object = None) -> None:
        super().__init__("acme", ERRORS, client)
        self._url, self._key = url, key

    def make_sync(self) -> Any:
        """A waiting client."""
        from httpx2 import Client

        return Client(base_url=self._url, timeout=SECONDS)

    def make(self) -> Any:
        """A client of the event loop."""
        from httpx2 import AsyncClient

        return AsyncClient(base_url=self._url, timeout=SECONDS)

    def send_sync(self, client: Any, request: WireRequest) -> Any:
        """Send; return at the response's headers, whatever the status."""
        return client.send(self._asked(client, request), stream=True, follow_redirects=False)

    async def send(self, client: Any, request: WireRequest) -> Any:
        """Send; return at the response's headers, whatever the status."""
        return await client.send(self._asked(client, request), stream=True, follow_redirects=False)

    def _asked(self, client: Any, request: WireRequest) -> Any:
        """The request; the key goes with each, for a function may give another."""
        key = {"Authorization": f"Bearer {self._key.text()}"} if self._key else {}
        headers = {"Content-Type": "application/json", **key, **request.headers}
        timeout = {"timeout": request.timeout} if request.timeout else {}
        return client.build_request("POST", request.path, content=request.body, headers=headers, **timeout)
