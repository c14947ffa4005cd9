"""Plugins: found by the entry points of installed packages, loaded one by one; and the registry of providers.

    importlib.metadata ──claimed(group)──▶ name → entry points ──load_point──▶ the object that a plugin's author wrote
    provider(name) ──▶ loaded when it is asked for, checked, kept        register(name, provider) ──▶ the same place

Finding imports nothing. A broken plugin is reported by its name and stops no other. A plugin that the program did not
name, but that is loaded to be listed or to be told of calls, is loaded in a thread of its own, and left out if that
takes too long. No lock is held while a plugin's own code runs. An installed package may know a name under which no
provider is installed: in the entry-point group `sabir.hints` it says what to write instead.
"""

import difflib
import re
import threading
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from sabir.base.errors import (
    DialectMissing,
    PluginConflict,
    PluginError,
    ProviderBroken,
    ProviderMissing,
    SettingsInvalid,
    one_line,
)
from sabir.base.models import Frozen
from sabir.contract.provider import SUPPORTED_APIS, Credential, Provider
from sabir.options.execution import start_thread
from sabir.vocabulary.models import ModelInfo, longest_first

PROVIDERS, HOOKS, COMMANDS, HINTS = "sabir.providers", "sabir.hooks", "sabir.commands", "sabir.hints"
LONGEST_LOAD = 10.0
"""Seconds that a plugin which the program did not name may take to load."""

Claims: TypeAlias = Mapping[str, tuple[EntryPoint, ...]]
"""A name → the entry points that claim it."""
Loaded = TypeVar("Loaded")


def claimed(group: str) -> Claims:
    """The entry points of a group that the installed packages declare now, by name; nothing is loaded."""
    points = sorted(entry_points(group=group), key=lambda point: (point.name, distribution(point)))
    by_name = groupby(dict.fromkeys(points), lambda point: point.name)
    return {name: tuple(claims) for name, claims in by_name}


def only(claims: tuple[EntryPoint, ...]) -> EntryPoint:
    """The one entry point of a name; raises PluginConflict if several packages claim it."""
    if len(claims) == 1:
        return claims[0]
    who = " and ".join(distribution(point) for point in claims)
    raise PluginConflict(f"{claims[0].group} {claims[0].name!r} is claimed by {who}; uninstall one of them")


def load_point(point: EntryPoint, *, named: bool = True) -> Any:  # an entry point may name anything
    """Load the object that an entry point names. Raises ProviderBroken, which names the package and the reason.

    With `named=False`, for a plugin that the program did not name, loading may take LONGEST_LOAD seconds.
    """
    if not named:
        return beside(lambda: load_point(point), point)
    with ProviderBroken.blaming(f"{_shown(point)} cannot be loaded", "reinstall or remove it"):
        return point.load()


def beside(loading: Callable[[], Loaded], point: EntryPoint) -> Loaded:
    """Call `loading` in a thread of its own; raises ProviderBroken if it takes longer than LONGEST_LOAD seconds."""
    loaded = start_thread(loading)
    try:
        return loaded.result(LONGEST_LOAD)
    except TimeoutError:
        if loaded.done():
            raise
    raise ProviderBroken(f"{_shown(point)} is not loaded after {LONGEST_LOAD:g} s; update or remove it")


def _shown(point: EntryPoint) -> str:
    return f"{point.name!r} of {distribution(point)} ({point.value})"


def distribution(point: EntryPoint) -> str:
    """The package that declares an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"


class ProviderStatus(Frozen):
    """The state of one provider: installed, failed to load, or registered at run time; and the facts it tells."""

    name: str
    distribution: str = ""
    version: str = ""
    state: Literal["installed", "failed", "registered"]
    error: str | None = None
    dialects: tuple[str, ...] = ()
    credentials: tuple[Credential, ...] = ()

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Environment variables that may hold secret credentials, in the order in which they are read."""
        return tuple(name for each in self.credentials if each.secret for name in each.variables)


class ModelName(NamedTuple):
    """`provider[.dialect]:model`, taken apart; `dialect` is a short name, or None for the provider's first."""

    provider: str
    dialect: str | None
    model: str


