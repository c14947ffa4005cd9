"""`sabir import`: conversations that other programs stored, as the command reads and writes them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir.authoring import Dialect
from sabir_echo.dialect import PLAIN
from sabir_echo.plugin import Echo

from tests.cli.command import error_line, run, run_here
from tests.cli.conftest import Command

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "Current weather in a city.", "parameters": SCHEMA}
CALL = {"name": "weather", "arguments": '{"city": "Zürich"}'}
STORED: dict[str, dict[str, Any]] = {
    "openai.chat": {
        "model": "gpt-4.1",
        "temperature": 0.2,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Umbrella today?"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": CALL}]},
            {"role": "tool", "tool_call_id": "c1", "content": "18 °C, rain"},
        ],
        "tools": [{"type": "function", "function": WEATHER}],
    },
    "openai.responses": {
        "model": "gpt-4.1",
        "temperature": 0.2,
        "input": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Umbrella today?"},
            {"type": "function_call", "call_id": "c1", **CALL},
            {"type": "function_call_output", "call_id": "c1", "output": "18 °C, rain"},
        ],
        "tools": [{"type": "function", **WEATHER}],
    },
}
"""One conversation, as two wires write it down."""
FIELDS = {"openai.chat": "messages", "openai.responses": "input"}
KINDS = ["parts", "parts", "option_call", "option_result"]
NAMED = {"messages": [{"role": "user", "content": "Umbrella?", "name": "Ada"}]}
"""A request of openai.chat of which something is lost: no message has a place for the name."""

CHAT = ["--from", "openai.chat"]
REQUEST = ["openai.chat.json", *CHAT]
"""What most of these tests import."""

every_dialect = pytest.mark.parametrize("dialect", STORED)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a request of each dialect in it, one that loses something, and files of several."""
    monkeypatch.chdir(tmp_path)
    for dialect, body in STORED.items():
        write(tmp_path / f"{dialect}.json", body)
    write(tmp_path / "named.json", NAMED)
    broken = {"messages": [{"role": "narrator", "content": "Meanwhile"}]}
    several = {"three": [NAMED] * 3, "ten": [NAMED] * 10, "broken": [NAMED, broken], "lacking": [{"model": "m"}, NAMED]}
    for name, requests in several.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, requests)), "utf-8")
    (tmp_path / "new").mkdir()
    return tmp_path


def write(path: Path, body: object) -> None:
    path.write_text(json.dumps(body, ensure_ascii=False), "utf-8")


def contents(messages: Iterable[sabir.Message]) -> list[object]:
    """What messages say; the ids of two readings differ."""
    return [(message.policy, message.payload) for message in messages]


def kinds(messages: Iterable[sabir.Message]) -> list[str]:
    return [message.kind for message in messages]


@every_dialect
def test_a_request_becomes_a_history_on_standard_output(dialect: str) -> None:
    """What it held is one line on standard error."""
    finished = run_here("import", f"{dialect}.json", "--from", dialect)
    found = sabir.loads(finished.stdout)

    assert finished.returncode == 0
    assert contents(found) == contents(sabir.dialect(dialect).decode_history(STORED[dialect]).messages)
    assert kinds(found) == KINDS
    assert finished.stderr.decode().splitlines() == [
        "read   4 messages, 1 option, model gpt-4.1; 0 losses",
        "only messages are written; --json prints options and settings too",
    ]


@every_dialect
def test_json_gives_all_of_it_and_render_takes_all_of_it(dialect: str, command: Command) -> None:
    out, err = command("import", f"{dialect}.json", "--from", dialect, "--json")
    whole = sabir.DecodedHistory.model_validate_json(out)
    expected = sabir.dialect(dialect).decode_history(STORED[dialect])
    Path("whole.json").write_text(out, "utf-8")
    (view,) = json.loads(command("render", "whole.json", "-m", f"{dialect}:gpt-4.1", "--json", "--strict")[0])
    again = sabir.dialect(dialect).decode_history(json.dumps(view["body"]))

    assert err == ""
    assert (whole.options, whole.settings, whole.model) == (expected.options, expected.settings, "gpt-4.1")
    assert contents(whole.messages) == contents(expected.messages) == contents(again.messages)
    assert view["body"]["temperature"] == 0.2
    assert [option.name for option in again.options] == ["weather"]


