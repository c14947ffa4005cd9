"""CD-02: core and every plugin are distributions of their own, with all that it owes its users."""

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from itertools import chain

from sabir_cli import packages

from tests.architecture.project import CORE, PACKAGES, PLUGINS, PROVIDERS, ROOT, Package, nodes, read_toml, shown
from tests.architecture.test_imports import CORE_MAY_LOAD, imported_names
from tests.isolation.check import EXPECTED
from tests.release.numbers import version_faults
from tests.rules import check_each


def test_every_folder_of_plugins_is_a_package() -> None:
    """A folder under plugins/ without metadata would be in no wheel and in no check."""
    folders = [path.name for path in sorted((ROOT / "plugins").iterdir()) if path.is_dir()]

    assert [str(package) for package in PLUGINS] == folders


def metadata_of(package: Package) -> str:
    """The file of a package's metadata, as a failing test names it."""
    return shown(package.folder / "pyproject.toml")


def wrong_files(package: Package) -> Iterator[str]:
    """Files that a package lacks or has with another content."""
    for path in (package.source / "__init__.py", package.source / "py.typed"):
        if not path.is_file():
            yield f"{shown(path)}: is missing"
    readme, licence = package.folder / "README.md", package.folder / "LICENSE"
    if not readme.read_text("utf-8").startswith(f"# {package.name}\n"):
        yield f"{shown(readme)}:1: does not begin with '# {package.name}'"
    if licence.read_bytes() != (ROOT / "LICENSE").read_bytes():
        yield f"{shown(licence)}: is not the project's licence"


def test_a_package_has_its_modules_its_readme_its_licence_and_its_type_marker() -> None:
    """py.typed makes its annotations count for users' type checkers; the licence goes with each wheel."""
    check_each(PACKAGES, wrong_files, "write it as the other packages have it")


OWN_CLASSIFIERS = {"sabir-testing": ("Framework :: Pytest",)}
"""Classifiers that one package has and core has not."""


def described_otherwise(package: Package) -> Iterator[str]:
    """Keys of a package's metadata that say something else than those of all packages."""
    metadata = package.metadata
    alike = {"readme": "README.md", "license": "Apache-2.0", "license-files": ["LICENSE"], "requires-python": ">=3.11"}
    for key, value in alike.items():
        if metadata.get(key) != value:
            yield f"{metadata_of(package)}: {key} is {metadata.get(key)!r}, not {value!r}"
    if not metadata["description"].endswith("."):
        yield f"{metadata_of(package)}: its description does not end with a full stop"
    classifiers = [row for row in metadata["classifiers"] if row not in OWN_CLASSIFIERS.get(package.name, ())]
    if classifiers != CORE.metadata["classifiers"]:
        yield f"{metadata_of(package)}: its classifiers are not those of core"


def test_a_package_describes_itself() -> None:
    """Name, summary, licence and Python versions are said by every package alike."""
    check_each(PACKAGES, described_otherwise, "say what the other packages say")


def wrong_version(package: Package) -> Iterator[str]:
    """Name a version that is dynamic, or not the installed one."""
    if "dynamic" in package.metadata:
        yield f"{metadata_of(package)}: has dynamic metadata"
    version = package.metadata["version"]
    if (installed := importlib.metadata.version(package.name)) != version:
        yield f"{metadata_of(package)}: says version {version}, installed is {installed}"


def test_a_package_states_the_version_that_is_installed() -> None:
    """An environment of an older version would test something else."""
    check_each(PACKAGES, wrong_version, "run uv sync --all-groups")


def test_all_packages_state_the_version_of_the_workspace() -> None:
    """They are released together: pyproject.toml has the version, and `nox -s release -- --version` writes it."""
    assert list(version_faults()) == []


def test_core_requires_pydantic_and_pluggy_and_nothing_else() -> None:
    """CD-02: what core requires, every user has to take."""
    names = [re.split(r"[^\w-]", requirement, maxsplit=1)[0] for requirement in CORE.metadata["dependencies"]]

    assert sorted(names) == ["pluggy", "pydantic"]
    assert "optional-dependencies" not in CORE.metadata


def test_a_package_requires_whatever_it_imports() -> None:
    """What only another library brings may be gone with that library's next version; core's own come with core."""
    of_module = importlib.metadata.packages_distributions()

    def unrequired(package: Package) -> Iterator[str]:
        metadata = package.metadata
        declared = [*metadata["dependencies"], *chain(*metadata.get("optional-dependencies", {}).values())]
        required = {_plain(re.split(r"[^\w.-]", each, maxsplit=1)[0]) for each in declared}
        for place, name in imports_of(package):
            if not {_plain(name), *map(_plain, of_module.get(name, ()))} & required:
                yield f"{place}: imports {name}, which {metadata_of(package)} does not require"

    check_each(PACKAGES, unrequired, "add it to the dependencies there")