class Registry:
    """Plugins by name. Thread-safe; everything is found and loaded at first use, once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loaded: dict[str, Provider] = {}
        self._claims: dict[str, Claims] = {}
        self._failures: dict[str, PluginError] = {}
        self._registered: set[str] = set()

    def provider(self, name: str) -> Provider:
        """The provider of that name, loaded.

        Raises ProviderMissing, ProviderBroken or PluginConflict, which say why there is none.
        """
        with self._lock:
            if name in self._loaded:
                return self._loaded[name]
            if name in self._failures:
                raise self._failures[name].with_traceback(None)
            claims = self._claimed(PROVIDERS)[name] if self.knows(name) else ()
        if not claims:
            raise self._missing(name)
        try:
            point = only(claims)
            loaded: Provider = load_point(point)
            _check_provider(loaded, name, distribution(point))
        except PluginError as error:
            self._failures[name] = error
            raise
        with self._lock:
            return self._loaded.setdefault(name, loaded)

    def register(self, name: str, provider: Provider) -> None:
        """Add a provider at run time.

        Raises PluginConflict if the name belongs to another provider, ProviderBroken if it does not fit the contract.
        """
        _check_provider(provider, name, "sabir.register")
        with self._lock:
            if self._loaded.get(name) is provider:
                return
            claims = self._claimed(PROVIDERS).get(name)
            if claims or name in self._loaded:
                by = distribution(claims[0]) if claims else "an earlier sabir.register"
                remedy = "register yours under another name"
                raise PluginConflict(f"provider {name!r} is there already, from {by}; {remedy}")
            self._loaded[name] = provider
            self._registered.add(name)

    def unregister(self, name: str) -> None:
        """Remove a provider that `register` added; raises ProviderMissing for any other name."""
        with self._lock:
            if name not in self._registered:
                raise ProviderMissing(f"provider {name!r} was not registered at run time, so it stays")
            self._registered.remove(name)
            del self._loaded[name]

    def providers(self) -> tuple[ProviderStatus, ...]:
        """The status of every provider, by name; each is loaded, and `error` says why a provider could not be."""
        return tuple(self._status(name) for name in self.names())

    def names(self) -> tuple[str, ...]:
        """The names of all providers, in order; none is loaded."""
        with self._lock:
            return tuple(sorted({*self._claimed(PROVIDERS), *self._registered}))

    def knows(self, name: str) -> bool:
        """Whether a provider of that name is installed or registered; it is not loaded."""
        with self._lock:
            if name in self._registered or name in self._claimed(PROVIDERS):
                return True
            del self._claims[PROVIDERS]  # the provider may have been installed since the last look
            return name in self._claimed(PROVIDERS)

    def models(self, provider: str) -> tuple[ModelInfo, ...]:
        """The known facts of a provider's models, longest prefixes first; raises ProviderBroken if it cannot tell."""
        return models_of(self.provider(provider))

    def commands(self) -> tuple[EntryPoint, ...]:
        """The entry points of further commands, not loaded; raises PluginConflict for two of one name."""
        with self._lock:
            return tuple(only(claims) for claims in self._claimed(COMMANDS).values())

    def split_model(self, name: str) -> ModelName:
        """`provider[.dialect]:model`, split at the first colon.

        Raises SettingsInvalid for another form, ProviderMissing or DialectMissing for a name that is unknown, and
        ProviderBroken or PluginConflict as `provider` does.
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

    def _claimed(self, group: str) -> Claims:
        if group not in self._claims:
            self._claims[group] = claimed(group)
        return self._claims[group]

    def _status(self, name: str) -> ProviderStatus:
        with self._lock:
            claims = self._claimed(PROVIDERS).get(name)
        dist = claims[0].dist if claims else None
        known: dict[str, Any] = {"name": name}
        if dist:  # a distribution with broken metadata has no name and no version
            known |= {"distribution": dist.name or "", "version": dist.version or ""}
        try:
            if claims and name not in self._loaded and name not in self._failures:
                try:
                    beside(lambda: self.provider(name), claims[0])
                except PluginError as error:  # one that takes too long counts as failed until it has loaded after all
                    self._failures.setdefault(name, error)
            provider = self.provider(name)
            with ProviderBroken.blaming(f"provider {name!r} does not tell its dialects and credentials"):
                known |= {"dialects": tuple(provider.dialects), "credentials": tuple(provider.credentials)}
                return ProviderStatus(**known, state="registered" if name in self._registered else "installed")
        except PluginError as error:
            return ProviderStatus(**known, state="failed", error=str(error))

    def _missing(self, name: str) -> ProviderMissing:
        installed = self.names()
        near = difflib.get_close_matches(name, installed, n=1, cutoff=0.75)  # no other vendor of three letters
        remedy = "; ".join(_hints(name)) or (f"did you mean {near[0]!r}?" if near else _install(name))
        known = ", ".join(installed) or "none"
        return ProviderMissing(f"provider {name!r} is not installed; installed: {known}; {remedy}")


def _install(name: str) -> str:
    """How a provider that no installed package knows may be installed: its package's name follows from its own."""
    package = f"pip install sabir-{name}, if it exists, or " if re.fullmatch(r"[a-z][a-z0-9_-]{0,39}", name) else ""
    return f"{package}install the package that names it in the group {PROVIDERS!r}, or use sabir.register"


