"""`sabir embed`: a line for each text, an estimate first, and nothing sent over the cap."""

import json
from array import array
from pathlib import Path

import pytest
from sabir_echo.embeddings import embed

from tests.cli.conftest import Command, command

__all__ = ["command"]
ECHO = ("--model", "echo:m", "--dimensions", "8")


def vectors(out: str) -> list[bytes]:
    return [array("f", json.loads(line)["embedding"]).tobytes() for line in out.splitlines()]


def test_texts_files_and_lines_are_embedded(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "note.txt"
    path.write_text("two\nlines")
    out, err = command("embed", "one", "--file", str(path), *ECHO)

    assert vectors(out) == [embed("one", 8), embed("two\nlines", 8)]
    assert [list(json.loads(line)) for line in out.splitlines()] == [["text", "embedding"], ["file", "embedding"]]
    assert "2 texts, 1 requests, about 4 tokens, cost unknown" in err
    assert "2 vectors of 8 numbers, 3 in, 0 out" in err

    out, _ = command("embed", *ECHO, given=b"one\n\nsnow\n")
    assert vectors(out) == [embed("one", 8), embed("snow", 8)]


def test_the_output_file_has_the_lines(tmp_path: Path, command: Command) -> None:
    output = tmp_path / "vectors.jsonl"
    out, _ = command("embed", "one", *ECHO, "--output", str(output))

    assert out == ""
    assert vectors(output.read_text()) == [embed("one", 8)]


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("one",), "pass --model provider:model, or set SABIR_EMBEDDING_MODEL"),
        (("one", *ECHO, "--cap", "1"), "--cap needs the model's prices"),
        (("word " * 99, "--model", "openai:text-embedding-3-small", "--cap", "0.0000001"), "more than --cap 1e-07"),
        (("--file", "missing.txt", *ECHO), "'missing.txt' cannot be read"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_sent(
    command: Command, flags: tuple[str, ...], error: str
) -> None:
    assert error in command.error("embed", *flags, code=2)


def test_a_loss_is_printed_and_strict_refuses_it(command: Command) -> None:
    flags = ("embed", "one", *ECHO, "--kind", "query")

    assert "dropped: kind: echo embeds queries and documents alike" in command(*flags)[1]
    assert "echo embeds queries and documents alike" in command.error(*flags, "--strict", code=1)
