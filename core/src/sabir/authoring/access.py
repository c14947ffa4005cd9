"""How a provider's plugin reaches its endpoint: the URL, the key, the SDK's clients.

Access ──read_endpoint──▶ URL without secrets        Access, variables ──KeySource──▶ key, asked for once
Clients   one waiting client, and one async client for each event loop, made at their first use
"""

import os
import re
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from sabir.authoring.answers import AsyncHTTPAnswer as AsyncHTTPAnswer  # noqa: PLC0414 — plugins take it from here
from sabir.authoring.answers import HTTPAnswer as HTTPAnswer  # noqa: PLC0414
from sabir.contracts import Access, ApiKey
from sabir.errors import CredentialsMissing, SettingsInvalid

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

SyncClient = TypeVar("SyncClient")
AsyncClient = TypeVar("AsyncClient")
Client = TypeVar("Client")


def first_variable(names: Sequence[str]) -> str | None:
    """The value of the first of some environment variables that is set and not empty."""
    return next(filter(None, (os.environ.get(name) for name in names)), None)


def read_endpoint(provider: str, access: Access, url: str) -> str:
    """An endpoint's URL without what may be secret in it (a user, a query) and without a slash at its end.

    SettingsInvalid for one that is no http(s) URL, and for an empty `api_key` or `base_url`.
    """
    for setting in ("api_key", "base_url"):
        if getattr(access, setting) == "":
            raise SettingsInvalid(f"{provider} has an empty {setting}; give a text, or leave it out")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsInvalid(f"{provider} has the endpoint {_shown(url)!r}, which is no http(s) URL; check base_url")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def url_of_client(provider: str, client: object) -> str:
    """The URL that an SDK's client says it sends to; SettingsInvalid for what is no such client."""
    if not (url := getattr(client, "base_url", None)):
        raise SettingsInvalid(f"client= of {provider} is of type {type(client).__name__}; give a client of its SDK")
    return str(url)


def _shown(url: str) -> str:
    """What of a URL that is none may be told: nothing where it names a user, else all but its query."""
    return "…" if "@" in url else re.split("[?#]", url, maxsplit=1)[0]


class KeySource:
    """A provider's key: given, or of the first variable that holds one; asked for once, and never shown."""

    def __init__(self, provider: str, given: ApiKey | None, variables: Sequence[str]) -> None:
        self._provider = provider
        self._given = given
        self._variables = tuple(variables)
        self._key: str | None = None

    @property
    def is_needed(self) -> bool:
        """Whether the provider takes a key at all."""
        return bool(self._variables or self._given)

    def read(self) -> str:
        """The key; CredentialsMissing where there is none, or one that no header can carry."""
        if self._key is None:
            self._key = self._ask()
        return self._key

    def _ask(self) -> str:
        given = self._given
        key = first_variable(self._variables) if given is None else given() if callable(given) else given
        if not key:
            variables = " or ".join(self._variables) or "none is read"
            message = f"{self._provider} has no key; set the variable {variables}, or pass api_key="
            raise CredentialsMissing(message, provider=self._provider)
        if not (key.isascii() and key.isprintable() and " " not in key):
            message = f"{self._provider} has a key that holds a space, a control or a foreign character; pass it bare"
            raise CredentialsMissing(message, provider=self._provider)
        return key


class Clients(Generic[SyncClient, AsyncClient]):
    """The SDK clients that a connection made: a waiting one, and one for each event loop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sync: SyncClient | None = None
        self._by_loop: WeakKeyDictionary[AbstractEventLoop, AsyncClient] = WeakKeyDictionary()

    def sync(self, make: Callable[[], SyncClient]) -> SyncClient:
        """The waiting client, made now if there is none."""
        with self._lock:
            if self._sync is None:
                self._sync = make()
            return self._sync

    def here(self, make: Callable[[], AsyncClient]) -> AsyncClient:
        """The running event loop's client, made now if there is none."""
        loop = _running_loop()
        with self._lock:
            if loop not in self._by_loop:
                self._by_loop[loop] = make()
            return self._by_loop[loop]

    def take_sync(self) -> SyncClient | None:
        """The waiting client, to be closed; it is forgotten here."""
        with self._lock:
            client, self._sync = self._sync, None
            return client

    def take_here(self) -> AsyncClient | None:
        """The running event loop's client, to be closed; it is forgotten here."""
        with self._lock:
            return self._by_loop.pop(_running_loop(), None)


def _running_loop() -> "AbstractEventLoop":
    import asyncio  # loaded where a loop runs; those who wait need none of it

    return asyncio.get_running_loop()


def checked_client(given: object, kind: type[Client], provider: str, remedy: str) -> Client:
    """The user's own client, if it is of that class; SettingsInvalid says which is taken."""
    if not isinstance(given, kind):
        raise SettingsInvalid(f"client= of {provider} is of type {type(given).__name__}; {remedy}")
    return given
