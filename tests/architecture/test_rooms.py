"""Modules stand on each other in one direction, and packages beside core come in by its doors.

Doors: `sabir`, `sabir.errors`, `sabir.authoring`. A folder of core can be held in the head.
"""

import ast
import functools
import types
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import sabir
import sabir.authoring
import sabir.errors

from tests.architecture.project import CORE, PACKAGES, PLUGINS, ROOT, Package, nodes, python_files, shown
from tests.rules import check_each

MOST_IN_A_ROOM = 12
"""Modules in one folder of core, its `__init__` not among them."""


def name_of(path: Path, package: Package) -> str:
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


MOST = {sabir: 94, sabir.authoring: 160}
"""The most public names. StoredNames is one because three packages store types by name; count_values and
has_more_values because decoders, envelopes and MCP messages are limited alike; show_arguments because help() shows the
arguments of five packages' functions by one rule; create_private_file and replace_file because five packages write
files that others must not read or see half-written; the seven types of batches because four providers and sabir-calls
exchange them; PackageGrade because the kit writes grades and the command reads
them."""
KIT = {
    "Block", "FEATURES", "Identifiers", "NEVER_READ", "Pairing", "Renderer", "StreamState", "Waiting",
    "default_registry", "mend", "strict_kinds",
}  # fmt: skip
"""What the kit looks at behind the doors: it judges how core carries out what a dialect says."""
THIRD_PARTY = ROOT / "tests" / "third_party"


def entered(path: Path) -> Iterator[str]:
    """What a module takes from core that is behind the doors."""
    is_kit = "sabir_testing" in path.parts
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("sabir."):
            names = {alias.name for alias in node.names}
            if node.module not in ("sabir.errors", "sabir.authoring") and not (is_kit and names <= KIT):
                yield f"{shown(path)}:{node.lineno}: imports {', '.join(sorted(names))} from {node.module}"
        elif isinstance(node, ast.Import) and any(alias.name.count(".") > 1 for alias in node.names if is_core(alias)):
            yield f"{shown(path)}:{node.lineno}: imports a module of core"


def is_core(alias: ast.alias) -> bool:
    return alias.name.partition(".")[0] == "sabir"


def test_packages_import_from_the_doors_alone() -> None:
    """Plugins, the packages that `sabir new-plugin` writes, and one of a stranger."""
    packages = [path for path in python_files("plugins") if path.suffix == ".py"]
    strangers = [path for path in python_files("tests") if path.is_relative_to(THIRD_PARTY)]

    assert len(packages) > len(PLUGINS) and strangers
    check_each([*packages, *strangers], entered, "import it from sabir, sabir.errors or sabir.authoring")


@pytest.mark.parametrize("door", [sabir, sabir.errors, sabir.authoring], ids=lambda door: door.__name__)
def test_a_door_hands_out_classes_functions_types_and_constants(door: types.ModuleType) -> None:
    """No module, no private name; each name stands in one door alone, but for errors that programs catch often."""
    assert not [
        name for name in door.__all__ if name.startswith("_") or isinstance(getattr(door, name), types.ModuleType)
    ]
    assert len(door.__all__) == len(set(door.__all__)) <= MOST.get(door, len(door.__all__))


def test_no_name_stands_in_two_doors() -> None:
    """But for the errors that programs catch often, which `sabir` has too."""
    assert not set(sabir.authoring.__all__) & ({*sabir.__all__, *sabir.errors.__all__})
    assert all(
        issubclass(getattr(sabir, name), sabir.SabirError) for name in {*sabir.__all__} & {*sabir.errors.__all__}
    )
