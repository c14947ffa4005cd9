"""CD-02: core and every plugin are distributions of their own, with all that it owes its users."""

import ast
import importlib.metadata
import re
import sys
from itertools import chain

import pytest

from tests.architecture.project import CORE, PACKAGES, PLUGINS, PROVIDERS, ROOT, Package, read_toml, syntax_tree
from tests.architecture.test_imports import CORE_MAY_LOAD, imported_names
from tests.isolation.check import EXPECTED

each_package = pytest.mark.parametrize("package", PACKAGES, ids=str)
each_plugin = pytest.mark.parametrize("package", PLUGINS, ids=str)
each_provider = pytest.mark.parametrize("package", PROVIDERS, ids=str)


def test_every_folder_of_plugins_is_a_package() -> None:
    """A folder under plugins/ without metadata would be in no wheel and in no check."""
    folders = [path.name for path in sorted((ROOT / "plugins").iterdir()) if path.is_dir()]

    assert [str(package) for package in PLUGINS] == folders


@each_package
def test_a_package_has_its_modules_its_readme_its_licence_and_its_type_marker(package: Package) -> None:
    """py.typed makes its annotations count for users' type checkers; the licence goes with each wheel."""
    assert (package.source / "__init__.py").is_file()
    assert (package.source / "py.typed").is_file()
    assert (package.folder / "README.md").read_text("utf-8").startswith(f"# {package.name}\n")
    assert (package.folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@each_package
def test_a_package_describes_itself(package: Package) -> None:
    """Name, summary, licence and Python versions are said by every package alike."""
    metadata = package.metadata

    assert metadata["description"].endswith(".")
    assert metadata["readme"] == "README.md"
    assert metadata["license"] == "Apache-2.0"
    assert metadata["license-files"] == ["LICENSE"]
    assert metadata["requires-python"] == ">=3.11"
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.11"} <= set(metadata["classifiers"])


@each_package
def test_a_package_has_a_version_of_its_own_and_it_is_the_installed_one(package: Package) -> None:
    """Each package is released by itself: its version stands in its own metadata, not in a shared place."""
    assert "dynamic" not in package.metadata
    assert re.fullmatch(r"\d+\.\d+\.\d+", package.metadata["version"])
    assert importlib.metadata.version(package.name) == package.metadata["version"]


def test_core_requires_pydantic_and_pluggy_and_nothing_else() -> None:
    """CD-02: what core requires, every user has to take."""
    names = [re.split(r"[^\w-]", requirement, maxsplit=1)[0] for requirement in CORE.metadata["dependencies"]]

    assert sorted(names) == ["pluggy", "pydantic"]
    assert "optional-dependencies" not in CORE.metadata


@each_package
def test_a_package_requires_whatever_it_imports(package: Package) -> None:
    """What only another library brings may be gone with that library's next version; core's own come with core."""
    metadata = package.metadata
    declared = [*metadata["dependencies"], *chain(*metadata.get("optional-dependencies", {}).values())]
    required = {_plain(re.split(r"[^\w.-]", each, maxsplit=1)[0]) for each in declared}
    of_module = importlib.metadata.packages_distributions()
    imported = {
        name
        for path in package.modules()
        if not {"template", "compatible_template"} & set(path.relative_to(package.source).parts)
        for node in ast.walk(syntax_tree(path))
        for name in imported_names(node)
    } - {package.module, *CORE_MAY_LOAD, *sys.stdlib_module_names}
    brings = {name: {_plain(name), *map(_plain, of_module.get(name, ()))} for name in imported}

    assert sorted(name for name, names in brings.items() if not names & required) == []


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


@each_plugin
def test_a_plugin_requires_core_between_two_versions(package: Package) -> None:
    """A plugin written against one minor version says so: a later core may have moved on."""
    core = [requirement for requirement in package.metadata["dependencies"] if requirement.startswith("sabir>")]

    assert len(core) == 1
    assert re.fullmatch(r"sabir>=\d+\.\d+\.\d+,<\d+\.\d+", core[0])


@each_provider
def test_a_provider_is_an_object_of_its_own_package(package: Package) -> None:
    """CD-04: entry points name `plugin` modules, gateways included, and each name its own object."""
    targets = list(package.providers.values())

    assert all(target.startswith(f"{package.module}.plugin:") for target in targets)
    assert len(set(targets)) == len(targets)


def test_the_command_knows_which_package_brings_each_provider() -> None:
    """What it tells of a provider that is not installed names a package that exists, and has that provider."""
    cli = next(package for package in PLUGINS if package.name == "sabir-cli")
    hints = importlib.metadata.entry_points(group="sabir.hints")
    told = {point.name: point.load() for point in hints if point.dist and point.dist.name == cli.name}

    expected = {name: package.name for package in PROVIDERS for name in package.providers}
    assert told == {name: f"it comes with {package}: pip install {package}" for name, package in expected.items()}


def test_no_name_of_a_hint_is_a_providers_but_the_commands() -> None:
    """A plugin's hints are for names that no provider has: those that users take for one."""
    hints = [name for package in PROVIDERS for name in package.metadata["entry-points"].get("sabir.hints", {})]

    assert {"azure", "bedrock", "claude", "gemini", "vertex"} == {*hints}
    assert not {*hints} & {name for package in PROVIDERS for name in package.providers}


@each_package
def test_the_workspace_lists_every_package_wherever_it_lists_packages(package: Package) -> None:
    """A package that one of these lists forgot would be unchecked or missing after `uv run`."""
    workspace = read_toml(ROOT / "pyproject.toml")
    tools = workspace["tool"]

    assert package.name in workspace["dependency-groups"]["packages"]
    assert tools["uv"]["sources"][package.name] == {"workspace": True}
    assert package.source.parent.relative_to(ROOT).as_posix() in tools["mypy"]["mypy_path"]
    assert package.module in tools["importlinter"]["root_packages"]


@each_plugin
def test_the_import_contracts_bind_every_plugin(package: Package) -> None:
    """Core may import no plugin, and every plugin has its layer above core."""
    contracts = {row["id"]: row for row in read_toml(ROOT / "pyproject.toml")["tool"]["importlinter"]["contracts"]}
    layered = re.findall(r"\w+", " ".join(contracts["arrows-point-at-core"]["layers"]))

    assert package.module in contracts["core-is-alone"]["forbidden_modules"]
    assert package.module in layered


@each_package
def test_every_package_is_tried_alone(package: Package) -> None:
    """CD-12: the isolated sessions know what each package may bring."""
    assert str(package) in EXPECTED
