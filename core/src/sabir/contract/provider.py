"""What a provider's plugin implements besides its dialects: Protocols of the objects that carry bytes, and values.

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
from sabir.vocabulary.models import ModelInfo

SABIR_API = 1
"""The version of this contract; core supports the current and the previous one."""
SUPPORTED_APIS = frozenset({SABIR_API})

ApiKey: TypeAlias = str | Mapping[str, str] | Callable[[], str | Mapping[str, str]]
"""A provider's key; where the provider wants several values, a mapping of names to values, or `profile` to its name."""


class Profile(Frozen):
    """A file of named sections, each a mapping of names to values: .toml, .json, or else the INI format.

    The environment variable `variable` names the section; `section` is read where the variable is not set.
    """

    file: str
    variable: str = ""
    section: str = "default"


class Credential(Frozen):
    """A value that a provider needs, and where it is looked for: variables, then a profile, then files, each in order.

    The path of the first of `files` that exists is the value. `default` counts where nothing is found: "" means that
    the value may be left out. All `secret` values of a provider are taken from one place, so that no id is joined with
    the secret of another account; each other value is looked for by itself.
    """

    name: str = "api_key"
    variables: tuple[str, ...] = ()
    profile: Profile | None = None
    files: tuple[str, ...] = ()
    default: str | None = None
    secret: bool = True


class TokenCount(Frozen):
    """Input tokens of a request; `estimated` says that the provider did not count them itself."""

    input_tokens: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class WireRequest:
    """Bytes to send. Core bounds the whole call, so a plugin only passes its SDK what the SDK takes.

    `timeout` is the longest that a read may take, in seconds; None keeps the SDK's own. `opening` is how many seconds
    are left until the response must have begun; None means no limit. Core ends an `open_sync` that waits for a socket,
    so use it for other waits: a free connection, a process that starts.
    """

    path: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float | None = None
    streaming: bool = False
    opening: float | None = None


class WireHead(Protocol):
    """The part of an answer that is known before its body.

    It may have `secrets` too, texts that were sent with the request: no error shows a secret that the answer repeats.
    """

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""


class WireResponse(WireHead, Protocol):
    """A WireHead whose body has not been read; closing it gives its connection back."""

    def chunks(self) -> Iterator[bytes]:
        """The body's bytes as they arrive, decompressed in small pieces: core counts them. A piece may be empty."""

    def close(self) -> None:
        """Close it; twice is harmless."""


class AsyncWireResponse(WireHead, Protocol):
    """As WireResponse, for an event loop."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive, decompressed in small pieces: core counts them. A piece may be empty."""

    async def aclose(self) -> None:
        """Close it; twice is harmless."""


class Connection(Protocol):
    """A provider's SDK clients, made at the first send: one `open` for the sync client, one for the async client."""

    def open_sync(self, request: WireRequest) -> WireResponse:
        """Send the request, and return once the response's headers are there, whatever the status."""

    async def open(self, request: WireRequest) -> AsyncWireResponse:
        """Send the request, and return once the response's headers are there, whatever the status."""

    def translate(self, error: Exception) -> SabirError | None:
        """The library error for an exception that `open` or `chunks` raised; None if it is no failure of the wire."""

    def close(self) -> None:
        """Close the sync client if this connection made it."""

    async def aclose(self) -> None:
        """Close both clients if this connection made them."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a user reaches a provider: a field that is None means the provider's default.

    `api_key` may be a mapping, where the provider wants several values, or a callable, which is called at each send, so
    keep it cheap; the key is never shown. `client` is the user's own SDK client, sync or async, with its own endpoint
    and key.
    """

    api_key: ApiKey | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    client: Any = field(default=None, repr=False)
    """The vendor SDK's client object; its type is the plugin's business, hence Any."""

    def read_endpoint(self, provider: str, url: str) -> str:
        """An endpoint's URL without what may be secret in it (a user, a query) and without a slash at its end.

        SettingsInvalid for one that is no http(s) URL, and for an empty `api_key` or `base_url`.
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
            shown = "…" if "@" in url else re.split("[?#]", url, maxsplit=1)[0]  # a password may stand before the @
            raise SettingsInvalid(f"{provider} has the endpoint {shown!r}, which is not an http(s) URL; check base_url")
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


@runtime_checkable
class Provider(Protocol):
    """What an entry point of the group `sabir.providers` names: endpoint, credentials, client, dialects.

    It may have two further attributes, False by default, for names that several packages provide. With
    `reserves_name`, `name:model` means its first dialect, whatever else is installed. With `adds_dialects`, it only
    adds dialects to the name, which are reached as `name.dialect:model`. At most one of them may be True.
    """

    @property
    def name(self) -> str:
        """The provider's name, equal to the entry point's."""

    @property
    def api_version(self) -> int:
        """The SABIR_API that the plugin was written for."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """Short names of its dialects, the default first."""

    @property
    def credentials(self) -> tuple[Credential, ...]:
        """The credentials that it needs, the key first; empty where it needs none."""

    @property
    def request_ids(self) -> tuple[str, ...]:
        """Response headers that may hold the provider's id of a request, in lower case; the first found counts."""

    def dialect(self, short_name: str) -> Dialect:
        """The dialect of that short name; only called with one of `dialects`."""

    def endpoint(self, access: Access) -> str:
        """The endpoint's URL, without making a client."""

    def connect(self, access: Access) -> Connection:
        """A connection; makes no client and reads no key before its first `open`."""

    def quirks(self, access: Access) -> frozenset[str]:
        """Deviations of this endpoint from its dialect, by the dialect's names."""

    def models(self) -> tuple[ModelInfo, ...]:
        """The known facts of the provider's models, longest prefixes first."""
