"""A provider over a vendor's SDK, of which a plugin adds only its own data and functions, and its kinds of connections.

    SDKProvider ─connect(access)─▶ connect_own_clients(…)   made at the first send: GeneratedSDKConnection, or another
                      └ client=──▶ connect_user_client(…)   the user's own client: UserSDKConnection, or another

    InProcessConnection    serve(request) ──▶ InProcessResponse(status, chunks)  embedded models, doubles: no network
    SyncOnlyConnection     begin(request) ──▶ SyncOnlyCall ──open──▶ response    an SDK that only waits, in threads

`serve` is called at each `open`, in the caller's own thread or loop. Models are rows of data, one for each family of
names; the longest prefix that matches counts. `facts` are the author's own.

    [[models]]
    prefix = "large-"
    family = "large"
    modalities = ["image"]
    facts = {released = "2026-05"}
"""

import os
import tomllib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from sabir.authoring.checks import check_path, check_request
from sabir.authoring.credentials import KeySource, url_of_client
from sabir.authoring.failures import ErrorTable
from sabir.authoring.transport import ClientConnection, Library, OwnClientConnection
from sabir.base.errors import PluginError, SabirError, SettingsInvalid, one_line
from sabir.base.models import describe_validation_error
from sabir.base.renamed import callable_by_old_names, defined_by_old_names
from sabir.base.values import FrozenDict
from sabir.contract.dialect import Dialect
from sabir.contract.provider import (
    SABIR_API,
    Access,
    AsyncWireResponse,
    Connection,
    Credential,
    WireRequest,
    WireResponse,
)
from sabir.options.execution import in_thread
from sabir.vocabulary.models import ModelInfo, longest_first

Given = TypeVar("Given")


class InProcessResponse(NamedTuple):
    """A function's answer: a status, the body's chunks, and headers (names in lower case)."""

    status: int
    chunks: Iterable[bytes]
    headers: Mapping[str, str] = FrozenDict()


Serve: TypeAlias = Callable[[WireRequest], InProcessResponse]


