"""Find and load plugins by the entry points of installed packages, and register providers at run time.

    importlib.metadata ──read_entry_points(group)──▶ name → entry points ──load_entry_point──▶ an author's object
    provider(name, dialect) ──▶ all packages with this name, each loaded once ──choose_contribution──▶ one provider
    register(name, provider) ──▶ a further provider with this name

Finding plugins imports nothing. A broken plugin is reported by its name. A plugin that the program may not need (it has
hooks, `providers()` lists it, or several packages provide its name) is loaded in a thread of its own; if that takes
more than LONGEST_LOAD seconds, loading fails. No lock is held while a plugin's own code runs. An installed package may
suggest what to write for the name of a missing provider: it declares the text as an entry point of this name in the
group `sabir.hints`.
"""

import logging
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    did_you_mean,
    one_line,
)
from sabir.base.models import Frozen
from sabir.contract.contributions import REGISTERED, Contribution, choose_contribution, conflict_error, is_meant, owners
from sabir.contract.provider import Credential, Provider
from sabir.options.execution import run_in_thread
from sabir.vocabulary.models import ModelInfo, longest_first

PROVIDERS, HOOKS, COMMANDS, HINTS = "sabir.providers", "sabir.hooks", "sabir.commands", "sabir.hints"
LONGEST_LOAD = 10.0
"""The most seconds that loading a plugin may take if the plugin is loaded with `named` False."""
logger = logging.getLogger("sabir")

Claims: TypeAlias = Mapping[str, tuple[EntryPoint, ...]]
"""Name → the entry points with this name."""
Loaded = TypeVar("Loaded")


def read_entry_points(group: str) -> Claims:
    """Return the entry points of a group, by name, as the installed packages declare them now. Loads nothing."""
    points = sorted(entry_points(group=group), key=lambda point: (point.name, distribution(point)))
    by_name = groupby(dict.fromkeys(points), lambda point: point.name)
    return {name: tuple(claims) for name, claims in by_name}


def single_entry_point(claims: tuple[EntryPoint, ...]) -> EntryPoint:
    """Return the entry point of a name. Raises PluginConflict if several packages declare entry points of the name."""
    if len(claims) == 1:
        return claims[0]
    who = " and ".join(distribution(point) for point in claims)
    raise PluginConflict(f"{claims[0].group} {claims[0].name!r} is provided by {who}; uninstall one of them")


def load_entry_point(point: EntryPoint, *, named: bool = True) -> Any:  # an entry point may name anything
    """Load and return the object that an entry point names. Raises ProviderBroken, with the package's name and the
    reason, if loading fails.

    `named` False is for a plugin that the program may not need: loading also fails if it takes more than 10 seconds.
    """
    if not named:
        return within_limit(lambda: load_entry_point(point), point)
    with ProviderBroken.blaming(f"{_label(point)} cannot be loaded", _remedy(point)):
        return point.load()


def _remedy(point: EntryPoint) -> str:
    """Return what to do if an entry point cannot be loaded: an editable install is the user's own code."""
    source = (point.dist and point.dist.read_text("direct_url.json")) or ""
    return "fix the import" if re.search(r'"editable"\s*:\s*true', source) else "reinstall or remove it"


def within_limit(loading: Callable[[], Loaded], point: EntryPoint) -> Loaded:
    """Call `loading` in a thread of its own and return its result. Raises ProviderBroken after LONGEST_LOAD seconds;
    the thread continues.
    """
    loaded = run_in_thread(loading)
    try:
        return loaded.result(LONGEST_LOAD)
    except TimeoutError:
        if loaded.done():
            raise
    raise ProviderBroken(f"{_label(point)} did not finish loading within {LONGEST_LOAD:g} s; update or remove it")


def _label(point: EntryPoint) -> str:
    """Return an entry point for an error message: name, package, version and value."""
    return f"{point.name!r} of {distribution(point)} ({point.value})"


def distribution(point: EntryPoint) -> str:
    """Return the name and version of the package that declares an entry point, as text for messages."""
    name, version = _package_of(point)
    return f"{name} {version}" if name else "an unknown distribution"


def _package_of(point: EntryPoint) -> tuple[str, str]:
    """Return the package's name and version; both are "" for an installation without metadata."""
    # `dist.name` of a distribution without metadata warns, and raises in later versions of Python.
    metadata = point.dist.metadata if point.dist else None
    return (metadata["Name"], metadata["Version"]) if metadata and "Name" in metadata else ("", "")


