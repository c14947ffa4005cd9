"""The tree holds what belongs to the project, and names nothing of the machines it is made on."""

import re

from tests.architecture.project import ROOT, project_files, shown

TOP_LEVEL = {
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "cassettes",
    "core",
    "docs",
    "noxfile.py",
    "plugins",
    "pyproject.toml",
    "tests",
}
LOCKS = {"Pipfile.lock", "package-lock.json", "pdm.lock", "poetry.lock", "pylock.toml", "uv.lock"}

# The patterns are put together here so that this file does not hold what it forbids.
MACHINE_FOLDERS = "|".join(["/" + name + "/" for name in ("farm", "root", "work")])
HOME_FOLDERS = "|".join(["/" + name + r"/\w+" for name in ("home", "Users")])
INDEX_HOSTS = "|".join(
    [name.replace(" ", r"\.") for name in ("pypi org", "pythonhosted org", "registry npmjs org", "deb debian org")]
)
FORBIDDEN = {
    "a path of one machine": re.compile(rf"{MACHINE_FOLDERS}|{HOME_FOLDERS}"),
    "the host of a package index": re.compile(INDEX_HOSTS),
}


def test_the_top_level_holds_exactly_what_the_design_says() -> None:
    """CD-01, with README, ARCHITECTURE.md, CHANGELOG, LICENSE and dot files."""
    names = {path.relative_to(ROOT).parts[0] for path in project_files()}

    assert {name for name in names if not name.startswith(".")} == TOP_LEVEL


def test_no_lock_file_is_kept() -> None:
    """A lock file names the hosts that one machine resolved from; the version ranges are the promise."""
    assert [shown(path) for path in project_files() if path.name in LOCKS] == []


def test_no_file_names_a_machine_or_a_package_index() -> None:
    """What is only true of one machine misleads on every other."""
    found = [
        f"{shown(path)}:{number}: {what}"
        for path in project_files()
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").split("\n"), 1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]

    assert found == []