def imports_of(package: Package) -> Iterator[tuple[str, str]]:
    """File and line, and the module of another package that is imported there; core and what it brings left out."""
    granted = {package.module, *CORE_MAY_LOAD, *sys.stdlib_module_names}
    for path in package.modules():
        if {"template", "compatible_template"} & set(path.relative_to(package.source).parts):
            continue
        for node in nodes(path):
            for name in imported_names(node) - granted:
                yield f"{shown(path)}:{getattr(node, 'lineno', 0)}", name


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def unbound_core(package: Package) -> Iterator[str]:
    """Requirements of core that are not one pair of bounds."""
    core = [requirement for requirement in package.metadata["dependencies"] if requirement.startswith("sabir>")]
    if len(core) != 1 or not re.fullmatch(r"sabir>=\d+\.\d+\.\d+,<\d+\.\d+", core[0]):
        yield f"{metadata_of(package)}: requires {core or 'no version'} of core"


def test_a_plugin_requires_core_between_two_versions() -> None:
    """A plugin written against one minor version says so: a later core may have moved on."""
    check_each(PLUGINS, unbound_core, "write it once, as sabir>=1.2.3,<1.3")


def strange_entry_points(package: Package) -> Iterator[str]:
    """Entry points that name another module or another provider's object."""
    targets = list(package.providers.values())
    for name, target in package.providers.items():
        if not target.startswith(f"{package.module}.plugin:"):
            yield f"{metadata_of(package)}: the provider {name} is {target}, outside {package.module}.plugin"
        if targets.count(target) > 1:
            yield f"{metadata_of(package)}: the provider {name} is {target}, as another one is"


def test_a_provider_is_an_object_of_its_own_package() -> None:
    """CD-04: entry points name `plugin` modules, gateways included, and each name its own object."""
    check_each(PROVIDERS, strange_entry_points, "give it an object of its own in plugin.py")


def test_the_command_knows_which_package_brings_each_provider() -> None:
    """The hint for a provider that is not installed names a package that has it; of several, the one it means."""
    hints_of_all = importlib.metadata.entry_points(group="sabir.hints")
    points = [point for point in hints_of_all if point.module == packages.__name__]
    hints = {point.name: f"sabir-{point.attr.lower()}" for point in points}

    by_meaning = sorted(PROVIDERS, key=lambda package: package.name == "sabir-openai")  # its rows keep their names
    owners = {name: package.name for package in by_meaning for name in package.providers}
    assert hints == owners
    assert {point.load() for point in points} == {""}  # all are installed here
    assert packages.hint("sabir-zenith") == "install the package sabir-zenith: pip install sabir-zenith"


def test_no_name_of_a_hint_is_a_providers_but_the_commands() -> None:
    """A plugin's hints are for names that users take for a provider, and for those that mean none by themselves."""
    hints = [name for package in PROVIDERS for name in package.metadata["entry-points"].get("sabir.hints", {})]
    named = {name for package in PROVIDERS for name in package.providers} & {*hints}

    assert {"claude", "gemini", "vertex"} == {*hints}
    points = [point for name in named for point in importlib.metadata.entry_points(group="sabir.providers", name=name)]
    assert all(point.load().adds_dialects for point in points)


def test_the_workspace_lists_every_package_wherever_it_lists_packages() -> None:
    """A package that one of these lists forgot would be unchecked or missing after `uv run`."""
    workspace = read_toml(ROOT / "pyproject.toml")
    tools = workspace["tool"]
    grouped = [each.partition("[")[0] for each in workspace["dependency-groups"]["packages"]]  # without their extras
    from_workspace = [name for name, source in tools["uv"]["sources"].items() if source == {"workspace": True}]

    def unlisted(package: Package) -> Iterator[str]:
        for table, listed, entry in (
            ("dependency-groups.packages", grouped, package.name),
            ("tool.uv.sources", from_workspace, package.name),
            ("tool.mypy.mypy_path", tools["mypy"]["mypy_path"], shown(package.source.parent)),
            ("tool.importlinter.root_packages", tools["importlinter"]["root_packages"], package.module),
        ):
            if entry not in listed:
                yield f"pyproject.toml: {table} lacks {entry}"

    check_each(PACKAGES, unlisted, "list it there")


def test_the_import_contracts_bind_every_plugin() -> None:
    """Core may import no plugin, and every plugin has its layer above core."""
    contracts = {row["id"]: row for row in read_toml(ROOT / "pyproject.toml")["tool"]["importlinter"]["contracts"]}
    bound = {
        "core-is-alone": contracts["core-is-alone"]["forbidden_modules"],
        "arrows-point-at-core": re.findall(r"\w+", " ".join(contracts["arrows-point-at-core"]["layers"])),
    }

    def unbound(package: Package) -> Iterator[str]:
        for contract, modules in bound.items():
            if package.module not in modules:
                yield f"pyproject.toml: the contract {contract} lacks {package.module}"

    check_each(PLUGINS, unbound, "name it there")


def test_every_package_is_tried_alone() -> None:
    """CD-12: the isolated sessions know what each package may bring."""

    def untried(package: Package) -> Iterator[str]:
        if str(package) not in EXPECTED:
            yield f"tests/isolation/check.py: EXPECTED lacks {package}"

    check_each(PACKAGES, untried, "say there what it brings")
