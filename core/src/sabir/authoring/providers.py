"""A provider over a vendor's SDK, of which a plugin adds only its own data and functions; models as rows of data.

    SDKProvider ──connect(access)──▶ own(…)     clients that are made at the first send: PostingConnection, or another
                        └ client=──▶ given(…)   the user's own client: PostingClient, or another

    [[models]]
    prefix = "large-"
    family = "large"
    modalities = ["image"]
    facts = {released = "2026-05"}

One row for each family of names; the longest prefix that matches counts. `facts` are the author's own.
"""

import os
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from sabir.authoring.access import url_of_client
from sabir.authoring.credentials import KeySource
from sabir.authoring.failures import ErrorTable
from sabir.authoring.transport import ClientConnection, Library, OwnConnection
from sabir.base.errors import PluginError, SettingsInvalid, one_line
from sabir.base.models import describe
from sabir.contract.dialect import Dialect
from sabir.contract.provider import SABIR_API, Access, Connection, Credential, WireRequest
from sabir.vocabulary.target import ModelInfo, longest_first


class SDKProvider(ABC):
    """A Provider over a vendor's SDK: its attributes are data, and two functions connect.

    `hosts` are the vendor's own host names: an endpoint on another host has the quirks `elsewhere`. `package` is the
    package whose models.toml is read; without it, no model is known.
    """

    api_version = SABIR_API
    name: str
    dialects: tuple[str, ...]
    credentials: tuple[Credential, ...] = ()
    request_ids: tuple[str, ...] = ("x-request-id",)
    url: str
    url_variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    package = ""

    @abstractmethod
    def dialect(self, short_name: str) -> Dialect:
        """The dialect of that short name; only called with one of `dialects`."""

    @abstractmethod
    def own(self, access: Access, key: KeySource) -> Connection:
        """A connection to `self.url_of(access)`, over clients that it makes at the first send."""

    def given(self, client: object) -> Connection:
        """A connection over the user's own client, which is not closed; a plugin without it takes no `client`."""
        raise NotImplementedError(f"{self.name} takes no client")

    def url_of(self, access: Access) -> str:
        """The endpoint's URL: the client's, else the user's `base_url`, else a variable's, else the vendor's own."""
        if access.client is not None and type(self).given is SDKProvider.given:
            raise SettingsInvalid(f"{self.name} takes no client=, for its SDK lets nobody see into one; use base_url=")
        if access.client is not None:
            return url_of_client(self.name, access.client)
        variables = filter(None, map(os.environ.get, self.url_variables))
        return access.base_url or next(variables, self.url)

    def endpoint(self, access: Access) -> str:
        """The endpoint's URL without what may be secret in it; SettingsInvalid for one that is none."""
        return access.read_endpoint(self.name, self.url_of(access))

    def connect(self, access: Access) -> Connection:
        """A connection; makes no client and reads no key before its first send."""
        self.endpoint(access)
        if access.client is not None:
            return self.given(access.client)
        return self.own(access, KeySource(self.name, access.api_key, self.credentials))

    def is_vendor(self, access: Access) -> bool:
        """Whether the endpoint is one of the vendor's own hosts."""
        host = urlsplit(self.endpoint(access)).hostname or ""
        return f".{host}".endswith(tuple(f".{name}" for name in self.hosts))

    def quirks(self, access: Access) -> frozenset[str]:
        """Deviations of the endpoint from its dialect."""
        return frozenset() if self.is_vendor(access) else self.elsewhere

    def models(self) -> tuple[ModelInfo, ...]:
        """The known facts of the vendor's models, longest prefixes first."""
        return packaged_models(self.package) if self.package else ()


