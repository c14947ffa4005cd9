"""A store of an older layout is migrated when it is opened, whoever opens it, and its runs continue."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import pytest
from sabir_runtime.durable import DurableRunner, Runs, StoreInvalid, layouts
from sabir_runtime.durable.layouts import LAYOUT, make_tables
from sabir_runtime.durable.stores import open_store, parse_store
from sabir_runtime.durable.worker import make_store
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from tests.durable.support import Gate, end_at, saying, working

FIRST = {
    "sabir_durable_schema": "version INTEGER NOT NULL, PRIMARY KEY (version)",
    "sabir_runs": (
        "run TEXT NOT NULL, application TEXT NOT NULL, version TEXT NOT NULL, context TEXT NOT NULL,"
        " name TEXT NOT NULL, digest TEXT NOT NULL, request TEXT NOT NULL, epoch INTEGER NOT NULL,"
        " deaths INTEGER NOT NULL, wish TEXT NOT NULL, fault TEXT, worker TEXT, forked_from TEXT,"
        " created_at FLOAT NOT NULL, PRIMARY KEY (run)"
    ),
    "sabir_calls": (
        "run TEXT NOT NULL, path TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,"
        " digest TEXT NOT NULL, request TEXT NOT NULL, state TEXT NOT NULL, batch TEXT, result TEXT, failure TEXT,"
        " worker TEXT, started_at FLOAT NOT NULL, ended_at FLOAT, PRIMARY KEY (run, path)"
    ),
    "sabir_workers": (
        "worker TEXT NOT NULL, application TEXT NOT NULL, host TEXT NOT NULL, process INTEGER NOT NULL,"
        " started_at FLOAT NOT NULL, seen_at FLOAT NOT NULL, PRIMARY KEY (worker)"
    ),
}
"""The tables as the first layout made them."""


async def first_layout(store: str) -> None:
    """A store as version 1 of the layout left it: with a run that ended, and one whose worker is dead."""
    gate = Gate()
    async with working(store, main=saying("hello"), gate=gate) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="ended")
        await end_at(gate, runner, runner.run(program.gate, "Hi.", run_id="open"))
    engine = open_store(parse_store(store))
    with engine.begin() as connection:
        connection.execute(text("DROP INDEX sabir_runs_newest"))
        connection.execute(text("DROP INDEX sabir_runs_new"))
        for table, columns in FIRST.items():
            names = ", ".join(column.split()[0] for column in columns.partition(", PRIMARY KEY")[0].split(", "))
            for statement in (
                f"ALTER TABLE {table} RENAME TO newer",
                f"CREATE TABLE {table} ({columns})",
                f"INSERT INTO {table} ({names}) SELECT {names} FROM newer",
                "DROP TABLE newer",
            ):
                connection.execute(text(statement))
        connection.execute(text("UPDATE sabir_durable_schema SET version = 1"))
    assert "holder" not in {name for _, name, *_ in layout_of(engine)[0]}
    engine.dispose()


def look(store: str) -> None:
    with Runs(store) as runs:
        assert {each.run: each.state for each in runs.list()} == {"ended": "done", "open": "running"}


def leave(store: str) -> None:
    """Nobody looks before the next worker starts."""


@pytest.mark.parametrize("first", [look, leave])
async def test_a_store_of_the_first_layout_is_worked_on(store: str, first: Callable[[str], None]) -> None:
    await first_layout(store)
    await asyncio.to_thread(first, store)
    async with working(store, main=saying("hello"), gate=saying("carried on")) as (runner, program):
        opened = await runner.result("open")
        ended = await runner.run(program.main, "Hi.", run_id="ended")
        columns, indexes, numbers = await asyncio.to_thread(layout_of, runner.runs.engine)

    assert [message.text for message in [*opened, *ended]] == ["carried on", "hello"]
    assert "holder" in {name for _, name, *_ in columns}
    assert {name for table, name, _ in indexes} == {"sabir_runs_new", "sabir_runs_newest"}
    assert numbers == [LAYOUT]


@contextmanager
def opened(store: str) -> Iterator[Engine]:
    engine = open_store(parse_store(store))
    try:
        yield engine
    finally:
        engine.dispose()


def execute(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def make_first_layout(engine: Engine) -> None:
    """Make an empty store of the first layout."""
    execute(engine, *(f"CREATE TABLE {table} ({columns})" for table, columns in FIRST.items()))
    execute(engine, "INSERT INTO sabir_durable_schema VALUES (1)")


def layout_of(engine: Engine) -> tuple[set[tuple[object, ...]], set[tuple[object, ...]], list[int]]:
    """Return the columns and indexes of a store's tables, and its number."""
    tables = inspect(engine)
    names = [name for name in tables.get_table_names() if name.startswith("sabir_")]
    columns: set[tuple[object, ...]] = {
        (name, column["name"], str(column["type"]), column["nullable"])
        for name in names
        for column in tables.get_columns(name)
    }
    indexes = {
        (name, index["name"], str(index["column_names"])) for name in names for index in tables.get_indexes(name)
    }
    with engine.connect() as connection:
        numbers = connection.execute(text("SELECT version FROM sabir_durable_schema")).scalars()
        return columns, indexes, list(numbers)


