"""`sabir chats`: what is kept is listed, shown, exported and deleted."""

import json
import stat
from pathlib import Path

import pytest
import sabir
from sabir_session import Conversation

from tests.cli.conftest import Command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two conversations, of which `trip` is the later."""
    monkeypatch.setenv("SABIR_HOME", str(tmp_path))
    for name, said in (("1", "First of all"), ("trip", "Rome\nin spring")):
        with Conversation("echo:any", instructions="Be brief.", keep=tmp_path / "chats.db", name=name) as chat:
            chat.ask_sync(said)
    return tmp_path


@pytest.mark.usefixtures("home")
def test_they_are_listed_the_latest_first(command: Command) -> None:
    found = json.loads(command("chats", "--json")[0])
    out, _ = command("chats")

    assert [(each["name"], each["model"], each["turns"], each["words"]) for each in found] == [
        ("trip", "echo:any", 1, "Rome in spring"),
        ("1", "echo:any", 1, "First of all"),
    ]
    assert [line.split()[0] for line in out.splitlines()] == ["name", "trip", "1"]


def test_a_file_that_is_there_is_replaced_only_by_force(home: Path, command: Command) -> None:
    kept = home / "mine.md"
    kept.write_text("mine", "utf-8")
    kept.chmod(0o600)
    said = command.error("chats", "export", "trip", "--to", str(kept))
    assert "exists already; choose another file, or add --force" in said
    assert kept.read_text("utf-8") == "mine"
    command("chats", "export", "trip", "--to", str(kept), "--force")
    assert kept.read_text("utf-8").startswith("## ")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "is not a file; choose a file" in command.error(
        "chats", "export", "trip", "--to", str(home), "--as", "json", "--force"
    )
    assert [path.name for path in home.glob(".mine*")] == []


@pytest.mark.usefixtures("home")
def test_json_gives_one_document_or_is_refused(command: Command) -> None:
    """What was deleted is one; an export has its own forms."""
    assert "write --as json" in command.error("chats", "export", "trip", "--json")
    assert json.loads(command("chats", "delete", "trip", "--json")[0]) == {"deleted": ["trip"]}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_list_fits_its_width(columns: int, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out, _ = command("chats")

    assert max(map(len, map(str.rstrip, out.splitlines()))) <= columns
    assert all(word in out for word in ("trip", "echo:any", "Rome in spring"))


def test_a_name_that_another_program_gave_stays_in_its_row(home: Path, command: Command) -> None:
    """Signs that steer a terminal are shown, and a long one is cut."""
    with Conversation("echo:any", keep=home / "chats.db", name="two\n\x1b[2J" + "x" * 3000) as chat:
        chat.ask_sync("Hello")
    out, _ = command("chats")

    assert "\x1b" not in out
    assert len(out) < 1000


@pytest.mark.usefixtures("home")
def test_one_is_shown_as_it_is_read(command: Command) -> None:
    assert command("chats", "show", "1")[0] == (
        "## system\n\nBe brief.\n\n## user\n\nFirst of all\n\n## echo:any\n\nFirst of all\n"
    )


def test_one_is_exported_in_the_form_of_the_files_name(home: Path, command: Command) -> None:
    """JSON Lines load again, and go to standard output where no file is named."""
    command("chats", "export", "trip", "--to", str(home / "trip.jsonl"))
    command("chats", "export", "trip", "--to", str(home / "trip.md"))
    out, _ = command("chats", "export", "trip")

    assert sabir.loads(out) == sabir.load(home / "trip.jsonl")
    assert [message.text for message in sabir.loads(out)] == ["Be brief.", "Rome\nin spring", "Rome\nin spring"]
    assert (home / "trip.md").read_text("utf-8").startswith("## system\n\nBe brief.\n")


@pytest.mark.usefixtures("home")
def test_those_that_are_named_are_deleted(command: Command) -> None:
    command("chats", "delete", "1")

    assert [each["name"] for each in json.loads(command("chats", "--json")[0])] == ["trip"]


def test_a_home_without_conversations_is_told(command: Command) -> None:
    out, err = command("chats")

    assert out == ""
    assert "no conversation is saved in" in err


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["show"], "`sabir chats show` accepts one NAME"),
        (["show", "1", "trip"], "`sabir chats show` accepts one NAME"),
        (["list", "1"], "`sabir chats list` accepts no NAME"),
        (["delete"], "`sabir chats delete` accepts one NAME or more"),
        (["show", "tripp"], "did you mean 'trip'?"),
        (["delete", "9"], "no conversation '9'"),
        (["show", "1", "--to", "x.md"], "--to, --as and --force work with `sabir chats export` only, not with show"),
        (["export", "1", "--to", "x.txt"], "does not end in .jsonl, .json or .md"),
        (["export", "1", "--to", "no/such/x.md"], "cannot be written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line(arguments: list[str], complaint: str, command: Command) -> None:
    assert complaint in command.error("chats", *arguments)
