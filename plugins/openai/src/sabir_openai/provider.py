"""OpenAI and the endpoints that speak its dialects: URL, credentials, and the official SDK's clients that carry bytes.

    row of data ──▶ CompatibleProvider ──connect(access)──▶ SDKConnection ──open──▶ status, headers, byte chunks
                                                   └ client=▶ UsersConnection ─┘

The SDK is imported at the first send. It writes the head of each kind of request once; then ready bytes go out under
it, over an HTTP client of the class that the SDK takes by default (see sabir.authoring.transport). A client that the
user gave is asked to send each request, by its public `post(content=…)`, as a stream, so that headers come back before
the body; it neither tries again by itself nor follows a redirect, and it is never closed.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from sabir import ModelInfo
from sabir.authoring import (
    SABIR_API,
    Access,
    AsyncHTTPAnswer,
    Frozen,
    HTTPAnswer,
    KeySource,
    Library,
    OwnConnection,
    WireRequest,
    checked_client,
    first_variable,
    packaged_models,
    read_endpoint,
    url_of_client,
)
from sabir.errors import CallError

from sabir_openai.dialect import variant
from sabir_openai.errors import translate

if TYPE_CHECKING:
    import httpx2
    import openai
    from sabir.authoring import Dialect

COMPATIBLE = frozenset({"max_tokens", "system_role"})
"""What is assumed of an endpoint that the user names by `base_url` alone and that is not a vendor's of these models."""
VENDOR_HOSTS = ("openai.com", "azure.com")


class Row(Frozen):
    """An endpoint as data. `key_variables` and `url_variables` are read in order; `docs` is the vendor's page."""

    name: str
    url: str
    docs: str
    dialects: tuple[str, ...] = ("chat",)
    key_variables: tuple[str, ...] = ()
    url_variables: tuple[str, ...] = ()
    quirks: frozenset[str] = frozenset()
    call_id_length: int | None = None
    streams_usage: bool = True


OPENAI = Row(
    name="openai",
    url="https://api.openai.com/v1",
    docs="https://developers.openai.com/api/docs/quickstart",
    dialects=("responses", "chat"),
    key_variables=("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"),
    url_variables=("OPENAI_BASE_URL",),
)


@cache
def gateways() -> Mapping[str, Row]:
    """The compatible endpoints of gateways.toml by name."""
    text = files("sabir_openai").joinpath("gateways.toml").read_text("utf-8")
    return {row["name"]: Row(**row) for row in tomllib.loads(text)["gateways"]}


class CompatibleProvider:
    """A provider made of one row."""

    api_version = SABIR_API

    def __init__(self, row: Row) -> None:
        self._row = row
        self.name = row.name
        self.dialects = row.dialects
        self.key_variables = row.key_variables

    def dialect(self, short_name: str) -> "Dialect":
        """The dialect of that short name, as this endpoint speaks it."""
        return variant(short_name, self._row.call_id_length, self._row.streams_usage)

    def endpoint(self, access: Access) -> str:
        """The endpoint's URL without what may be secret in it."""
        return read_endpoint(self.name, access, self._url(access))

    def _url(self, access: Access) -> str:
        """The client's, `base_url`, a variable's, the vendor's own."""
        if access.client is not None:
            return url_of_client(self.name, access.client)
        return access.base_url or first_variable(self._row.url_variables) or self._row.url

    def connect(self, access: Access) -> "SDKConnection | UsersConnection":
        """A connection; makes no client and reads no key before its first send."""
        is_vendor = self._is_vendor(access)
        if access.client is not None:
            return UsersConnection(self.name, access.client)
        key = KeySource(self.name, access.api_key, self._row.key_variables)
        return SDKConnection(self.name, self._url(access), key, is_vendor=is_vendor)

    def quirks(self, access: Access) -> frozenset[str]:
        """The row's; for OpenAI's dialects at an endpoint of unknown make, those that are safest."""
        is_elsewhere = self._row is OPENAI and not self._is_vendor(access)
        return self._row.quirks | COMPATIBLE if is_elsewhere else self._row.quirks

    def _is_vendor(self, access: Access) -> bool:
        """Whether the endpoint is OpenAI's or Azure's; SettingsInvalid for one that is none."""
        host = urlsplit(self.endpoint(access)).hostname or ""
        return self._row is OPENAI and f".{host}".endswith(tuple(f".{name}" for name in VENDOR_HOSTS))

    def models(self) -> tuple[ModelInfo, ...]:
        """What is known of OpenAI's models; of a gateway's, nothing."""
        return packaged_models("sabir_openai") if self._row is OPENAI else ()


