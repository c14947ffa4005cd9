"""`sabir chat`: one prompt, a pipe, or a loop; and what comes of one turn."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import sabir
import sabir_echo.dialect
from sabir_cli.keeping import MOST_REPLIES, Turn, take_turn
from sabir_cli.output import Output
from sabir_session import InnerMessage, Session, SQLiteStore, enable_inner_message_recording, get_inner_messages

from tests.cli.command import run
from tests.cli.conftest import Command

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


def test_a_prompt_is_answered_on_standard_output(command: Command) -> None:
    """The answer alone, so that it can be piped on; usage beside it, and how fast it came where that took a while."""
    answer, beside = command(*ECHO, "Hello there")

    assert answer == "Hello there\n"
    assert re.fullmatch(r"usage  2 in, 2 out · stop(?: · \d+\.\d tokens/s)?\n", beside)


def test_the_model_of_the_environment_answers(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    """SABIR_MODEL stands for -m."""
    monkeypatch.setenv("SABIR_MODEL", "echo:from-environment")

    assert json.loads(command("chat", "--json", "Hello")[0])["origin"]["model"] == "from-environment"


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_a_pipe_is_the_prompt(arguments: list[str], command: Command) -> None:
    """With or without the customary dash."""
    assert command(*ECHO, *arguments, given=b"piped text\n")[0] == "piped text\n"


def test_options_run_and_are_shown(options_module: str, command: Command) -> None:
    """The whole cycle through sabir.answer."""
    out, err = command(*ECHO, "--option", options_module, 'call shout {"text": "hey"}')

    assert out == "HEY\n"
    assert err.splitlines()[1:3] == ["call   shout(text='hey')", 'result "HEY"']


def test_json_is_one_document_and_nothing_else(options_module: str, command: Command) -> None:
    """Its messages are a history that loads again."""
    said = 'call shout {"text": "hey"}'
    out, err = command(*ECHO, "--option", options_module, "--system", "Be loud.", "--json", said)
    document = json.loads(out)
    messages = sabir.loads(json.dumps(document["messages"]))

    assert err == ""
    assert (document["text"], document["finish_reason"], document["usage"]["output_tokens"]) == ("HEY", "stop", 1)
    assert [message.kind for message in messages] == ["parts", "parts", "option_call", "option_result", "parts"]
    assert messages[0].policy == "system"


def test_losses_are_shown(tmp_path: Path, command: Command) -> None:
    """Law 2: echo reads no images, and the user who showed one is told."""
    (tmp_path / "sky.png").write_bytes(PNG)
    out, err = command(*ECHO, "--image", str(tmp_path / "sky.png"), "What is this?")

    assert out.startswith("[image not shown: sky.png]")
    assert err.startswith("loss   downgraded: ")


def test_a_conversation_goes_on_in_its_file(tmp_path: Path, command: Command) -> None:
    """What was said outlives the process; a question without an answer would change what the next one means."""
    file = tmp_path / "talk.json"
    command(*ECHO, "--history", str(file), "first")
    assert "usage  3 in" in command(*ECHO, "--history", str(file), "second")[1]
    command.error(*ECHO, "--history", str(file), "fail 400", code=4)

    assert [message.text for message in sabir.load(file)] == ["first", "first", "second", "second"]
    command(*ECHO, "--history", str(file), "--drop-last", "third")
    assert [message.text for message in sabir.load(file)] == ["first", "first", "third", "third"]


def test_a_filtered_reply_exits_1(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    """The text may look like an answer; the exit code says that it is none."""
    monkeypatch.setitem(sabir_echo.dialect.FINISH_REASONS, "done", "content_filter")  # type: ignore[arg-type]

    command(*ECHO, "Hello", code=1)
    command(*ECHO, "--json", "Hello", code=1)


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
        (["-m", "echo:any", "--history", "no/such/talk.json", "Hello"], 2, "there is no folder"),
        (["-m", "echo:any", "--resume", "Hello"], 2, "give its file: --session FILE"),
        (["-m", "echo:any", "--session", "new.db", "--resume"], 2, "nothing was said in this file yet"),
        (["-m", "echo:any", "--session", "new.db", "--history", "talk.json", "Hello"], 2, "both keep the conversation"),
        (["-m", "echo:any", "--session", "no/such/talk.db", "Hello"], 2, "there is no folder"),
        (["-m", "echo:any", "--session", "new.db", "--drop-last", "Hello"], 2, "there is nothing to take back"),
        (["-m", "echo:any", "--drop-last", "Hello"], 2, "there is nothing to take back"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line_and_a_code(
    arguments: list[str], code: int, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """The offender and the remedy, before anything is sent; never a traceback."""
    monkeypatch.chdir(tmp_path)

    assert complaint in command.error("chat", *arguments, code=code)


def test_an_endpoint_that_nobody_serves_is_a_failed_call(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    """A refused connection, after the retries, in one line."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    said = command.error("chat", "-m", "openai:any", "--base-url", "http://127.0.0.1:9/v1", "Hello", code=4)

    assert "cannot be reached" in said
    assert "not-a-real-key" not in said