class _Response:
    def __init__(self, served: InProcessResponse) -> None:
        self.status, self._chunks, self.headers = served

    def chunks(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def close(self) -> None:
        """Do nothing; there is no connection to give back."""


class _AsyncResponse:
    def __init__(self, served: InProcessResponse) -> None:
        self.status, self._chunks, self.headers = served

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        """Do nothing; there is no connection to give back."""


class InProcessConnection:
    """A Connection without a client: it has nothing to close, and none of its errors is a failure of the wire."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve

    def open_sync(self, request: WireRequest) -> _Response:
        """The function's answer."""
        return _Response(self._serve(request))

    async def open(self, request: WireRequest) -> _AsyncResponse:
        """The function's answer."""
        return _AsyncResponse(self._serve(request))

    def translate(self, error: Exception) -> SabirError | None:
        """None: the function's exceptions are raised unchanged."""
        return None

    def close(self) -> None:
        """Do nothing; there is nothing to close."""

    async def aclose(self) -> None:
        """Do nothing; there is nothing to close."""


class SyncOnlyCall(Protocol):
    """One request to an SDK that only waits; made without I/O."""

    def open(self) -> WireResponse:
        """Send the request, and return once the response's headers are there, whatever the status."""

    def hang_up(self) -> None:
        """Shut the socket down, so that an `open` or a read that waits in another thread ends.

        It may be called before `open`, after the end, and twice.
        """


class SyncOnlyConnection:
    """A Connection over an SDK that only waits: calls of an event loop run in threads. A cancelled call hangs up.

    `begin` makes the call for a request, `translate` is that of a Connection, `close` frees what all calls share.
    """

    def __init__(
        self,
        begin: Callable[[WireRequest], SyncOnlyCall],
        translate: Callable[[Exception], SabirError | None],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin, self.translate, self.close = begin, translate, close

    def open_sync(self, request: WireRequest) -> WireResponse:
        """Send the request, and return once the response's headers are there, whatever the status."""
        check_request(request)
        return self._begin(request).open()

    async def open(self, request: WireRequest) -> AsyncWireResponse:
        """As `open_sync`, in a thread."""
        check_request(request)
        waited = _Waited(self._begin(request))
        await waited.open()
        return waited

    async def aclose(self) -> None:
        """Free what all calls share, in a thread."""
        await in_thread(self.close)


class _Waited:
    """A call whose steps run in threads; its response is closed even if the caller has left."""

    def __init__(self, call: SyncOnlyCall) -> None:
        self._call = call
        self._is_given_up = False
        self._response: WireResponse

    async def open(self) -> None:
        """Send the request, and return once the response's headers are there."""

        def opened() -> WireResponse:
            self._response = self._call.open()
            self.status, self.headers = self._response.status, self._response.headers
            self.secrets: tuple[str, ...] = getattr(self._response, "secrets", ())
            if self._is_given_up:
                self._response.close()
            return self._response

        await self._in_thread(opened)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive."""
        chunks = iter(self._response.chunks())
        while (chunk := await self._in_thread(lambda: next(chunks, None))) is not None:
            yield chunk

    async def aclose(self) -> None:
        """Close it; twice is harmless."""
        await self._in_thread(self._response.close)

    async def _in_thread(self, step: Callable[[], Given]) -> Given:
        try:
            return await in_thread(step)
        except BaseException:  # a failed call sends no more, and a cancelled call has no reader
            self._is_given_up = True
            self._call.hang_up()
            raise


@callable_by_old_names
class SDKProvider(ABC):
    """A Provider over a vendor's SDK: its attributes are data, and two functions connect.

    `hosts` are the vendor's own host names: an endpoint on another host has the quirks `elsewhere`. `package` is the
    package whose models.toml is read; without it, no model is known. `reserves_name` and `adds_dialects` say what
    `name:model` means if several packages provide the name (see Provider).
    """

    api_version = SABIR_API
    reserves_name = adds_dialects = False
    name: str
    dialects: tuple[str, ...]
    credentials: tuple[Credential, ...] = ()
    request_ids: tuple[str, ...] = ("x-request-id",)
    url: str
    url_variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    package = ""

    def __init_subclass__(cls) -> None:
        defined_by_old_names(cls, SDKProvider)

    @abstractmethod
    def dialect(self, short_name: str) -> Dialect:
        """The dialect of that short name; only called with one of `dialects`."""

    @abstractmethod
    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        """A connection to `self.url_of(access)`, over clients that it makes at the first send."""

    def connect_user_client(self, client: object) -> Connection:
        """A connection over the user's own client, which is not closed; a plugin without it takes no `client`."""
        raise NotImplementedError(f"{self.name} does not accept a client")

    def url_of(self, access: Access) -> str:
        """The endpoint's URL: the client's, else the user's `base_url`, else a variable's, else the vendor's own."""
        if access.client is not None and type(self).connect_user_client is SDKProvider.connect_user_client:
            raise SettingsInvalid(
                f"{self.name} does not accept client=, because its SDK's client cannot be inspected; use base_url="
            )
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
            return self.connect_user_client(access.client)
        return self.connect_own_clients(access, KeySource(self.name, access.api_key, self.credentials))

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


class GeneratedSDKConnection(OwnClientConnection[Any, Any]):
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
        return kind(**self.arguments(keys), http_client=http_client)

    def make(self, keys: Mapping[str, str], http_client: Any) -> Any:
        """An async client of the SDK that writes heads."""
        kind = getattr(import_module(self.module), f"Async{self.client_name}")
        return kind(**self.arguments(keys), http_client=http_client)

    def ask_sync(self, client: Any, request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return client.post(request.path, cast_to=object, content=b"{}", options=self._options(client, request))

    async def ask(self, client: Any, request: WireRequest) -> object:
        """Have the SDK make the request; its body is not sent."""
        return await client.post(request.path, cast_to=object, content=b"{}", options=self._options(client, request))

    def arguments(self, keys: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments with which either client is made, beside its HTTP client."""
        found: dict[str, Any] = {"api_key": "none", **keys, "base_url": self.base_url}
        if not self._is_vendor:
            lines = os.environ.get(f"{self.module.upper()}_CUSTOM_HEADERS", "").splitlines()
            foreign = [line.partition(":")[0].strip() for line in lines if ":" in line]
            omitted = dict.fromkeys((*foreign, *self.vendor_headers), import_module(self.module).omit)
            found["default_headers"] = omitted | {"Authorization": f"Bearer {found['api_key']}"}
        return found

    def omitted(self, client: Any) -> tuple[str, ...]:
        """Return the names of headers that a client writes and no request has; the key's if there is none."""
        return () if self._key.is_sent else ("Authorization",)

    def _options(self, client: Any, request: WireRequest) -> dict[str, Any]:
        return _once(request, dict.fromkeys(self.omitted(client), import_module(self.module).omit))


class UserSDKConnection(ClientConnection):
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
        http = import_module(self.http_module)
        options = _once(request, {})
        if request.timeout is not None and request.opening is not None:
            options["timeout"] = http.Timeout(request.timeout, pool=request.opening)
        what = self.what(request)
        check_path(what["path"])
        if isinstance(body := what.get("body"), Mapping):
            check_path(str(body.get("model", "")))  # the SDK moves it into the path
        return {**what, "cast_to": http.Response, "options": options, "stream": True}


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
        raise PluginError(f"models.toml is not TOML: {one_line(str(error))}") from None
    rows = document.pop("models", [])
    if document or not isinstance(rows, list):
        found = ", ".join(document) or "models"
        raise PluginError(f"models.toml has {found!r}; expected only [[models]] rows")
    infos: dict[str, ModelInfo] = {}
    for number, row in enumerate(rows, start=1):
        try:
            info = ModelInfo.model_validate(row)
        except ValidationError as error:
            prefix = row.get("prefix", "") if isinstance(row, dict) else ""
            raise PluginError(
                f"models.toml row {number} ({prefix!r}): {one_line(describe_validation_error(error))}"
            ) from None
        if info.prefix in infos:
            raise PluginError(f"models.toml row {number}: prefix {info.prefix!r} already has a row; merge the two rows")
        infos[info.prefix] = info
    return longest_first(infos.values())
