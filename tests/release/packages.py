"""The packages of a release: their folders, what they require of each other, and the order in which they are published.

    pyproject.toml of core and plugins/* ──▶ Package(name, folder, requires) ──▶ publishing_order()

A package is published after every package that it requires, those of its extras included.
"""

import re
from collections.abc import Sequence
from graphlib import TopologicalSorter
from pathlib import Path

from tests.architecture import project
from tests.architecture.project import ROOT

_NAME = re.compile(r"[\w-]+")


class Package(project.Package):
    """One distribution of the workspace, with what it requires of the others."""

    @property
    def requires(self) -> set[str]:
        """The names of the packages of this workspace that it always requires."""
        return _sabir_names(self.metadata["dependencies"])

    @property
    def extras_require(self) -> set[str]:
        """The names of the packages of this workspace that its extras require."""
        extras = self.metadata.get("optional-dependencies", {}).values()
        return _sabir_names([requirement for extra in extras for requirement in extra])


def load_packages(root: Path = ROOT) -> list[Package]:
    """Read the packages of a workspace: core first, then the plugins by the names of their folders."""
    files = [root / "core" / "pyproject.toml", *sorted(root.glob("plugins/*/pyproject.toml"))]
    return [Package(path.parent) for path in files]


def publishing_order(packages: Sequence[Package]) -> list[Package]:
    """Sort packages so that each comes after all that it requires."""
    by_name = {package.name: package for package in packages}
    graph = {package.name: sorted(package.requires | package.extras_require) for package in packages}
    return [by_name[name] for name in TopologicalSorter(graph).static_order()]


def closure(package: Package, packages: Sequence[Package]) -> list[Package]:
    """Return the package and all packages of the workspace that are installed with it, extras left out."""
    by_name = {each.name: each for each in packages}
    names, pending = {package.name}, [package.name]
    while pending:
        new = by_name[pending.pop()].requires - names
        names |= new
        pending += sorted(new)
    return [by_name[name] for name in sorted(names)]


def _sabir_names(requirements: Sequence[str]) -> set[str]:
    names = {match[0] for requirement in requirements if (match := _NAME.match(requirement))}
    return {name for name in names if name == "sabir" or name.startswith("sabir-")}
