"""The numbers of a release: one version, its ranges, the addresses of the repository, and the order of publishing."""

import shutil
from pathlib import Path

import pytest

from tests.architecture.project import ROOT
from tests.release.numbers import (
    compatible_range,
    metadata_files,
    set_repository,
    set_version,
    version_faults,
    workspace_version,
)
from tests.release.packages import load_packages, publishing_order
from tests.release.rehearsal import to_be_set


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A copy of the metadata and READMEs of all packages, at version 0.1.0."""
    for path in [ROOT / "pyproject.toml", *metadata_files()]:
        for file in (path, path.with_name("README.md")):
            if file.is_file():
                copy = tmp_path / file.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
    set_version("0.1.0", tmp_path)
    return tmp_path


def test_setting_a_version_changes_every_package_and_every_range(workspace: Path) -> None:
    """Nothing states the old version afterwards, and the packages still find each other's names."""
    changed = set_version("0.2.3", workspace)

    assert workspace_version(workspace) == "0.2.3"
    assert list(version_faults(workspace)) == []
    assert len(changed) > len(load_packages())
    texts = "".join(path.read_text("utf-8") for path in metadata_files(workspace))
    assert ">=0.2.3,<0.3" in texts and ">=0.1.0,<0.2" not in texts


def test_a_package_that_states_another_version_is_named(workspace: Path) -> None:
    """So is a requirement that does not follow the version."""
    echo = workspace / "plugins" / "echo" / "pyproject.toml"
    echo.write_text(echo.read_text("utf-8").replace("0.1.0", "0.1.1"), "utf-8")

    assert list(version_faults(workspace)) == [
        "sabir-echo has version 0.1.1, the workspace has 0.1.0",
        "plugins/echo/pyproject.toml requires sabir>=0.1.1,<0.2, not >=0.1.0,<0.2",
    ]


@pytest.mark.parametrize(("version", "expected"), [("0.1.0", ">=0.1.0,<0.2"), ("1.4.2", ">=1.4.2,<2.0")])
def test_a_range_ends_where_public_names_may_change(version: str, expected: str) -> None:
    """Before 1.0 at the next minor version, then at the next major one."""
    assert compatible_range(version) == expected


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", "1.0.0rc1", ""])
def test_a_version_is_three_numbers(version: str, workspace: Path) -> None:
    """Anything else is refused before a file is written."""
    with pytest.raises(ValueError, match="write three numbers"):
        set_version(version, workspace)
    assert workspace_version(workspace) == workspace_version()


def test_setting_the_repository_leaves_no_relative_link(workspace: Path) -> None:
    """A package index cannot follow relative links; setting the same address again changes nothing."""
    assert len(list(to_be_set(load_packages(workspace)))) == 2

    set_repository("https://code.example/owner/sabir", workspace)

    assert list(to_be_set(load_packages(workspace))) == []
    assert set_repository("https://code.example/owner/sabir/", workspace) == []
    with pytest.raises(ValueError, match="write https://HOST/OWNER/NAME"):
        set_repository("code.example", workspace)


def test_a_package_is_published_after_all_that_it_requires() -> None:
    """Extras count too: whoever installs one right after the upload must get it."""
    order = publishing_order(load_packages())
    names = [package.name for package in order]

    assert sorted(names) == sorted(package.name for package in load_packages())
    assert names[0] == "sabir"
    for package in order:
        earlier = names[: names.index(package.name)]
        assert (package.requires | package.extras_require) - {package.name} <= {*earlier}
