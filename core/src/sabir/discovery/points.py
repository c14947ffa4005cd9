"""Entry points of installed packages: enumerated without an import, loaded one by one.

    importlib.metadata ──claimed(group)──▶ name → entry points ──load_point──▶ the object that a plugin's author wrote

A broken plugin is reported by its name and stops no other. A plugin that the program did not name, but that is loaded
to be listed or to be told of calls, is loaded in a thread of its own, and left out if that takes too long.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from sabir.base.errors import PluginConflict, ProviderBroken
from sabir.options.threads import start_thread

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


class LoadsTooLong(ProviderBroken):
    """A plugin that does not finish loading."""


def load_point(point: EntryPoint, *, named: bool = True) -> Any:  # an entry point may name anything
    """What an entry point names; ProviderBroken says whose it is, and why it cannot be loaded.

    So it does of a plugin that nobody named where loading takes longer than LONGEST_LOAD.
    """
    if not named:
        return beside(lambda: load_point(point), point)
    with ProviderBroken.blaming(f"{_shown(point)} cannot be loaded", "reinstall or remove it"):
        return point.load()


def beside(loading: Callable[[], Loaded], point: EntryPoint) -> Loaded:
    """The result of `loading`, called in a thread of its own; raises LoadsTooLong after LONGEST_LOAD seconds."""
    loaded = start_thread(loading)
    try:
        return loaded.result(LONGEST_LOAD)
    except TimeoutError:
        if loaded.done():
            raise
    raise LoadsTooLong(f"{_shown(point)} is not loaded after {LONGEST_LOAD:g} s; update or remove it")


def _shown(point: EntryPoint) -> str:
    return f"{point.name!r} of {distribution(point)} ({point.value})"


def distribution(point: EntryPoint) -> str:
    """The package that declares an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"