def recorded(file: Path, journal: str = "chat") -> list[str]:
    """The roles that a journal of a session's file holds."""
    with SQLiteStore(file) as store:
        session = Session(journal=store.journal(journal))
        enable_inner_message_recording(session)
        return [record.role for record in get_inner_messages(session)]


@pytest.fixture
def said(tmp_path: Path) -> list[str]:
    """The command with a session's file."""
    return [*ECHO, "--session", str(tmp_path / "talk.db")]


def texts(out: str) -> list[str]:
    """What the messages of a document say."""
    return [message["payload"]["parts"][0]["text"] for message in json.loads(out)["messages"]]


def test_a_recorded_conversation_goes_on_in_its_file(tmp_path: Path, said: list[str], command: Command) -> None:
    """WI-01: message by message, one evaluation, whatever model answers."""
    command(*said, "--system", "Be brief.", "first")
    out, _ = command("chat", "-m", "echo:other", *said[3:], "--json", "second")

    assert recorded(tmp_path / "talk.db") == ["system", "user", "assistant", "user", "assistant"]
    assert texts(out) == ["Be brief.", "first", "first", "second", "second"]


def test_a_failed_turn_is_kept_and_somebody_says_what_becomes_of_it(
    tmp_path: Path, said: list[str], command: Command
) -> None:
    """WI-47: `--resume` asks again, `--no-resume` leaves it; without a word nothing is said over it."""
    command(*said, "fail 400", code=4)
    command(*said, "--resume", code=4)
    refused = command.error(*said, "more")
    command(*said, "--no-resume", "Hello")

    assert "--resume finishes it first, --no-resume leaves it as it is, --drop-last takes it back" in refused
    assert recorded(tmp_path / "talk.db") == ["system", "user", "user", "assistant"]


def test_a_process_that_dies_before_the_first_message_is_recorded_has_said_nothing(
    tmp_path: Path, said: list[str], command: Command
) -> None:
    """WI-40: instructions alone are nothing to resume; the same command begins."""
    with SQLiteStore(tmp_path / "talk.db") as store:
        session = Session(journal=store.journal("chat"))
        enable_inner_message_recording(session)
        session.mutate(InnerMessage).append(InnerMessage(role="system", content="", evaluation_id="e", sequence=0))

    assert "nothing was said in this file yet" in command.error(*said, "--resume")
    assert command(*said, "--system", "Be brief.", "Hello")[0] == "Hello\n"
    assert command(*said, "--resume")[0] == "Hello\n"


def test_what_was_over_answers_from_its_record(said: list[str], command: Command) -> None:
    """WI-46: nothing is asked."""
    command(*said, "Hello there")

    assert command("chat", "-m", "openai:none", *said[3:], "--resume") == ("Hello there\n", "")