def test_an_option_given_to_render_takes_the_place_of_the_imported_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """The imported one has no function; two of one name would be refused."""
    (folder / "my_imported_options.py").write_text("def weather(town: str) -> str:\n    return town\n", "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_imported_options", raising=False)
    (folder / "whole.json").write_text(command("import", *REQUEST, "--json")[0], "utf-8")
    chosen = ["--option", "my_imported_options:weather"]
    out, _ = command("render", "whole.json", "-m", "openai.chat:gpt-4.1", "--json", *chosen)

    (tool,) = json.loads(out)[0]["body"]["tools"]
    assert list(tool["function"]["parameters"]["properties"]) == ["town"]


def test_output_names_the_file_of_the_history(folder: Path) -> None:
    """`sabir chat --from` goes on with it; standard output stays empty."""
    finished = run_here("import", *REQUEST, "-o", "talk.jsonl")

    assert (finished.returncode, finished.stdout) == (0, b"")
    assert b"wrote  talk.jsonl\n" in finished.stderr
    assert kinds(sabir.load(folder / "talk.jsonl")) == KINDS
    assert len((folder / "talk.jsonl").read_text("utf-8").splitlines()) == len(KINDS)
    assert run_here("chat", "-m", "echo:any", "--from", "talk.jsonl", "Hello").stdout == b"Hello\n"


def test_json_and_output_together_give_both(folder: Path, command: Command) -> None:
    out, err = command("import", *REQUEST, "--json", "-o", "talk.json")

    assert (json.loads(out)["model"], err) == ("gpt-4.1", "")
    assert kinds(sabir.load(folder / "talk.json")) == KINDS


def test_a_file_that_is_there_is_replaced_only_by_force(folder: Path, command: Command) -> None:
    (folder / "talk.json").write_text("mine", "utf-8")

    said = command.error("import", *REQUEST, "-o", "talk.json")
    assert said == "--output 'talk.json' exists already; choose another file, or add --force"
    assert (folder / "talk.json").read_text("utf-8") == "mine"
    command("import", *REQUEST, "-o", "talk.json", "--force")
    assert kinds(sabir.load(folder / "talk.json")) == KINDS


def test_an_input_that_is_piped_from_a_file_is_not_replaced_either(folder: Path) -> None:
    """The shell opened it; it is the same file."""
    path = folder / "openai.chat.json"
    before = path.read_bytes()
    program = "import sys; from sabir_cli.main import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["import", "-", "--from", "openai.chat", "-o", path.name, "--force"]
    with path.open("rb") as file:
        finished = subprocess.run(
            [sys.executable, "-c", program, *arguments], stdin=file, capture_output=True, check=False
        )

    assert finished.returncode == 2
    assert "is the input file" in error_line(finished)
    assert path.read_bytes() == before


