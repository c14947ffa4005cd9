"""Helpers for providers: finding credentials, parsing base URLs, and the lifetime of HTTP clients.

api_key= ─▶ variables ─▶ profile ─▶ files ─▶ default        the places, declared as Credentials
            └──────── KeySource ──▶ values that are never shown
            └─ KeySource.find ──▶ whether each value was found, and where
Access ──read_endpoint──▶ URL without secrets
a base URL ──read_base_url──▶ BaseURL: the URL to which paths are joined, the query, the authorization
Clients   one sync client, and an async client for each event loop, from its first use to the loop's end
"""

import os
import re
import tomllib
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from configparser import Error as INIInvalid
from configparser import RawConfigParser
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit
from weakref import WeakSet, finalize

from pydantic import SecretStr

from sabir.base.errors import NotJSON, SettingsInvalid
from sabir.base.failures import CredentialsMissing
from sabir.base.values import FrozenDict, JSONValue, decode_json
from sabir.contract.provider import ApiKey, Credential, Profile

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

PassedValues: TypeAlias = Mapping[str, SecretStr]
Values: TypeAlias = tuple[tuple[str, SecretStr], ...]
"""Pairs of a credential's name and value. Values are SecretStr, because tools that report failures show variables."""
_ARGUMENT = "api_key="
_NOTHING = SecretStr("")
_NONE: PassedValues = FrozenDict()


class FoundCredential(NamedTuple):
    """The result of looking for one credential. Returned by `KeySource.find`. `repr` does not show the value.

    `credential` is the Credential. `source` is the place where the value was found: "api_key=", a variable, a file
    (with its section for a profile), or "default"; None if a required value is missing. `searched` are the places that
    were read, in order. `value` is the value, also a default; "" if the value is missing or optional and not set.
    """

    credential: Credential
    source: str | None
    searched: tuple[str, ...]
    value: SecretStr

    @property
    def name(self) -> str:
        """The credential's name for use in a sentence: "key" for "api_key", otherwise the name itself."""
        return "key" if self.credential.name == "api_key" else self.credential.name