class ProviderStatus(Frozen):
    """What is known of one installed or registered provider, as `sabir.providers()` returns it.

    `name` is the provider's name in model strings. `distribution` and `version` are the name and version of its
    package; "" if the program registered the provider or the package has no metadata. `state` is "installed",
    "registered", or "failed" if the provider cannot be loaded or used; then `error` says why, else None. `dialects` are
    the short names of the API formats, the default first. `credentials` describes the keys that the provider needs.
    Both are empty if loading or reading them failed. If several packages or registrations provide one name, each has
    its own status.

    >>> import sabir
    >>> status = next(each for each in sabir.providers() if each.name == "echo")
    >>> status.state, status.dialects, status.key_variables
    ('installed', ('plain',), ())
    """

    name: str
    distribution: str = ""
    version: str = ""
    state: Literal["installed", "failed", "registered"]
    error: str | None = None
    dialects: tuple[str, ...] = ()
    credentials: tuple[Credential, ...] = ()
    means_bare_name: bool = True
    """Whether the model string `name:model` means this provider (and its first dialect). False if loading failed, if
    the provider only adds dialects, or if another provider of this name takes precedence or conflicts with this one.
    """
    shadowed: tuple[str, ...] = ()
    """Dialects that `name.dialect:model` does not reach, because another package or registration provides a
    dialect of the same name.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The texts before the colon of a model string that select this provider: the name if `means_bare_name` is
        True, then `name.dialect` for each dialect that is not in `shadowed`.
        """
        reached = (dialect for dialect in self.dialects if dialect not in self.shadowed)
        return *([self.name] if self.means_bare_name else ()), *(f"{self.name}.{dialect}" for dialect in reached)

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables that may contain the provider's secret keys, in the order in which they
        are read.
        """
        return tuple(name for each in self.credentials if each.secret for name in each.variables)


class ModelName(NamedTuple):
    """A model string `provider[.dialect]:model`, split. `dialect` is a short name, or None for the provider's first
    dialect.
    """

    provider: str
    dialect: str | None
    model: str


class _Source:
    """One package or registration that provides a name, with the loaded provider or the error of loading it."""

    def __init__(self, point: EntryPoint | None, contribution: Contribution | None = None) -> None:
        self.point = point
        """The entry point of an installed package; None if the program registered the provider."""
        self.contribution = contribution
        self.error: PluginError | None = None

    def load(self, *, named: bool) -> Contribution | None:
        """Load the provider at the first call, and return its Contribution; None if loading failed, with `error` set.

        `named` False means that loading fails after LONGEST_LOAD seconds.
        """
        point = self.point
        if point and self.contribution is None and self.error is None:
            try:
                self._load_point(point) if named else within_limit(lambda: self._load_point(point), point)
            except PluginError as error:  # after a time-out, the thread may still set `contribution` later
                self.error = error
        return self.contribution

    def _load_point(self, point: EntryPoint) -> None:
        contribution = Contribution.of(load_entry_point(point), point.name, distribution(point))
        self.contribution = self.contribution or contribution


class Registry:
    """Finds and loads plugins by name. Thread-safe. Entry points are read at their first use, and again for an unknown
    provider name. Each provider is loaded at its first use and then reused.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._claims: dict[str, Claims] = {}
        self._installed: dict[EntryPoint, _Source] = {}
        self._registered: dict[str, list[_Source]] = {}
        self._warned: set[str] = set()

    def provider(self, name: str, dialect: str | None = None) -> Provider:
        """Return the plugin object of a provider, for authors of plugins and tools. Loads the provider's package.

        `dialect` is the short name of an API format. It selects the package if several packages provide the name; None
        means the provider of `name:model`. Raises ProviderMissing for an unknown name and, if `dialect` is None, for a
        name to which packages only add dialects; DialectMissing for an unknown dialect, ProviderBroken if no package of
        the name can be loaded, and PluginConflict if several packages claim the name and sabir cannot choose.
        """
        sources = self._sources_of(name)
        if not sources:
            raise self._missing_error(name)
        contributions = _load_all(sources, named=len(sources) == 1)
        failures = [each.error.with_traceback(None) for each in sources if each.error and not each.contribution]
        if failures and not contributions:
            raise failures[0]
        try:
            meaning = choose_contribution(name, contributions, dialect)
        except (ProviderMissing, DialectMissing) as error:
            hints = _suggestions(name) if dialect is None else []
            raise type(error)("; ".join((str(error), *map(str, failures), *hints))) from None
        if failures and dialect is None and not meaning.reserves_name and name not in self._warned:
            self._warned.add(name)
            logger.warning("%s; until that is fixed, %r means the provider from %s", failures[0], name, meaning.source)
        return meaning.provider

    def register(self, name: str, provider: Provider) -> None:
        """Add a provider of your own for this process, usually so that `sabir.adapter(f"{name}:model")` uses it.

        `provider` is an object with the interface `sabir.authoring.Provider`, whose `name` is equal to `name`.
        Registering the same object again does nothing. Raises ProviderBroken if the object does not have the interface,
        and PluginConflict if another provider already has the name, unless `name:model` keeps its meaning and
        `name.dialect:model` means the new provider for each of its dialects. Usually, two providers can share a name
        if one of them has `adds_dialects` True and they have no dialect in common.
        """
        contribution = Contribution.of(provider, name, REGISTERED)
        _load_all(self._sources_of(name), named=False)
        with self._lock:
            others = [each.contribution for each in self._sources_of(name) if each.contribution]
            if any(each.provider is provider for each in others):
                return
            bare, together = owners(others, None), [*others, contribution]
            is_reached = all(is_meant(contribution, together, dialect) for dialect in contribution.dialects)
            if not is_reached or (bare and owners(together, None) != bare):
                by = " and ".join(each.source.replace(REGISTERED, f"an earlier {REGISTERED}") for each in others)
                remedy = "register yours under another name"
                raise PluginConflict(f"provider {name!r} is already provided by {by}; {remedy}")
            self._registered.setdefault(name, []).append(_Source(None, contribution))

    def unregister(self, name: str) -> None:
        """Remove the providers that `register` added under this name. Adapters that use them continue to work.

        Raises ProviderMissing if no provider was registered under this name. Installed packages are not affected.
        """
        with self._lock:
            if name not in self._registered:
                reason = "was not registered with sabir.register, so it cannot be unregistered"
                raise ProviderMissing(f"provider {name!r} {reason}")
            del self._registered[name]

    def providers(self) -> tuple[ProviderStatus, ...]:
        """Return the status of every installed or registered provider, sorted by name.

        Loads every provider's package that was not loaded before, each for at most 10 seconds. A package that failed
        before is not tried again. A provider that cannot be loaded or used has the state "failed", and its `error` says
        why.

        >>> import sabir
        >>> [status.state for status in sabir.providers() if status.name == "echo"]
        ['installed']
        """
        statuses: list[ProviderStatus] = []
        for name in self.names():
            sources = self._sources_of(name)
            contributions = _load_all(sources, named=False)
            statuses += (_status(name, source, contributions) for source in sources)
        return tuple(statuses)

    def names(self) -> tuple[str, ...]:
        """Return the sorted names of all providers, without loading them."""
        with self._lock:
            return tuple(sorted({*self._claimed(PROVIDERS), *self._registered}))

    def knows(self, name: str) -> bool:
        """Return whether a provider of that name is installed or registered, without loading it."""
        with self._lock:
            if name in self._registered or name in self._claimed(PROVIDERS):
                return True
            del self._claims[PROVIDERS]  # read again, because the provider may have been installed meanwhile
            return name in self._claimed(PROVIDERS)

    def models(self, provider: str, dialect: str | None = None) -> tuple[ModelInfo, ...]:
        """Return the known facts of a provider's models. Usually, a row applies to the models whose names begin with
        its prefix, unless a longer prefix matches.

        `provider` is the provider's name. `dialect` is the short name of an API format, for providers whose facts
        differ by format; None means the default. The longest prefixes come first. Models without a row can be used too.
        Nothing is requested from the provider's servers. Raises ProviderMissing, DialectMissing, ProviderBroken or
        PluginConflict if the provider cannot be used.

        >>> import sabir
        >>> [info.family for info in sabir.models("echo")]
        ['echo']
        """
        return models_of(self.provider(provider, dialect), f"{provider}.{dialect}" if dialect else "")

    def commands(self) -> tuple[EntryPoint, ...]:
        """Return the entry points of the commands that installed packages add to the command-line program `sabir`.
        Loads none of them; `load()` of an entry point does.

        Raises PluginConflict if two packages add a command of the same name.
        """
        with self._lock:
            return tuple(single_entry_point(claims) for claims in self._claimed(COMMANDS).values())

    def split_model(self, name: str) -> ModelName:
        """Split a model string `provider[.dialect]:model` at the first colon, and return its parts. Loads the
        provider's package to check the names.

        Raises SettingsInvalid for a value of another form, ProviderMissing for an unknown provider, DialectMissing for
        an unknown dialect, and ProviderBroken or PluginConflict if the provider cannot be used.
        """
        _check_model_name(name)
        prefix, _, model = name.partition(":")
        provider, dot, dialect = prefix.partition(".")
        if not provider or not model or (dot and not dialect):
            raise SettingsInvalid(f"{name!r} is not a model string; write provider:model or provider.dialect:model")
        self.provider(provider, dialect or None)
        return ModelName(provider, dialect or None, model)

    def _claimed(self, group: str) -> Claims:
        if group not in self._claims:
            self._claims[group] = read_entry_points(group)
        return self._claims[group]

    def _sources_of(self, name: str) -> list[_Source]:
        """Return the sources of a name: the packages that provide it, sorted by name, then the registrations."""
        with self._lock:
            points = self._claimed(PROVIDERS).get(name, ()) if self.knows(name) else ()
            installed = [self._installed.setdefault(point, _Source(point)) for point in points]
            return installed + self._registered.get(name, [])

    def _missing_error(self, name: str) -> ProviderMissing:
        """Return the ProviderMissing for a name, with the installed providers and the most helpful remedy."""
        installed = self.names()
        # The name of the package is guessed from the provider's name.
        package = f"pip install sabir-{name}, if it exists, or " if re.fullmatch(r"[a-z][a-z0-9_-]{0,39}", name) else ""
        install = f"{package}install another package that provides {name!r}, or call sabir.register"
        # A lower cutoff suggests another vendor with a short name.
        remedy = "; ".join(_suggestions(name)) or did_you_mean(name, installed, install, cutoff=0.75)
        known = ", ".join(installed) or "none"
        return ProviderMissing(f"provider {name!r} is not installed; installed: {known}; {remedy}")


