"""Cohere: URL, key, and the official SDK's v2 clients, which carry ready bytes (see clients).

    CohereProvider ──connect(access)──▶ SDKConnection ──open──▶ status, headers, byte chunks

The SDK is imported at the first send. `client=` is refused: the SDK has no public way to see or change the HTTP client
of a client that is made. A private deployment is reached by `base_url=`.
"""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sabir.authoring.access import KeySource, first_variable, read_endpoint
from sabir.authoring.carrier import OwnConnection
from sabir.authoring.failures import translate_raised
from sabir.catalogue import read_models
from sabir.contracts import SABIR_API, Access, Dialect, WireRequest
from sabir.errors import CallError, SettingsInvalid
from sabir.scope import ModelInfo

from sabir_cohere.dialect import CHAT

if TYPE_CHECKING:
    import httpx
    from cohere import AsyncClientV2, ClientV2

NAME = "cohere"
URL = "https://api.cohere.com"


@cache
def _known_models() -> tuple[ModelInfo, ...]:
    return read_models(files("sabir_cohere").joinpath("models.toml").read_text("utf-8"))


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
        return _known_models()


class SDKConnection(OwnConnection["ClientV2", "AsyncClientV2"]):
    """The SDK's clients for one endpoint, each with the HTTP client that carries its bytes."""

    def __init__(self, base_url: str, key: KeySource) -> None:
        super().__init__()
        self._base_url, self._key = base_url, key

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the HTTP client raised; None for what is not the wire's."""
        return translate_raised(error, NAME)

    def make_sync(self) -> "tuple[ClientV2, httpx.Client]":
        """A waiting client of the SDK, and its HTTP client."""
        from sabir_cohere.clients import make_client

        return make_client(self._base_url, self._key.read())

    def make(self) -> "tuple[AsyncClientV2, httpx.AsyncClient]":
        """An async client of the SDK, and its HTTP client."""
        from sabir_cohere.clients import make_async_client

        return make_async_client(self._base_url, self._key.read())

    def ask_sync(self, client: "ClientV2", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return client.chat(model="", messages=[], request_options=_how(request))

    async def ask(self, client: "AsyncClientV2", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return await client.chat(model="", messages=[], request_options=_how(request))


def _how(request: WireRequest) -> Any:
    """How the SDK sends: with its own timeout where none is asked for."""
    return {"additional_headers": dict(request.headers), "timeout": request.timeout}
