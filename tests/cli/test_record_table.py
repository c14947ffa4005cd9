"""Rows of facts, as a table or as records, by the console's width."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from sabir_cli.record_table import RecordTable


def written(sheet: RecordTable, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(sheet)
    text = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO's
    return [line.rstrip() for line in text.splitlines()]


@pytest.fixture
def sheet() -> RecordTable:
    sheet = RecordTable("name", "state", "tokens", "refuses", plain={"state"}, right={"tokens"})
    sheet.add("alpha", Text("installed", style="green"), "128,000", "temperature top_p parallel_options")
    sheet.add("beta", "failed", "64", "")
    return sheet


def test_a_table_is_shown_where_it_fits(sheet: RecordTable) -> None:
    assert written(sheet, 48) == [
        "name   state       tokens  refuses",
        "alpha  installed  128,000  temperature top_p",
        "                           parallel_options",
        "beta   failed          64",
    ]


def test_a_record_is_shown_where_no_table_fits(sheet: RecordTable) -> None:
    """As many facts to a line as fit; a title leads those that need it; what is empty is left out."""
    assert written(sheet, 40) == [
        "alpha",
        "  installed · tokens 128,000",
        "  refuses temperature top_p",
        "    parallel_options",
        "beta",
        "  failed · tokens 64",
    ]


@pytest.mark.parametrize("width", [5, 9, 20, 40])
def test_no_line_is_wider_than_the_console_however_narrow_and_nothing_is_lost(sheet: RecordTable, width: int) -> None:
    """A word that fits in no line is folded."""
    sheet.add("名前" * 6, "x" * 50, "1", "y")
    lines = written(sheet, width)

    assert max(map(cell_len, lines)) <= width
    assert "x" * 50 in "".join("".join(lines).split())