class KeySource:
    """Finds the values of a provider's credentials and never shows them. Created by SDKProvider for each connection and
    passed to `connect_own_clients`.

    `provider` is the provider's name for errors, `api_key` the user's `api_key=` or None, and `credentials` the
    provider's declared credentials. `read` looks the values up at its first call and reuses them. A function passed as
    `api_key=` is called at each call of `read`. Raises SettingsInvalid for a mapping with names that are not
    credentials.
    """

    def __init__(self, provider: str, api_key: ApiKey | None, credentials: Sequence[Credential] = ()) -> None:
        self._provider = provider
        self._credentials = tuple(credentials) or ((Credential(),) if api_key else ())
        self._ask = api_key if callable(api_key) else None
        self._passed = _NONE if api_key is None or callable(api_key) else self._name_values(api_key)
        self._values: Values | None = None

    @staticmethod
    def find(credentials: Sequence[Credential], passed: PassedValues = _NONE) -> list[FoundCredential]:
        """Look up every credential in environment variables and files, and return the results in order. A missing value
        does not raise.

        `passed` maps names to values passed by the user. All secret values come from the first place (argument,
        variables, profile, files) that has one of them. An empty argument counts as such a place, so variables and
        files are not used for them.

        >>> from sabir.authoring import Credential, KeySource
        >>> [each.source for each in KeySource.find([Credential(default="none")])]
        ['default']
        """
        looks = {each.name: list(_look_in_places(each, passed)) for each in credentials}
        secret = [look for each in credentials if each.secret for look in looks[each.name]]
        places = [place for place, source, value in secret if value or source == _ARGUMENT]
        results = []
        for each in credentials:
            at = [look for look in looks[each.name] if not (each.secret and places) or look[0] == min(places)]
            hit = next(((source, value) for _, source, value in at if value), None)
            searched = tuple(source for _, source, _ in (looks[each.name] if hit else at))
            source, value = hit or (None if each.default is None else "default", SecretStr(each.default or ""))
            results.append(FoundCredential(each, source, searched, value))
        return results

    @property
    def is_needed(self) -> bool:
        """Whether requests can have a key: the provider declares credentials, or the user passed `api_key=`."""
        return bool(self._credentials)

    @property
    def is_sent(self) -> bool:
        """Whether requests have a key: `api_key=` is a function, or `read` returns at least one value. Raises
        CredentialsMissing like `read`.
        """
        return self._ask is not None or bool(self.read())

    def read(self) -> Values:
        """Return the credentials as pairs of name and SecretStr, without optional ones that are not set. Reads
        variables and files at the first call.

        Raises CredentialsMissing if a required value is missing, also if a function returned an empty one; the message
        says where to set the value. Also raises CredentialsMissing if a value cannot be part of an HTTP header, because
        it has a space, a control character or a non-ASCII character; paths of `Credential.files` may. Raises
        SettingsInvalid if a function returned a mapping with names that are not credentials.
        """
        if self._ask:
            return self._look_up(self._name_values(self._ask()))
        if self._values is None:
            self._values = self._look_up(self._passed)
        return self._values

    def text(self) -> str:
        """Return the first value of `read` as plain text, usually the API key; "" if there is none. Raises
        CredentialsMissing like `read`.
        """
        return next((value.get_secret_value() for _, value in self.read()), "")

    def _name_values(self, api_key: str | Mapping[str, str]) -> PassedValues:
        """Return the values of `api_key=` by credential name; a string is the first credential. Raises SettingsInvalid
        for unknown names.
        """
        names = [each.name for each in self._credentials]
        if isinstance(api_key, str):
            return {names[0]: SecretStr(api_key)}
        if foreign := sorted(set(api_key) - {"profile", *names}):
            wrong = f"api_key= of {self._provider} has the names {', '.join(foreign)}; expected {', '.join(names)}"
            raise SettingsInvalid(wrong)
        return {name: SecretStr(value) for name, value in api_key.items()}

    def _look_up(self, passed: PassedValues) -> Values:
        results = KeySource.find(self._credentials, passed)
        if any(each.source is None for each in results):
            raise CredentialsMissing(f"{self._provider} has {_describe_missing(results)}", provider=self._provider)
        for each in results:
            if each.source not in each.credential.files and not _fits_a_header(each.value.get_secret_value()):
                wrong = f"a {each.name} with a space, a control or a non-ASCII character; set only the value itself"
                raise CredentialsMissing(f"{self._provider} has {wrong}", provider=self._provider)
        return tuple((each.credential.name, each.value) for each in results if each.value)


def _describe_missing(results: Sequence[FoundCredential]) -> str:
    """Return the end of the message of CredentialsMissing: the names and places of found values, the missing names, the
    places that were read, and the remedy.
    """
    had = [f"{each.name} ({each.source})" for each in results if each.value]
    missing = [each for each in results if each.source is None]
    searched = dict.fromkeys(source for each in missing for source in each.searched)
    variables = [each.credential.variables for each in missing if each.credential.variables]
    wanted = [each.credential.name for each in results if each.credential.default is None]
    give = "pass api_key=" + (f"{{{', '.join(f'{name!r}: …' for name in wanted)}}}" if len(wanted) > 1 else "")
    is_more = searched.keys() - {name for names in variables for name in names}
    steps = [f"looked at {', '.join(searched)}"] if is_more else []
    steps.append(f"set the variable {' and '.join(map(' or '.join, variables))}, or {give}" if variables else give)
    names = " and no ".join(each.name for each in missing)
    return f"{' and '.join(had) + ' but ' if had else ''}no {names}; {'; '.join(steps)}"


def _fits_a_header(value: str) -> bool:  # a function of its own, so that no variable of the caller contains the key
    return value.isascii() and value.isprintable() and " " not in value


def _look_in_places(credential: Credential, passed: PassedValues) -> Iterator[tuple[int, str, SecretStr]]:
    """Yield every place of a credential, in order: the rank of its kind, its name, and the value there or ""."""
    if credential.name in passed:
        yield 0, _ARGUMENT, passed[credential.name]
    for name in credential.variables:
        value = os.environ.get(name, "")
        yield 1, name, SecretStr(value if value.strip() else "")
    if credential.profile:
        source, values = _find_section(credential.profile, passed.get("profile", _NOTHING).get_secret_value())
        yield 2, source, SecretStr(str(values.get(credential.name, "")))
    for file in credential.files:
        path = Path(file).expanduser()
        yield 3, file, SecretStr(str(path) if path.is_file() else "")