REFUSED: dict[str, tuple[list[str], str]] = {
    "a device": ([*REQUEST, "--force", "-o", "pipe"], "--output 'pipe' is not a file; choose a file"),
    "the input": ([*REQUEST, "--force", "-o", REQUEST[0]], f"--output '{REQUEST[0]}' is the input file; choose"),
    "a link to it": ([*REQUEST, "--force", "-o", "link.json"], "--output 'link.json' is the input file; choose"),
    "no input": (["missing.json", *CHAT], "'missing.json' cannot be read: "),
    "a folder": ([".", *CHAT], "'.' cannot be read: "),
    "several": (["three.jsonl", *CHAT], "contains 3 requests; write each to a file with --output FOLDER"),
    "several in a file": (["three.jsonl", *CHAT, "-o", "talk.json"], "contains 3 requests; write each to a file"),
    "several as JSON": (["three.jsonl", *CHAT, "--json"], "contains 3 requests, and --json prints one; use"),
    "and in a folder": (["three.jsonl", *CHAT, "--json", "-o", "."], "contains 3 requests, and --json prints"),
    "one is broken": (["broken.jsonl", *CHAT, "-o", "new"], "'broken.jsonl': line 2: this is not a request of"),
    "one lacks messages": (["lacking.jsonl", *CHAT, "-o", "."], "'lacking.jsonl': line 1: this is not a request of "
        "openai.chat: messages is missing; expected an array"),
    "chat as responses": (["openai.chat.json", "--from", "openai.responses"],
        "'openai.chat.json': this is not a request of openai.responses: input is missing; expected an array"),
    "responses as chat": (["openai.responses.json", *CHAT],
        "'openai.responses.json': this is not a request of openai.chat: messages is missing; expected an array"),
    "of no dialect": (["strange.json"], "'strange.json': no installed dialect ("),
}  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes in folders are POSIX's")
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_imported_is_one_line_and_changes_no_file(case: str, folder: Path, command: Command) -> None:
    os.mkfifo(folder / "pipe")
    os.link(folder / "openai.chat.json", folder / "link.json")
    write(folder / "strange.json", {"prompts": ["Hello"]})
    before = dict(files(folder))
    arguments, complaint = REFUSED[case]

    assert complaint in command.error("import", *arguments)
    assert dict(files(folder)) == before


def test_a_folder_that_is_not_there_is_not_made(command: Command) -> None:
    """Its name may be misspelt; the document is told all the same."""
    _, err = command("import", *REQUEST, "--json", "-o", "nowhere/talk.json", code=2)

    assert "its folder does not exist" in err
    assert err.count("\n") == 1


def files(folder: Path) -> Iterator[tuple[str, bytes | None]]:
    for path in folder.rglob("*"):
        yield str(path), path.read_bytes() if path.is_file() else None


def test_losses_are_lines_on_standard_error(command: Command) -> None:
    """Law 2, as `sabir chat` shows them; the summary counts them."""
    out, err = command("import", "named.json", *CHAT)

    assert len(sabir.loads(out)) == 1
    assert err.splitlines() == [
        "loss   dropped: messages[0].name: a message cannot store it",
        "read   1 message; 1 loss",
    ]


def test_strict_writes_no_history_where_something_is_lost(folder: Path, command: Command) -> None:
    for output in ([], ["-o", "talk.json"]):
        out, err = command("import", "named.json", *CHAT, "--strict", *output, code=1)
        assert out == ""
        assert "sabir: --strict: importing 'named.json' cannot accept everything: dropped" in err
    out, err = command("import", "named.json", *CHAT, "--strict", "--json", code=1)

    assert [loss["path"] for loss in json.loads(out)["losses"]] == ["messages[0].name"]
    assert err.count("\n") == 1
    assert not (folder / "talk.json").exists()


def test_strict_does_not_mind_what_only_moved(folder: Path, command: Command) -> None:
    write(folder / "moved.json", {**STORED["openai.responses"], "instructions": "Be kind."})
    out, err = command("import", "moved.json", "--from", "openai.responses", "--strict")

    assert "loss   relocated: instructions: " in err
    assert len(sabir.loads(out)) == len(KINDS) + 1


@every_dialect
@pytest.mark.parametrize("shape", ["array", "lines"])
def test_messages_without_a_request_are_read_as_one(dialect: str, shape: str, folder: Path, command: Command) -> None:
    """What many programs keep is the list alone; a note says how it was taken."""
    listed = STORED[dialect][FIELDS[dialect]]
    text = json.dumps(listed) if shape == "array" else "\n".join(map(json.dumps, listed))
    (folder / "list.json").write_text(text, "utf-8")
    out, err = command("import", "list.json", "--from", dialect)

    assert kinds(sabir.loads(out)) == KINDS
    assert err.splitlines() == [
        f"'list.json' contains messages only; they were read as the field '{FIELDS[dialect]}' of {dialect}",
        "read   4 messages; 0 losses",
    ]


