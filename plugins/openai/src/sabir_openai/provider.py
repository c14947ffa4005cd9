"""OpenAI and the endpoints that speak its dialects: URL, credentials, and the official SDK's clients that carry bytes.

    row of data ──▶ CompatibleProvider ──connect(access)──▶ SDKConnection ──open──▶ status, headers, byte chunks

The SDK is imported at the first send. Ready bytes go through its public `post(content=…)`, asked for as a stream, so
that headers come back before the body; its own retries are off. A client that the user gave is used and never closed.
"""

import asyncio
import json
import os
import re
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit
from weakref import WeakKeyDictionary

from sabir.catalogue import read_models
from sabir.contracts import SABIR_API, Access, WireRequest
from sabir.errors import CallError, CredentialsMissing, SettingsInvalid
from sabir.models import Frozen
from sabir.scope import ModelInfo

from sabir_openai.dialect import variant
from sabir_openai.errors import translate

if TYPE_CHECKING:
    import httpx2
    import openai
    from sabir.contracts import Dialect

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


@cache
def _known_models() -> tuple[ModelInfo, ...]:
    return read_models(files("sabir_openai").joinpath("models.toml").read_text("utf-8"))


def _shown(url: str) -> str:
    """What of a URL that is none may be told: nothing where it names a user, else all but its query."""
    return "…" if "@" in url else re.split("[?#]", url, maxsplit=1)[0]


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
        """The endpoint's URL without what may be secret in it (a user, a query) and without a slash at its end."""
        for setting in ("api_key", "base_url"):
            if getattr(access, setting) == "":
                raise SettingsInvalid(f"{self.name} has an empty {setting}; give a text, or leave it out")
        url = self._url(access)
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError:
            parts, host = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not host:
            raise SettingsInvalid(
                f"{self.name} has the endpoint {_shown(url)!r}, which is no http(s) URL; check base_url"
            )
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")

    def _url(self, access: Access) -> str:
        """The client's, `base_url`, a variable's, the vendor's own."""
        if access.client is not None:
            return str(access.client.base_url)
        named = (os.environ.get(name) for name in self._row.url_variables)
        return access.base_url or next(filter(None, named), None) or self._row.url

    def connect(self, access: Access) -> "SDKConnection":
        """A connection; makes no client and reads no key before its first send."""
        is_vendor = self._is_vendor(access)
        needs_key = bool(self._row.key_variables or access.api_key)
        return SDKConnection(
            self.name,
            self._url(access),
            key=(lambda: self._key(access)) if needs_key else None,
            client=access.client,
            is_vendor=is_vendor,
        )

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
        return _known_models() if self._row is OPENAI else ()

    def _key(self, access: Access) -> str:
        named = (os.environ.get(name) for name in self._row.key_variables)
        given = access.api_key() if callable(access.api_key) else access.api_key
        key = next(filter(None, named), None) if access.api_key is None else given
        if not key:
            variables = " or ".join(self._row.key_variables) or "none is read"
            message = f"{self.name} has no key; set the variable {variables}, or pass api_key="
            raise CredentialsMissing(message, provider=self.name)
        if not (key.isascii() and key.isprintable() and " " not in key):
            message = f"{self.name} has a key that holds a space, a control or a foreign character; pass it bare"
            raise CredentialsMissing(message, provider=self.name)
        return key


