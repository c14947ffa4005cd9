"""Entry points: what installed packages offer, enumerated without an import, loaded one by one.

    importlib.metadata ──claimed(group)──▶ name → entry points ──load_point──▶ what the plugin's author wrote

A broken plugin is reported by its name and stops no other. What is loaded although nobody named it, to list it or to
tell it of calls, is loaded in a thread of its own, and passed over where that does not end.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from sabir.base.errors import PluginConflict, ProviderBroken
from sabir.options.threads import start_thread

PROVIDERS, HOOKS, COMMANDS, HINTS = "sabir.providers", "sabir.hooks", "sabir.commands", "sabir.hints"
LONGEST_LOAD = 10.0
"""Seconds that a plugin may take to load beside others."""

Claims: TypeAlias = Mapping[str, tuple[EntryPoint, ...]]
"""A name → the entry points that claim it."""
Loaded = TypeVar("Loaded")


def claimed(group: str) -> Claims:
    """What the packages that are installed now offer in a group; nothing is loaded."""
    points = sorted(entry_points(group=group), key=lambda point: (point.name, distribution(point)))
    by_name = groupby(dict.fromkeys(points), lambda point: point.name)
    return {name: tuple(claims) for name, claims in by_name}


def only(claims: tuple[EntryPoint, ...]) -> EntryPoint:
    """The one entry point of a name; PluginConflict where several packages claim it."""
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
    """What loading gives, in a thread of its own; LoadsTooLong after LONGEST_LOAD seconds."""
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
    """The package that an entry point is of, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"
