"""Discovery: which providers, hooks and commands are installed, found by their entry points.

A package may also say, by the group `sabir.hints`, what to write for a name that no provider has.

    importlib.metadata ──enumerate──▶ claims ──provider(name)──▶ loaded, checked, registered with pluggy
    register(name, provider) ────────────────▶ the same place, at run time

Enumerating imports nothing. A plugin is loaded when it is asked for, alone: a broken one is reported by its name and
stops no other (CD-03 … CD-05, CD-13).
"""

import difflib
import logging
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from itertools import groupby
from typing import Any, Literal, NamedTuple

import pluggy

from sabir.catalogue import longest_first
from sabir.contracts import SUPPORTED_APIS, Provider
from sabir.errors import (
    DialectMissing,
    PluginConflict,
    PluginError,
    ProviderBroken,
    ProviderMissing,
    SettingsInvalid,
    one_line,
)
from sabir.hooks import Hooks
from sabir.hookspecs import PROJECT
from sabir.models import Frozen
from sabir.scope import ModelInfo

PROVIDERS, HOOKS, COMMANDS, HINTS = "sabir.providers", "sabir.hooks", "sabir.commands", "sabir.hints"

logger = logging.getLogger("sabir")


class ProviderStatus(Frozen):
    """What is known of one provider: whether it is installed, failed to load, or was registered at run time."""

    name: str
    distribution: str = ""
    version: str = ""
    state: Literal["installed", "failed", "registered"]
    error: str | None = None
    dialects: tuple[str, ...] = ()
    key_variables: tuple[str, ...] = ()


class ModelName(NamedTuple):
    """`provider[.dialect]:model`, taken apart; `dialect` is a short name, or None for the provider's first."""

    provider: str
    dialect: str | None
    model: str


