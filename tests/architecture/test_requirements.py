"""Every requirement of recording, resume, policies, runners, roles and actors is cited by a test that shows it."""

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.project import ROOT
from tests.rules import check_each

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
