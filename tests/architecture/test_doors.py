"""Packages beside core come in by its doors: `sabir`, `sabir.errors`, `sabir.authoring`."""

import ast
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir
import sabir.authoring
import sabir.errors

from tests.architecture.project import PLUGINS, ROOT, nodes, python_files, shown
from tests.rules import check_each

MOST = {sabir: 85, sabir.authoring: 110}
"""So many names a door may have."""
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
    """Whether a name is core's."""
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
