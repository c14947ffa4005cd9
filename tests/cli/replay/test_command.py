"""`sabir replay` as a user runs it."""

import json
from pathlib import Path

import pytest
import sabir
import sabir_session
from sabir_cli.main import main
from sabir_testing.scripted import calls, reply

from tests.cli.command import run
from tests.cli.conftest import Command, Relay
from tests.cli.replay.recordings import RAN, City, record
from tests.cli.terminal import on_terminal, posix

OPTION = ("--option", "tests.cli.replay.recordings:weather")
CALL = 'call weather {"city": "Rome"}'


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a conversation that echo answered, in which it called the option."""
    file = tmp_path / "chats.db"
    record(file, "echoed", CALL, "Thanks!")
    RAN.clear()
    return file


def test_a_recording_replays_against_itself(store: Path, command: Command) -> None:
    out, err = command("replay", str(store))

    assert (out, err) == ("2 questions, no difference\n", "")


def test_another_model_that_answers_the_same_shows_no_difference(store: Path, command: Command) -> None:
    """Recorded results are used, and the option does not run."""
    out, err = command("replay", str(store), "echoed", "--model", "echo:other", *OPTION)

    assert (out, err, RAN) == ("2 questions, no difference\n", "", [])


def test_one_argument_result_and_finish_reason_are_exactly_what_is_shown(tmp_path: Path, command: Command) -> None:
    store = tmp_path / "two.db"
    record(store, "monday", "Rain?", "Thanks!", script=(calls(weather={"city": "Rome"}), "Yes.", "Welcome."))
    cut = reply("Yes.", finish_reason="length")
    record(store, "tuesday", "Rain?", "Thanks!", script=(calls(weather={"city": "Tirana"}), cut, "Welcome."))

    out, _ = command("replay", str(store), "monday", "--against", "tuesday", code=1)
    assert out.splitlines() == [
        "question 1: “Rain?”",
        "  reply 1, call weather: argument city",
        "    recorded  Rome",
        "    replayed  Tirana",
        "  reply 1, call weather: result celsius",
        "    recorded  4",
        "    replayed  6",
        "  reply 2, finish reason",
        "    recorded  stop",
        "    replayed  length",
        "1 of 2 questions differs: 1 argument, 1 result, 1 finish reason",
    ]
    out, _ = command("replay", str(store), "monday", "--against", "tuesday", "--json", code=1)
    first, second = json.loads(out)["questions"]
    assert [each["aspect"] for each in first["differences"]] == ["argument", "result", "finish reason"]
    assert (second["differences"], second["stopped"]) == ([], "")


def test_a_call_without_a_recorded_result_stops_its_question_only(tmp_path: Path, command: Command) -> None:
    store = tmp_path / "other.db"
    record(store, "oslo", CALL, "Thanks!", script=(calls(weather={"city": "Oslo"}), "Yes.", "Welcome."))
    RAN.clear()

    out, _ = command("replay", str(store), "-m", "echo:m", *OPTION, code=1)
    lines = out.splitlines()
    assert "  stopped: there is no recorded result for weather(city='Rome')" in lines
    assert "question 2: “Thanks!”" in lines
    assert lines[-1] == "2 of 2 questions differ: 1 argument, 1 text, 1 stopped"
    assert RAN == []


def test_a_failed_request_is_a_difference_but_a_wrong_key_ends_the_command(
    tmp_path: Path, command: Command, relay: Relay
) -> None:
    store = tmp_path / "failing.db"
    record(store, "one", "fail 400", "Thanks!", script=("Yes.", "Thanks!"))
    record(store, "two", "fail 401", "Thanks!", script=("Yes.", "Thanks!"))

    out, _ = command("replay", str(store), "one", "-m", "echo:m", code=1)
    assert out.splitlines()[:3] == ["question 1: “fail 400”", "  reply 1, error", "    recorded  –"]
    assert out.splitlines()[-1] == "1 of 2 questions differs: 1 error"
    assert "you asked for 401" in command.error("replay", str(store), "two", "-m", "echo:m", code=4)


def test_a_model_that_costs_money_needs_a_confirmation(
    store: Path, command: Command, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAY_API_KEY", "key")
    line = command.error("replay", str(store), "-m", "relay:m", *OPTION)
    assert line.startswith("relay:m: about 3 requests, ")
    assert line.endswith(" output tokens, cost unknown: nobody can confirm the start here; add --yes")
    assert relay.requests == []

    out, err = command("replay", str(store), "-m", "relay:m", *OPTION, "--yes")
    assert out == "2 questions, no difference\n"
    assert err.splitlines()[0].startswith("relay:m: about 3 requests, ")
    assert err.splitlines()[-1] == "3 replies of relay:m, cost unknown"
    assert len(relay.requests) == 3


def test_a_missing_key_is_reported_before_the_confirmation(store: Path, command: Command, relay: Relay) -> None:
    assert "relay has no key" in command.error("replay", str(store), "-m", "relay:m", *OPTION, code=4)


@pytest.mark.parametrize(
    ("mode", "question"), [("native", '{"name": "Rome"}'), ("call", 'call final_answer {"name": "Rome"}')]
)
def test_typed_answers_are_replayed_with_their_type(tmp_path: Path, command: Command, mode: str, question: str) -> None:
    store = tmp_path / "typed.db"
    record(store, "typed", question, options=[], output=City, output_mode=mode)

    out, _ = command("replay", str(store), "-m", "echo:m", "--output", "tests.cli.replay.recordings:City")
    assert out == "1 question, no difference\n"
    if mode == "call":
        assert command.error("replay", str(store), "-m", "echo:m") == (
            "the recorded answers have a type; add --output, with the type or a JSON schema"
        )


def test_another_question_is_a_difference_between_recordings(tmp_path: Path, command: Command) -> None:
    store = tmp_path / "two.db"
    record(store, "one", "Rain?", script=("Yes.",))
    record(store, "two", "Snow?", "Thanks!", script=("Yes.", "Welcome."))

    out, _ = command("replay", str(store), "one", "--against", "two", code=1)
    assert out.splitlines() == [
        "question 1: “Rain?”",
        "  question",
        "    recorded  Rain?",
        "    replayed  Snow?",
        "question 2: “Thanks!”",
        "  reply 1: only in the replay",
        "    replayed  Welcome.",
        "2 of 2 questions differ: 1 question, 1 reply",
    ]


@posix
def test_a_no_on_a_terminal_sends_nothing(store: Path) -> None:
    arguments = ("replay", str(store), "-m", "openai:gpt-5", *OPTION)
    code, shown = on_terminal(*arguments, typed=[(rb"Start\? \[y/N\]", b"n\n")], env={"OPENAI_API_KEY": "none"})

    assert b"openai:gpt-5: about 3 requests, " in shown
    assert b"Start? [y/N]" in shown
    assert b"differ" not in shown
    assert code == 1


def test_losses_of_the_requests_are_noted(tmp_path: Path, command: Command) -> None:
    """Because they may be the reason of a difference."""
    store = tmp_path / "seen.db"
    llm = sabir.adapter("echo:m")
    with sabir_session.Conversation(llm, keep=store, name="seen") as chat:
        chat.ask_sync("What is this?", sabir.image(b"\x89PNG\r\n\x1a\n" + bytes(30)))

    _, err = command("replay", str(store), "-m", "echo:m")
    assert err.startswith("loss   downgraded: message 1 (“What is this?”) parts[1]: ")


def test_a_saved_chat_is_named_without_a_store(command: Command, tmp_path: Path) -> None:
    assert main(["chat", "Hello!", "-m", "echo:m", "--name", "greeting"]) == 0
    command("chats")

    assert command("replay", "greeting")[0] == "1 question, no difference\n"
    assert "did you mean 'greeting'" in command.error("replay", "greetings")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("STORE", "echod"), "there is no conversation 'echod' in the store; did you mean 'echoed'?"),
        (("nowhere.db",), "'nowhere.db' is not the file of a store, and no conversation of `sabir chat` is saved"),
        (("nowhere.db", "echoed"), "'nowhere.db' is not a file; name the file of a store"),
        (("STORE", "-m", "echo:m"), "the recording calls weather, which the model must know; add --option module"),
        (("STORE", "-m", "echo:m", "--against", "echoed"), "--model and --against exclude each other"),
        (("STORE", "--against", "other"), "there is no conversation 'other' in the store; the store has 'echoed'"),
    ],
)
def test_wrong_arguments_name_the_remedy(
    store: Path, command: Command, arguments: tuple[str, ...], reason: str
) -> None:
    line = command.error("replay", *(str(store) if each == "STORE" else each for each in arguments))

    assert line.startswith(reason)


def test_a_store_with_several_conversations_lists_them(store: Path, command: Command) -> None:
    record(store, "more", "Hi!", script=("Hello!",))

    assert command.error("replay", str(store)) == (
        "the store has 'echoed', 'more'; write the name of a conversation after the store"
    )


def test_a_file_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "text.db"
    file.write_text("no database" * 100)
    ran = run("replay", str(file))

    assert ran.returncode == 2
    assert ran.stderr.decode().startswith("sabir: ")
