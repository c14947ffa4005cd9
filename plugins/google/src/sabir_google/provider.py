"""Google's Gemini API: URL, credentials, and connections over the official SDK. For Vertex AI, pass `client=`.

    GoogleProvider ──connect(access)──▶ GoogleConnection ──open──▶ status, headers, byte chunks
                               └ client=▶ GoogleUserConnection ─┘

Without `client=`, the SDK is imported when the first request is sent, and its public `generate_content` builds the URL
and headers of each kind of request once. Then sabir sends ready bytes with them, over an HTTP client of httpx2 (see
sabir.authoring.transport). So the SDK never uses aiohttp, which it otherwise does if aiohttp is installed, and never
repeats or continues a call. Of the SDK's variables for other endpoints, GOOGLE_GEMINI_BASE_URL has an effect, and
others (such as GOOGLE_GENAI_USE_VERTEXAI and GOOGLE_GENAI_API_VERSION) have none.

A user's client builds the URL and headers of each request, and is never closed. The SDK has no method that accepts
bytes, and does not expose the HTTP client of an existing client. So the user must create the client with
`sabir_google.http_options()`. The HTTP clients of these options intercept requests with sabir's mark, so that sabir can
send its bytes instead, and send all others. Any other client is refused before anything is sent: before the client's
first request, a call to an unusable address shows which HTTP client would send it.
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
    Operation,
    OwnClientConnection,
    SDKProvider,
    WireRequest,
    explaining_environment_errors,
)
from sabir.errors import SettingsInvalid

from sabir_google.errors import ERRORS
from sabir_google.native import VERTEX
from sabir_google.request import VERTEX_URL

if TYPE_CHECKING:
    import httpx2
    from google import genai
    from google.genai.types import HttpOptions

NAME = "google"
_REMEDY = "make it with genai.Client(http_options=sabir_google.http_options(), …)"
_NOT_CAPTURED = f"client= of {NAME} was not created with sabir_google.http_options(), so sabir cannot use it; {_REMEDY}"
_UNUSABLE_URL = "sabir://nowhere"
"""An address with a scheme that no HTTP client supports, so that a request to it fails before it is sent."""
_MODELS = ("models/", "tunedModels/")
"""The beginnings of the names of models in a path."""
_NO_MODEL = "no-model"
"""The model with which the SDK builds the URL of a request whose path has no model."""
_MARK = "x-sabir-keep"
"""The header that marks a request which an HTTP client of `http_options` must intercept. The header is never sent."""


def http_options(**further: Any) -> "HttpOptions":
    """Return the options for a `genai.Client` that you want to pass as `client=`:
    `genai.Client(http_options=sabir_google.http_options())`.

    sabir cannot send through a client that was created without these options. `further` are other fields of
    HttpOptions. The options contain a sync HTTP client and an async HTTP client, which works in one event loop only.
    You must close both. Raises ConnectionFailed if an environment variable, such as ALL_PROXY, prevents creating them.
    """
    from google.genai.types import HttpOptions
    from httpx2 import AsyncClient, Client

    with explaining_environment_errors(NAME):
        client, async_client = Client(), AsyncClient()
    client_ref, async_client_ref = ref(client), ref(async_client)

    def capture(request: "httpx2.Request") -> None:
        if _MARK in request.headers:
            raise CapturedRequest(request, client_ref())

    async def capture_async(request: "httpx2.Request") -> None:
        if _MARK in request.headers:
            raise CapturedRequest(request, async_client_ref())

    client.event_hooks, async_client.event_hooks = {"request": [capture]}, {"request": [capture_async]}
    return HttpOptions(httpx_client=client, httpx_async_client=async_client, **further)


class GoogleProvider(SDKProvider):
    """The provider `google`: Google's Gemini API with an API key, as `google:model`. Vertex AI needs `client=` with a
    `google.genai.Client` that was created with `http_options`. Such a client also works for the Gemini API.
    """

    name = NAME
    api_version = 2
    dialects = ("generate_content",)
    credentials = (Credential(variables=("GOOGLE_API_KEY", "GEMINI_API_KEY")),)
    url = "https://generativelanguage.googleapis.com"
    url_variables = ("GOOGLE_GEMINI_BASE_URL",)
    package = "sabir_google"

    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect `google.generate_content`."""
        from sabir_google.dialect import GENERATE_CONTENT

        return GENERATE_CONTENT

    def operations(self) -> Mapping[str, Operation[Any, Any]]:
        """Return the operations of batches, which work with the Gemini API only, and `google.embeddings`."""
        from sabir_google.batches import BATCHES
        from sabir_google.embeddings import EMBEDDINGS

        return {**BATCHES, "embeddings": EMBEDDINGS}

    def url_of(self, access: Access) -> str:
        """Return the URL of the endpoint. With a `client=`, return `base_url` or the usual URL of the Gemini API or
        Vertex AI, because a client does not expose its URL. The client may send to another URL.
        """
        if access.client is not None:
            return access.base_url or (VERTEX_URL if self.quirks(access) else self.url)
        return super().url_of(access)

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Return a connection over clients of the package `google-genai`, which are created at the first request."""
        return GoogleConnection(NAME, ERRORS, key, self.url_of(access))

    def connect_user_client(self, client: object) -> Connection:
        """Return a connection over the user's client, which must have been created with `http_options`."""
        return GoogleUserConnection(NAME, ERRORS, client)

    def quirks(self, access: Access) -> frozenset[str]:
        """Return the quirk VERTEX if the user's client is for Vertex AI, otherwise no quirk."""
        return frozenset({VERTEX} if getattr(access.client, "vertexai", False) else ())


