"""`sabir chat`: one prompt, a pipe, or a loop."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
import sabir
import sabir_echo.dialect
from sabir_cli.main import main
from sabir_session import InnerMessage, Session, SQLiteStore, enable_inner_message_recording, get_inner_messages

from tests.cli.command import run

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


def test_a_prompt_is_answered_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer alone, so that it can be piped on; usage beside it, and how fast it came where that took a while."""
    assert main(["chat", "-m", "echo:any", "Hello there"]) == 0
    answer, beside = capsys.readouterr()
    assert answer == "Hello there\n"
    assert re.fullmatch(r"usage  2 in, 2 out · stop(?: · \d+\.\d tokens/s)?\n", beside)


def test_the_model_of_the_environment_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SABIR_MODEL stands for -m."""
    monkeypatch.setenv("SABIR_MODEL", "echo:from-environment")

    assert main(["chat", "--json", "Hello"]) == 0
    assert json.loads(capsys.readouterr().out)["origin"]["model"] == "from-environment"


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_a_pipe_is_the_prompt(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With or without the customary dash."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped text\n"), encoding="utf-8"))

    assert main(["chat", "-m", "echo:any", *arguments]) == 0
    assert capsys.readouterr().out == "piped text\n"


def test_options_run_and_are_shown(options_module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole cycle through sabir.answer."""
    assert main(["chat", "-m", "echo:any", "--option", options_module, 'call shout {"text": "hey"}']) == 0
    out, err = capsys.readouterr()

    assert out == "HEY\n"
    assert err.splitlines()[1:3] == ["call   shout(text='hey')", 'result "HEY"']


