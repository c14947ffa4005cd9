"""`sabir map`: one answer for each line, an estimate first, nothing sent over the cap, and runs that resume."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from sabir.authoring import JSONValue, RequestScope
from sabir_echo.dialect import PLAIN

from tests.cli.conftest import Command, Relay, command, relay

__all__ = ["command", "relay"]
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


def test_a_batch_is_submitted_and_collected_by_its_ticket(file: Path, tmp_path: Path, command: Command) -> None:
    flags = ("--prompt", "Say {text}", "--model", "echo:m", "--key", "id", "--yes")
    out, err = command("batch", "submit", str(file), *flags)
    ticket = out.strip()
    assert "2 prompts, about" in err

    assert command("batch", "status", ticket)[0] == "ended, 2 of 2 succeeded\n"
    assert command("batch", "cancel", ticket)[0] == "ended, 2 of 2 succeeded\n"
    expected = [{"key": "1", "answer": "Say Good morning"}, {"key": "2", "answer": "Say Snow"}]
    out, err = command("batch", "collect", ticket, "--wait")
    assert [json.loads(line) for line in out.splitlines()] == expected
    assert "2 answers, 0 errors" in err
    command("batch", "collect", ticket, "--output", str(tmp_path / "answers.jsonl"))
    assert (tmp_path / "answers.jsonl").read_text() == out


def _encode_with_facts(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return the request of `echo.plain`, without the setting if the model's facts say that the model rejects it."""
    request = PLAIN.encode_request(scope)
    return request if scope.supports("max_output_tokens", "settings.max_output_tokens") else {**request, "settings": {}}


@pytest.mark.parametrize("words", [("map",), ("batch", "submit")])
def test_the_commands_render_with_the_facts_of_the_settings_file(
    words: tuple[str, ...],
    file: Path,
    relay: Relay,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialect = replace(PLAIN, encode_request=_encode_with_facts)
    monkeypatch.setattr(relay, "dialect", lambda name: dialect)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("RELAY_API_KEY", "x")
    (tmp_path / "sabir").mkdir()
    (tmp_path / "sabir" / "config.toml").write_text('[model_facts."relay:m"]\nrejects = ["max_output_tokens"]\n')
    for model in ("relay:m", "relay:other"):
        command(*words, str(file), "--prompt", "{text}", "--model", model, "--max-output-tokens", "9", "--yes")

    sent = json.dumps(relay.requests)
    assert sent.count("Snow") == 2
    assert sent.count("max_output_tokens") == 2  # in the two requests of the other model


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("submit", "{file}"), "submit needs a prompt; pass --prompt"),
        (("submit", "{file}", "--prompt", "x", "--key", "name"), "line 1 has no field 'name' for --key"),
        (("submit", "{file}", "--prompt", "x", "--key", "same"), "line 2 repeats the key 'x'"),
        (("submit", "{file}", "--prompt", "x", "--model", "local:m", "--yes"), "has no operation 'batches.create'"),
        (("status", "batch_1"), "'batch_1' is not a ticket"),
    ],
)
def test_a_wrong_batch_command_is_refused(
    tmp_path: Path, command: Command, arguments: tuple[str, ...], error: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "same": "x"}\n{"id": 2, "same": "x"}\n')
    assert error in command.error("batch", *(each.format(file=path) for each in arguments), code=2)