class Registry:
    """Plugins by name. Thread-safe; everything is found and loaded at first use, once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._manager = pluggy.PluginManager(PROJECT)
        self._claims: dict[str, Mapping[str, tuple[EntryPoint, ...]]] = {}
        self._failures: dict[str, PluginError] = {}
        self._registered: set[str] = set()
        self._hooks: Hooks | None = None

    def provider(self, name: str) -> Provider:
        """The provider of that name, loaded.

        ProviderMissing, ProviderBroken or PluginConflict say why there is none.
        """
        with self._lock:
            found: Provider | None = self._manager.get_plugin(name)
            if found is not None:
                return found
            if name in self._failures:
                raise self._failures[name].with_traceback(None)
            if not self.knows(name):
                raise self._missing(name)
            try:
                point = _only(self._claimed(PROVIDERS)[name])
                loaded: Provider = _load(point)
                _check_provider(loaded, name, _distribution(point))
            except PluginError as error:
                self._failures[name] = error
                raise
            self._manager.register(loaded, name)
            return loaded

    def register(self, name: str, provider: Provider) -> None:
        """Add a provider at run time; PluginConflict where the name belongs to another."""
        with self._lock:
            _check_provider(provider, name, "sabir.register")
            if self._manager.get_plugin(name) is provider:
                return
            claims = self._claimed(PROVIDERS).get(name)
            if claims or self._manager.has_plugin(name):
                by = _distribution(claims[0]) if claims else "an earlier sabir.register"
                remedy = "register yours under another name"
                raise PluginConflict(f"provider {name!r} is there already, from {by}; {remedy}")
            self._manager.register(provider, name)
            self._registered.add(name)

    def unregister(self, name: str) -> None:
        """Take back what `register` added; ProviderMissing for a name that it did not."""
        with self._lock:
            if name not in self._registered:
                raise ProviderMissing(f"provider {name!r} was not registered at run time, so it stays")
            self._registered.remove(name)
            self._manager.unregister(name=name)

    def providers(self) -> tuple[ProviderStatus, ...]:
        """Every provider by name, loaded to see what it can; those that fail say why."""
        with self._lock:
            return tuple(self._status(name) for name in self.names())

    def names(self) -> tuple[str, ...]:
        """The names of every provider, in order; none is loaded."""
        with self._lock:
            return tuple(sorted({*self._claimed(PROVIDERS), *self._registered}))

    def knows(self, name: str) -> bool:
        """Whether a provider of that name is installed or registered; it is not loaded."""
        with self._lock:
            if name in self._registered or name in self._claimed(PROVIDERS):
                return True
            del self._claims[PROVIDERS]  # it may have been installed since
            return name in self._claimed(PROVIDERS)

    def models(self, provider: str) -> tuple[ModelInfo, ...]:
        """What is known of a provider's models, longest prefixes first."""
        return longest_first(self.provider(provider).models())

    def commands(self) -> tuple[EntryPoint, ...]:
        """The entry points of further commands, not loaded; PluginConflict for two of one name."""
        with self._lock:
            return tuple(_only(claims) for claims in self._claimed(COMMANDS).values())

    def hooks(self) -> Hooks:
        """The installed hook plugins, loaded at first use; a broken one is logged and passed over."""
        with self._lock:
            if self._hooks is None:
                self._hooks = Hooks()
                for name, claims in self._claimed(HOOKS).items():
                    try:
                        self._hooks.register(_load(_only(claims)), name)
                    except PluginError as error:
                        logger.warning("hook plugin %s was passed over: %s", name, error)
            return self._hooks

    def split_model(self, name: str) -> ModelName:
        """`provider[.dialect]:model`, split at the first colon.

        Raises SettingsInvalid for another form, ProviderMissing and DialectMissing for what is not there.
        """
        _check_model_name(name)
        prefix, _, model = name.partition(":")
        provider, dot, dialect = prefix.partition(".")
        if not provider or not model or (dot and not dialect):
            raise SettingsInvalid(f"{name!r} names no model; write provider:model or provider.dialect:model")
        spoken = self.provider(provider).dialects
        if dialect and dialect not in spoken:
            raise DialectMissing(f"provider {provider!r} does not speak {dialect!r}; it speaks {', '.join(spoken)}")
        return ModelName(provider, dialect or None, model)

    def _claimed(self, group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
        if group not in self._claims:
            points = sorted(entry_points(group=group), key=lambda point: (point.name, _distribution(point)))
            by_name = groupby(dict.fromkeys(points), lambda point: point.name)
            self._claims[group] = {name: tuple(claims) for name, claims in by_name}
        return self._claims[group]

    def _status(self, name: str) -> ProviderStatus:
        claims = self._claimed(PROVIDERS).get(name)
        dist = claims[0].dist if claims else None
        known: dict[str, Any] = {"name": name}
        if dist:
            known |= {"distribution": dist.name, "version": dist.version}
        try:
            provider = self.provider(name)
        except PluginError as error:
            return ProviderStatus(**known, state="failed", error=str(error))
        known |= {"dialects": tuple(provider.dialects), "key_variables": tuple(provider.key_variables)}
        return ProviderStatus(**known, state="registered" if name in self._registered else "installed")

    def _missing(self, name: str) -> ProviderMissing:
        installed = self.names()
        near = difflib.get_close_matches(name, installed, n=1)
        remedy = "; ".join(_hints(name)) or (f"did you mean {near[0]!r}?" if near else _NOBODY_KNOWS)
        known = ", ".join(installed) or "none"
        return ProviderMissing(f"provider {name!r} is not installed; installed: {known}; {remedy}")


_NOBODY_KNOWS = (
    f"install the package that names it among its entry points of the group {PROVIDERS!r} (the documentation lists "
    "this project's), or register it with sabir.register"
)


def _hints(name: str) -> Iterator[str]:
    """What installed packages say to whoever asks for a provider of that name; a broken hint is passed over."""
    for point in sorted(entry_points(group=HINTS, name=name), key=_distribution):
        with suppress(PluginError):
            yield one_line(str(_load(point)), 300)


def _only(claims: tuple[EntryPoint, ...]) -> EntryPoint:
    if len(claims) == 1:
        return claims[0]
    who = " and ".join(_distribution(point) for point in claims)
    raise PluginConflict(f"{claims[0].group} {claims[0].name!r} is claimed by {who}; uninstall one of them")


def _load(point: EntryPoint) -> Any:  # an entry point may name anything
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        reason = one_line(f"{type(error).__name__}: {error}", 300)
        where = f"{_distribution(point)} ({point.value})"
        raise ProviderBroken(f"{point.name!r} of {where} cannot be loaded: {reason}; reinstall or remove it") from error


def _check_provider(provider: object, name: str, source: str) -> None:
    what = f"provider {name!r} of {source}"
    if isinstance(provider, type):
        raise ProviderBroken(f"{what} is the class {provider.__name__}; give an instance of it")
    missing = [each for each in _MEMBERS if not hasattr(provider, each)]
    if missing:
        raise ProviderBroken(f"{what} lacks {', '.join(missing)}; see sabir.contracts.Provider")
    assert isinstance(provider, Provider)
    if provider.api_version not in SUPPORTED_APIS:
        supported = ", ".join(map(str, sorted(SUPPORTED_APIS)))
        written = f"written for api_version {provider.api_version}; this sabir supports {supported}"
        raise ProviderBroken(f"{what} is {written}: update it, or sabir")
    if provider.name != name:
        raise ProviderBroken(f"{what} calls itself {provider.name!r}; the two names must be equal")
    if not provider.dialects:
        raise ProviderBroken(f"{what} speaks no dialect; its `dialects` must name one")


_BREAKING = ("Cc", "Zl", "Zp")
"""The Unicode categories of control characters and of what separates lines; no name holds them."""
_MEMBERS = sorted(name for name in {*Provider.__annotations__, *vars(Provider)} if not name.startswith("_"))


def _check_model_name(name: object) -> None:
    if not isinstance(name, str):
        remedy = "write provider:model or provider.dialect:model"
        raise SettingsInvalid(f"a model's name is a string, not of type {type(name).__name__}; {remedy}")
    if any(unicodedata.category(character) in _BREAKING for character in name):
        raise SettingsInvalid(f"{name!r} names no model: it holds a control character; write provider:model")


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"


default_registry = Registry()
"""The registry of this process."""

provider = default_registry.provider
register = default_registry.register
unregister = default_registry.unregister
providers = default_registry.providers
models = default_registry.models
commands = default_registry.commands
split_model = default_registry.split_model
