"""Google's Gemini API: URL, credentials, the official SDK's clients that carry bytes; Vertex AI by the user's client.

    GoogleProvider ──connect(access)──▶ SDKConnection ──open──▶ status, headers, byte chunks
                               └ client=▶ UsersConnection ─┘

The SDK is imported at the first send. Its public `generate_content` writes the head of each kind of request once; then
ready bytes go straight through the HTTP clients of this plugin that stand in for the SDK's own (see http_provider): so
it never takes aiohttp, which it else does wherever that is installed, and neither repeats nor continues a call by
itself. Its variables that lead elsewhere (GOOGLE_GENAI_USE_VERTEXAI and its kin, GOOGLE_GENAI_API_VERSION) decide
nothing here.

A client that the user gave writes the head of each request, and is never closed. The SDK lets nobody change the HTTP
client of a client that is made, so that it must be made with `sabir_google.http_options()`; one that was not is refused
before anything is sent.
"""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sabir.authoring.access import (
    AsyncHTTPAnswer,
    HTTPAnswer,
    KeySource,
    checked_client,
    first_variable,
    read_endpoint,
)
from sabir.authoring.carrier import OwnConnection
from sabir.catalogue import read_models
from sabir.contracts import SABIR_API, Access, Dialect, WireRequest
from sabir.errors import CallError
from sabir.scope import ModelInfo

from sabir_google.errors import translate
from sabir_google.services import VERTEX

if TYPE_CHECKING:
    import httpx2
    from google import genai
    from google.genai.types import HttpOptions

NAME = "google"
URL = "https://generativelanguage.googleapis.com"
VERTEX_URL = "https://aiplatform.googleapis.com"
"""What names Vertex AI in an origin: its signatures and those of the Gemini API are not read by the other."""
KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
URL_VARIABLES = ("GOOGLE_GEMINI_BASE_URL",)
_REMEDY = "make it with genai.Client(http_options=sabir_google.http_options(), …)"
_UNSEEN = f"client= of {NAME} does not send through sabir; {_REMEDY}"
_NOWHERE = "sabir://nowhere"
"""An address that no HTTP client knows how to reach: a request to it is refused before it leaves."""


def http_options(**further: Any) -> "HttpOptions":
    """Options for a `genai.Client` that sabir is to send with; `further` are other fields of HttpOptions.

    The HTTP clients in them are the user's to close. One waits, one is for a single event loop.
    """
    from google.genai.types import HttpOptions

    from sabir_google.http_provider import AsyncHTTPClient, HTTPClient

    return HttpOptions(httpx_client=HTTPClient(), httpx_async_client=AsyncHTTPClient(), **further)


class GoogleProvider:
    """Google by an API key, or by the user's own client."""

    api_version = SABIR_API
    name = NAME
    dialects = ("generate_content",)
    key_variables = KEY_VARIABLES

    def dialect(self, short_name: str) -> Dialect:
        """The one dialect."""
        from sabir_google.dialect import GENERATE_CONTENT

        return GENERATE_CONTENT

    def endpoint(self, access: Access) -> str:
        """The endpoint's URL; of a client that does not tell its own, `base_url`, else what it is a client of."""
        return read_endpoint(NAME, access, self._url(access))

    def _url(self, access: Access) -> str:
        if access.client is not None:
            return access.base_url or (VERTEX_URL if getattr(access.client, "vertexai", False) else URL)
        return access.base_url or first_variable(URL_VARIABLES) or URL

    def connect(self, access: Access) -> "SDKConnection | UsersConnection":
        """A connection; makes no client and reads no key before its first send."""
        self.endpoint(access)
        if access.client is not None:
            return UsersConnection(access.client)
        return SDKConnection(self._url(access), KeySource(NAME, access.api_key, KEY_VARIABLES))

    def quirks(self, access: Access) -> frozenset[str]:
        """That of Vertex AI, for a client of it."""
        return frozenset({VERTEX} if getattr(access.client, "vertexai", False) else ())

    def models(self) -> tuple[ModelInfo, ...]:
        """What is known of Google's models."""
        return _known_models()


@cache
def _known_models() -> tuple[ModelInfo, ...]:
    return read_models(files("sabir_google").joinpath("models.toml").read_text("utf-8"))