def _load_all(sources: Iterable[_Source], *, named: bool) -> list[Contribution]:
    """Load the sources, and return the Contributions of those that could be loaded."""
    return [contribution for each in sources if (contribution := each.load(named=named))]


def _status(name: str, source: _Source, contributions: Sequence[Contribution]) -> ProviderStatus:
    """Return the status of one source of a provider. `contributions` are the loaded providers of all sources of its
    name.
    """
    own, (package, version) = source.contribution, _package_of(source.point) if source.point else ("", "")
    facts: dict[str, Any] = {"name": name, "distribution": package, "version": version}
    if own is None:
        return ProviderStatus(**facts, state="failed", error=str(source.error), means_bare_name=False)
    facts["shadowed"] = tuple(each for each in own.dialects if not is_meant(own, contributions, each))
    facts["means_bare_name"] = is_meant(own, contributions, None)
    try:
        with ProviderBroken.blaming(f"the dialects and credentials of provider {name!r} cannot be read"):
            facts |= {"dialects": own.dialects, "credentials": tuple(own.provider.credentials)}
            status = ProviderStatus(**facts, state="installed" if source.point else "registered")
        if not status.names and (error := conflict_error(name, contributions, own.dialects[0])):
            raise error
    except PluginError as error:
        return ProviderStatus(**facts, state="failed", error=str(error))
    return status