def test_json_is_one_document_and_nothing_else(options_module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its messages are a history that loads again."""
    said = 'call shout {"text": "hey"}'
    assert main(["chat", "-m", "echo:any", "--option", options_module, "--system", "Be loud.", "--json", said]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    messages = sabir.loads(json.dumps(document["messages"]))

    assert err == ""
    assert document["text"] == "HEY"
    assert document["finish_reason"] == "stop"
    assert document["usage"]["output_tokens"] == 1
    assert [message.kind for message in messages] == ["parts", "parts", "option_call", "option_result", "parts"]
    assert messages[0].policy == "system"


def test_losses_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Law 2: echo reads no images, and the user who showed one is told."""
    (tmp_path / "sky.png").write_bytes(PNG)

    assert main(["chat", "-m", "echo:any", "--image", str(tmp_path / "sky.png"), "What is this?"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("[image not shown: sky.png]")
    assert err.startswith("loss   downgraded: ")


def test_a_conversation_goes_on_in_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was said outlives the process."""
    file = tmp_path / "talk.json"
    for text in ("first", "second"):
        assert main(["chat", "-m", "echo:any", "--history", str(file), text]) == 0

    assert [message.text for message in sabir.load(file)] == ["first", "first", "second", "second"]
    assert "usage  3 in" in capsys.readouterr().err


def test_a_failed_turn_leaves_the_file_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A question without an answer would change what the next one means."""
    file = tmp_path / "talk.json"
    assert main(["chat", "-m", "echo:any", "--history", str(file), "first"]) == 0
    before = file.read_bytes()

    assert main(["chat", "-m", "echo:any", "--history", str(file), "fail 400"]) == 4
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_saved_is_refused_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer that was paid for must not be lost for a missing folder."""
    assert main(["chat", "-m", "echo:any", "--history", str(tmp_path / "no" / "talk.json"), "Hello"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "there is no folder" in err


def test_a_filtered_reply_exits_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The text may look like an answer; the exit code says that it is none."""
    monkeypatch.setitem(sabir_echo.dialect.FINISH_REASONS, "done", "content_filter")  # type: ignore[arg-type]

    assert main(["chat", "-m", "echo:any", "Hello"]) == 1
    assert main(["chat", "-m", "echo:any", "--json", "Hello"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["-m", "nowhere:x", "Hello"], 3, "provider 'nowhere' is not installed"),
        (["-m", "echo", "Hello"], 2, "write provider:model"),
        (["-m", "echo.wave:x", "Hello"], 3, "does not speak 'wave'; it speaks plain"),
        (["-m", "echo:any", "fail 503"], 4, "you asked for 503"),
        (["-m", "echo:any", "--image", "missing.png", "Hello"], 2, "'missing.png' cannot be read"),
        (["-m", "echo:any", "--option", "nonsense", "Hello"], 2, "write module:function"),
        (["-m", "echo:any", ""], 2, "nothing to say"),
        (["-m", "echo:any", "two", "words"], 2, "'words' is too many; quote a text of several words"),
        (["-m", "echo:any", "--sistem", "Hello"], 2, "There is no such option"),
        (["-m", "openai:any", "Hello"], 4, "OPENAI_API_KEY"),
        (["-m", "openai:any", "--base-url", "nonsense", "Hello"], 2, "base_url"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line_and_a_code(
    arguments: list[str], code: int, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The offender and the remedy; never a traceback."""
    assert main(["chat", *arguments]) == code
    out, err = capsys.readouterr()

    assert out == ""
    assert err.startswith("sabir: ")
    assert complaint in err
    assert err.count("\n") == 1


def test_an_endpoint_that_nobody_serves_is_a_failed_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused connection, after the retries, in one line."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")

    assert main(["chat", "-m", "openai:any", "--base-url", "http://127.0.0.1:9/v1", "Hello"]) == 4
    err = capsys.readouterr().err
    assert "cannot be reached" in err
    assert "not-a-real-key" not in err


def recorded(file: Path, journal: str = "chat") -> list[str]:
    """The roles that a journal of a session's file holds."""
    with SQLiteStore(file) as store:
        session = Session(journal=store.journal(journal))
        enable_inner_message_recording(session)
        return [record.role for record in get_inner_messages(session)]


def test_a_recorded_conversation_goes_on_in_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """WI-01: message by message, one evaluation, whatever model answers."""
    file = str(tmp_path / "talk.db")
    assert main(["chat", "-m", "echo:any", "--session", file, "--system", "Be brief.", "first"]) == 0
    assert main(["chat", "-m", "echo:other", "--session", file, "--json", "second"]) == 0
    document = json.loads(capsys.readouterr().out.partition("\n")[2])

    assert recorded(tmp_path / "talk.db") == ["system", "user", "assistant", "user", "assistant"]
    assert [message["payload"]["parts"][0]["text"] for message in document["messages"]] == [
        "Be brief.", "first", "first", "second", "second",
    ]  # fmt: skip


def test_a_failed_turn_is_kept_and_somebody_says_what_becomes_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """WI-47: `--resume` asks again, `--no-resume` leaves it; without a word nothing is said over it."""
    file = str(tmp_path / "talk.db")
    said = ["chat", "-m", "echo:any", "--session", file]
    assert main([*said, "fail 400"]) == 4
    assert main([*said, "--resume"]) == 4
    assert main([*said, "more"]) == 2
    assert (
        "--resume finishes it first, --no-resume leaves it as it is, --drop-last takes it back"
        in capsys.readouterr().err
    )
    assert main([*said, "--no-resume", "Hello"]) == 0

    assert recorded(tmp_path / "talk.db") == ["system", "user", "user", "assistant"]


def test_a_process_that_dies_before_the_first_message_is_recorded_has_said_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """WI-40: instructions alone are nothing to resume; the same command begins."""
    file = str(tmp_path / "talk.db")
    said = ["chat", "-m", "echo:any", "--session", file]
    with SQLiteStore(file) as store:
        session = Session(journal=store.journal("chat"))
        enable_inner_message_recording(session)
        session.mutate(InnerMessage).append(InnerMessage(role="system", content="", evaluation_id="e", sequence=0))

    assert main([*said, "--resume"]) == 2
    assert "nothing was said in this file yet" in capsys.readouterr().err
    assert main([*said, "--system", "Be brief.", "Hello"]) == 0
    assert main([*said, "--resume"]) == 0
    assert capsys.readouterr().out == "Hello\nHello\n"


def test_what_was_over_answers_from_its_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """WI-46: nothing is asked."""
    file = str(tmp_path / "talk.db")
    assert main(["chat", "-m", "echo:any", "--session", file, "Hello there"]) == 0
    capsys.readouterr()

    assert main(["chat", "-m", "openai:none", "--session", file, "--resume"]) == 0
    assert capsys.readouterr() == ("Hello there\n", "")


def test_an_interrupted_option_runs_when_the_turn_is_resumed(
    tmp_path: Path, options_module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """WI-43: killed within the option, in a process of its own; the model is not asked for the call again."""
    (tmp_path / "deadly.py").write_text('import os\n\ndef shout(text: str) -> str:\n    "Say it."\n    os._exit(9)\n')
    said = ["chat", "-m", "echo:any", "--session", "talk.db"]
    killed = run(*said, "--option", "deadly:shout", 'call shout {"text": "hey"}', cwd=tmp_path)
    assert killed.returncode == 9
    assert recorded(tmp_path / "talk.db") == ["system", "user", "assistant"]

    resumed = run(*said, "--resume", "--option", options_module, cwd=tmp_path)
    assert resumed.stdout.decode() == "HEY\n"
    assert recorded(tmp_path / "talk.db") == ["system", "user", "assistant", "tool", "assistant"]


def test_a_turn_that_is_refused_for_good_is_taken_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--drop-last`: it goes out no more; the instructions and the turns before it stay, and so does the record."""
    file = str(tmp_path / "talk.db")
    said = ["chat", "-m", "echo:any", "--session", file]
    assert main([*said, "--system", "Be brief.", "first"]) == 0
    assert main([*said, "fail 400"]) == 4
    capsys.readouterr()
    assert main([*said, "--drop-last", "--json", "second"]) == 0
    messages = json.loads(capsys.readouterr().out)["messages"]

    assert [message["payload"]["parts"][0]["text"] for message in messages] == [
        "Be brief.", "first", "first", "second", "second",
    ]  # fmt: skip
    assert recorded(tmp_path / "talk.db", "chat") == ["system", "user", "assistant", "user"]
    assert recorded(tmp_path / "talk.db", "chat-2") == ["system", "user", "assistant", "user", "assistant"]


def test_turns_are_taken_back_one_by_one_to_the_instructions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Answered or not; the first turn's place is taken by the next, under the same instructions."""
    file = str(tmp_path / "talk.db")
    said = ["chat", "-m", "echo:any", "--session", file]
    assert main([*said, "--system", "Be brief.", "first"]) == 0
    assert main([*said, "--drop-last", "fail 500"]) == 4
    _, err = capsys.readouterr()
    assert "taken back: first\n" in err
    assert main([*said, "--drop-last", "--json", "third"]) == 0
    messages = json.loads(capsys.readouterr().out)["messages"]

    assert [message["payload"]["parts"][0]["text"] for message in messages] == ["Be brief.", "third", "third"]
    with SQLiteStore(file) as store:
        assert store.names() == ("chat", "chat-2", "chat-3")


def test_a_history_takes_its_last_turn_back_too(tmp_path: Path) -> None:
    """The file follows with the next turn."""
    file = tmp_path / "talk.json"
    said = ["chat", "-m", "echo:any", "--history", str(file)]
    assert main([*said, "first"]) == 0
    assert main([*said, "second"]) == 0
    assert main([*said, "--drop-last", "third"]) == 0

    assert [message.text for message in sabir.load(file)] == ["first", "first", "third", "third"]


@pytest.mark.parametrize(("said", "code"), [("", 2), ("--no-such-flag", 2)])
def test_nothing_is_taken_back_by_a_command_that_says_nothing(said: str, code: int, tmp_path: Path) -> None:
    """A command that cannot be done changes nothing."""
    file = tmp_path / "talk.db"
    assert main(["chat", "-m", "echo:any", "--session", str(file), "first"]) == 0
    assert main(["chat", "-m", "echo:any", "--session", str(file), "--drop-last", said]) == code

    with SQLiteStore(file) as store:
        assert store.names() == ("chat",)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--resume", "Hello"], "give its file: --session FILE"),
        (["--session", "new.db", "--resume"], "nothing was said in this file yet"),
        (["--session", "new.db", "--history", "talk.json", "Hello"], "both keep the conversation"),
        (["--session", "no/such/talk.db", "Hello"], "there is no folder"),
        (["--session", "new.db", "--drop-last", "Hello"], "there is nothing to take back"),
        (["--drop-last", "Hello"], "there is nothing to take back"),
    ],
)
def test_what_cannot_be_resumed_is_one_line(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """WI-40: and a code, before anything is sent."""
    monkeypatch.chdir(tmp_path)

    assert main(["chat", "-m", "echo:any", *arguments]) == 2
    assert complaint in capsys.readouterr().err
