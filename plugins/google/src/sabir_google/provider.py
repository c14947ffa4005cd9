"""Google's Gemini API: URL, credentials, the official SDK's clients that carry bytes; Vertex AI by the user's client.

    GoogleProvider ──connect(access)──▶ SDKConnection ──open──▶ status, headers, byte chunks
                               └ client=▶ UsersConnection ─┘

The SDK is imported at the first send. Its public `generate_content` writes the head of each kind of request once; then
ready bytes are sent with it, over a plain HTTP client (see sabir.authoring.transport). So the SDK never uses aiohttp,
which it otherwise does if that is installed, and neither repeats nor continues a call by itself. Its variables for
other endpoints (GOOGLE_GENAI_USE_VERTEXAI and its kin, GOOGLE_GENAI_API_VERSION) have no effect here.

A client that the user gave writes the head of each request, and is never closed. The SDK has no method that takes
bytes, and does not expose the HTTP client of an existing client. So the client must be made with
`sabir_google.http_options()`, whose HTTP clients keep requests that bear sabir's mark, and send all others. Any other
client is refused before anything is sent: before its first request, a call to an unusable address shows who sends it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import ref

from sabir.authoring import (
    Access,
    CapturedRequest,
    ClientConnection,
    Connection,
    Credential,
    Dialect,
    ErrorTable,
    KeySource,
    Library,
    OwnClientConnection,
    SDKProvider,
    WireRequest,
    explaining_environment_errors,
)
from sabir.errors import SettingsInvalid

from sabir_google.errors import ERRORS
from sabir_google.request import VERTEX, VERTEX_URL

if TYPE_CHECKING:
    import httpx2
    from google import genai
    from google.genai.types import HttpOptions

NAME = "google"
_REMEDY = "make it with genai.Client(http_options=sabir_google.http_options(), …)"
_UNSEEN = f"client= of {NAME} does not send through sabir; {_REMEDY}"
_NOWHERE = "sabir://nowhere"
"""An address with a scheme that no HTTP client supports, so that a request to it fails before it is sent."""
_MARK = "x-sabir-keep"
"""The header of a request that an HTTP client of `http_options` captures. It is never sent."""


def http_options(**further: Any) -> "HttpOptions":
    """Return the options for a `genai.Client` that you want to pass as `client=`:
    `genai.Client(http_options=sabir_google.http_options())`.

    sabir cannot send through a client that was created without these options. `further` are other fields of
    HttpOptions. The options contain a sync HTTP client and one for a single event loop, which you must close. Raises
    ConnectionFailed if an environment variable, such as ALL_PROXY, prevents creating the HTTP clients.
    """
    from google.genai.types import HttpOptions
    from httpx2 import AsyncClient, Client

    with explaining_environment_errors(NAME):
        client, async_client = Client(), AsyncClient()
    asked, asked_later = ref(client), ref(async_client)

    def look(request: "httpx2.Request") -> None:
        if _MARK in request.headers:
            raise CapturedRequest(request, asked())

    async def look_later(request: "httpx2.Request") -> None:
        if _MARK in request.headers:
            raise CapturedRequest(request, asked_later())

    client.event_hooks, async_client.event_hooks = {"request": [look]}, {"request": [look_later]}
    return HttpOptions(httpx_client=client, httpx_async_client=async_client, **further)


class GoogleProvider(SDKProvider):
    """The provider for Google's Gemini API, with an API key, or with a `google.genai.Client` as `client=`, also for
    Vertex AI.
    """

    name = NAME
    dialects = ("generate_content",)
    credentials = (Credential(variables=("GOOGLE_API_KEY", "GEMINI_API_KEY")),)
    url = "https://generativelanguage.googleapis.com"
    url_variables = ("GOOGLE_GEMINI_BASE_URL",)
    package = "sabir_google"

    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect `google.generate_content`."""
        from sabir_google.dialect import GENERATE_CONTENT

        return GENERATE_CONTENT

    def url_of(self, access: Access) -> str:
        """Return the URL of the endpoint. With the user's client: `base_url` if given, otherwise the usual URL of
        Gemini or Vertex AI, because a client does not show its URL.
        """
        if access.client is not None:
            return access.base_url or (VERTEX_URL if self.quirks(access) else self.url)
        return super().url_of(access)

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Return a connection over clients of the package `google-genai`, which are created at the first request."""
        return SDKConnection(NAME, ERRORS, key, self.url_of(access))

    def connect_user_client(self, client: object) -> Connection:
        """Return a connection over the user's client, which must have been created with `http_options`."""
        return UsersConnection(NAME, ERRORS, client)

    def quirks(self, access: Access) -> frozenset[str]:
        """Return the quirk of Vertex AI if the user's client is one for Vertex AI, otherwise none."""
        return frozenset({VERTEX} if getattr(access.client, "vertexai", False) else ())


