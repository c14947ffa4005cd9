"""Stores have the settings that runs need, and what is wrong with one is told."""

import asyncio
import os
import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sabir
from sabir_runtime import Batch
from sabir_runtime.durable import DurableRunner, RunPaused, Runs, StoreInvalid
from sabir_runtime.durable.errors import DurableFault
from sabir_runtime.durable.stores import Durability, open_store, parse_store
from sqlalchemy import Engine, event, text

from tests.durable.assistant import Names
from tests.durable.support import Program, saying, working


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
def test_a_store_is_set_up_for_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability, synchronous: int
) -> None:
    """Readers never wait; a write outlives the process (NORMAL), or a power cut too (FULL); the file is named whole.

    Under Python 3.12 and later the engine asks for `unixepoch('subsec')`, which an older SQLite answers with NULL.
    """
    for form in ("postgres://u@h/d", "postgresql://u@h/d", "postgresql+psycopg://u@h/d"):
        assert parse_store(form).render_as_string() == "postgresql+psycopg://u@h/d"
    monkeypatch.chdir(tmp_path)
    url = parse_store("sqlite:///runs.db")
    engine = open_store(url, durability)
    with engine.connect() as connection:
        found = {name: connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")}
        told = connection.execute(text("SELECT unixepoch('subsec')")).scalar_one()
    engine.dispose()

    assert url.database == str(tmp_path / "runs.db")
    assert found == {"journal_mode": "wal", "synchronous": synchronous}
    assert told == pytest.approx(time.time(), abs=60)


async def test_a_store_that_cannot_be_opened_is_refused_at_once(tmp_path: Path, postgres: str) -> None:
    """A wrong name is a mistake, and nothing to wait for; the password is not told."""
    (tmp_path / "notes.db").write_text("These are notes, and no database of any kind. " * 40)
    for store, told in {
        f"sqlite:///{tmp_path / 'notes.db'}": "notes.db cannot be opened: file is not a database",
        f"{postgres}x": 'cannot be opened: .*"postgresx" does not exist',
        "postgresql://me:secret@127.0.0.1:1/runs": "me:\\*\\*\\*@127.0.0.1:1/runs cannot be opened: .*efused",
    }.items():
        with pytest.raises(StoreInvalid, match=told):
            Runs(store)
        async with asyncio.timeout(20):
            with pytest.raises(StoreInvalid, match=told):
                await DurableRunner(store).launch()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with a run in it."""
    path = tmp_path_factory.mktemp("stored") / "runs.db"

    async def run_once() -> None:
        async with working(f"sqlite:///{path}", main=saying("hello")) as (runner, program):
            await runner.run(program.main, "Hi.", run_id="r")

    asyncio.run(run_once())
    return path.read_bytes()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda whole: whole[:-4096], "malformed"),
        (lambda whole: whole[:50], "malformed"),
        (lambda whole: b"PK\x03\x04".ljust(100, b"\0") + whole[100:], "not a database"),
        (lambda whole: whole[:4096] + bytes(len(whole) - 4096), "malformed"),
    ],
    ids=["a page short", "50 bytes", "header of another file", "zeros"],
)
async def test_a_damaged_file_is_an_error_of_ours(
    tmp_path: Path, stored: bytes, damage: Callable[[bytes], bytes], told: str
) -> None:
    """It says what SQLite found, and what to do; nothing of it is read as a shorter ledger."""
    path, told = tmp_path / "runs.db", rf"runs\.db cannot be (opened|used): .*{told}; restore the store from a backup"
    path.write_bytes(damage(stored))

    with pytest.raises(StoreInvalid, match=told):
        with Runs(f"sqlite:///{path}") as runs:
            runs.show("r")
    with pytest.raises(StoreInvalid, match=told):
        await DurableRunner(f"sqlite:///{path}").launch()


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM sabir_durable_schema", r"layout numbers are \[\], not one number above 0; restore the store"),
        ("INSERT INTO sabir_durable_schema VALUES (4)", r"is damaged: its layout numbers are \[3, 4\], not one number"),
        ("UPDATE sabir_durable_schema SET version = 0", r"is damaged: its layout numbers are \[0\], not one number"),
        ("ALTER TABLE sabir_runs RENAME COLUMN deaths TO births", "no such column: .*deaths; restore the store"),
        ("DROP TABLE sabir_calls", "no such table: sabir_calls; restore the store"),
        ("ALTER TABLE workflow_status RENAME COLUMN status TO state", "no such column: .*status; restore the store"),
    ],
)
def test_tables_that_are_not_as_they_were_made_are_an_error_of_ours(
    tmp_path: Path, stored: bytes, statement: str, told: str
) -> None:
    """No layout is guessed at: neither this package's, nor the engine's."""
    (tmp_path / "runs.db").write_bytes(stored)
    connection = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    connection.execute(statement)
    connection.close()

    with pytest.raises(StoreInvalid, match=told):
        with Runs(f"sqlite:///{tmp_path / 'runs.db'}") as runs:
            runs.show("r")


@pytest.mark.parametrize(
    ("limit", "fault", "told"),
    [
        (
            "max_page_count = 1",
            RunPaused,
            "StoreInvalid: .* full; free space on the store's disk, and try again;",
        ),
        ("query_only = 1", StoreInvalid, "cannot be used: .*readonly database; check that you may write to the store"),
    ],
    ids=["a full disk", "no write at all"],
)
async def test_what_cannot_be_written_ends_a_run_with_the_reason(
    sqlite: str, limit: str, fault: type[DurableFault], told: str
) -> None:
    """It is paused if that can still be written down; else whoever waits for it is told, and a restart goes on."""

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        for engine in engines:
            event.listen(engine, "checkout", lambda connection, *_: connection.execute(f"PRAGMA {limit}"))
        return [sabir.assistant("x" * 300_000, policy="main")]

    engines: list[Engine] = []
    async with working(sqlite, main=main) as (runner, program):
        engines.append(runner.runs.engine)
        with pytest.raises(fault, match=told):
            await runner.run(program.main, "Hi.", run_id="r")
    engines.clear()
    async with working(sqlite, main=main) as (runner, _):
        if fault is RunPaused:
            await asyncio.to_thread(runner.runs.resume, "r")
        assert len((await runner.result("r"))[0].text) == 300_000


@pytest.mark.parametrize(
    ("store", "told"),
    [
        ("postgresql://me:s/secret@host/name@x", "the store is not a valid URL; write / as %2F and @ as %40"),
        ("postgresql://me:s@secret@host/name", "the store is not a valid URL; write / as %2F and @ as %40"),
        ("mysql://me:secret@host/name", r"mysql://me:\*\*\*@host/name has an unsupported scheme"),
        ("mysql://host/name?password=secret", "mysql://host/name has an unsupported scheme"),
        ("postgresql://me:secret@host:port/name", "the store is not a valid URL"),
        ("me:secret@host", "the store is not a valid URL"),
        ("sqlite://me:secret@", "the sqlite URL has no file"),
        ("postgresql://me:secret@127.0.0.1:1/runs?sslmode=secret", r"me:\*\*\*@127.0.0.1:1/runs cannot be opened"),
    ],
)
def test_a_password_is_shown_in_no_error(store: str, told: str) -> None:
    with pytest.raises(StoreInvalid, match=told) as caught:
        Runs(store)

    assert "secret" not in str(caught.value)


async def test_what_is_kept_is_its_owners_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        async with working(f"sqlite:///{tmp_path / 'runs.db'}", main=saying("hello")) as (runner, program):
            await runner.run(program.main, "Hi.", run_id="r")
            made = {path: oct(path.stat().st_mode) for path in tmp_path.rglob("*")}
    finally:
        os.umask(umask)

    assert len(made) >= 3
    assert set(made.values()) == {oct(stat.S_IFREG | 0o600), oct(stat.S_IFDIR | 0o700)}
