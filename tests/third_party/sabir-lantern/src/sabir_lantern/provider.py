"""Lantern's URL and keys, and the HTTP client that sends signed requests. httpx2 is imported when the first request is
sent.
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

from sabir_lantern.dialect import SAY
from sabir_lantern.errors import ERRORS
from sabir_lantern.signing import signer

SECONDS = 600


class Lantern(SDKProvider):
    """The provider `lantern`. A request is signed with both credentials."""

    name = "lantern"
    api_version = 2
    dialects = ("say",)
    credentials = (
        Credential(name="key_id", variables=("LANTERN_KEY_ID",)),
        Credential(name="secret", variables=("LANTERN_SECRET",)),
    )
    request_ids = ("x-lantern-request",)
    url = "https://api.lantern.example/v1"
    url_variables = ("LANTERN_BASE_URL",)
    package = "sabir_lantern"

    def dialect(self, short_name: str) -> Dialect:
        """Return the provider's only dialect."""
        return SAY

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Return a connection over clients that are created at the first request."""
        return LanternConnection(self.url_of(access), key)

    def connect_user_client(self, client: object) -> Connection:
        """Return a connection over the user's own client, which has its own URL, and signs with its own `auth`."""
        return LanternConnection("", None, client)


class LanternConnection(ClientConnection):
    """A connection over a sync client, and an async client for each event loop; or over the user's client, which is
    never closed.
    """

    kinds = ("httpx2.Client", "httpx2.AsyncClient")
    remedy = "sync calls need an httpx2.Client, async calls an httpx2.AsyncClient"

    def __init__(self, url: str, key: KeySource | None, client: object = None) -> None:
        super().__init__("lantern", ERRORS, client)
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
        """Return the client's request, signed. The keys are read for each request, because a function passed as
        `api_key=` may return other keys each time.
        """
        headers = {"Content-Type": "application/json", **request.headers}
        timeout = {"timeout": request.timeout} if request.timeout else {}
        built = client.build_request("POST", request.path, content=request.body, headers=headers, **timeout)
        if self._key is None:
            return built
        keys = {name: value.get_secret_value() for name, value in dict(self._key.read()).items()}
        return signer(keys["key_id"], keys["secret"])(built)
