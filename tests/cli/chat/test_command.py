"""`sabir chat` with a prompt, a pipe, or both: what goes out, what comes back, and what is refused before that."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import sabir
import sabir_echo.dialect
from sabir.authoring import Dialect

from tests.cli.command import SCRIPT, environment, run, run_here
from tests.cli.conftest import Command, Relay

ECHO = ["chat", "-m", "echo:any"]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


@pytest.fixture
def options_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with one option, in the current folder."""
    source = 'def shout(text: str) -> str:\n    "Say it louder."\n    return text.upper()\n'
    (tmp_path / "chat_options.py").write_text(source, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "chat_options", raising=False)
    return "chat_options:shout"


def texts(out: str) -> list[str]:
    """What the messages of a document say."""
    return [message.text for message in sabir.loads(json.dumps(json.loads(out)["messages"]))]


def test_a_prompt_is_answered_on_standard_output(command: Command) -> None:
    answer, beside = command(*ECHO, "Hello **there**")

    assert answer == "Hello **there**\n"
    assert beside == "echo:any · 2 in, 2 out\n"


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_a_pipe_is_the_prompt(arguments: list[str], command: Command) -> None:
    assert command(*ECHO, *arguments, given=b"piped text\n")[0] == "piped text\n"


def test_a_pipe_beside_a_prompt_is_part_of_the_question(tmp_path: Path) -> None:
    """`cat big.txt | sabir chat "summarise this"`; an empty one changes nothing."""
    assert run(*ECHO, "Summarise this.", given=b"A long\ntext.\n").stdout == b"A long\ntext.\n\nSummarise this.\n"
    assert run(*ECHO, "Summarise this.", given=b"").stdout == b"Summarise this.\n"


def test_options_run_and_are_shown(options_module: str, command: Command) -> None:
    out, err = command(*ECHO, "--option", options_module, 'call shout {"text": "hey"}')

    assert out == "HEY\n"
    assert err.splitlines() == ["call   shout(text='hey')", 'result "HEY"', "echo:any · 9 in, 2 out"]


def test_json_is_one_document_and_nothing_else(options_module: str, command: Command) -> None:
    """Its messages are a history that loads again; usage and cost are the whole answer's."""
    said = 'call shout {"text": "hey"}'
    out, err = command(*ECHO, "--option", options_module, "--system", "Be loud.", "--json", said)
    document = json.loads(out)
    messages = sabir.loads(json.dumps(document["messages"]))

    assert err == ""
    assert (document["text"], document["finish_reason"], document["usage"]["output_tokens"]) == ("HEY", "stop", 2)
    assert (document["name"], document["cost"], document["losses"]) == ("1", None, [])
    assert [message.kind for message in messages] == ["parts", "parts", "option_call", "option_result", "parts"]
    assert messages[0].policy == "system"


