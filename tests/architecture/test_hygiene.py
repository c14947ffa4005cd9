"""The tree holds what belongs to the project, names no machine, and cites every requirement in a test that shows it."""

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.project import ROOT, project_files, python_files, shown
from tests.rules import check_each

TOP_LEVEL = {
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "benchmarks",
    "cassettes",
    "core",
    "docs",
    "noxfile.py",
    "plugins",
    "pyproject.toml",
    "referee",
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


def test_no_package_hides_frames_of_a_traceback() -> None:
    """Only assertions that tests call, those of sabir_testing, may hide their own frame from pytest."""
    packaged = [path for path in python_files("core", "plugins") if "sabir_testing" not in path.parts]
    hiding = [shown(path) for path in packaged if "__tracebackhide__" in path.read_text("utf-8")]

    assert packaged and hiding == []


NUMBERED: Mapping[str, int] = {"CH": 49, "LA": 72, "RN": 32, "WI": 54}
"""Prefix of the ids → the last number."""
CITED = re.compile(rf"\b(?:{'|'.join(NUMBERED)})-\d\d\b")
IDS = [f"{prefix}-{number:02}" for prefix, last in NUMBERED.items() for number in range(1, last + 1)]


@functools.cache
def cited() -> set[str]:
    """The ids that docstrings and comments of tests name; this file names none of its own."""
    texts = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    return {found for text in texts for found in CITED.findall(text)}


def test_a_requirement_is_cited_by_a_test() -> None:
    """An id that no test names is shown by none."""

    def uncited(requirement: str) -> Iterator[str]:
        if requirement not in cited():
            yield f"{requirement}: no test cites it"

    check_each(IDS, uncited, "write the test that shows it, and name it in the docstring")


def test_no_test_cites_a_requirement_that_does_not_exist() -> None:
    """A misspelt id would leave the right one unshown."""
    assert sorted(cited() - set(IDS)) == []