@pytest.mark.parametrize("step", [1, -1], ids=["call last", "call first"])
def test_an_item_with_a_field_of_that_name_is_no_request(step: int, folder: Path, command: Command) -> None:
    """A custom call of openai.responses has an `input` too, which is text."""
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "shell", "input": "ls"}
    write(folder / "list.json", [{"role": "user", "content": "List it."}, call][::step])

    assert len(sabir.loads(command("import", "list.json", "--from", "openai.responses")[0])) == 2


@every_dialect
@pytest.mark.parametrize("shape", ["array", "lines"])
def test_several_requests_become_numbered_files_in_a_folder(
    dialect: str, shape: str, folder: Path, command: Command
) -> None:
    """One conversation each; their losses say in which they were."""
    both = [STORED[dialect], {**STORED[dialect], "stream": True}]
    text = json.dumps(both) if shape == "array" else "\n\n".join(map(json.dumps, both))
    (folder / "old.jsonl").write_text(text, "utf-8")
    out, err = command("import", "old.jsonl", "--from", dialect, "--output", "new")
    place = "[1]" if shape == "array" else "line 3"

    assert out == ""
    assert sorted(path.name for path in (folder / "new").iterdir()) == ["old-1.json", "old-2.json"]
    assert all(len(sabir.load(path)) == len(KINDS) for path in (folder / "new").iterdir())
    assert f"loss   dropped: {place} stream: " in err
    assert f"read   {place}: 4 messages, 1 option, model gpt-4.1; 1 loss\n" in err


def test_numbers_of_files_sort_as_names(folder: Path, command: Command) -> None:
    """Ten requests have two digits each; equal losses all show."""
    _, err = command("import", "ten.jsonl", *CHAT, "-o", "new")

    assert sorted(path.name for path in (folder / "new").iterdir())[::9] == ["ten-01.json", "ten-10.json"]
    assert err.count("loss   dropped: line ") == 10


@every_dialect
def test_the_one_dialect_that_reads_a_request_need_not_be_named(dialect: str, command: Command) -> None:
    """A note says which it was."""
    out, err = command("import", f"{dialect}.json")

    assert kinds(sabir.loads(out)) == KINDS
    assert f"read as {dialect}, the only installed dialect that can read the file\n" in err


class Twin(Echo):
    """A provider whose dialect takes what echo's takes."""

    name = "twin"

    def dialect(self, short_name: str) -> Dialect:
        return replace(PLAIN, name="twin.plain")


def test_a_request_that_several_dialects_read_is_not_guessed(folder: Path, command: Command) -> None:
    """The error names the candidates; where none reads it, those that there are, and how to learn why."""
    (folder / "hello.json").write_bytes(sabir.dialect("echo.plain").render("Hello", model="any").body_bytes)
    write(folder / "other.json", {"prompts": ["Hello"]})
    sabir.register("twin", Twin())
    try:
        said = command.error("import", "hello.json", "--json")
    finally:
        sabir.unregister("twin")
    other = command.error("import", "other.json", "--json")

    assert said == "'hello.json': several dialects can read it; choose echo.plain or twin.plain with --from"
    assert all(name in other for name in ("echo.plain", *STORED))
    assert other.endswith("can read it; choose one with --from to see its error")