def test_a_migrated_store_is_like_a_new_one(sqlite: str) -> None:
    """A change of the tables without a step fails here."""
    with opened(sqlite) as migrated, opened(f"{sqlite}.new") as new:
        make_first_layout(migrated)
        make_tables(migrated)
        make_tables(new)

        assert layout_of(migrated) == layout_of(new)


def test_each_layout_has_a_step() -> None:
    assert list(layouts.STEPS) == list(range(2, LAYOUT + 1))


def test_a_step_that_fails_changes_nothing(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(store) as engine:
        make_first_layout(engine)
        before = layout_of(engine)
        monkeypatch.setitem(layouts.STEPS, 2, (*layouts.STEPS[2], "ALTER TABLE no_table ADD COLUMN x TEXT"))
        with pytest.raises((DBAPIError, StoreInvalid), match="no_table"):
            make_tables(engine)

        assert layout_of(engine) == before


@pytest.mark.parametrize("is_first", [True, False])
def test_a_store_without_a_number_is_migrated(store: str, is_first: bool) -> None:
    with opened(store) as engine:
        (make_first_layout if is_first else make_tables)(engine)
        execute(engine, "DROP TABLE sabir_durable_schema")
        make_tables(engine)
        columns, indexes, numbers = layout_of(engine)

    assert "holder" in {name for _, name, *_ in columns}
    assert len(indexes) == 2
    assert numbers == [LAYOUT]


def test_programs_that_open_an_old_store_at_once_migrate_it_once(store: str) -> None:
    barrier = Barrier(3)

    def make(_: int) -> None:
        with opened(store) as own:
            barrier.wait()
            make_store(own, parse_store(store))

    with opened(store) as engine:
        make_first_layout(engine)
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(make, range(3)))

        assert layout_of(engine)[2] == [LAYOUT]


async def test_a_newer_store_is_refused_unchanged_by_everything_that_opens_it(store: str) -> None:
    """A library that does not know a layout must not write it."""
    with opened(store) as engine:
        make_tables(engine)
        execute(engine, f"UPDATE sabir_durable_schema SET version = {LAYOUT + 1}", "DROP TABLE sabir_workers")
        before = layout_of(engine)
        expected = f"has layout {LAYOUT + 1}, newer than this version's {LAYOUT}; upgrade sabir-runtime$"
        with pytest.raises(StoreInvalid, match=expected):
            await DurableRunner(store).launch()
        with pytest.raises(StoreInvalid, match=expected):
            await asyncio.to_thread(Runs, store)
        with pytest.raises(StoreInvalid, match=expected):
            await asyncio.to_thread(make_tables, engine)

        assert layout_of(engine) == before