def _find_section(profile: Profile, named: str) -> tuple[str, Mapping[str, JSONValue]]:
    """Return the place of a section in a profile's file, as text, and the section. If there is no section, the text
    says why, and the section is empty. `named` is the section that the user selected, or "".
    """
    name = named or os.environ.get(profile.variable) or profile.section
    path = Path(profile.file).expanduser()
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".toml":
            sections: JSONValue = tomllib.loads(text)
        else:
            parser = RawConfigParser()
            parser.read_string("" if path.suffix == ".json" else text)
            sections = decode_json(text) if path.suffix == ".json" else {name: dict(parser[name]) for name in parser}
    except FileNotFoundError:
        return f"{profile.file} (no such file)", {}
    except (OSError, ValueError, INIInvalid, NotJSON) as error:  # its text may show a line of the file
        return f"{profile.file} (unreadable: {type(error).__name__})", {}
    section = sections.get(name) if isinstance(sections, Mapping) else None
    if not isinstance(section, Mapping):
        return f"{profile.file} (no profile {name!r})", {}
    return f"{profile.file} [{name}]", section


class Closes(Protocol):
    """The interface of a sync client: it can be closed."""

    def close(self) -> object:
        """Close the client's connections."""


class ClosesLater(Protocol):
    """The interface of an async client: it can be closed."""

    def aclose(self) -> Awaitable[object]:
        """Close the client's connections."""


SyncClient = TypeVar("SyncClient", bound=Closes)
AsyncClient = TypeVar("AsyncClient", bound=ClosesLater)


class BaseURL(NamedTuple):
    """The parts of a base URL: `url`, to which paths are joined; `query`, to be added after the path; and
    `authorization`, the value of the header Authorization, or None.
    """

    url: str
    query: str
    authorization: SecretStr | None


def read_base_url(url: str) -> BaseURL:
    """Split a base URL into its parts. User and password become the value of an Authorization header, because HTTP
    clients log URLs.
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    basic = b64encode(unquote_to_bytes(name) + b":" + unquote_to_bytes(password)).decode("ascii")
    without_secrets = parts._replace(netloc=host, query="", fragment="").geturl()
    return BaseURL(without_secrets, parts.query, SecretStr(f"Basic {basic}") if at else None)


def url_of_client(provider: str, client: object) -> str:
    """Return the URL to which an SDK's client sends: its `base_url`. Raises SettingsInvalid if `client` has none."""
    if not (url := getattr(client, "base_url", None)):
        raise SettingsInvalid(f"client= of {provider} is of type {type(client).__name__}; pass a client of its SDK")
    return str(url)


class Clients(Generic[SyncClient, AsyncClient]):
    """The clients that a connection created: one sync client, and one async client for each event loop.

    An async client can be closed only in its event loop. So each async client has an async generator: a loop that ends
    closes its generators (`loop.shutdown_asyncgens()`, which `asyncio.run` calls), and the generator closes the client.
    If a loop was closed without this, its client is dropped when another loop requests a client. The sync client is
    closed when this object is freed, at the latest when the program ends.

    A forked child process starts without clients: it neither uses nor closes the clients of its parent.
    """

    def __init__(self) -> None:
        self._reset()
        _EVERY.add(self)

    def _reset(self) -> None:
        self._lock = Lock()
        self._sync: tuple[SyncClient, finalize[Any, Any]] | None = None
        self._by_loop: dict[AbstractEventLoop, tuple[AsyncClient, AsyncGenerator[None]]] = {}

    def sync(self, make: Callable[[], SyncClient]) -> SyncClient:
        """Return the sync client. Create it if there is none."""
        with self._lock:
            if self._sync is None:
                client = make()
                self._sync = client, finalize(self, client.close)
            return self._sync[0]

    async def here(self, make: Callable[[], AsyncClient]) -> AsyncClient:
        """Return the running event loop's client. Create it if there is none."""
        loop = _running_loop()
        entry = self._by_loop.get(loop)
        if entry is None:
            for other in list(self._by_loop):
                if other.is_closed():
                    self._by_loop.pop(other, None)
            client = make()
            entry = client, _close_with_loop(client, self._by_loop, loop)
            await anext(entry[1])  # this does not block; after this, the loop closes the generator at its end
            self._by_loop[loop] = entry
        return entry[0]

    def close(self) -> None:
        """Close the sync client. The next request creates a new one."""
        with self._lock:
            entry, self._sync = self._sync, None
        if entry:
            entry[1]()

    async def aclose(self) -> None:
        """Close the sync client and the running event loop's client. Clients of other loops stay open."""
        self.close()
        if entry := self._by_loop.pop(_running_loop(), None):
            await entry[1].aclose()

    def forget(self) -> None:
        """Drop all clients without closing them. Called in a forked child process."""
        if self._sync:
            self._sync[1].detach()
        _OF_THE_PARENT.append((self._sync, self._by_loop))
        self._reset()