def test_an_interrupted_option_runs_when_the_turn_is_resumed(tmp_path: Path, options_module: str) -> None:
    """WI-43: killed within the option, in a process of its own; the model is not asked for the call again."""
    (tmp_path / "deadly.py").write_text('import os\n\ndef shout(text: str) -> str:\n    "Say it."\n    os._exit(9)\n')
    said = [*ECHO, "--session", "talk.db"]
    killed = run(*said, "--option", "deadly:shout", 'call shout {"text": "hey"}', cwd=tmp_path)
    assert killed.returncode == 9
    assert recorded(tmp_path / "talk.db") == ["system", "user", "assistant"]

    resumed = run(*said, "--resume", "--option", options_module, cwd=tmp_path)
    assert resumed.stdout.decode() == "HEY\n"
    assert recorded(tmp_path / "talk.db") == ["system", "user", "assistant", "tool", "assistant"]


def test_a_turn_that_is_refused_for_good_is_taken_back(tmp_path: Path, said: list[str], command: Command) -> None:
    """`--drop-last`: it goes out no more; the instructions and the turns before it stay, and so does the record."""
    command(*said, "--system", "Be brief.", "first")
    command(*said, "fail 400", code=4)
    out, _ = command(*said, "--drop-last", "--json", "second")

    assert texts(out) == ["Be brief.", "first", "first", "second", "second"]
    assert recorded(tmp_path / "talk.db", "chat") == ["system", "user", "assistant", "user"]
    assert recorded(tmp_path / "talk.db", "chat-2") == ["system", "user", "assistant", "user", "assistant"]


def test_turns_are_taken_back_one_by_one_to_the_instructions(tmp_path: Path, said: list[str], command: Command) -> None:
    """Answered or not; the first turn's place is taken by the next. A command that says nothing changes nothing."""
    command(*said, "--system", "Be brief.", "first")
    for nothing in ("", "--no-such-flag"):
        command.error(*said, "--drop-last", nothing)
    assert "taken back: first\n" in command(*said, "--drop-last", "fail 500", code=4)[1]
    out, _ = command(*said, "--drop-last", "--json", "third")

    assert texts(out) == ["Be brief.", "third", "third"]
    with SQLiteStore(tmp_path / "talk.db") as store:
        assert store.names() == ("chat", "chat-2", "chat-3")


@sabir.option
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def later(text: str) -> str:
    """Something asynchronous."""
    return text.upper()


def insist() -> None:
    """What echo hears of this failure makes it call again."""
    raise RuntimeError("call insist {}")


def turn(said: str | Sequence[sabir.Message], *options: sabir.Option, session: Session | None = None) -> Turn:
    messages = [sabir.user(said)] if isinstance(said, str) else list(said)
    with sabir.adapter("echo:any") as llm:
        return take_turn(llm, messages, options, Output(), session)


def test_an_asynchronous_option_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Options may be coroutine functions."""
    taken = turn('call later {"text": "ü"}', sabir.option(later))

    assert taken.messages[2].result is not None
    assert taken.messages[2].result.result == "Ü"


def test_a_model_that_only_calls_options_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    """It would go on for ever, and be paid for."""
    with pytest.raises(sabir.errors.OutputError, match=f"called options {MOST_REPLIES} times in a row"):
        turn("call insist {}", sabir.option(insist))


def test_a_loss_is_shown_once_however_often_it_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """Every request of a conversation carries the losses of all that went before."""
    messages = [sabir.user("call add {}", sabir.image("https://example.com/a.png")), sabir.user("Hello")]
    output = Output()
    with sabir.adapter("echo:any") as llm:
        take_turn(llm, messages, [add], output)
        take_turn(llm, messages, [add], output)

    assert capsys.readouterr().err.count("loss   downgraded") == 1


def test_many_turns_of_one_session_are_no_endless_loop(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The bound on replies is one turn's, not the conversation's."""
    from sabir_session import follow_up

    session = Session()
    enable_inner_message_recording(session)
    turn("Hello", session=session)
    for _ in range(MOST_REPLIES):
        follow_up(session, sabir.user("Hello again"))
        turn([], session=session)

    assert len(get_inner_messages(session)) == 1 + 2 * (MOST_REPLIES + 1)


def test_a_pipe_that_nobody_reads_ends_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever left gets nothing more, and pays for nothing more."""
    output = Output()

    def closed(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(output, "write", closed)
    with sabir.adapter("echo:any") as llm, pytest.raises(BrokenPipeError):
        take_turn(llm, [sabir.user("Hello there")], (), output)
