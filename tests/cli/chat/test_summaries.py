"""The list of conversations says what their records say, however their journals were forked and rewound."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import sabir
from sabir.authoring import one_line
from sabir_cli.chat.home import Home
from sabir_cli.chat.summaries import read_summaries
from sabir_cli.dialects import DEFAULTS, default_dialect, model_label
from sabir_cli.output import UsageError
from sabir_session import Conversation, SQLiteStore

from tests.cli.command import environment
from tests.cli.conftest import Command


def in_full(file: Path) -> dict[str, tuple[int, str, str]]:
    """Return turns, model and first words by name, read from all messages."""
    with Home(file.parent) as home:
        messages = {name: home.messages(name) for name in home.store.names()}
    shown = {}
    for name, each in messages.items():
        questions = [message.text for message in each if message.policy == "user"]
        origin = next((message.origin for message in reversed(each) if message.origin), None)
        if questions:
            model = f"{origin.provider}:{origin.model}" if origin else ""
            shown[name] = (len(questions), model, one_line(questions[0], 200))
    return shown


def test_a_summary_counts_forked_and_rewound_journals(tmp_path: Path) -> None:
    """/drop, /retry and forks leave journals whose first records belong to another."""
    file = tmp_path / "chats.db"
    with Conversation("echo:any", instructions="Be brief.", keep=file, name="plain") as chat:
        for number in range(4):
            chat.ask_sync(f"Question {number}")
        with chat.fork("fork") as fork:
            fork.ask_sync("Another.")
            fork.drop_last()
            with fork.replacing_last():
                fork.ask_sync("Replaced.")
            with fork.fork("deep") as deep:
                deep.drop_last()
                deep.ask_sync("Deep.")
                deep.ask_sync("Deeper.")
        with chat.fork("same"):
            pass
    with SQLiteStore(file) as store:
        store.delete("plain")
        store.fork("deep", "empty", 0)
    summaries = {each.name: (each.turns, each.model, each.words) for each in read_summaries(file)}

    assert summaries == in_full(file)
    assert {name: turns for name, (turns, _, _) in summaries.items()} == {"fork": 4, "deep": 5, "same": 4}


def test_a_list_imports_neither_the_library_nor_its_stores(tmp_path: Path) -> None:
    """They take longer than the list of ten thousand conversations may."""
    with Conversation("echo:any", keep=tmp_path / "chats.db", name="trip") as chat:
        chat.ask_sync("Rome")
    code = "import sys; from sabir_cli.main import main; main(['chats']); print(*sys.modules, file=sys.stderr)"
    env = environment({"SABIR_HOME": str(tmp_path)})
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)

    assert "Rome" in finished.stdout
    assert {"pydantic", "pydantic_core", "sabir_session", "rich.table"} & set(finished.stderr.split()) == set()


def test_a_damaged_file_is_named(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "chats.db"
    monkeypatch.setenv("SABIR_HOME", str(tmp_path))
    with Conversation("echo:any", keep=file, name="trip") as chat:
        chat.ask_sync("Rome")
    with sqlite3.connect(file) as database:
        database.execute("UPDATE sabir_session_records SET body = 'no JSON'")
    with pytest.raises(UsageError, match="restore the file from a backup"):
        read_summaries(file)
    assert repr(str(file)) in command.error("chats")


def test_the_dialect_is_shown_where_it_is_not_the_default() -> None:
    """The table of defaults agrees with the installed providers; others are asked."""
    assert model_label("openai", "openai.chat", "gpt-5") == "openai.chat:gpt-5"
    assert model_label("openai", "openai.responses", "gpt-5") == "openai:gpt-5"
    assert model_label("nowhere", "openai.chat", "gpt-5") == "nowhere.chat:gpt-5"
    for status in sabir.providers():
        if status.state == "installed" and status.means_bare_name:
            plugin = sabir.provider(status.name)
            expected = str(plugin.dialect(plugin.dialects[0]).name)
            assert DEFAULTS.get(status.name, expected) == expected == default_dialect(status.name)


def test_a_locked_file_is_waited_for_not_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SABIR_HOME is no remedy for a file that another program is writing to."""
    with Conversation("echo:any", keep=tmp_path / "chats.db", name="trip") as chat:
        chat.ask_sync("Rome")
    monkeypatch.setattr("sabir_cli.chat.home.SQLiteStore", partial(SQLiteStore, timeout=0.05))
    with closing(sqlite3.connect(tmp_path / "chats.db", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UsageError, match="locked; wait until the other program releases it") as refused:
            Home(tmp_path)

    assert "SABIR_HOME" not in str(refused.value)
