"""Cohere: URL, key, and the official SDK's v2 clients, which write the heads of ready bytes.

    CohereProvider ──connect(access)──▶ SDKConnection ──open──▶ status, headers, byte chunks

The SDK is imported at the first send. It has no public method that takes bytes, and its typed ones would read the
answer before giving it back; but it takes an HTTP client, and so writes heads alone (see sabir.authoring.transport).
`client=` is refused: nobody can see or change the HTTP client of a client that is made. A private deployment is reached
by `base_url=`.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from sabir import ModelInfo
from sabir.authoring import (
    SABIR_API,
    Access,
    Dialect,
    KeySource,
    Library,
    OwnConnection,
    WireRequest,
    first_variable,
    packaged_models,
    read_endpoint,
    translate_raised,
)
from sabir.errors import CallError, SettingsInvalid

from sabir_cohere.dialect import CHAT

if TYPE_CHECKING:
    import httpx
    from cohere import AsyncClientV2, ClientV2

NAME = "cohere"
URL = "https://api.cohere.com"
SECONDS = 300.0
"""The timeout that the SDK's own HTTP client has; one that is given to it has none by itself."""


class CohereProvider:
    """Cohere by an API key."""

    api_version = SABIR_API
    name = NAME
    dialects = ("chat",)
    key_variables = ("CO_API_KEY",)

    def dialect(self, short_name: str) -> Dialect:
        """The one dialect."""
        return CHAT

    def endpoint(self, access: Access) -> str:
        """`base_url`, the SDK's variable CO_API_URL, or the vendor's own."""
        if access.client is not None:
            raise SettingsInvalid(f"{NAME} takes no client=, for its SDK lets nobody see into one; use base_url=")
        return read_endpoint(NAME, access, access.base_url or first_variable(("CO_API_URL",)) or URL)

    def connect(self, access: Access) -> "SDKConnection":
        """A connection; makes no client and reads no key before its first send."""
        return SDKConnection(self.endpoint(access), KeySource(NAME, access.api_key, self.key_variables))

    def quirks(self, access: Access) -> frozenset[str]:
        """None."""
        return frozenset()

    def models(self) -> tuple[ModelInfo, ...]:
        """What is known of Cohere's models."""
        return packaged_models("sabir_cohere")


class SDKConnection(OwnConnection["ClientV2", "AsyncClientV2"]):
    """The SDK's clients for one endpoint, made at the first send."""

    def __init__(self, base_url: str, key: KeySource) -> None:
        super().__init__(key)
        self._base_url = base_url

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the HTTP client raised; None for what is not the wire's."""
        return translate_raised(error, NAME)

    def library(self) -> Library:
        """The library's clients, with the SDK's timeout."""
        from httpx import AsyncClient, Client, create_ssl_context

        clients = partial(Client, timeout=SECONDS), partial(AsyncClient, timeout=SECONDS)
        return Library(*clients, create_ssl_context)

    def make_sync(self, key: str, http_client: "httpx.Client") -> "ClientV2":
        """A waiting client of the SDK that writes heads."""
        from cohere import ClientV2

        return ClientV2(key, base_url=self._base_url, httpx_client=http_client)

    def make(self, key: str, http_client: "httpx.AsyncClient") -> "AsyncClientV2":
        """An async client of the SDK that writes heads."""
        from cohere import AsyncClientV2

        return AsyncClientV2(key, base_url=self._base_url, httpx_client=http_client)

    def ask_sync(self, client: "ClientV2", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return client.chat(model="", messages=[], request_options=_how(request))

    async def ask(self, client: "AsyncClientV2", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return await client.chat(model="", messages=[], request_options=_how(request))


def _how(request: WireRequest) -> Any:
    """How the SDK sends: with its own timeout where none is asked for."""
    return {"additional_headers": dict(request.headers), "timeout": request.timeout}
