"""The home of conversations: one file, a name for each, and nobody else's while it is held."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sabir
from sabir_cli.chat.home import ChatLocation, Home
from sabir_cli.output import UsageError
from sabir_session import ConversationBusy

from tests.cli.command import environment, run

ECHO = ("chat", "-m", "echo:any")


def said(home: Path, name: str | None = None, *content: str, system: str | None = None) -> str:
    """Say something in a conversation; its name."""
    with sabir.adapter("echo:any") as llm, ChatLocation.of(home, name, continues_last=False, is_saved=True) as place:
        chat = place.open(llm, system, "Be as a default.")
        for each in content:
            chat.ask_sync(each)
        assert place.name is not None
        return place.name


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    said(tmp_path / "home", None, "Hello")

    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "home" / "chats.db").stat().st_mode) == 0o600


def test_conversations_are_numbered_and_an_empty_one_leaves_no_trace(tmp_path: Path) -> None:
    """The next number is one more than the largest."""
    assert said(tmp_path, None, "Hello") == "1"
    assert said(tmp_path, None) == "2"
    assert said(tmp_path, None, "Hello") == "2"
    assert said(tmp_path, "trip", "Hello") == "trip"

    with Home(tmp_path) as home:
        assert [each.name for each in home.summaries()] == ["trip", "2", "1"]


def test_a_number_that_was_taken_in_between_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may begin and end its conversation after this one looked for a number."""
    said(tmp_path, None, "Hello")
    monkeypatch.setattr(ChatLocation, "_numbers", lambda _: iter(["1", "2"]))

    assert said(tmp_path, None, "Hello") == "2"


def test_a_number_that_another_process_holds_is_passed_over(tmp_path: Path) -> None:
    """Two that begin at once do not become one; nobody gets a name that is held."""
    code = (
        "import sys, sabir_session\n"
        f"with sabir_session.Conversation('echo:any', keep={str(tmp_path / 'chats.db')!r}, name='1'):\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == b"held\n"
        with Home(tmp_path) as home:
            home.store.delete("1")  # so that its number is the next one
        assert said(tmp_path, None, "Hello") == "2"
        with pytest.raises(ConversationBusy), Home(tmp_path) as home:
            home.store.journal("1")
            home.delete("1")
        other.stdin.close()


def test_instructions_stay_unless_others_are_given(tmp_path: Path) -> None:
    """The user's default is for conversations that begin."""
    name = said(tmp_path, None, "first", system="Be brief.")
    said(tmp_path, name, "second")
    said(tmp_path, name, "third", system="Be long.")

    with Home(tmp_path) as home:
        told = [message.text for message in home.messages(name) if message.policy == "system"]
    assert told == ["Be brief.", "Be long."]
    assert Home(tmp_path).messages(said(tmp_path, None, "Hello"))[0].text == "Be as a default."


def test_processes_that_begin_at_once_have_a_conversation_each(tmp_path: Path) -> None:
    env = environment({"SABIR_HOME": str(tmp_path)})
    script = "from sabir_cli.main import main; main()"
    running = [
        subprocess.Popen([sys.executable, "-c", script, *ECHO, f"Hello {n}"], stdin=subprocess.DEVNULL, env=env)
        for n in range(4)
    ]
    assert [each.wait(60) for each in running] == [0] * 4

    with Home(tmp_path) as home:
        assert sorted(each.words for each in home.summaries()) == [f"Hello {n}" for n in range(4)]


def test_a_name_that_another_process_holds_is_refused(tmp_path: Path) -> None:
    with (
        sabir.adapter("echo:any") as llm,
        ChatLocation.of(tmp_path, "trip", continues_last=False, is_saved=True) as place,
    ):
        place.open(llm, None, None)
        finished = run(*ECHO, "--name", "trip", "Hello", env={"SABIR_HOME": str(tmp_path)})

    assert finished.returncode == 2
    assert b"another process" in finished.stderr


@pytest.mark.parametrize("name", ["\udcff", "two\nlines", "\x1b[2J", "x" * 121])
def test_a_name_that_no_list_can_show_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a valid name; use one line of at most 120 printable") as refused:
        ChatLocation.of(tmp_path / "home", name, continues_last=False, is_saved=True)

    assert str(refused.value).isprintable() and len(str(refused.value)) < 160
    assert not (tmp_path / "home").exists()
