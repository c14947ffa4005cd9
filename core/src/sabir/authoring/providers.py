"""Base classes of providers and connections: over a vendor's SDK, in the same process, or over a sync SDK.

    SDKProvider ─connect(access)─▶ connect_own_clients(…)   creates clients: GeneratedSDKConnection, or another class
                      └ client=──▶ connect_user_client(…)   uses the user's client: UserSDKConnection, or another class

    InProcessConnection    serve(request) ──▶ InProcessResponse(status, chunks)  models in this process, test doubles
    SyncOnlyConnection     begin(request) ──▶ SyncOnlyCall ──open──▶ response    an SDK without async client, in threads

`serve` is called for each request, in the caller's thread.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from sabir.authoring.transport import (  # isort: skip
    BaseConnection, ClientConnection, Library, OwnClientConnection, check_path, check_request,
)  # fmt: skip
from sabir.authoring.clients import url_of_client
from sabir.authoring.credentials import FoundCredential, KeySource
from sabir.authoring.failures import ErrorTable
from sabir.base.errors import SabirError, SettingsInvalid
from sabir.base.renamed import callable_by_old_names, defined_by_old_names
from sabir.base.values import FrozenDict
from sabir.contract.dialect import Dialect
from sabir.contract.operation import Operation
from sabir.contract.provider import Access, AsyncWireResponse, Connection, Credential, WireRequest, WireResponse
from sabir.options.execution import in_thread
from sabir.vocabulary.models import ModelInfo, packaged_models

Returned = TypeVar("Returned")


class InProcessResponse(NamedTuple):
    """The response of a function that replaces a server in the same process. See InProcessConnection.

    `status` is the HTTP status, `chunks` the pieces of the body, and `headers` the headers with names in lower case.
    `chunks` may be a generator, which runs while the body is read.
    """

    status: int
    chunks: Iterable[bytes]
    headers: Mapping[str, str] = FrozenDict()


_NAME = re.compile(r"\{(\w+)\}([./-]?)")
"""Matches the name of a credential in `SDKProvider.url`, and the separator after it."""
Serve: TypeAlias = Callable[[WireRequest], InProcessResponse]


class _Served:
    def __init__(self, served: InProcessResponse) -> None:
        self.status, self._chunks, self.headers = served


class _ServedResponse(_Served):
    def chunks(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def close(self) -> None:
        """Do nothing, because there is no network connection."""


class _AsyncServedResponse(_Served):
    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        """Do nothing, because there is no network connection."""


class InProcessConnection:
    """A Connection that calls a function instead of a server, without a network. For models in the same process, test
    doubles and demos.

    `serve` is called with each WireRequest and returns an InProcessResponse. The function runs in the caller's thread;
    for async calls, it blocks the event loop. Exceptions of the function are not translated.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve = serve

    def open_sync(self, request: WireRequest) -> _ServedResponse:
        """Call the function and return its response."""
        return _ServedResponse(self._serve(request))

    async def open(self, request: WireRequest) -> _AsyncServedResponse:
        """Call the function in the event loop's thread, which the function blocks, and return its response."""
        return _AsyncServedResponse(self._serve(request))

    def translate(self, error: Exception) -> SabirError | None:
        """Return None, because exceptions of the function are not translated."""
        return None

    def close(self) -> None:
        """Do nothing, because there is no client."""

    async def aclose(self) -> None:
        """Do nothing, because there is no client."""


class SyncOnlyCall(Protocol):
    """The interface of one request to an SDK without an async client. Implemented by a plugin, for
    SyncOnlyConnection.
    """

    def open(self) -> WireResponse:
        """Send the request and return the response when its headers have arrived. Return it for error statuses too."""

    def hang_up(self) -> None:
        """Shut down the socket, so that `open` or a read that is running in another thread ends with an exception.

        Called from another thread when an async call is cancelled or fails. Must do nothing before `open` and after the
        end, and may be called more than once.
        """