class SDKConnection(OwnConnection["genai.Client", "genai.Client"]):
    """The SDK's clients for one endpoint, made at the first send."""

    def __init__(self, base_url: str, key: KeySource) -> None:
        super().__init__()
        self._base_url = base_url
        self._key = key

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
        return translate(error, NAME)

    def make_sync(self) -> "tuple[genai.Client, httpx2.Client]":
        """A waiting client of the SDK, and its HTTP client."""
        from httpx2 import AsyncBaseTransport

        from sabir_google.http_provider import AsyncHTTPClient, HTTPClient

        http_client = HTTPClient()
        return self._made(http_client, AsyncHTTPClient(transport=AsyncBaseTransport())), http_client

    def make(self) -> "tuple[genai.Client, httpx2.AsyncClient]":
        """An async client of the SDK, and its HTTP client."""
        from httpx2 import BaseTransport

        from sabir_google.http_provider import AsyncHTTPClient, HTTPClient

        http_client = AsyncHTTPClient()
        return self._made(HTTPClient(transport=BaseTransport()), http_client), http_client

    def ask_sync(self, client: "genai.Client", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return client.models.generate_content(**_call(request, client))

    async def ask(self, client: "genai.Client", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return await client.aio.models.generate_content(**_call(request, client))

    def url_of(self, made: "httpx2.Request", request: WireRequest) -> "httpx2.URL":
        """The SDK's, with the method that the request is for."""
        from sabir_google.http_provider import url_of

        return url_of(made, request)

    def _made(self, client: "httpx2.Client", async_client: "httpx2.AsyncClient") -> "genai.Client":
        """A client of the Gemini API; the half that is never used costs no TLS context."""
        from google import genai
        from google.genai.types import HttpOptions

        options = HttpOptions(base_url=self._base_url, httpx_client=client, httpx_async_client=async_client)
        return genai.Client(vertexai=False, api_key=self._key.read(), http_options=options)


class UsersConnection:
    """The user's own client, sync or async: it is asked to send each request, and never closed."""

    def __init__(self, client: object) -> None:
        self._client = client
        self._looked_at: set[str] = set()

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        from sabir_google.http_provider import carried, send

        client = self._checked()
        if "waiting" not in self._looked_at:
            with carried(None, _UNSEEN):
                client.models.generate_content(**_call(None, client))
        with carried(request, _UNSEEN) as parcel:
            client.models.generate_content(**_call(request, client))
        self._looked_at.add("waiting")
        return HTTPAnswer(send(parcel, request))

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        from sabir_google.http_provider import carried, send

        client = self._checked()
        if "async" not in self._looked_at:
            with carried(None, _UNSEEN):
                await client.aio.models.generate_content(**_call(None, client))
        with carried(request, _UNSEEN) as parcel:
            await client.aio.models.generate_content(**_call(request, client))
        self._looked_at.add("async")
        return AsyncHTTPAnswer(await send(parcel, request))

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
        return translate(error, NAME)

    def close(self) -> None:
        """Nothing: the client is the user's."""

    async def aclose(self) -> None:
        """Nothing: the client is the user's."""

    def _checked(self) -> "genai.Client":
        from google.genai import Client

        return checked_client(self._client, Client, NAME, _REMEDY)


def _call(request: WireRequest | None, client: "genai.Client") -> dict[str, Any]:
    """What `generate_content` is called with: the model, a text that is never sent, and how to send."""
    from google.genai.types import AutomaticFunctionCallingConfig, GenerateContentConfig, HttpOptions, HttpRetryOptions

    how: dict[str, Any] = {"retry_options": HttpRetryOptions(attempts=1)}
    model = "any"
    if request is None:
        how["base_url"] = _NOWHERE
    else:
        version, _, model = request.path.rpartition(":")[0].lstrip("/").partition("/")
        how["headers"] = dict(request.headers)
        if not client.vertexai:
            how["api_version"] = version
        if request.timeout is not None:
            how["timeout"] = max(round(request.timeout * 1000), 1)
    calling = AutomaticFunctionCallingConfig(disable=True)
    config = GenerateContentConfig(http_options=HttpOptions(**how), automatic_function_calling=calling)
    return {"model": model.removeprefix("models/"), "contents": "…", "config": config}
