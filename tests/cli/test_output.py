"""Standard output holds the answer, standard error what there is to say about it."""

import io
import json

import pytest
from rich.console import Console
from sabir_cli.output import Output


def test_streamed_text_is_made_harmless_on_a_terminal_alone() -> None:
    """A pipe gets what the model said; a terminal must not be cleared by it."""
    output = Output()
    terminal, pipe = io.StringIO(), io.StringIO()
    output.out = Console(file=terminal, force_terminal=True)
    output.write("\x1b[2J")
    output.out = Console(file=pipe)
    output.write("\x1b[2J")

    assert (terminal.getvalue(), pipe.getvalue()) == ("␛[2J", "\x1b[2J")


def test_a_remark_never_continues_a_streamed_line(capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal both streams meet: the text's line is ended first, once."""
    output = Output()
    output.write("half a line")
    output.note("remark")
    output.note("another")

    assert capsys.readouterr() == ("half a line\n", "remark\nanother\n")


def test_with_json_only_the_document_and_errors_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    """`sabir … --json | jq` must never meet a stray line."""
    output = Output(machine=True)
    output.write("text")
    output.show("table")
    output.note("remark")
    output.document({"key": "ü"})
    output.error("gone")
    out, err = capsys.readouterr()

    assert json.loads(out) == {"key": "ü"}
    assert err == "sabir: gone\n"


def test_an_error_is_one_line_whatever_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """A server's error text may hold lines, and may be longer than the terminal is wide."""
    Output().error("first\nsecond " + "x" * 200)
    err = capsys.readouterr().err

    assert err.startswith("sabir: first second xxx")
    assert err.count("\n") == 1
