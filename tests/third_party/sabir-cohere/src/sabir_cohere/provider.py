"""Cohere: URL, key, and the official SDK's v2 clients, which write the heads of ready bytes.

The SDK is imported at the first send. It has no public method that takes bytes, and its typed ones would read the
answer before giving it back; but it takes an HTTP client, and so writes heads alone (see sabir.authoring.transport).
`client=` is refused: nobody can see or change the HTTP client of a client that is made. A private deployment is reached
by `base_url=`.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from sabir.authoring import (
    Access,
    Connection,
    Credential,
    Dialect,
    KeySource,
    Library,
    OwnClientConnection,
    SDKProvider,
    WireRequest,
)

from sabir_cohere.dialect import CHAT
from sabir_cohere.errors import ERRORS

if TYPE_CHECKING:
    import httpx
    from cohere import AsyncClientV2, ClientV2

SECONDS = 300.0
"""The timeout that the SDK's own HTTP client has; one that is given to it has none by itself."""


class CohereProvider(SDKProvider):
    """Cohere by an API key."""

    name = "cohere"
    dialects = ("chat",)
    credentials = (Credential(variables=("CO_API_KEY",)),)
    request_ids = ("x-debug-trace-id",)
    url = "https://api.cohere.com"
    url_variables = ("CO_API_URL",)
    package = "sabir_cohere"

    def dialect(self, short_name: str) -> Dialect:
        """The one dialect."""
        return CHAT

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Over the SDK's clients, made at the first send."""
        return SDKConnection(self.name, ERRORS, key, self.url_of(access))


class SDKConnection(OwnClientConnection["ClientV2", "AsyncClientV2"]):
    """The SDK's clients for one endpoint, made at the first send."""

    def library(self) -> Library:
        """The library's clients, with the SDK's timeout."""
        from httpx import AsyncClient, Client, create_ssl_context

        clients = partial(Client, timeout=SECONDS), partial(AsyncClient, timeout=SECONDS)
        return Library(*clients, create_ssl_context)

    def make_sync(self, keys: Mapping[str, str], http_client: "httpx.Client") -> "ClientV2":
        """A waiting client of the SDK that writes heads."""
        from cohere import ClientV2

        return ClientV2(keys["api_key"], base_url=self.base_url, httpx_client=http_client)

    def make(self, keys: Mapping[str, str], http_client: "httpx.AsyncClient") -> "AsyncClientV2":
        """An async client of the SDK that writes heads."""
        from cohere import AsyncClientV2

        return AsyncClientV2(keys["api_key"], base_url=self.base_url, httpx_client=http_client)

    def ask_sync(self, client: "ClientV2", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return client.chat(model="", messages=[], request_options=_how(request))

    async def ask(self, client: "AsyncClientV2", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return await client.chat(model="", messages=[], request_options=_how(request))


def _how(request: WireRequest) -> Any:
    """How the SDK sends: with its own timeout where none is asked for."""
    return {"additional_headers": dict(request.headers), "timeout": request.timeout}