class PostingConnection(OwnConnection[Any, Any]):
    """A connection over an SDK of the common generated form: `SDK(api_key=…)`, `AsyncSDK`, `post(path, content=…)`.

    `module` is the SDK's module, `client_name` the class of its waiting client; the credentials have the names of the
    client's arguments. An endpoint that is not the vendor's gets neither the headers that the SDK takes from its own
    environment nor `vendor_headers`; a key that is not needed is not sent.
    """

    module: str
    client_name: str
    http_module = "httpx2"
    vendor_headers: tuple[str, ...] = ()

    def __init__(self, name: str, errors: ErrorTable, key: KeySource, base_url: str, *, is_vendor: bool) -> None:
        super().__init__(name, errors, key, base_url)
        self._is_vendor = is_vendor

    def library(self) -> Library:
        """The SDK's HTTP clients, with its timeouts, limits and proxies."""
        sdk, http = import_module(self.module), import_module(self.http_module)
        return Library(sdk.DefaultHttpxClient, sdk.DefaultAsyncHttpxClient, http.create_ssl_context)

    def make_sync(self, keys: Mapping[str, str], http_client: Any) -> Any:
        """A waiting client of the SDK that writes heads; where no key is needed, it gets a placeholder."""
        kind = getattr(import_module(self.module), self.client_name)
        return kind(**self._how(keys), http_client=http_client)

    def make(self, keys: Mapping[str, str], http_client: Any) -> Any:
        """An async client of the SDK that writes heads."""
        kind = getattr(import_module(self.module), f"Async{self.client_name}")
        return kind(**self._how(keys), http_client=http_client)

    def ask_sync(self, client: Any, request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return client.post(request.path, cast_to=object, content=b"{}", options=self._options(request))

    async def ask(self, client: Any, request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return await client.post(request.path, cast_to=object, content=b"{}", options=self._options(request))

    def _how(self, keys: Mapping[str, str]) -> dict[str, Any]:
        """The arguments with which either client is made."""
        found: dict[str, Any] = {"api_key": "none", **keys, "base_url": self.base_url}
        if not self._is_vendor:
            lines = os.environ.get(f"{self.module.upper()}_CUSTOM_HEADERS", "").splitlines()
            foreign = [line.partition(":")[0].strip() for line in lines if ":" in line]
            omitted = dict.fromkeys((*foreign, *self.vendor_headers), import_module(self.module).omit)
            found["default_headers"] = omitted | {"Authorization": f"Bearer {found['api_key']}"}
        return found

    def _options(self, request: WireRequest) -> dict[str, Any]:
        no_key = {} if self._key.is_needed else {"Authorization": import_module(self.module).omit}
        return _once(request, no_key)


class PostingClient(ClientConnection):
    """A connection over the user's own client of such an SDK: the client sends each request, and is never closed.

    Requests are sent as streams, so that headers come back before the body. The client neither retries by itself nor
    follows a redirect.
    """

    module: str
    http_module = "httpx2"

    def what(self, request: WireRequest) -> dict[str, Any]:
        """The path and the content to post, as arguments of `post`."""
        return {"path": request.path, "content": request.body}

    def send_sync(self, client: Any, request: WireRequest) -> Any:
        """Send the request, and return once the response's headers are there, whatever the status."""
        sdk = import_module(self.module)
        try:
            return client.post(**self._call(request), stream_cls=sdk.Stream[object])
        except sdk.APIStatusError as error:
            return error.response

    async def send(self, client: Any, request: WireRequest) -> Any:
        """Send the request, and return once the response's headers are there, whatever the status."""
        sdk = import_module(self.module)
        try:
            return await client.post(**self._call(request), stream_cls=sdk.AsyncStream[object])
        except sdk.APIStatusError as error:
            return error.response

    def _call(self, request: WireRequest) -> dict[str, Any]:
        """The arguments of `post`; a raw response, asked for as a stream, is returned before its body."""
        raw = import_module(self.http_module).Response
        return {**self.what(request), "cast_to": raw, "options": _once(request, {}), "stream": True}


def _once(request: WireRequest, headers: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `post`: it sends once, and to its own endpoint alone."""
    options: dict[str, Any] = {"headers": {"Content-Type": "application/json", **headers, **request.headers}}
    if request.timeout is not None:
        options["timeout"] = request.timeout
    return {**options, "max_retries": 0, "follow_redirects": False}


@cache
def packaged_models(package: str) -> tuple[ModelInfo, ...]:
    """The rows of the models.toml beside a package's modules; raises PluginError as `read_models` does."""
    return read_models(files(package).joinpath("models.toml").read_text("utf-8"))


def read_models(text: str) -> tuple[ModelInfo, ...]:
    """The rows of a models.toml, longest prefixes first; raises PluginError, which names an invalid row."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PluginError(f"models.toml is no TOML: {one_line(str(error))}") from None
    rows = document.pop("models", [])
    if document or not isinstance(rows, list):
        found = ", ".join(document) or "models"
        raise PluginError(f"models.toml holds {found!r}; expected [[models]] rows alone")
    infos: dict[str, ModelInfo] = {}
    for number, row in enumerate(rows, start=1):
        try:
            info = ModelInfo.model_validate(row)
        except ValidationError as error:
            prefix = row.get("prefix", "") if isinstance(row, dict) else ""
            raise PluginError(f"models.toml row {number} ({prefix!r}): {one_line(describe(error))}") from None
        if info.prefix in infos:
            raise PluginError(f"models.toml row {number}: prefix {info.prefix!r} has a row already; join the two")
        infos[info.prefix] = info
    return longest_first(infos.values())
