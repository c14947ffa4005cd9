"""A store of an older layout is brought up when it is opened, whoever opens it, and its runs go on."""

import asyncio
from collections.abc import Callable

import pytest
from sabir_durable import Runs
from sabir_durable.stores import open_store, parse_store
from sqlalchemy import Engine, inspect, text

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
    assert "holder" not in columns_of(engine, "sabir_runs")
    engine.dispose()


def columns_of(engine: Engine, table: str) -> list[str]:
    return [column["name"] for column in inspect(engine).get_columns(table)]


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
        engine = runner.runs.engine
        found = await asyncio.to_thread(
            lambda: (columns_of(engine, "sabir_runs"), inspect(engine).get_indexes("sabir_runs"))
        )

    assert [message.text for message in [*opened, *ended]] == ["carried on", "hello"]
    assert "holder" in found[0]
    assert sorted(index["name"] or "" for index in found[1]) == ["sabir_runs_new", "sabir_runs_newest"]
    await asyncio.to_thread(look_again, store)


def look_again(store: str) -> None:
    with Runs(store) as runs, runs.engine.connect() as connection:
        assert connection.execute(text("SELECT version FROM sabir_durable_schema")).scalar_one() == 2
