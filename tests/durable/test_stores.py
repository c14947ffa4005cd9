"""Stores have the settings that runs need, and the engine beside them is quiet."""

import asyncio
import logging
import os
import stat
import time
from pathlib import Path

import pytest
from sabir_durable import DurableRunner, Runs, StoreInvalid
from sabir_durable.engine import ReadableJSON
from sabir_durable.errors import DurableFault
from sabir_durable.stores import Durability, open_store, parse_store
from sqlalchemy import text

from tests.durable.support import saying, working


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
def test_sqlite_writes_ahead(sqlite: str, durability: Durability, synchronous: int) -> None:
    """Readers never wait; a write outlives the process (NORMAL), or a power cut too (FULL)."""
    engine = open_store(parse_store(sqlite), durability)
    with engine.connect() as connection:
        found = {name: connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")}
    engine.dispose()

    assert found == {"journal_mode": "wal", "synchronous": synchronous}


@pytest.mark.parametrize("form", ["postgres://u@h/d", "postgresql://u@h/d", "postgresql+psycopg://u@h/d"])
def test_every_way_to_write_postgres_is_taken(form: str) -> None:
    assert parse_store(form).render_as_string() == "postgresql+psycopg://u@h/d"


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


def test_a_file_is_named_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that changes its folder keeps its store."""
    monkeypatch.chdir(tmp_path)

    assert parse_store("sqlite:///runs.db").database == str(tmp_path / "runs.db")


@pytest.mark.parametrize(
    ("store", "told"),
    [
        ("mysql://me:secret@host/name", r"mysql://me:\*\*\*@host/name is of no known kind"),
        ("mysql://host/name?password=secret", "mysql://host/name is of no known kind"),
        ("postgresql://me:secret@host:port/name", "the store is no URL that can be read"),
        ("me:secret@host", "the store is no URL that can be read"),
        ("sqlite://me:secret@", "sqlite names no file"),
        ("postgresql://me:secret@127.0.0.1:1/runs?sslmode=secret", r"me:\*\*\*@127.0.0.1:1/runs cannot be opened"),
    ],
)
def test_a_password_is_shown_in_no_error(store: str, told: str) -> None:
    """Not where it is understood, not where it is not, and not in the driver's own words."""
    with pytest.raises(StoreInvalid, match=told) as caught:
        Runs(store)

    assert "secret" not in str(caught.value)


async def test_what_is_kept_is_its_owners_alone(tmp_path: Path) -> None:
    """Conversations stand in it, in its log, and in what it locks with."""
    umask = os.umask(0)
    try:
        async with working(f"sqlite:///{tmp_path / 'runs.db'}", main=saying("hello")) as (runner, program):
            await runner.run(program.main, "Hi.", run_id="r")
            made = {path: oct(path.stat().st_mode) for path in tmp_path.rglob("*")}
    finally:
        os.umask(umask)

    assert len(made) >= 3
    assert set(made.values()) == {oct(stat.S_IFREG | 0o600), oct(stat.S_IFDIR | 0o700)}


async def test_the_engine_says_nothing_unless_somebody_listens(
    store: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """No banner, no console, no server; its warnings go to the logger of this package."""
    with caplog.at_level(logging.WARNING):
        async with working(store, main=saying("hello")) as (runner, program):
            await runner.run(program.main, "Hi.", run_id="r")

    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_what_the_engine_keeps_is_json() -> None:
    """A failure comes back as one, without its class being imported."""
    serializer = ReadableJSON()
    failure = serializer.deserialize(serializer.serialize(ValueError("no")))

    assert serializer.deserialize(serializer.serialize({"args": [], "kwargs": {}})) == {"args": [], "kwargs": {}}
    assert isinstance(failure, DurableFault)
    assert str(failure) == "ValueError: no"


def test_every_sqlite_knows_the_time_as_the_engine_asks_for_it(sqlite: str) -> None:
    """Under Python 3.12 and later it asks `unixepoch('subsec')`, which an older SQLite answers with NULL."""
    engine = open_store(parse_store(sqlite))
    with engine.connect() as connection:
        told = connection.execute(text("SELECT unixepoch('subsec')")).scalar_one()
    engine.dispose()

    assert told == pytest.approx(time.time(), abs=60)
