"""The interfaces that a provider's plugin implements besides its dialects, and the values that they use.

    Provider ──dialect()──▶ Dialect                                 pure: see dialect
        └────connect()──▶ Connection ──open()──▶ WireResponse       I/O: the vendor's SDK client

Everything else (turns, pairing, ids, media policy, losses, folding, retries) is core's.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import urlsplit

from sabir.base.errors import SabirError, SettingsInvalid
from sabir.base.models import Frozen
from sabir.contract.dialect import Dialect
from sabir.contract.operation import HTTPMethod
from sabir.vocabulary.models import ModelInfo

SABIR_API = 2
"""The version of the plugin interface. A provider's `api_version` must be a version that the installed core supports: 1
or 2.
"""
SUPPORTED_APIS = frozenset({SABIR_API - 1, SABIR_API})
"""The versions of the plugin interface that this version of core supports."""

ApiKey: TypeAlias = str | Mapping[str, str] | Callable[[], str | Mapping[str, str]]
"""What `api_key=` accepts: the key as a string, a mapping of credential names to values, or a function without
arguments that returns either. In a mapping, the entry "profile" selects the section of the credentials file.
"""


class Profile(Frozen):
    """The file in which a Credential is looked up, such as `~/.acme/config.toml`. Created by the author of a provider.

    `file` is the path; a file ending in .toml or .json is read as such, any other as INI. The file has named sections,
    each a mapping of credential names to values. `variable` is the name of an environment variable that contains the
    section's name; `section` is used if the variable is not set or empty, or `variable` is "". The entry "profile" of a
    mapping that the user passes as `api_key=` takes precedence over both.
    """

    file: str
    variable: str = ""
    section: str = "default"


class Credential(Frozen):
    """One value that a provider needs, usually its API key, and the places in which sabir looks for the value. Created
    by the author of a provider, in `Provider.credentials`.

    `name` is the credential's name. A value that the user passes as `api_key=` comes first. Then sabir reads the
    environment `variables`, the `profile`, and `files`, in this order. For `files`, the value is the path of the first
    file that exists. `default` is used if nothing is found: None makes the value required, "" makes it optional. All
    values with `secret` True come from one kind of place, such as the variables, or are defaults. A value with
    `secret` False, such as a region, is looked up by itself.

    `alternative` names the way to authenticate that needs this credential, such as "a bearer key" or "keys that sign".
    Only one alternative is used: one whose required values are all available. If there are several of these, the one
    whose values come from the earliest kind of place is used; if that does not decide, the first. Credentials with the
    alternative "" are used with each. `in_url` is True for a value that is part of the endpoint's URL, such as a region
    or an account: SDKProvider replaces `{name}` in `url`. Such a value may have only letters, digits, "-" and "_".
    """

    name: str = "api_key"
    variables: tuple[str, ...] = ()
    profile: Profile | None = None
    files: tuple[str, ...] = ()
    default: str | None = None
    secret: bool = True
    alternative: str = ""
    in_url: bool = False


class TokenCount(Frozen):
    """The number of input tokens of a request. Returned by `adapter.count_tokens`.

    `estimated` is True if sabir estimated the number (a quarter of the bytes of the request's body), because the
    provider's API cannot count.
    """

    input_tokens: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One HTTP request, ready to be sent. Created by core and passed to `Connection.open` and `open_sync`.

    `path` is the path below the endpoint and `body` the exact bytes. `headers` are the dialect's and the user's
    headers; the SDK adds its own. `streaming` is True if the request asks for a stream of events. `timeout` is the
    longest time for one read in seconds; None means the SDK's own limit. `opening` is the number of seconds within
    which the response must begin; None means no limit. Core enforces the time limits of a call itself; pass both to the
    SDK as far as the SDK accepts them. Use `opening` for waits that core cannot interrupt, such as waiting for a free
    connection. `method` is the HTTP method. It is "POST" except for requests of operations.
    """

    path: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float | None = None
    streaming: bool = False
    opening: float | None = None
    method: HTTPMethod = "POST"


class WireHead(Protocol):
    """The status and the headers of an HTTP response, which are known before its body.

    An implementation may also have an attribute `secrets`, a tuple of the keys and tokens sent with the request. sabir
    removes those of at least 8 characters from the texts of errors of the call.
    """

    @property
    def status(self) -> int:
        """The HTTP status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers. Names are in lower case."""


class WireResponse(WireHead, Protocol):
    """The interface of a sync response whose body has not been read. Returned by `Connection.open_sync`."""

    def chunks(self) -> Iterator[bytes]:
        """Return an iterator over the body's bytes as they arrive. The bytes are decompressed, in small pieces. A piece
        may be empty.
        """

    def close(self) -> None:
        """Close the response and release its connection. A second call does nothing."""


class AsyncWireResponse(WireHead, Protocol):
    """The interface of an async response whose body has not been read. Returned by `Connection.open`."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Return an async iterator over the body's bytes as they arrive. The bytes are decompressed, in small pieces. A
        piece may be empty.
        """

    async def aclose(self) -> None:
        """Close the response and release its connection. A second call does nothing."""


class Connection(Protocol):
    """The interface of an object that sends requests to one endpoint, usually through the clients of the vendor's SDK.
    Returned by `Provider.connect`.

    A connection creates its clients at the first request: one for sync calls, and one for the async calls of each event
    loop.
    """

    def open_sync(self, request: WireRequest) -> WireResponse:
        """Send a request and return the response when its headers have arrived. Return the response for error statuses
        too.

        May raise exceptions of the SDK, which core passes to `translate`. Must not retry or follow redirects.
        """

    async def open(self, request: WireRequest) -> AsyncWireResponse:
        """Async version of `open_sync`."""

    def translate(self, error: Exception) -> SabirError | None:
        """Return the sabir error for an exception that `open`, `open_sync` or reading the body raised. Return None if
        the exception is not a failure of the request; core then raises the original exception.
        """

    def close(self) -> None:
        """Close the sync client if this connection created the client."""

    async def aclose(self) -> None:
        """Close the sync client, and the async client of the running event loop, if this connection created them."""


@dataclass(frozen=True, slots=True)
class Access:
    """The arguments `api_key`, `base_url` and `client` of `sabir.adapter`. Passed to `Provider.connect`.

    None as `api_key` or `base_url` means the provider's default. A function as `api_key` is called for every request.
    `client` is the user's own client of the vendor's SDK, sync or async, with its own endpoint and key; None means that
    the connection creates clients. `repr` shows none of the fields.
    """

    api_key: ApiKey | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    client: Any = field(default=None, repr=False)
    """The user's client of the vendor's SDK, or None. Only the plugin knows the type."""

    def read_endpoint(self, provider: str, url: str, source: str = "base_url") -> str:
        """Return `url` without user, password, query, fragment and trailing slashes, for messages and origins.

        `provider` is the name that errors show, and `source` the argument or environment variable that contains the
        URL. Raises SettingsInvalid if the URL is not an http(s) URL, or if `api_key` or `base_url` of this object is an
        empty string.
        """
        for setting in ("api_key", "base_url"):
            if getattr(self, setting) == "":
                raise SettingsInvalid(f"{provider} has an empty {setting}; set it to a text, or remove it")
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError:
            parts, host = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not host:
            start = "…" if "@" in url else re.split("[?#]", url, maxsplit=1)[0]  # a password may stand before the @
            raise SettingsInvalid(f"{provider} has the endpoint {start!r}, which is not an http(s) URL; check {source}")
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


@runtime_checkable
class Provider(Protocol):
    """The interface of a provider's plugin. An entry point of the group `sabir.providers` names an object with these
    members.

    Inherit from SDKProvider for a provider with an SDK or an HTTP client. A provider may also have a method
    `operations()`, which maps names such as "embeddings" to an Operation. Two further attributes, False by default,
    matter if several packages provide the same name. With `reserves_name` True, this provider wins: `name:model` means
    its first dialect. With `adds_dialects` True, `name:model` never means this provider; it only adds dialects, which
    users select as `name.dialect:model`. At most one of the two may be True.
    """

    @property
    def name(self) -> str:
        """The provider's name, for example "acme" in "acme:model". Equal to the name of the entry point."""

    @property
    def api_version(self) -> int:
        """The version of sabir's plugin interface that the plugin was written for, as a number: 1 or 2."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """The short names of the provider's dialects (API formats), for example ("chat", "responses"). The first one is
        the default.
        """

    @property
    def credentials(self) -> tuple[Credential, ...]:
        """The credentials that the provider needs, the key first. Empty if the provider needs no key."""

    @property
    def request_ids(self) -> tuple[str, ...]:
        """The names of response headers, in lower case, that may contain the provider's id of a request. sabir uses the
        first header that is present.
        """

    def dialect(self, short_name: str) -> Dialect:
        """Return the dialect with this short name. Core calls this method only with names in `dialects`."""

    def endpoint(self, access: Access) -> str:
        """Return the URL of the endpoint, without secrets. Creates no client and reads no key."""

    def connect(self, access: Access) -> Connection:
        """Return a connection to the endpoint. Create clients and read keys only when the connection sends its first
        request.
        """

    def quirks(self, access: Access) -> frozenset[str]:
        """Return the names of the endpoint's deviations from its dialect. Empty for the vendor's own endpoint.

        From version 2 on, `Dialect.quirks` must declare each name; `sabir.adapter` raises ProviderBroken for another.
        """

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the known facts about the provider's models: one row for each prefix of model names, in any order."""
