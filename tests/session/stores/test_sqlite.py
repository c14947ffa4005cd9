"""The store in an SQLite file: its settings, its layout, and files that are none of it."""

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from sabir_session import RecordingFailed, SQLiteStore, StoreError
from sabir_session.stores import layouts

from tests.session.layouts import write_old_store


def execute(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """Run statements as somebody else would; the last one's rows."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return [connection.execute(statement).fetchall() for statement in statements][-1]
    finally:
        connection.close()


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
def test_a_store_writes_ahead_and_waits_for_the_disk_only_if_asked(
    tmp_path: Path, durability: str, synchronous: int
) -> None:
    """UP-30: what an append promises is chosen, and is what SQLite is set to."""
    with SQLiteStore(tmp_path / "a.db", durability=durability) as store:  # type: ignore[arg-type]
        assert store._query("PRAGMA journal_mode") == [("wal",)]
        assert store._query("PRAGMA synchronous") == [(synchronous,)]


def test_a_new_file_and_its_log_are_the_owners_alone(tmp_path: Path) -> None:
    """Conversations stand in them. A file that already exists keeps its mode."""
    umask = os.umask(0)
    try:
        (tmp_path / "old.db").touch(0o640)
        for name, mode in {"a.db": 0o600, "old.db": 0o640}.items():
            with SQLiteStore(tmp_path / name) as store:
                store.journal("monday").append("m:K", "{}")
                assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob(f"{name}*")} == {mode}
    finally:
        os.umask(umask)


def test_records_can_be_read_with_any_tool(tmp_path: Path) -> None:
    """WI-02: the file is readable without this package."""
    with SQLiteStore(tmp_path / "a.db") as store:
        store.journal("monday").append("m:K", '{"a": 1}')
        store.journal("tuesday").append("m:K", '{"b": 2}')

    rows = execute(
        tmp_path / "a.db",
        "SELECT name, position, kind, body FROM sabir_journal_records JOIN sabir_journals ON id = journal",
    )
    assert rows == [("monday", 0, "m:K", '{"a": 1}'), ("tuesday", 0, "m:K", '{"b": 2}')]


def test_a_row_costs_the_same_bytes_wherever_it_stands(tmp_path: Path) -> None:
    """Constant cost: the ten thousandth record writes as many pages as the tenth."""
    grown = []
    with SQLiteStore(tmp_path / "a.db") as store:
        store._query("PRAGMA wal_autocheckpoint = 0")
        journal = store.journal("a")
        for _ in range(10):
            before = (tmp_path / "a.db-wal").stat().st_size
            for _ in range(1000):
                journal.append("m:K", "x" * 400)
            grown.append((tmp_path / "a.db-wal").stat().st_size - before)

    assert max(grown) < 1.1 * min(grown)


EARLIER = {0: ("ALTER TABLE sabir_records RENAME COLUMN text TO body",), **layouts.SQLITE_UPGRADES}
"""The steps from a layout that no version ever wrote, two layouts back."""


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A store of that layout."""
    write_old_store(str(tmp_path / "a.db"))
    execute(tmp_path / "a.db", "UPDATE sabir_session_schema SET version = 0")
    execute(tmp_path / "a.db", "ALTER TABLE sabir_records RENAME COLUMN body TO text")
    return tmp_path / "a.db"


def test_older_layouts_are_brought_to_this_one_step_by_step(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each layout says how it becomes the next."""
    monkeypatch.setattr(SQLiteStore, "_upgrades", EARLIER)
    with SQLiteStore(earlier) as store:
        assert len(list(store.journal("trip").read())) == 7
    assert execute(earlier, "SELECT version FROM sabir_session_schema") == [(layouts.VERSION,)]


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (["INSERT INTO nowhere VALUES (1)"], "no such table: nowhere"),
        (
            ["CREATE TABLE once (a UNIQUE)", *["INSERT OR ROLLBACK INTO once VALUES (1)"] * 2],
            "UNIQUE constraint failed",
        ),
    ],
    ids=["a failure", "a rollback of SQLite's own"],
)
def test_an_upgrade_that_fails_changes_nothing_and_tells_why(
    earlier: Path, monkeypatch: pytest.MonkeyPatch, statements: list[str], told: str
) -> None:
    """SQLite rolls back by itself where the disk is full; that there is nothing left to roll back is no news."""
    monkeypatch.setattr(SQLiteStore, "_upgrades", {**EARLIER, 1: (*EARLIER[1], *statements)})
    with pytest.raises(StoreError, match=f"could not be opened: {told}"):
        SQLiteStore(earlier)

    assert execute(earlier, "SELECT version FROM sabir_session_schema") == [(0,)]
    assert execute(earlier, "SELECT count(text) > 0 FROM sabir_records") == [(1,)]


def zip_head(whole: bytes) -> bytes:
    return b"PK\x03\x04".ljust(100, b"\0") + whole[100:]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda whole: whole[:-4096], "malformed"),
        (lambda whole: whole[:50], "malformed"),
        (zip_head, "not a database"),
        (lambda whole: b"These are my notes. " * 200, "not a database"),
        (lambda whole: whole[:4096] + bytes(len(whole) - 4096), "malformed"),
    ],
    ids=["a page short", "50 bytes", "header of another file", "notes", "zeros"],
)
def test_a_damaged_file_is_an_error_and_not_a_shorter_journal(
    tmp_path: Path, damage: Callable[[bytes], bytes], told: str
) -> None:
    """UP-16, UP-30: the error says what SQLite found, and what to do."""
    path = tmp_path / "a.db"
    with SQLiteStore(path) as store:
        journal = store.journal("a")
        for number in range(100):
            journal.append("k", f"{number}" * 100)
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(StoreError, match=f"a\\.db' could not .*{told}; restore the store from a backup"):
        with SQLiteStore(path) as store:
            list(store.journal("a").read())


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM sabir_session_schema", r"is damaged: its layout is \[\]; restore the store"),
        ("UPDATE sabir_session_schema SET version = 'x'", r"is damaged: its layout is \['x'\]; restore the store"),
        ("ALTER TABLE sabir_session_schema RENAME COLUMN version TO v", "no such column: version; restore the store"),
        ("DROP TABLE sabir_session_records", "no such table: .*sabir_session_records; restore the store"),
    ],
)
def test_tables_that_are_not_as_they_were_made_are_an_error(tmp_path: Path, statement: str, told: str) -> None:
    SQLiteStore(tmp_path / "a.db").close()
    execute(tmp_path / "a.db", "DROP VIEW sabir_journal_records", statement)

    with pytest.raises(StoreError, match=told):
        with SQLiteStore(tmp_path / "a.db") as store:
            store.journal("a")


def test_a_record_for_which_there_is_no_room_is_told_and_not_written(tmp_path: Path) -> None:
    """UP-30: what was written before stays, and there is a remedy."""
    with SQLiteStore(tmp_path / "a.db") as store:
        journal = store.journal("a")
        journal.append("k", "first")
        ((pages,),) = store._query("PRAGMA page_count")
        store._query(f"PRAGMA max_page_count = {pages}")
        told = r"could not store record 1 of the journal 'a': .* full; free space on the store's disk"
        with pytest.raises(RecordingFailed, match=told):
            journal.append("k", "x" * 100_000)
        assert list(store.journal("a").read()) == [("k", "first")]
        store._query("PRAGMA max_page_count = 1000")
        journal.append("k", "second")
        assert [body for _, body in journal.read()] == ["first", "second"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("sqlite:///chats.db", r"not a URL of 'sqlite'; write SQLiteStore\('chats\.db'\)"),
        ("file:chats.db?mode=ro", "not a URL of 'file'; write"),
        ("postgresql://ada:s3cret@localhost/chats", "not a URL of 'postgresql'; use PostgresStore for the URL"),
        ("", "not an empty text; write"),
        ("{folder}/no/a.db", "no/a.db' could not be opened: its folder does not exist; create the folder first"),
        ("{folder}", "could not be opened: it is a folder; use the path of a file in the folder"),
    ],
)
def test_what_is_no_path_of_a_file_is_refused_with_what_to_write(tmp_path: Path, given: str, reason: str) -> None:
    """UP-30: nothing is kept in a file of a curious name, nor in one that SQLite deletes; no password is shown."""
    with pytest.raises(StoreError, match=reason) as caught:
        SQLiteStore(given.format(folder=tmp_path))

    assert "s3cret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_finds_the_file_locked_fails_after_its_timeout(tmp_path: Path) -> None:
    """UP-30: another process that writes for long does not stop this one for ever, nor lose its record silently."""
    with SQLiteStore(tmp_path / "a.db", timeout=0.01) as store:
        journal = store.journal("a")
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RecordingFailed, match="locked"):
            journal.append("k", "x")
        other.execute("ROLLBACK")
        other.close()
        journal.append("k", "x")
        assert list(journal.read()) == [("k", "x")]
