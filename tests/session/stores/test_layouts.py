"""A store that an earlier version wrote is upgraded, read and continued; a newer one is refused."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import sabir
from sabir import ToolContext
from sabir_session import (
    Conversation,
    PostgresStore,
    Session,
    Snapshot,
    SQLiteStore,
    StoreTooNew,
    append_item,
    enable_inner_message_recording,
    get_inner_messages,
)
from sabir_session.stores import layouts
from sabir_testing.scripted import ScriptedAdapter

from tests.session.layouts import APPEND_1, OLD, connect, execute, read_old_store, write_old_store
from tests.session.support import Note, Opener, texts_of, weather


@pytest.fixture
def old(address: str) -> str:
    """The address of a store of layout 1."""
    write_old_store(address)
    assert read_old_store(address) == {name: OLD[name] for name in ("schema", "journals", "records")}
    return address


def test_an_older_store_is_continued(old: str, open_store: Opener) -> None:
    """Conversations, forks, interrupted questions and logs go on, and new rows have the new names."""
    resumed: list[bool] = []

    @sabir.option(name="weather")
    def look(city: str) -> str:
        resumed.append(ToolContext.current().is_resume)
        return f"rain in {city}"

    with open_store() as store:
        with Conversation(ScriptedAdapter("Rhine."), options=[weather], keep=store, name="trip") as chat:
            assert texts_of(chat) == ["Be brief.", "Name a river.", "Po.", "Umbrella?", "Rain."]
            assert chat.ask_sync("Another.").text == "Rhine."
        with Conversation(ScriptedAdapter("Oder."), keep=store, name="east") as chat:
            assert texts_of(chat)[-2:] == ["Go east.", "Elbe."]
            chat.drop_last()
            assert chat.ask_sync("Go west.").text == "Oder."
        with Conversation(ScriptedAdapter("Rain."), options=[look], keep=store, name="open") as chat:
            assert chat.unfinished
            assert (chat.ask_sync().text, resumed) == ("Rain.", [True])
        check_notes(Session(journal=store.journal("notes")))
    with open_store() as store, Conversation(ScriptedAdapter(), keep=store, name="trip") as chat:
        assert texts_of(chat)[-2:] == ["Another.", "Rhine."]
    assert read_version(old) == layouts.VERSION
    check_rows(old)


def check_notes(session: Session) -> None:
    """A log of a user's type, beside an evaluation in the same journal."""
    session.mutate(Note).register(Note, append_item)
    enable_inner_message_recording(session)
    session.mutate(Note).append(Note("And boots."))
    assert [note.text for note in session.select_all(Note)] == ["Bring an umbrella.", "And a hat.", "And boots."]
    assert [record.content for record in get_inner_messages(session)] == ["", "Name a river.", "Po."]


def check_rows(address: str) -> None:
    """No row was rewritten, and the new ones have the new names."""
    connection = connect(address)
    rows = execute(connection, "SELECT id, kind, body FROM sabir_session_records ORDER BY id").fetchall()
    assert execute(connection, "SELECT count(*) FROM sabir_journal_records").fetchall() == [(len(rows),)]
    connection.close()
    old_rows = {tuple(row) for row in OLD["records"]}
    journals = {identity for identity, name, _, _ in OLD["journals"] if name in ("trip", "open", "notes")}
    assert {row for row in rows if row in old_rows} >= {row for row in old_rows if row[0] >> 32 in journals}
    assert {row[1] for row in rows if row not in old_rows} == {"sabir.message", "tests.session.support:Note"}


def read_version(address: str) -> int:
    """The number of the layout; a store has one."""
    connection = connect(address)
    ((version,),) = execute(connection, "SELECT version FROM sabir_session_schema").fetchall()
    connection.close()
    return int(version)


LAST_STATEMENT = {"sqlite": 6, "postgres": 5}
"""The statement that writes the new number: locks and questions, the steps, the number."""


@pytest.mark.parametrize("back", [0, 3])
def test_an_upgrade_that_is_killed_leaves_the_older_store(old: str, open_store: Opener, back: int) -> None:
    """The process is killed before the last statement, when all others are executed, or `back` statements earlier."""
    statement = LAST_STATEMENT["postgres" if old.startswith("postgresql:") else "sqlite"] - back
    command = [sys.executable, "-m", "tests.session.layouts", old, str(statement)]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL

    assert read_old_store(old) == {name: OLD[name] for name in ("schema", "journals", "records")}
    with open_store() as store, Conversation("echo:m", keep=store, name="trip") as chat:
        assert len(chat.messages) == 7


def test_programs_that_open_an_older_store_at_once_upgrade_it_once(old: str, open_store: Opener) -> None:
    barrier = Barrier(4)

    def length(_: int) -> int | None:
        barrier.wait()
        with open_store() as store:
            return store.length("trip")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(length, range(4))) == [7] * 4
    assert read_version(old) == layouts.VERSION


def test_a_newer_store_is_refused_in_one_line_and_left_alone(address: str, open_store: Opener) -> None:
    open_store().close()
    connection = connect(address)
    execute(connection, "UPDATE sabir_session_schema SET version = 7")
    connection.close()

    told = r"has layout 7, but this sabir-session reads layouts up to 2; upgrade sabir-session$"
    with pytest.raises(StoreTooNew, match=told) as caught:
        open_store()
    assert "\n" not in str(caught.value)
    assert read_version(address) == 7


def test_a_process_of_an_older_version_writes_nothing_after_the_upgrade(old: str, open_store: Opener) -> None:
    """It does not see records with new names, so its statements fail, prepared ones too."""
    connection = connect(old)
    trip = OLD["journals"][0][0]
    values = (trip << 32 | 7, "sabir_session:InnerMessage", "{}", trip)
    for position in range(6):  # psycopg prepares a statement that it repeats
        execute(connection, APPEND_1, (trip << 32 | 100 + position, *values[1:]))
    execute(connection, f"DELETE FROM sabir_records WHERE id >= {trip << 32 | 100} AND id < {trip + 1 << 32}")
    open_store().close()

    for statement, given in ((APPEND_1, values), ("SELECT id FROM sabir_records WHERE id > ?", (0,))):
        with pytest.raises(Exception, match=r"no such table: sabir_records|\"sabir_records\" does not exist"):
            execute(connection, statement, given)
    connection.close()
    with open_store() as store:
        assert store.length("trip") == 7


def test_a_snapshot_of_the_earlier_schema_is_restored() -> None:
    """Its slices are named by module and class; what is written again has the stored names."""
    session = Session()
    session.mutate(Note).register(Note, append_item)
    enable_inner_message_recording(session)
    snapshot = Snapshot.from_json(sabir.authoring.encode_json(OLD["snapshot"]).encode())
    assert snapshot.schema_number == 1
    assert {each.slice_type for each in snapshot.slices} == {"tests.session.support:Note", "sabir_session:InnerMessage"}

    session.mutate().rollback(snapshot)

    assert [note.text for note in session.select_all(Note)] == ["Bring an umbrella.", "And a hat."]
    assert [record.content for record in get_inner_messages(session)] == ["", "Name a river.", "Po."]
    again = session.snapshot()
    assert again.schema_number == 2
    assert {each.slice_type for each in again.slices} == {"tests.session.support:Note", "sabir.message"}


@pytest.mark.parametrize("kind", [SQLiteStore, PostgresStore])
def test_each_earlier_layout_has_a_step(kind: Any) -> None:
    assert sorted(kind._upgrades) == [*range(1, layouts.VERSION)]