class SDKConnection:
    """The SDK's clients for one endpoint, made at the first send; one async client for each event loop.

    `key` is asked once; None sends no key. `is_vendor` says that the SDK's own environment variables (organisation,
    project, further headers) are meant for this endpoint; to any other they do not go.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        key: Callable[[], str] | None = None,
        client: Any = None,  # the user's client; its type is known where the SDK is loaded
        is_vendor: bool = False,
    ) -> None:
        self._name = name
        self._base_url = base_url
        self._ask_key = key
        self._given = client
        self._is_vendor = is_vendor
        self._lock = Lock()
        self._key: str | None = None
        self._client: openai.OpenAI | None = None
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.AsyncOpenAI] = WeakKeyDictionary()

    def open_sync(self, request: WireRequest) -> "SDKResponse":
        """Send; return at the response's headers, whatever the status."""
        from openai import APIStatusError, Stream

        client = self._sync_client()
        try:
            response: Any = client.post(**self._call(request, client), stream_cls=Stream[object])
        except APIStatusError as error:
            response = error.response
        return SDKResponse(response)

    async def open(self, request: WireRequest) -> "AsyncSDKResponse":
        """Send; return at the response's headers, whatever the status."""
        from openai import APIStatusError, AsyncStream

        client = self._async_client()
        try:
            response: Any = await client.post(**self._call(request, client), stream_cls=AsyncStream[object])
        except APIStatusError as error:
            response = error.response
        return AsyncSDKResponse(response)

    def translate(self, error: Exception) -> CallError | None:
        """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
        return translate(error, self._name)

    def close(self) -> None:
        """Close the sync client if this connection made it."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the sync client and this event loop's if this connection made them."""
        self.close()
        with self._lock:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _sync_client(self) -> "openai.OpenAI":
        from openai import OpenAI

        if self._given is not None:
            remedy = "the waiting calls take an OpenAI client; for await pass an AsyncOpenAI"
            return cast(OpenAI, self._checked(OpenAI, remedy))
        with self._lock:
            if self._client is None:
                self._client = OpenAI(api_key=self._key_once(), base_url=self._base_url, max_retries=0)
            return self._client

    def _async_client(self) -> "openai.AsyncOpenAI":
        from openai import AsyncOpenAI

        if self._given is not None:
            remedy = "await takes an AsyncOpenAI client; the waiting calls take an OpenAI"
            return cast(AsyncOpenAI, self._checked(AsyncOpenAI, remedy))
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._clients:
                self._clients[loop] = AsyncOpenAI(api_key=self._key_once(), base_url=self._base_url, max_retries=0)
            return self._clients[loop]

    def _checked(self, kind: type[Any], remedy: str) -> Any:
        if not isinstance(self._given, kind):
            raise SettingsInvalid(f"client= of {self._name} is of type {type(self._given).__name__}; {remedy}")
        return self._given

    def _key_once(self) -> str:
        if self._key is None:
            self._key = self._ask_key() if self._ask_key else ""
        return self._key or "none"

    def _call(self, request: WireRequest, client: "openai.OpenAI | openai.AsyncOpenAI") -> dict[str, Any]:
        """What `post` of either client is called with; a raw response asked for as a stream comes before its body."""
        from httpx2 import Response

        options: dict[str, Any] = {"headers": {**self._headers(), **request.headers}, "max_retries": 0}
        if request.timeout is not None:
            options["timeout"] = request.timeout
        path = self._path(request, client)
        return {"path": path, "cast_to": Response, "content": request.body, "options": options, "stream": True}

    def _headers(self) -> dict[str, Any]:
        from openai import omit

        headers: dict[str, Any] = {"Content-Type": "application/json"}
        if self._given is None and not self._is_vendor:
            meant_for_the_vendor = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
            headers |= {line.partition(":")[0].strip(): omit for line in meant_for_the_vendor if ":" in line}
            headers |= {"OpenAI-Organization": omit, "OpenAI-Project": omit}
            headers["Authorization"] = f"Bearer {self._key}" if self._key else omit
        return headers

    def _path(self, request: WireRequest, client: "openai.OpenAI | openai.AsyncOpenAI") -> str:
        """The path; with the deployment in it for an Azure client that names none.

        The SDK puts it there itself for the bodies that it makes, but does not look into ready bytes.
        """
        from openai import AsyncAzureOpenAI, AzureOpenAI

        is_azure = isinstance(client, AzureOpenAI | AsyncAzureOpenAI)
        if not is_azure or request.path != "/chat/completions" or "/deployments" in client.base_url.path:
            return request.path
        model = str(json.loads(request.body).get("model", ""))
        return f"/deployments/{quote(model, safe='')}{request.path}"


class _Answer:
    """An answer whose body has not been read, unless it says that the request failed."""

    def __init__(self, response: "httpx2.Response") -> None:
        self._response = response
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}


class SDKResponse(_Answer):
    """An answer to the sync client."""

    def chunks(self) -> Iterator[bytes]:
        """The body's bytes as they come, decompressed."""
        return self._response.iter_bytes()

    def close(self) -> None:
        """Close it; twice is harmless."""
        self._response.close()


class AsyncSDKResponse(_Answer):
    """An answer to the async client."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, decompressed."""
        return self._response.aiter_bytes()

    async def aclose(self) -> None:
        """Close it; twice is harmless."""
        await self._response.aclose()