@pytest.mark.parametrize(
    ("dialect", "complaint"),
    [
        ("openai.plain", "'openai.plain' is not a dialect; openai has openai.responses, openai.chat"),
        ("openai", "'openai' is not a dialect; openai has openai.responses, openai.chat"),
        ("nowhere.wire", "provider 'nowhere' is not installed; installed: "),
    ],
)
def test_an_unknown_dialect_is_answered_with_those_that_there_are(
    dialect: str, complaint: str, command: Command
) -> None:
    """Exit code 3: a plugin is missing."""
    assert command.error("import", "openai.chat.json", "--from", dialect, code=3).startswith(complaint)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the file is empty"),
        (b" \n\t", "the file is empty"),
        (b'{"messages": []\n,]', "line 2 is not JSON: "),
        (b'{"messages": []}\n\nnonsense', "line 3 is not JSON: "),
        (b"[1, 2]", "[0] is '1'; expected an object"),
        (b'{"messages": []}\nnull', "line 2 is 'null'; expected an object"),
        (b'"text"', "line 1 is '\"text\"'; expected an object"),
        (b'{"temperature": NaN}', "line 1 is not JSON: NaN is not a JSON number"),
        (b"[" * 100_000, "line 1 is nested too deeply"),
        (b"[" * 500 + b"]" * 500, "[0] is '[[["),
        (b'{"messages": ' * 500 + b"1" + b"}" * 500, "this is not a request of openai.chat"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "line 1 is not JSON: "),
        (b"\x89PNG\r\n\x1a\n", "line 1 is not JSON: "),
        (b"\xff\x00\x80", "line 1 is not JSON: "),
        ('{"messages": []}'.encode("utf-16"), "the file is UTF-16 text; convert it to UTF-8"),
        (b"{}", "this is not a request of openai.chat: messages is missing"),
        (sabir.dumps([sabir.user("Hello")]).encode(), "sabir wrote this file"),
        (sabir.dumps_lines([sabir.user("Hello")]).encode(), "sabir wrote this file"),
        (sabir.DecodedHistory(messages=()).model_dump_json().encode(), "sabir wrote this file"),
    ],
)
def test_no_bytes_give_more_than_one_line(data: bytes, complaint: str, command: Command) -> None:
    """Law 10 at the command line: what is wrong and where, exit code 2, no traceback."""
    said = command.error("import", "-", "--from", "openai.chat", given=data)

    assert said.startswith(f"standard input: {complaint}")


def test_no_depth_is_too_deep_for_an_error(command: Command) -> None:
    """Where the parser just reaches the bottom, nothing after it may fail for want of stack."""
    for depth in range(800, 1000):
        data = b'[{"role": "user", "content": ' + b"[" * depth + b"]" * depth + b"}]"
        _, err = command("import", "-", "--from", "openai.chat", given=data, code=2)
        assert "unexpected" not in err


@pytest.mark.parametrize("wrap", [b'{"messages": [%s]}', b"[%s]", b"[%s]\n"], ids=["request", "array", "margin"])
def test_broken_unicode_is_mended_and_reported(wrap: bytes, command: Command) -> None:
    """Bytes that are no UTF-8 reach the dialect as they are, whatever they are wrapped in."""
    given = wrap % b'{"role": "user", "content": "caf\xe9"}'
    out, err = command("import", "-", "--from", "openai.chat", given=given)

    assert sabir.loads(out)[0].text == "caf\ufffd"
    assert "loss   rewritten: request: invalid Unicode was replaced" in err


def test_a_history_is_utf_8_whatever_the_encoding_of_the_stream() -> None:
    """A pipe under another locale carries the same bytes: RFC 8259, section 8.1."""
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    history = run("import", *REQUEST, env=env)
    whole = run("import", *REQUEST, "--json", env=env)

    assert "18 °C, rain".encode() in history.stdout
    assert sabir.loads(history.stdout)
    assert "18 °C, rain".encode() in whole.stdout


def test_what_it_says_fits_80_columns() -> None:
    """Its help page shows an example that is one line each; its notes do not run over."""
    page = run_here("import", "--help").stdout.decode()
    notes = run_here("import", *REQUEST).stderr.decode()

    assert "\nsabir import old.json --from openai.chat --output talk.json\n" in page
    assert "\nsabir import old.json --from openai.chat | sabir render - -m openai:gpt-5\n" in page
    assert max(map(len, [*page.splitlines(), *notes.splitlines()])) <= 80
