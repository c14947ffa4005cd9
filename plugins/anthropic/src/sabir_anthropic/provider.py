"""Anthropic: URL, credentials, and the official SDK's clients that carry bytes; clouds by a client of the user's.

    Access ──connect──▶ SDKConnection ──open──▶ status, headers, byte chunks
                └ client=▶ UsersConnection ─┘

The SDK is imported at the first send. It writes the head of each kind of request once; then ready bytes go out under
it, over an HTTP client of the class that the SDK takes by default (see sabir.authoring.transport). A client that the
user gave is asked to send each request, by its public `post(content=…)`, as a stream, so that headers come back before
the body; it neither tries again by itself nor follows a redirect, and it is never closed. The clients of Bedrock and
Vertex write the model into the path, for which they want the body as an object; one that signs, signs that body.
"""

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sabir import ModelInfo
from sabir.authoring import (
    SABIR_API,
    Access,
    AsyncHTTPAnswer,
    HTTPAnswer,
    KeySource,
    Library,
    OwnConnection,
    WireRequest,
    packaged_models,
    read_endpoint,
    url_of_client,
)
from sabir.errors import CallError, SettingsInvalid

from sabir_anthropic.dialect import CLOUD, MESSAGES
from sabir_anthropic.errors import translate
from sabir_anthropic.request import COMPATIBLE

if TYPE_CHECKING:
    import anthropic
    import httpx2
    from sabir.authoring import Dialect

URL = "https://api.anthropic.com"
VENDOR_HOSTS = ("anthropic.com", "claude.com")
CLOUD_CLIENTS = ("AnthropicBedrock", "AnthropicVertex")
"""Clients that want the body as an object, and their endpoints media as bytes; the async ones begin with Async."""


def _is_cloud(client: object) -> bool:
    """Whether a client is one of Bedrock's or Vertex's; told by name, so that the SDK need not be loaded."""
    names = {kind.__name__.removeprefix("Async") for kind in type(client).__mro__}
    return not names.isdisjoint(CLOUD_CLIENTS)


class AnthropicProvider:
    """The provider `anthropic`."""

    name = "anthropic"
    api_version = SABIR_API
    dialects = ("messages",)
    key_variables = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")

    def dialect(self, short_name: str) -> "Dialect":
        """The one dialect."""
        return MESSAGES

    def endpoint(self, access: Access) -> str:
        """The endpoint's URL without what may be secret in it."""
        return read_endpoint(self.name, access, self._url(access))

    def _url(self, access: Access) -> str:
        """The client's, `base_url`, the variable's, the vendor's own."""
        if access.client is not None:
            return url_of_client(self.name, access.client)
        return access.base_url or os.environ.get("ANTHROPIC_BASE_URL") or URL

    def connect(self, access: Access) -> "SDKConnection | UsersConnection":
        """A connection; makes no client and reads no key before its first send."""
        is_vendor = self._is_vendor(access)
        if access.client is not None:
            return UsersConnection(self.name, access.client)
        key = KeySource(self.name, access.api_key, self.key_variables)
        return SDKConnection(self.name, self._url(access), key, is_vendor=is_vendor)

    def quirks(self, access: Access) -> frozenset[str]:
        """Those of a cloud, and of an endpoint that speaks the dialect without being the vendor's."""
        if access.client is not None:
            return frozenset({CLOUD}) if _is_cloud(access.client) else frozenset()
        return frozenset() if self._is_vendor(access) else frozenset({COMPATIBLE})

    def _is_vendor(self, access: Access) -> bool:
        host = urlsplit(self.endpoint(access)).hostname or ""
        return f".{host}".endswith(tuple(f".{name}" for name in VENDOR_HOSTS))

    def models(self) -> tuple[ModelInfo, ...]:
        """What is known of the vendor's models."""
        return packaged_models("sabir_anthropic")