class SDKConnection(OwnClientConnection["genai.Client", "genai.Client"]):
    """A connection over clients of the package `google-genai` that the plugin creates."""

    def library(self) -> Library:
        """Return the client classes of httpx2, with their defaults, which the SDK uses too."""
        from httpx2 import AsyncClient, Client, create_ssl_context

        return Library(Client, AsyncClient, create_ssl_context)

    def make_sync(self, keys: Mapping[str, str], http_client: "httpx2.Client") -> "genai.Client":
        """Return a client of the SDK whose sync half uses `http_client`. The async half is never used."""
        from httpx2 import AsyncBaseTransport, AsyncClient

        return self._made(keys, http_client, AsyncClient(transport=AsyncBaseTransport()))

    def make(self, keys: Mapping[str, str], http_client: "httpx2.AsyncClient") -> "genai.Client":
        """Return a client of the SDK whose async half uses `http_client`. The sync half is never used."""
        from httpx2 import BaseTransport, Client

        return self._made(keys, Client(transport=BaseTransport()), http_client)

    def ask_sync(self, client: "genai.Client", request: WireRequest) -> object:
        """Call the SDK so that it builds the request. The HTTP client intercepts the request, so nothing is sent."""
        return client.models.generate_content(**_call(request, client))

    async def ask(self, client: "genai.Client", request: WireRequest) -> object:
        """Async version of `ask_sync`."""
        return await client.aio.models.generate_content(**_call(request, client))

    def url_of(self, made: "httpx2.Request", request: WireRequest) -> "httpx2.URL":
        """Return the URL that the SDK built, with the method of the request's path, such as "streamGenerateContent"."""
        return _url_of(made, request)

    def _made(
        self, keys: Mapping[str, str], client: "httpx2.Client", async_client: "httpx2.AsyncClient"
    ) -> "genai.Client":
        from google import genai
        from google.genai.types import HttpOptions

        options = HttpOptions(base_url=self.base_url, httpx_client=client, httpx_async_client=async_client)
        return genai.Client(vertexai=False, api_key=keys["api_key"], http_options=options)


class UsersConnection(ClientConnection):
    """A connection over the user's own `genai.Client`, sync or async, which is never closed."""

    kinds = ("google.genai.Client", "google.genai.Client")
    remedy = _REMEDY

    def __init__(self, name: str, errors: ErrorTable, client: object) -> None:
        super().__init__(name, errors, client)
        self._looked_at: set[str] = set()

    def send_sync(self, client: "genai.Client", request: WireRequest) -> Any:
        """Send a request with the user's client and return the response when its headers have arrived, for every
        status.

        Raises SettingsInvalid if the client was not created with `http_options`.
        """
        marked = _marked(request)
        if "waiting" not in self._looked_at:
            with _looking():
                client.models.generate_content(**_call(marked, client, _NOWHERE))
            self._looked_at.add("waiting")
        with CapturedRequest.caught() as found:
            client.models.generate_content(**_call(marked, client))
        return _send(found, request)

    async def send(self, client: "genai.Client", request: WireRequest) -> Any:
        """Async version of `send_sync`."""
        marked = _marked(request)
        if "async" not in self._looked_at:
            with _looking():
                await client.aio.models.generate_content(**_call(marked, client, _NOWHERE))
            self._looked_at.add("async")
        with CapturedRequest.caught() as found:
            await client.aio.models.generate_content(**_call(marked, client))
        return await _send(found, request)


@contextmanager
def _looking() -> Iterator[None]:
    """Return a context manager for a call to an unusable address, which shows who sends it. Raises SettingsInvalid if
    it is not sabir.

    Any exception other than missing credentials means that another HTTP client tried the address.
    """
    with CapturedRequest.caught() as found:
        try:
            yield
        except Exception as error:
            if type(error).__module__.startswith("google.auth"):
                raise
    if not found:
        raise SettingsInvalid(_UNSEEN)


def _send(found: list[CapturedRequest], request: WireRequest) -> Any:
    """Send the ready bytes as the user's client would send its own. Await the result of an async client."""
    if not found:
        raise SettingsInvalid(_UNSEEN)
    head = found[0].request
    del head.headers[_MARK]
    head.url = _url_of(head, request)
    return found[0].send(request.body, request.opening)


def _url_of(made: "httpx2.Request", request: WireRequest) -> "httpx2.URL":
    """Return the URL that the SDK built, with the method of the request's path."""
    from httpx2 import URL

    return URL(f"{str(made.url).rpartition(':')[0]}:{request.path.rpartition(':')[2]}")


def _marked(request: WireRequest) -> WireRequest:
    """Return the request with the header by which an HTTP client of `http_options` captures it."""
    return replace(request, headers={**request.headers, _MARK: "1"})


def _call(request: WireRequest, client: "genai.Client", base_url: str | None = None) -> dict[str, Any]:
    """Return the arguments of `generate_content`: the model, a text that is never sent, and the options for sending."""
    from google.genai.types import AutomaticFunctionCallingConfig, GenerateContentConfig, HttpOptions, HttpRetryOptions

    version, _, model = request.path.rpartition(":")[0].lstrip("/").partition("/")
    how: dict[str, Any] = {"retry_options": HttpRetryOptions(attempts=1), "headers": dict(request.headers)}
    if base_url is not None:
        how["base_url"] = base_url
    if not client.vertexai:
        how["api_version"] = version
    if request.timeout is not None:
        how["timeout"] = max(round(request.timeout * 1000), 1)
    calling = AutomaticFunctionCallingConfig(disable=True)
    config = GenerateContentConfig(http_options=HttpOptions(**how), automatic_function_calling=calling)
    return {"model": model.removeprefix("models/"), "contents": "…", "config": config}
