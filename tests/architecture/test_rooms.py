"""Modules stand on each other in one direction, and a folder of core can be held in the head."""

import ast
import functools
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.architecture.project import CORE, PACKAGES, Package, nodes, shown
from tests.rules import check_each

MOST_IN_A_ROOM = 12
"""Modules in one folder of core, its `__init__` not among them."""


def name_of(path: Path, package: Package) -> str:
    """The name by which a module is imported."""
    parts = path.relative_to(package.source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def modules_of(package: Package) -> dict[str, Path]:
    """The modules of a package that say something, by name: doors that only hand names on may know all of it."""
    return {name_of(path, package): path for path in package.modules() if path.stem != "__init__"}


def needed_by(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of its package that a module imports, for its types alone and within functions too."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} & known.keys()
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & known.keys()


def circles(package: Package) -> Iterator[str]:
    """One circle of modules, where a package has any."""
    known = modules_of(package)
    try:
        TopologicalSorter({name: set(needed_by(path, known)) for name, path in known.items()}).prepare()
    except CycleError as error:
        yield f"{shown(package.source)}: {' ─▶ '.join(error.args[1])}"


def test_no_modules_need_each_other() -> None:
    """Each can be read with those below it alone; type-only imports and those within functions count."""
    check_each(PACKAGES, circles, "move what both need below, or let one of them be given what it needs")


def crowded(room: Path) -> Iterator[str]:
    """The room, where too many modules stand in it."""
    modules = [path for path in room.glob("*.py") if path.stem != "__init__"]
    if len(modules) > MOST_IN_A_ROOM:
        yield f"{shown(room)}: holds {len(modules)} modules, more than {MOST_IN_A_ROOM}"


def test_a_room_of_core_is_seen_at_one_glance() -> None:
    """At most twelve modules in one folder."""
    check_each(sorted({path.parent for path in CORE.modules()}), crowded, "divide the room, or merge modules")