def test_settings_go_along(relay: Relay, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setenv("RELAY_API_KEY", "a key")
    monkeypatch.setenv("SABIR_TEMPERATURE", "0.9")
    monkeypatch.setenv("SABIR_MAX_OUTPUT_TOKENS", "20")
    command("chat", "-m", "relay:any", "--temperature", "0.1", "--reasoning-effort", "low", "Hello")

    assert relay.requests[0]["settings"] == {"temperature": 0.1, "max_output_tokens": 20, "reasoning_effort": "low"}


def test_a_vendors_own_settings_reach_its_plugin(command: Command) -> None:
    said = command.error(*ECHO, "--vendor", "depth=3", "--vendor", "mode=fast", "Hello")

    assert said == "echo has no settings of its own; remove depth, mode"


def test_losses_are_shown(tmp_path: Path, command: Command) -> None:
    """Law 2: echo reads no images, and the user who showed one is told."""
    (tmp_path / "sky.png").write_bytes(PNG)
    out, err = command(*ECHO, "--image", str(tmp_path / "sky.png"), "What is this?")

    assert out.startswith("[image not shown: sky.png]")
    assert err.startswith("loss   downgraded: ")
    assert "· 1 loss\n" in err


def test_an_answer_has_the_form_that_was_asked_for(tmp_path: Path, command: Command) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    (tmp_path / "trip.json").write_text(json.dumps(schema))
    asked = [*ECHO, "--output", str(tmp_path / "trip.json")]

    assert json.loads(command(*asked, "--json", '{"city": "Rome"}')[0])["output"] == {"city": "Rome"}
    assert json.loads(command(*asked, '{"city": "Rome"}')[0]) == {"city": "Rome"}
    assert "does not fit" in command(*asked, '{"town": "Rome"}', code=1)[1]


def test_a_filtered_reply_exits_1(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    """The text may look like an answer; the exit code says that it is none."""
    monkeypatch.setitem(sabir_echo.dialect.FINISH_REASONS, "done", "content_filter")  # type: ignore[arg-type]

    command(*ECHO, "Hello", code=1)
    command(*ECHO, "--json", "Hello", code=1)


def test_what_was_said_goes_on_with_c(command: Command) -> None:
    command(*ECHO, "--system", "Be brief.", "first")
    out, _ = command("chat", "-c", "--json", "second")
    assert json.loads(out)["origin"]["provider"] == "echo"
    assert texts(out) == ["Be brief.", "first", "first", "second", "second"]
    out, _ = command("chat", "-c", "-m", "echo:other", "--json", "third")
    assert json.loads(out)["origin"]["model"] == "other"
    assert len(texts(out)) == 7


class Later(Relay):
    """The gateway in a later version, in which its name means another dialect."""

    dialects = ("wave", "plain")

    def dialect(self, short_name: str) -> Dialect:
        plain = super().dialect("plain")
        return plain if short_name == "plain" else replace(plain, name="relay.wave")


@pytest.mark.usefixtures("relay")
def test_a_conversation_continues_in_the_dialect_of_its_last_answer(
    monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """Its name may mean another dialect by now, which only a model that is named gets."""
    monkeypatch.setenv("RELAY_API_KEY", "a key")
    command("chat", "-m", "relay:any", "first")
    assert command("chat", "-c", "second")[1].count("continues") == 0
    sabir.unregister("relay")
    sabir.register("relay", Later())

    assert json.loads(command("chat", "-c", "--json", "third")[0])["origin"]["dialect"] == "echo.plain"
    err = " ".join(command("chat", "-c", "fourth")[1].split())
    assert "continuing with relay.plain:any, the model and dialect of the last answer;" in err
    assert "to use the dialect that relay:any means today, add -m relay:any" in err
    for name, dialect in (("relay:any", "relay.wave"), ("relay.plain:any", "echo.plain")):
        out, err = command("chat", "-c", "-m", name, "--json", "more")
        assert json.loads(out)["origin"]["dialect"] == dialect
        assert "continues" not in err


def test_another_endpoint_than_that_of_the_last_answer_is_told(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """A conversation with a server of one's own does not go elsewhere without a word."""
    monkeypatch.setenv("RELAY_API_KEY", "a key")
    command("chat", "-m", "relay:any", "Hello")
    monkeypatch.setattr(relay, "endpoint", lambda access: "https://elsewhere.example")

    assert "came from echo:; to continue there, add --base-url echo:" in command("chat", "-c", "more")[1]


def test_a_saved_history_is_gone_on_with(
    history: list[sabir.Message], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """What `sabir import` wrote, its instructions in place of the user's default; the next question is a turn."""
    monkeypatch.setenv("SABIR_SYSTEM", "Be as a default.")
    sabir.save(tmp_path / "talk.json", history)
    begun = json.loads(command(*ECHO, "--from", str(tmp_path / "talk.json"), "--json", "And in Rome?")[0])
    told = sabir.loads(json.dumps(begun["messages"]))

    assert [each.payload for each in told[:5]] == [each.payload for each in history]
    assert [message.text for message in told[5:]] == ["And in Rome?", "And in Rome?"]
    gone_on = json.loads(command("chat", "-c", "--json", "And in Oslo?")[0])
    assert len(gone_on["messages"]) == 9


def test_a_new_one_is_begun_beside_the_last_and_a_name_finds_its_own(command: Command) -> None:
    """Without -c nothing is gone on with; -c takes the one that was spoken in last."""
    command(*ECHO, "--name", "trip", "first")
    command(*ECHO, "other")

    assert texts(command("chat", "--name", "trip", "--json", "second")[0]) == ["first", "first", "second", "second"]
    assert json.loads(command("chat", "-c", "--json", "third")[0])["name"] == "trip"


def test_without_a_prompt_the_last_answer_is_told_again_and_nothing_is_asked(command: Command) -> None:
    """Its record has it: a model without a key is not asked."""
    command(*ECHO, "Hello there")

    assert command("chat", "-m", "openai:none", "-c", given=b"") == ("Hello there\n", "")


def test_a_conversation_that_is_not_kept_leaves_nothing(command: Command) -> None:
    command(*ECHO, "--no-keep", "Hello")

    assert "-c: no conversation is saved yet" in command.error("chat", "-c", "Hello")


def test_a_turn_that_failed_is_taken_back(command: Command) -> None:
    """The same command says the same again; a question without an answer would change what the next one means."""
    command.error(*ECHO, "fail 400", code=4)
    assert command("chats", "--json")[0] == "[]\n"
    command(*ECHO, "first")
    _, err = command("chat", "-c", "fail 400", code=4)

    assert err.startswith("this turn is discarded\n")
    assert texts(command("chat", "-c", "--json", "second")[0]) == ["first", "first", "second", "second"]


def test_an_interrupted_turn_is_finished_before_anything_else(tmp_path: Path, options_module: str) -> None:
    """WI-43: killed within the option, in a process of its own; the model is not asked for the call again."""
    (tmp_path / "deadly.py").write_text('import os\n\ndef shout(text: str) -> str:\n    "Say it."\n    os._exit(9)\n')
    said = 'call shout {"text": "hey"}'
    killed = run(*ECHO, "--option", "deadly:shout", said, cwd=tmp_path)
    assert killed.returncode == 9

    resumed = run_here("chat", "-c", "--option", options_module, "more", cwd=tmp_path)
    assert resumed.stdout == b"more\n"
    assert b"the previous turn is finished: HEY\n" in resumed.stderr
    told = run_here("chats", "export", "1", cwd=tmp_path).stdout
    assert [message.text for message in sabir.loads(told)] == [said, "", "", "HEY", "more", "more"]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["-m", "nowhere:x", "Hello"], 3, "provider 'nowhere' is not installed"),
        (["-m", "echo", "Hello"], 2, "write provider:model"),
        (["-m", "echo.wave:x", "Hello"], 3, "'echo.wave' is not a dialect; echo has echo.plain"),
        (["-m", "echo:any", "fail 503"], 4, "you asked for 503"),
        (["-m", "echo:any", "--image", "missing.png", "Hello"], 2, "'missing.png' cannot be read"),
        (["-m", "echo:any", "--file", "missing.md", "Hello"], 2, "'missing.md' cannot be read"),
        (["-m", "echo:any", "--from", "missing.json", "Hello"], 2, "'missing.json' cannot be read"),
        (["-m", "echo:any", "--option", "nonsense", "Hello"], 2, "write module:function"),
        (["-m", "echo:any", "--output", "nonsense", "Hello"], 2, "write module:Model"),
        (["-m", "echo:any", "--vendor", "nonsense", "Hello"], 2, "write --vendor KEY=VALUE"),
        (["-m", "echo:any", "--temperature", "-1", "Hello"], 2, "--temperature"),
        (["-m", "echo:any", ""], 2, "there is no message to send"),
        (["-m", "echo:any", "two", "words"], 2, "unexpected argument 'words'; put a text of several words in quotes"),
        (["-m", "echo:any", "--sistem", "Hello"], 2, "There is no such flag"),
        (["-m", "openai:any", "Hello"], 4, "OPENAI_API_KEY"),
        (["-m", "openai:any", "--base-url", "nonsense", "Hello"], 2, "--base-url"),
        (["-m", "echo:any", "-c", "Hello"], 2, "no conversation is saved yet; remove -c"),
        (["-m", "echo:any", "-c", "--name", "trip", "Hello"], 2, "remove -c or --name"),
        (["-m", "echo:any", "--no-keep", "--name", "trip", "Hello"], 2, "cannot continue a saved conversation"),
        (["-m", "echo:any", "--name", "", "Hello"], 2, "--name is empty"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line_and_a_code(
    arguments: list[str], code: int, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)

    assert complaint in command.error("chat", *arguments, code=code)


def test_a_home_that_cannot_be_written_is_refused_before_anything_is_asked(
    tmp_path: Path, relay: Relay, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """Nobody pays for an answer that cannot be kept; --no-keep asks all the same."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("SABIR_HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setenv("RELAY_API_KEY", "a key")

    said = command.error("chat", "-m", "relay:any", "Hello")
    assert "cannot be saved" in said and "set SABIR_HOME" in said and "--no-keep" in said
    assert relay.requests == []
    assert command("chat", "-m", "relay:any", "--no-keep", "Hello")[0] == "Hello\n"


def test_an_endpoint_that_nobody_serves_is_a_failed_call(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    said = command.error("chat", "-m", "openai:any", "--base-url", "http://127.0.0.1:9/v1", "Hello", code=4)

    assert "cannot be reached" in said
    assert "not-a-real-key" not in said


def test_one_prompt_loads_neither_the_editor_nor_the_layout(tmp_path: Path) -> None:
    """A pipe pays for no terminal."""
    source = "import atexit, sys\natexit.register(lambda: print(sorted(n for n in sys.modules if n in LOOKED)))\n"
    looked = {"prompt_toolkit", "markdown_it", "jsonschema", "pygments"}
    (tmp_path / "sitecustomize.py").write_text(f"LOOKED = {looked}\n{source}")

    assert run(*ECHO, "Hello", env={"PYTHONPATH": str(tmp_path)}).stdout == b"Hello\n[]\n"


@pytest.mark.skipif(sys.platform == "win32", reason="it has no device that is full")
@pytest.mark.parametrize(("file", "code", "told"), [("pipe", 141, b""), ("/dev/full", 2, b"No space left on device")])
def test_an_answer_that_cannot_be_written_is_kept(file: str, code: int, told: bytes, command: Command) -> None:
    """Who goes on finds the turn that nobody read."""
    command(*ECHO, "one")
    arguments = [str(SCRIPT), *ECHO, "--name", "two", "unread " * 5000]
    if file == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(file, os.O_WRONLY)
    ended = subprocess.run(
        arguments, stdin=subprocess.DEVNULL, stdout=writer, stderr=-1, env=environment(), check=False
    )
    os.close(writer)

    assert ended.returncode == code and told in ended.stderr
    assert json.loads(command("chat", "-c", "--json", "more")[0])["name"] == "two"