def _suggestions(name: str) -> list[str]:
    """Return the suggestions of installed packages for a missing provider of this name. Broken ones are left out."""
    return list(filter(None, map(_hint, sorted(entry_points(group=HINTS, name=name), key=distribution))))


@lru_cache(maxsize=256)
def _hint(point: EntryPoint) -> str:
    """Load the text of a suggestion once, and return it; "" if that fails."""
    with suppress(PluginError):
        text = load_entry_point(point, named=False)
        return one_line(text, 300) if isinstance(text, str) else ""
    return ""


def models_of(provider: Provider, dialect: str = "") -> tuple[ModelInfo, ...]:
    """Return the known facts of a provider's models, longest prefixes first. Raises ProviderBroken if the provider
    fails.

    `dialect` is a dialect's full name, such as `acme.chat`, or "". A provider may have the method `models_at(dialect)`
    for facts that differ by dialect; it gets the full name.
    """
    with ProviderBroken.blaming(f"the models of provider {provider.name!r} cannot be read"):
        models_at = getattr(provider, "models_at", None)
        return longest_first(models_at(dialect) if dialect and models_at else provider.models())


_BREAKING = ("Cc", "Zl", "Zp")
"""The Unicode categories of control characters and line separators, which no model name may contain."""


def _check_model_name(name: object) -> None:
    if not isinstance(name, str):
        remedy = "write provider:model or provider.dialect:model"
        raise SettingsInvalid(f"a model's name must be a string, not of type {type(name).__name__}; {remedy}")
    if any(unicodedata.category(character) in _BREAKING for character in name):
        raise SettingsInvalid(f"{name!r} contains a control character; write a model string as provider:model")


default_registry = Registry()
"""The registry of this process."""

provider = default_registry.provider
register = default_registry.register
unregister = default_registry.unregister
providers = default_registry.providers
models = default_registry.models
commands = default_registry.commands
split_model = default_registry.split_model