class GoogleConnection(OwnClientConnection["genai.Client", "genai.Client"]):
    """A connection over clients of the package `google-genai` that the plugin creates."""

    def library(self) -> Library:
        """Return the client classes of httpx2, with their defaults, which the SDK uses too."""
        from httpx2 import AsyncClient, Client, create_ssl_context

        return Library(Client, AsyncClient, create_ssl_context)

    def make_sync(self, keys: Mapping[str, str], http_client: "httpx2.Client") -> "genai.Client":
        """Return a client of the SDK whose sync methods use `http_client`. Its async methods are never used."""
        from httpx2 import AsyncBaseTransport, AsyncClient

        return self._new_sdk_client(keys, http_client, AsyncClient(transport=AsyncBaseTransport()))

    def make(self, keys: Mapping[str, str], http_client: "httpx2.AsyncClient") -> "genai.Client":
        """Return a client of the SDK whose async methods use `http_client`. Its sync methods are never used."""
        from httpx2 import BaseTransport, Client

        return self._new_sdk_client(keys, Client(transport=BaseTransport()), http_client)

    def ask_sync(self, client: "genai.Client", request: WireRequest) -> object:
        """Call the SDK so that it builds a request. The HTTP client raises the request as a CapturedRequest, so nothing
        is sent.
        """
        return client.models.generate_content(**_sdk_arguments(request, client))

    async def ask(self, client: "genai.Client", request: WireRequest) -> object:
        """Async version of `ask_sync`."""
        return await client.aio.models.generate_content(**_sdk_arguments(request, client))

    def url_of(self, sdk_request: "httpx2.Request", request: WireRequest) -> "httpx2.URL":
        """Return the URL that the SDK built, with the method of the request's path, such as "streamGenerateContent".
        For a path without a model, return the path at the SDK's endpoint.
        """
        return _request_url(sdk_request, request)

    def _new_sdk_client(
        self, keys: Mapping[str, str], client: "httpx2.Client", async_client: "httpx2.AsyncClient"
    ) -> "genai.Client":
        from google import genai
        from google.genai.types import HttpOptions

        options = HttpOptions(base_url=self.base_url, httpx_client=client, httpx_async_client=async_client)
        return genai.Client(vertexai=False, api_key=keys["api_key"], http_options=options)


