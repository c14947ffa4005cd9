"""`sabir map`: one answer for each line, an estimate first, nothing sent over the cap, and runs that resume."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, command

__all__ = ["command"]
ROWS = [{"id": 1, "text": "Good morning"}, {"id": 2, "text": "Snow"}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text(LINES)
    return path


def test_each_line_gets_an_answer(file: Path, command: Command) -> None:
    out, err = command("map", str(file), "--prompt", "Say {text}", "--model", "echo:m", "--yes")
    assert [json.loads(line) for line in out.splitlines()] == [{**row, "answer": f"Say {row['text']}"} for row in ROWS]
    assert "2 prompts, about" in err
    assert "2 answers, 0 errors" in err


def test_a_second_run_reads_the_replies_of_the_first(file: Path, tmp_path: Path, command: Command) -> None:
    output, resume = tmp_path / "out.jsonl", tmp_path / "run.jsonl"
    flags = ("--prompt", "{text}", "--model", "echo:m", "--yes", "--resume", str(resume), "--output", str(output))
    command("map", str(file), *flags)
    stored = resume.read_text()
    command("map", *flags, given=LINES.encode())
    assert resume.read_text() == stored
    assert [json.loads(line)["answer"] for line in output.read_text().splitlines()] == ["Good morning", "Snow"]


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--prompt", "Say {word}", "--model", "echo:m"), "line 1 has no field 'word' for --prompt"),
        (("--prompt", "Say {text}", "--model", "echo:m"), "pass --yes"),
        (("--prompt", "Say {text}"), "pass --model provider:model, or set SABIR_MODEL"),
        (("--prompt", "{text}", "--model", "echo:m", "--cap", "1"), "--cap needs the model's prices"),
        (("--prompt", "{text}", "--model", "openai:gpt-5", "--cap", "0.00001"), "more than --cap 1e-05"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_sent(
    file: Path, command: Command, flags: tuple[str, ...], error: str
) -> None:
    assert error in command.error("map", str(file), *flags, code=2)


def test_a_line_that_is_no_object_is_named(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a"}\n[1]\n')
    assert "line 2 is not an object" in command.error("map", str(path), "--prompt", "x", "--model", "echo:m", code=2)
