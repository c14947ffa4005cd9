"""Every example passes the type checkers that its reader runs, without a plugin of theirs."""

from pathlib import Path

import pytest

from tests.docs.pages import pages
from tests.docs.typed import OPENS, program_name, write_program
from tests.typing.checkers import mypy, pyright

PAGES = [page for page in pages() if page.examples]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every page's program, each in a file of its own."""
    folder = tmp_path_factory.mktemp("programs")
    for page in PAGES:
        write_program(page, folder)
    return folder


def test_a_program_holds_every_line_of_its_page_at_its_place(programs: Path) -> None:
    """What a checker says names the page's own lines, and no block is left out."""
    for page in PAGES:
        lines = (programs / program_name(page)).read_text("utf-8").splitlines()
        indent = "    " if lines[0] == OPENS else ""
        for block in page.examples:
            for at, line in enumerate(block.code.splitlines() if not block.is_output else (), start=block.line - 1):
                assert lines[at] == (indent + line if line else line)


def test_mypy_accepts_every_example(programs: Path) -> None:
    """Strict, in one run."""
    assert mypy(programs) == []


def test_pyright_accepts_every_example(programs: Path) -> None:
    """As it is set unless a reader sets it."""
    assert pyright(programs, "standard") == []