class SDKConnection(OwnConnection["anthropic.Anthropic", "anthropic.AsyncAnthropic"]):
    """The SDK's clients for one endpoint, made at the first send.

    `is_vendor` says that the further headers of the SDK's own environment are meant for this endpoint; to any other
    they do not go.
    """

    def __init__(self, name: str, base_url: str, key: KeySource, *, is_vendor: bool = False) -> None:
        super().__init__(key, base_url)
        self._name = name
        self._is_vendor = is_vendor

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
        return translate(error, self._name)

    def library(self) -> Library:
        """The SDK's HTTP clients, with its timeouts, limits and proxies."""
        from anthropic import DefaultAsyncHttpxClient, DefaultHttpxClient
        from httpx2 import create_ssl_context

        return Library(DefaultHttpxClient, DefaultAsyncHttpxClient, create_ssl_context)

    def make_sync(self, key: str, http_client: "httpx2.Client") -> "anthropic.Anthropic":
        """A waiting client of the SDK that writes heads."""
        from anthropic import Anthropic

        return Anthropic(**self._how(key), http_client=http_client)

    def make(self, key: str, http_client: "httpx2.AsyncClient") -> "anthropic.AsyncAnthropic":
        """An async client of the SDK that writes heads."""
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(**self._how(key), http_client=http_client)

    def ask_sync(self, client: "anthropic.Anthropic", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return client.post(request.path, cast_to=object, content=b"{}", options=_options(request))

    async def ask(self, client: "anthropic.AsyncAnthropic", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return await client.post(request.path, cast_to=object, content=b"{}", options=_options(request))

    def _how(self, key: str) -> dict[str, Any]:
        """What either client is made with."""
        from anthropic import omit

        found: dict[str, Any] = {"api_key": key, "base_url": self.base_url}
        if not self._is_vendor:
            meant_for_the_vendor = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
            names = (line.partition(":")[0].strip() for line in meant_for_the_vendor if ":" in line)
            found["default_headers"] = dict.fromkeys(names, omit) | {"Authorization": f"Bearer {key}"}
        return found


class UsersConnection:
    """The user's own client, sync or async: it is asked to send each request, and never closed."""

    def __init__(self, name: str, client: Any) -> None:  # a client of any cloud: the SDK has no public class above them
        self._name = name
        self._client = client

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        from anthropic import APIStatusError, Stream

        self._check("a waiting call takes an Anthropic client", "SyncAPIClient")
        try:
            response = self._client.post(**self._call(request), stream_cls=Stream[object])
        except APIStatusError as error:
            response = error.response
        return HTTPAnswer(response)

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        from anthropic import APIStatusError, AsyncStream

        self._check("await takes an AsyncAnthropic client", "AsyncAPIClient")
        try:
            response = await self._client.post(**self._call(request), stream_cls=AsyncStream[object])
        except APIStatusError as error:
            response = error.response
        return AsyncHTTPAnswer(response)

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
        return translate(error, self._name)

    def close(self) -> None:
        """Nothing: the client is the user's."""

    async def aclose(self) -> None:
        """Nothing: the client is the user's."""

    def _check(self, remedy: str, kind: str) -> None:
        """SettingsInvalid for a client of the other kind, or of none; their names tell."""
        names = [each.__name__ for each in type(self._client).__mro__]
        if kind not in names:
            raise SettingsInvalid(f"client= of {self._name} is of type {names[0]}; {remedy}, or a cloud's of its kind")

    def _call(self, request: WireRequest) -> dict[str, Any]:
        """What `post` is called with; a raw response asked for as a stream comes before its body."""
        from httpx2 import Response

        body = {"body": json.loads(request.body)} if _is_cloud(self._client) else {"content": request.body}
        return {"path": request.path, "cast_to": Response, **body, "options": _options(request), "stream": True}


def _options(request: WireRequest) -> Any:
    """How `post` of any client sends: once, and to its own endpoint alone."""
    options: dict[str, Any] = {"headers": {"Content-Type": "application/json", **request.headers}}
    if request.timeout is not None:
        options["timeout"] = request.timeout
    return {**options, "max_retries": 0, "follow_redirects": False}