_EVERY: WeakSet[Clients[Any, Any]] = WeakSet()
_OF_THE_PARENT: list[object] = []
"""The clients of the parent process. They are kept alive in a forked child, because freeing a client closes it."""


def _forget_parent_clients() -> None:
    for clients in list(_EVERY):
        clients.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent_clients)


async def _close_with_loop(
    client: ClosesLater, by_loop: "dict[AbstractEventLoop, Any]", loop: "AbstractEventLoop"
) -> AsyncGenerator[None]:
    """Wait at the `yield` until the generator is closed, and then close the client."""
    try:
        yield
    finally:
        by_loop.pop(loop, None)
        await client.aclose()


def _running_loop() -> "AbstractEventLoop":
    import asyncio  # imported only where a loop runs; sync callers do not need it

    return asyncio.get_running_loop()


def check_client(client: object, kind: str, provider: str, remedy: str) -> None:
    """Raise SettingsInvalid, with the remedy, if a client is not an instance of the class `kind`, which is the text
    "module.Class".

    The class may be defined in a submodule of `module`. Nothing is imported for the check.
    """
    module, _, name = kind.rpartition(".")
    kinds = (each for each in type(client).__mro__ if each.__qualname__ == name)
    if not any(f"{each.__module__}.".startswith(f"{module}.") for each in kinds):
        raise SettingsInvalid(f"client= of {provider} is of type {type(client).__name__}; {remedy}")


_SECRETIVE = re.compile("auth|key|secret|token|sig|pass", re.IGNORECASE)
"""Matches the names of headers and query parameters that contain secrets."""


class _HTTPResponse:
    """Base class of HTTPAnswer and AsyncHTTPAnswer: the response of an HTTP client, whose body has not been read."""

    def __init__(self, response: Any) -> None:  # an HTTP client's own response; no HTTP library is imported here
        self._response = response
        self.status: int = response.status_code
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys, tokens and passwords in the headers and the query that were sent, without prefixes such as
        "Bearer".
        """
        return secrets_of(self._response.request)


def secrets_of(request: Any) -> tuple[str, ...]:
    """Return the keys, tokens and passwords in the headers and the query of an HTTP client's request."""
    sent = [*request.headers.items(), *parse_qsl(str(request.url.query, "ascii", "replace"))]
    return tuple(each for name, value in sent if _SECRETIVE.search(name) for each in _secrets_of(value))


def _secrets_of(value: str) -> Iterator[str]:
    """Yield the key or token in a header's value; for basic authorization also the decoded user and password."""
    kind, _, secret = value.rpartition(" ")
    yield secret
    if kind.lower() == "basic":
        with suppress(ValueError):
            both = b64decode(secret).decode()
            yield from (both, both.partition(":")[2])


class HTTPAnswer(_HTTPResponse):
    """A WireResponse that wraps the response of a sync HTTP client."""

    def chunks(self) -> Iterator[bytes]:
        """Return an iterator over the decompressed bytes of the body as they arrive."""
        chunks: Iterator[bytes] = self._response.iter_bytes()
        return chunks

    def close(self) -> None:
        """Close the response. A second call does nothing."""
        self._response.close()


class AsyncHTTPAnswer(_HTTPResponse):
    """An AsyncWireResponse that wraps the response of an async HTTP client."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Return an async iterator over the decompressed bytes of the body as they arrive."""
        chunks: AsyncIterator[bytes] = self._response.aiter_bytes()
        return chunks

    async def aclose(self) -> None:
        """Close the response. A second call does nothing."""
        await self._response.aclose()