class SDKConnection(OwnConnection["openai.OpenAI", "openai.AsyncOpenAI"]):
    """The SDK's clients for one endpoint, made at the first send.

    A key that is not needed is not sent. `is_vendor` says that the SDK's own environment variables (organisation,
    project, further headers) are meant for this endpoint; to any other they do not go.
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
        from httpx2 import create_ssl_context
        from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

        return Library(DefaultHttpxClient, DefaultAsyncHttpxClient, create_ssl_context)

    def make_sync(self, key: str, http_client: "httpx2.Client") -> "openai.OpenAI":
        """A waiting client of the SDK that writes heads."""
        from openai import OpenAI

        return OpenAI(**self._how(key), http_client=http_client)

    def make(self, key: str, http_client: "httpx2.AsyncClient") -> "openai.AsyncOpenAI":
        """An async client of the SDK that writes heads."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(**self._how(key), http_client=http_client)

    def ask_sync(self, client: "openai.OpenAI", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return client.post(request.path, cast_to=object, content=b"{}", options=self._options(client, request))

    async def ask(self, client: "openai.AsyncOpenAI", request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return await client.post(request.path, cast_to=object, content=b"{}", options=self._options(client, request))

    def _how(self, key: str) -> dict[str, Any]:
        """What either client is made with; without a key the SDK wants a word in its place."""
        return {"api_key": key or "none", "base_url": self.base_url, "max_retries": 0}

    def _options(self, client: "openai.OpenAI | openai.AsyncOpenAI", request: WireRequest) -> Any:
        from openai import omit

        headers: dict[str, Any] = {}
        if not self._is_vendor:
            meant_for_the_vendor = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
            headers |= {line.partition(":")[0].strip(): omit for line in meant_for_the_vendor if ":" in line}
            headers |= {"OpenAI-Organization": omit, "OpenAI-Project": omit}
            headers["Authorization"] = f"Bearer {client.api_key}" if self._key.is_needed else omit
        return _options(request, headers)


class UsersConnection:
    """The user's own client, sync or async: it is asked to send each request, and never closed."""

    def __init__(self, name: str, client: object) -> None:
        self._name = name
        self._client = client

    def open_sync(self, request: WireRequest) -> HTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        from openai import APIStatusError, OpenAI, Stream

        remedy = "the waiting calls take an OpenAI client; for await pass an AsyncOpenAI"
        client = checked_client(self._client, OpenAI, self._name, remedy)
        try:
            response: Any = client.post(**_call(request, client), stream_cls=Stream[object])
        except APIStatusError as error:
            response = error.response
        return HTTPAnswer(response)

    async def open(self, request: WireRequest) -> AsyncHTTPAnswer:
        """Send; return at the response's headers, whatever the status."""
        from openai import APIStatusError, AsyncOpenAI, AsyncStream

        remedy = "await takes an AsyncOpenAI client; the waiting calls take an OpenAI"
        client = checked_client(self._client, AsyncOpenAI, self._name, remedy)
        try:
            response: Any = await client.post(**_call(request, client), stream_cls=AsyncStream[object])
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


def _options(request: WireRequest, headers: Mapping[str, Any]) -> dict[str, Any]:
    """How `post` of any client sends: once, and to its own endpoint alone."""
    options: dict[str, Any] = {"headers": {"Content-Type": "application/json", **headers, **request.headers}}
    if request.timeout is not None:
        options["timeout"] = request.timeout
    return {**options, "max_retries": 0, "follow_redirects": False}


def _call(request: WireRequest, client: "openai.OpenAI | openai.AsyncOpenAI") -> dict[str, Any]:
    """What `post` of a user's client is called with; a raw response asked for as a stream comes before its body."""
    from httpx2 import Response

    options, path = _options(request, {}), _path(request, client)
    return {"path": path, "cast_to": Response, "content": request.body, "options": options, "stream": True}


def _path(request: WireRequest, client: "openai.OpenAI | openai.AsyncOpenAI") -> str:
    """The path; with the deployment in it for an Azure client that names none.

    The SDK puts it there itself for the bodies that it makes, but does not look into ready bytes.
    """
    from openai import AsyncAzureOpenAI, AzureOpenAI

    is_azure = isinstance(client, AzureOpenAI | AsyncAzureOpenAI)
    if not is_azure or request.path != "/chat/completions" or "/deployments" in client.base_url.path:
        return request.path
    model = str(json.loads(request.body).get("model", ""))
    return f"/deployments/{quote(model, safe='')}{request.path}"