class GoogleUserConnection(ClientConnection):
    """A connection over the user's own `genai.Client`, for sync and async calls. The client is never closed."""

    kinds = ("google.genai.Client", "google.genai.Client")
    remedy = _REMEDY

    def __init__(self, name: str, errors: ErrorTable, client: object) -> None:
        super().__init__(name, errors, client)
        self._checked_clients: set[str] = set()

    def send_sync(self, client: "genai.Client", request: WireRequest) -> Any:
        """Send a request with the user's client and return the response when its headers have arrived, for every
        status.

        Until a check has succeeded, each call checks the client first, and raises SettingsInvalid if the client was not
        created with `http_options`.
        """
        marked = _with_mark(request)
        if "sync" not in self._checked_clients:
            with _checking_client():
                client.models.generate_content(**_sdk_arguments(marked, client, _UNUSABLE_URL))
            self._checked_clients.add("sync")
        with CapturedRequest.caught() as captured:
            client.models.generate_content(**_sdk_arguments(marked, client))
        return _send_captured(captured, request)

    async def send(self, client: "genai.Client", request: WireRequest) -> Any:
        """Async version of `send_sync`."""
        marked = _with_mark(request)
        if "async" not in self._checked_clients:
            with _checking_client():
                await client.aio.models.generate_content(**_sdk_arguments(marked, client, _UNUSABLE_URL))
            self._checked_clients.add("async")
        with CapturedRequest.caught() as captured:
            await client.aio.models.generate_content(**_sdk_arguments(marked, client))
        return await _send_captured(captured, request)


@contextmanager
def _checking_client() -> Iterator[None]:
    """Check that the client sends with an HTTP client of `http_options`. The `with` block must call _UNUSABLE_URL.

    Raises SettingsInvalid if no such HTTP client intercepted the call. Exceptions of google.auth are raised unchanged.
    All others are ignored, because they mean that another HTTP client tried the address.
    """
    with CapturedRequest.caught() as captured:
        try:
            yield
        except Exception as error:
            if type(error).__module__.startswith("google.auth"):
                raise
    if not captured:
        raise SettingsInvalid(_NOT_CAPTURED)


def _send_captured(captured: list[CapturedRequest], request: WireRequest) -> Any:
    """Send the ready bytes with the intercepted URL and headers, over the HTTP client that intercepted the request.

    Returns what that HTTP client returns, an awaitable for an async client. Raises SettingsInvalid if no request was
    intercepted.
    """
    if not captured:
        raise SettingsInvalid(_NOT_CAPTURED)
    sdk_request = captured[0].request
    del sdk_request.headers[_MARK]
    sdk_request.url = _request_url(sdk_request, request)
    return captured[0].send(request.body, request.opening, request.method)


def _request_url(sdk_request: "httpx2.Request", request: WireRequest) -> "httpx2.URL":
    """Return the URL that the SDK built, with the method (the text after the last ":") of the request's path.

    For a path without a model, return the path at the SDK's endpoint.
    """
    from httpx2 import URL

    url = str(sdk_request.url).rpartition(":")[0]
    version, model = _model_of(request.path)
    if model == _NO_MODEL:
        return URL(url.removesuffix(f"/{version}/models/{model}") + request.path)
    return URL(f"{url}:{request.path.rpartition(':')[2]}")


def _model_of(path: str) -> tuple[str, str]:
    """Return the API version and the model of a path such as "/v1beta/models/m:generateContent"."""
    version, _, model = path.rpartition(":")[0].lstrip("/").partition("/")
    return (version, model) if model.startswith(_MODELS) else ("v1beta", _NO_MODEL)


def _with_mark(request: WireRequest) -> WireRequest:
    """Return the request with the header that tells an HTTP client of `http_options` to intercept the request."""
    return replace(request, headers={**request.headers, _MARK: "1"})


def _sdk_arguments(request: WireRequest, client: "genai.Client", base_url: str | None = None) -> dict[str, Any]:
    """Return the arguments of `generate_content`: the model, a text that is never sent, and options.

    The options turn retries off, and contain the headers and the timeout of the request.
    """
    from google.genai.types import AutomaticFunctionCallingConfig, GenerateContentConfig, HttpOptions, HttpRetryOptions

    version, model = _model_of(request.path)
    options: dict[str, Any] = {"retry_options": HttpRetryOptions(attempts=1), "headers": dict(request.headers)}
    if base_url is not None:
        options["base_url"] = base_url
    if not client.vertexai:
        options["api_version"] = version
    if request.timeout is not None:
        options["timeout"] = max(round(request.timeout * 1000), 1)
    calling = AutomaticFunctionCallingConfig(disable=True)
    config = GenerateContentConfig(http_options=HttpOptions(**options), automatic_function_calling=calling)
    return {"model": model.removeprefix("models/"), "contents": "…", "config": config}