class SyncOnlyConnection:
    """A Connection for an SDK without an async client. Async calls run in threads; cancelling a call shuts down its
    socket.

    `begin` creates the SyncOnlyCall for a request, without I/O. `translate` is the function for `Connection.translate`.
    `close` is called when the adapter is closed, to close a client that all calls share; by default it does nothing.
    """

    def __init__(
        self,
        begin: Callable[[WireRequest], SyncOnlyCall],
        translate: Callable[[Exception], SabirError | None],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin, self.translate, self.close = begin, translate, close

    def open_sync(self, request: WireRequest) -> WireResponse:
        """Send a request and return the response when its headers have arrived. Blocks the thread. Raises
        SettingsInvalid for a forbidden header (such as `host`) or a path with "..".
        """
        check_request(request)
        return self._begin(request).open()

    async def open(self, request: WireRequest) -> AsyncWireResponse:
        """Async version of `open_sync`. The SDK's call runs in a thread."""
        check_request(request)
        response = _ThreadedResponse(self._begin(request))
        await response.open()
        return response

    async def aclose(self) -> None:
        """Call `close` in a thread."""
        await in_thread(self.close)


class _ThreadedResponse:
    """The async response of a SyncOnlyCall, whose steps run in threads. Closed also if the caller is cancelled."""

    def __init__(self, call: SyncOnlyCall) -> None:
        self._call = call
        self._is_given_up = False
        self._response: WireResponse

    async def open(self) -> None:
        """Send the request and wait until the response's headers have arrived."""

        def send_request() -> WireResponse:
            self._response = self._call.open()
            self.status, self.headers = self._response.status, self._response.headers
            self.secrets: tuple[str, ...] = getattr(self._response, "secrets", ())
            if self._is_given_up:
                self._response.close()
            return self._response

        await self._in_thread(send_request)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Return an async iterator over the bytes of the body as they arrive."""
        chunks = iter(self._response.chunks())
        while (chunk := await self._in_thread(lambda: next(chunks, None))) is not None:
            yield chunk

    async def aclose(self) -> None:
        """Close the response. A second call does nothing."""
        await self._in_thread(self._response.close)

    async def _in_thread(self, step: Callable[[], Returned]) -> Returned:
        try:
            return await in_thread(step)
        except BaseException:  # the call failed, or was cancelled and has no reader
            self._is_given_up = True
            self._call.hang_up()
            raise


@callable_by_old_names
class SDKProvider(ABC):
    """Base class of a provider over a vendor's SDK or an HTTP client. A subclass implements `dialect` and
    `connect_own_clients`, and sets at least `name`, `dialects` and `url`.
    """

    api_version: int = 1
    """The version of the plugin interface that the subclass is written for. A new plugin sets it to 2."""
    reserves_name = adds_dialects = False
    name: str
    """The provider's name, for example "acme" in "acme:model"."""
    dialects: tuple[str, ...]
    """The short names of the dialects, the default first."""
    credentials: tuple[Credential, ...] = ()
    """The credentials that the provider needs, the key first."""
    request_ids: tuple[str, ...] = ("x-request-id",)
    """The names of response headers, in lower case, that may contain the provider's id of a request."""
    url: str
    """The vendor's endpoint. The value of a credential with `in_url` replaces its `{name}`. If the value is missing,
    the name is removed together with a ".", "-" or "/" after it.
    """
    url_variables: tuple[str, ...] = ()
    """Environment variables for another endpoint. The first variable that is set and not empty counts."""
    hosts: tuple[str, ...] = ()
    """The vendor's own host names. Endpoints on other hosts have the quirks in `elsewhere`."""
    elsewhere: frozenset[str] = frozenset()
    """The quirks of endpoints that are not on one of `hosts`."""
    package: str = ""
    """The Python package whose `models.toml` lists the models. "" means that no models are known."""

    def __init_subclass__(cls) -> None:
        defined_by_old_names(cls, SDKProvider)

    @abstractmethod
    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect with this short name. Core calls this method only with names in `dialects`."""

    @abstractmethod
    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """Return a connection to `self.url_of(access)` that creates its own clients at the first request. `key` finds
        the API key.
        """

    def connect_user_client(self, client: object) -> Connection:
        """Return a connection over the user's own client, which the connection must never close.

        Override this method to support `client=`. Without an override, `url_of` raises SettingsInvalid for `client=`.
        """
        raise NotImplementedError(f"{self.name} does not accept a client")

    def url_of(self, access: Access) -> str:
        """Return the URL of the endpoint, with secrets if it contains any. It is the `base_url` of the user's client if
        there is a client, else `base_url`, else the first of `url_variables` that is set and not empty, else
        `vendor_url`.

        Raises SettingsInvalid if a client is passed but not supported, or has no `base_url`, and like `url_values`.
        """
        if access.client is not None and type(self).connect_user_client is SDKProvider.connect_user_client:
            raise SettingsInvalid(f"{self.name} does not accept client=; use base_url=")
        if access.client is not None:
            return url_of_client(self.name, access.client)
        variables = filter(None, map(os.environ.get, self.url_variables))
        return access.base_url or next(variables, None) or self.vendor_url(access)

    def vendor_url(self, access: Access) -> str:
        """Return `url`, completed with the credentials that are part of it. Raises the errors of `url_values`."""
        values = self.url_values(access)
        return _NAME.sub(lambda name: values[name[1]] and values[name[1]] + name[2], self.url) if values else self.url

    def url_values(self, access: Access) -> dict[str, str]:
        """Return the values of the credentials with `in_url` by name; "" for a value that is missing. They come from a
        mapping that the user passed as `api_key=`, from variables, profiles or files, or are defaults.

        Raises SettingsInvalid for a value with other characters than letters, digits, "-" and "_".
        """
        return {each.credential.name: each.value.get_secret_value() for each in self._url_credentials(access)}

    def url_source(self, access: Access) -> str:
        """Return where the URL of the endpoint comes from, for errors: "base_url", "client=", or variables."""
        if access.client is not None or access.base_url:
            return "base_url" if access.client is None else "client="
        sources = (each.source for each in self._url_credentials(access) if each.source not in (None, "default"))
        return next(filter(os.environ.get, self.url_variables), "") or " and ".join(map(str, sources)) or "base_url"

    def _url_credentials(self, access: Access) -> list[FoundCredential]:
        """Look up the credentials that are part of the URL. Raises SettingsInvalid for a value that a URL cannot
        contain.
        """
        passed = access.api_key if isinstance(access.api_key, Mapping) else {}
        credentials = [each for each in self.credentials if each.in_url]
        results = KeySource.find(credentials, {name: SecretStr(text) for name, text in passed.items()})
        for each in results:
            if not re.fullmatch(r"[A-Za-z0-9_-]*", each.value.get_secret_value()):
                wrong = f"{self.name} has a {each.name} ({each.source}) that cannot be part of a URL"
                raise SettingsInvalid(f"{wrong}; use only letters, digits, '-' and '_'")
        return results

    def endpoint(self, access: Access) -> str:
        """Return the URL of the endpoint without secrets. Raises SettingsInvalid if the URL is not an http(s) URL, and
        for an empty `api_key` or `base_url`; the message says where the URL comes from.
        """
        return access.read_endpoint(self.name, self.url_of(access), self.url_source(access))

    def connect(self, access: Access) -> Connection:
        """Return a connection: `connect_user_client` if the user passed a client, otherwise `connect_own_clients`.

        Creates no client and reads no key. Raises SettingsInvalid like `endpoint`, and for a mapping as `api_key` with
        names that are not credentials.
        """
        self.endpoint(access)
        if access.client is not None:
            connection = self.connect_user_client(access.client)
        else:
            connection = self.connect_own_clients(access, KeySource(self.name, access.api_key, self.credentials))
        if isinstance(connection, BaseConnection):
            connection.url_source = self.url_source(access)
        return connection

    def is_vendor(self, access: Access) -> bool:
        """Return whether the endpoint's host is one of the vendor's own `hosts`, or a subdomain of one."""
        host = urlsplit(self.endpoint(access)).hostname or ""
        return f".{host}".endswith(tuple(f".{name}" for name in self.hosts))

    def quirks(self, access: Access) -> frozenset[str]:
        """Return the endpoint's deviations from its dialect: none for the vendor's own hosts, otherwise `elsewhere`."""
        return frozenset() if self.is_vendor(access) else self.elsewhere

    def operations(self) -> Mapping[str, Operation[Any, Any]]:
        """Return the provider's operations besides chat by name, such as "embeddings". By default there are none."""
        return {}

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the models of the package's `models.toml`, longest name prefixes first; none if `package` is "".
        Raises PluginError for an invalid file.
        """
        return packaged_models(self.package) if self.package else ()


class GeneratedSDKConnection(OwnClientConnection[Any, Any]):
    """A connection over an SDK with the common generated interface: `SDK(api_key=…)`, `AsyncSDK(api_key=…)` and
    `client.post(path, content=…)`. Generators such as Stainless create such SDKs.

    Set `module` to the SDK's module, `client_name` to the name of its sync client class, and `http_module` to its HTTP
    library. Credentials must be named like the client's arguments. With `is_vendor` False, the headers named in
    `vendor_headers`, and those from the SDK's variable `MODULE_CUSTOM_HEADERS` (such as ACME_CUSTOM_HEADERS), are left
    out. If no key is found and none is required, the SDK's Authorization header is left out too.
    """

    module: str
    """The name of the SDK's module, for example "acme"."""
    client_name: str
    """The name of the SDK's sync client class; the async class is named "Async" plus this name."""
    http_module = "httpx2"
    """The name of the HTTP library's module that the SDK uses."""
    vendor_headers: tuple[str, ...] = ()
    """Headers of the SDK that are sent to the vendor's own endpoint only."""

    def __init__(self, name: str, errors: ErrorTable, key: KeySource, base_url: str, *, is_vendor: bool) -> None:
        super().__init__(name, errors, key, base_url)
        self._is_vendor = is_vendor

    def library(self) -> Library:
        """Return the SDK's default HTTP client classes, which have the SDK's timeouts, limits and proxies."""
        sdk, http = import_module(self.module), import_module(self.http_module)
        return Library(sdk.DefaultHttpxClient, sdk.DefaultAsyncHttpxClient, http.create_ssl_context)

    def make_sync(self, keys: Mapping[str, str], http_client: Any) -> Any:
        """Return a sync client of the SDK that only builds requests. Without a key, the client gets the placeholder
        "none" as its key.
        """
        kind = getattr(import_module(self.module), self.client_name)
        return kind(**self.arguments(keys), http_client=http_client)

    def make(self, keys: Mapping[str, str], http_client: Any) -> Any:
        """Async version of `make_sync`: return an async client of the SDK."""
        kind = getattr(import_module(self.module), f"Async{self.client_name}")
        return kind(**self.arguments(keys), http_client=http_client)

    def ask_sync(self, client: Any, request: WireRequest) -> object:
        """Call the SDK so that it builds the request. The HTTP client raises a CapturedRequest instead of sending."""
        return client.post(request.path, cast_to=object, content=b"{}", options=self._options_of(client, request))

    async def ask(self, client: Any, request: WireRequest) -> object:
        """Async version of `ask_sync`: call the SDK so that it builds the request. Nothing is sent."""
        return await client.post(request.path, cast_to=object, content=b"{}", options=self._options_of(client, request))

    def arguments(self, keys: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments for both client classes of the SDK, except `http_client`. `keys` maps names of
        credentials to their values.
        """
        arguments: dict[str, Any] = {"api_key": "none", **keys, "base_url": self.base_url}
        if not self._is_vendor:
            lines = os.environ.get(f"{self.module.upper()}_CUSTOM_HEADERS", "").splitlines()
            foreign = [line.partition(":")[0].strip() for line in lines if ":" in line]
            omitted = dict.fromkeys((*foreign, *self.vendor_headers), import_module(self.module).omit)
            arguments["default_headers"] = omitted | {"Authorization": f"Bearer {arguments['api_key']}"}
        return arguments

    def omitted(self, client: Any) -> tuple[str, ...]:
        """Return the names of headers that the SDK adds and that must not be sent: by default "Authorization" if there
        is no key, else none.
        """
        return () if self._key.is_sent else ("Authorization",)

    def _options_of(self, client: Any, request: WireRequest) -> dict[str, Any]:
        return _shared_options(request, dict.fromkeys(self.omitted(client), import_module(self.module).omit))


class UserSDKConnection(ClientConnection):
    """A connection over the user's own client of an SDK with the common generated interface. The client sends every
    request and is never closed.

    Set `module` to the SDK's module and `http_module` to its HTTP library, and `kinds` as for ClientConnection. The
    client is called so that it neither retries nor follows redirects; core does the retries.
    """

    module: str
    """The name of the SDK's module, for example "acme"."""
    http_module = "httpx2"
    """The name of the HTTP library's module that the SDK uses."""

    def what(self, request: WireRequest) -> dict[str, Any]:
        """Return the arguments of `client.post` for the path and the body of the request: "path" and "content"."""
        return {"path": request.path, "content": request.body}

    def send_sync(self, client: Any, request: WireRequest) -> Any:
        """Send a request with the user's sync client and return the response when its headers have arrived, for every
        status.
        """
        sdk = import_module(self.module)
        try:
            return self._method_of(client, request)(**self._arguments(request), stream_cls=sdk.Stream[object])
        except sdk.APIStatusError as error:
            return error.response

    async def send(self, client: Any, request: WireRequest) -> Any:
        """Async version of `send_sync`, with the user's async client."""
        sdk = import_module(self.module)
        try:
            method = self._method_of(client, request)
            return await method(**self._arguments(request), stream_cls=sdk.AsyncStream[object])
        except sdk.APIStatusError as error:
            return error.response

    def _method_of(self, client: Any, request: WireRequest) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(client, request.method.lower())
        return method

    def _arguments(self, request: WireRequest) -> dict[str, Any]:
        """Return the arguments of the client's method, with which the client returns the response before reading the
        body.
        """
        http = import_module(self.http_module)
        options = _shared_options(request, {})
        if request.timeout is not None and request.opening is not None:
            options["timeout"] = http.Timeout(request.timeout, pool=request.opening)
        what = self.what(request)
        check_path(what["path"])
        if isinstance(body := what.get("body"), Mapping):
            check_path(str(body.get("model", "")))  # the SDK moves it into the path
        if request.method != "POST":
            what = {"path": what["path"]}
        return {**what, "cast_to": http.Response, "options": options, "stream": True}


def _shared_options(request: WireRequest, headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `client.post`, with which the client neither retries nor follows redirects."""
    own = {"Content-Type" if name.lower() == "content-type" else name: text for name, text in request.headers.items()}
    # The SDK encodes bodies of multipart/form-data itself, unless the type is written in another, equivalent way.
    kind = own.pop("Content-Type", "application/json").replace("multipart/form-data", "Multipart/form-data")
    options: dict[str, Any] = {"headers": {"Content-Type": kind, **headers, **own}}
    if request.timeout is not None:
        options["timeout"] = request.timeout
    return {**options, "max_retries": 0, "follow_redirects": False}