def _hints(name: str) -> list[str]:
    """The hints of installed packages for a missing provider of that name; a broken hint is left out."""
    return list(filter(None, map(_hint, sorted(entry_points(group=HINTS, name=name), key=distribution))))


@lru_cache(maxsize=256)
def _hint(point: EntryPoint) -> str:
    """The text of a hint, "" for a broken one; each is loaded once."""
    with suppress(PluginError):
        said = load_point(point, named=False)
        return one_line(said, 300) if isinstance(said, str) else ""
    return ""


def models_of(provider: Provider, dialect: str = "") -> tuple[ModelInfo, ...]:
    """Return the known facts of a provider's models, longest prefixes first; raises ProviderBroken if that fails.

    A provider may have the method `models_at(dialect)`, for facts that differ by dialect; it gets the full name.
    """
    models_at = getattr(provider, "models_at", None)
    with ProviderBroken.blaming(f"provider {provider.name!r} does not tell its models"):
        return longest_first(models_at(dialect) if dialect and models_at else provider.models())


def _check_provider(provider: object, name: str, source: str) -> None:
    what = f"provider {name!r} of {source}"
    if isinstance(provider, type):
        raise ProviderBroken(f"{what} is the class {provider.__name__}; give an instance of it")
    with ProviderBroken.blaming(f"{what} does not tell what it is"):
        has = {each: getattr(provider, each) for each in _MEMBERS if hasattr(provider, each)}
    if missing := [each for each in _MEMBERS if each not in has]:
        raise ProviderBroken(f"{what} lacks {', '.join(missing)}; see sabir.authoring.Provider")
    if not isinstance(has["api_version"], int) or has["api_version"] not in SUPPORTED_APIS:
        supported = ", ".join(map(str, sorted(SUPPORTED_APIS)))
        written = f"written for api_version {has['api_version']}; this sabir supports {supported}"
        raise ProviderBroken(f"{what} is {written}: update it, or sabir")
    if has["name"] != name:
        raise ProviderBroken(f"{what} calls itself {has['name']!r}; the two names must be equal")
    for each, kind in _TUPLES.items():
        if not (isinstance(has[each], tuple | list) and all(isinstance(item, kind) for item in has[each])):
            raise ProviderBroken(
                f"{what} has {each} of type {type(has[each]).__name__}; it must be a tuple of {kind.__name__}"
            )
    if not has["dialects"]:
        raise ProviderBroken(f"{what} speaks no dialect; its `dialects` must name one")


_TUPLES = {"dialects": str, "request_ids": str, "credentials": Credential}
_BREAKING = ("Cc", "Zl", "Zp")
"""The Unicode categories of control characters and line separators, which no name may hold."""
_MEMBERS = sorted(name for name in {*Provider.__annotations__, *vars(Provider)} if not name.startswith("_"))


def _check_model_name(name: object) -> None:
    if not isinstance(name, str):
        remedy = "write provider:model or provider.dialect:model"
        raise SettingsInvalid(f"a model's name is a string, not of type {type(name).__name__}; {remedy}")
    if any(unicodedata.category(character) in _BREAKING for character in name):
        raise SettingsInvalid(f"{name!r} names no model: it holds a control character; write provider:model")


default_registry = Registry()
"""The registry of this process."""

provider = default_registry.provider
register = default_registry.register
unregister = default_registry.unregister
providers = default_registry.providers
models = default_registry.models
commands = default_registry.commands
split_model = default_registry.split_model
