"""Which provider a name means if several packages provide the name. Only declarations decide, never the order.

packages that provide `acme`                   `acme:x` means      `acme.native:x` means
gateway (reserves_name) + native adapter       the gateway         the native adapter
native adapter alone                           the native adapter  the native adapter
two native adapters                            PluginConflict      PluginConflict
only one with adds_dialects                    ProviderMissing     the one with adds_dialects
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sabir.base.errors import DialectMissing, PluginConflict, ProviderBroken, ProviderMissing
from sabir.contract.provider import SUPPORTED_APIS, Credential, Provider

REGISTERED = "sabir.register"
"""The source of a provider that the program added."""
_FLAGS = ("reserves_name", "adds_dialects")
"""Optional members of a provider, False by default."""
_TUPLES = {"dialects": str, "request_ids": str, "credentials": Credential}
"""Member of a provider that is a tuple → the type of its items."""
_MEMBERS = sorted(name for name in {*Provider.__annotations__, *vars(Provider)} if not name.startswith("_"))
"""The names of the members that a provider must have."""


@dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """A provider from one package or registration, with the declarations that it had when it was loaded."""

    provider: Provider
    source: str
    """The package and its version, or REGISTERED."""
    dialects: tuple[str, ...]
    reserves_name: bool
    adds_dialects: bool

    @classmethod
    def of(cls, provider: Any, name: str, source: str) -> "Contribution":  # an entry point may name anything
        """Check a provider object and return its Contribution. Raises ProviderBroken for an object that does not have
        the interface of Provider, or whose `name` is another one.
        """
        what = f"provider {name!r} of {source}"
        members = _members(provider, what)
        if members["name"] != name:
            raise ProviderBroken(f"{what} has the `name` {members['name']!r}; the two names must be equal")
        for each, kind in _TUPLES.items():
            if not (isinstance(members[each], tuple | list) and all(isinstance(item, kind) for item in members[each])):
                wrong = f"{each} of type {type(members[each]).__name__}"
                raise ProviderBroken(f"{what} has {wrong}; pass a tuple or list of {kind.__name__}")
        if not members["dialects"]:
            raise ProviderBroken(f"{what} has no dialect; its `dialects` must name at least one")
        flags = [members.get(flag, False) for flag in _FLAGS]
        if flags == [True, True] or not all(isinstance(flag, bool) for flag in flags):
            raise ProviderBroken(f"{what} has {' and '.join(_FLAGS)} {flags}; each must be a bool, at most one True")
        return cls(provider, source, tuple(members["dialects"]), *flags)


def _members(provider: object, what: str) -> dict[str, Any]:
    """Return the members of Provider that the object has. Raises ProviderBroken for a class, for a missing member and
    for an unsupported `api_version`.
    """
    # Any attribute may raise, even `__class__`.
    with ProviderBroken.blaming(f"the attributes of {what} cannot be read"):
        class_name = provider.__name__ if isinstance(provider, type) else ""
        members = {each: getattr(provider, each) for each in (*_MEMBERS, *_FLAGS) if hasattr(provider, each)}
    if class_name:
        raise ProviderBroken(f"{what} is the class {class_name}; pass an instance of it")
    if missing := [each for each in _MEMBERS if each not in members]:
        raise ProviderBroken(f"{what} does not have {', '.join(missing)}; see sabir.authoring.Provider")
    version = members["api_version"]
    if not isinstance(version, int) or version not in SUPPORTED_APIS:
        supported = f"this sabir supports {', '.join(map(str, sorted(SUPPORTED_APIS)))}"
        raise ProviderBroken(f"{what} is written for api_version {version}; {supported}: update it, or sabir")
    return members


def owners(contributions: Sequence[Contribution], dialect: str | None) -> list[Contribution]:
    """Return the contributions that `name` (dialect None) or `name.dialect` may mean. More than one is a conflict."""
    able = [each for each in contributions if (not each.adds_dialects if dialect is None else dialect in each.dialects)]
    return [each for each in able if each.reserves_name] or able


def is_meant(contribution: Contribution, contributions: Sequence[Contribution], dialect: str | None) -> bool:
    """Return whether `name` (dialect None) or `name.dialect` means this contribution and no other."""
    return owners(contributions, dialect) == [contribution]


def conflict_error(name: str, contributions: Sequence[Contribution], dialect: str | None) -> PluginConflict | None:
    """Return the error if `name` (dialect None) or `name.dialect` may mean several contributions; None otherwise."""
    claimants = owners(contributions, dialect)
    if len(claimants) < 2:
        return None
    full_name = name if dialect is None else f"{name}.{dialect}"
    sources = " and ".join(each.source for each in claimants)
    working = " or ".join(f"{each}:model" for each in full_names(name, contributions))
    remedy = f"write {working}, or uninstall one of them" if working else "uninstall one of them"
    return PluginConflict(f"provider {full_name!r} is claimed by {sources}; {remedy}")


def full_names(name: str, contributions: Sequence[Contribution]) -> list[str]:
    """Return `name.dialect` for each dialect that exactly one contribution provides or owns."""
    dialects = dict.fromkeys(dialect for each in contributions for dialect in each.dialects)
    return [f"{name}.{dialect}" for dialect in dialects if len(owners(contributions, dialect)) == 1]


def choose_contribution(name: str, contributions: Sequence[Contribution], dialect: str | None) -> Contribution:
    """Return the contribution that `name` (dialect None) or `name.dialect` means.

    Raises PluginConflict if there are several. If there is none, raises ProviderMissing for dialect None, else
    DialectMissing.
    """
    if error := conflict_error(name, contributions, dialect):
        raise error
    for each in owners(contributions, dialect):
        return each
    dialects = full_names(name, contributions)
    if dialect is None:
        remedy = " or ".join(f"{each}:model" for each in dialects)
        raise ProviderMissing(f"provider {name!r} must be named with a dialect; write {remedy}")
    wanted = f"{name}.{dialect}" if dialect else name
    raise DialectMissing(f"{wanted!r} is not a dialect; {name} has {', '.join(dialects)}")
