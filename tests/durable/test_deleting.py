"""Runs that have ended are forgotten, by the ledger and by the engine together; what is open is kept."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
import sabir
from sabir.errors import SettingsInvalid
from sabir_runtime import Batch, human_policy
from sabir_runtime.durable import RunConflict, RunNotFound, Runs, RunStopped, decision
from sabir_runtime.durable import runs as runs_module
from sabir_runtime.durable.stores import open_store, parse_store
from sqlalchemy import inspect, text

from tests.durable.assistant import Names
from tests.durable.support import Gate, Program, end_at, saying, working
from tests.durable.test_runs import failing, waiting


def rows(store: str) -> dict[str, int]:
    """How many rows each table holds of runs: those of sabir, and those of the engine."""
    engine = open_store(parse_store(store))
    schemas = [None, "dbos"] if engine.dialect.name == "postgresql" else [None]
    kept = ("sabir_durable_schema", "sabir_workers", "dbos_migrations", "queues", "application_versions")
    with engine.connect() as connection:
        found = {
            table: connection.execute(
                text(f"SELECT count(*) FROM {f'{schema}.' if schema else ''}{table}")
            ).scalar_one()
            for schema in schemas
            for table in inspect(engine).get_table_names(schema=schema)
            if table not in kept
        }
    engine.dispose()
    return {table: count for table, count in found.items() if count}


async def two_ended(store: str) -> None:
    async with working(store, main=saying("hello"), bad=failing) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="done")
        with pytest.raises(Exception, match="no luck"):
            await runner.run(program.bad, "Hi.", run_id="failed")


async def test_nothing_is_left_of_a_run_that_was_deleted(store: str) -> None:
    await two_ended(store)
    with Runs(store) as runs:
        before = rows(store)
        runs.delete("done")
        between = rows(store)
        shown = runs.show("failed")
        runs.delete("failed")

    tables = {"sabir_runs", "sabir_calls", "workflow_status", "workflow_input", "workflow_output"}
    assert before == dict.fromkeys(tables, 2)
    assert between == dict.fromkeys(tables, 1)
    assert (shown.summary.state, len(shown.calls)) == ("failed", 1)
    assert rows(store) == {}


async def test_several_are_deleted_at_once_and_none_if_one_is_refused(sqlite: str) -> None:
    await two_ended(sqlite)
    with Runs(sqlite) as runs:
        with pytest.raises(RunNotFound, match="no run is named 'x'"):
            runs.delete("done", "x")
        for age in (-1.0, float("nan"), float("inf")):
            with pytest.raises(SettingsInvalid, match="is not a valid age of runs; give a number of seconds, 0 or"):
                runs.delete_ended(age)
        assert len(runs.list()) == 2
        runs.delete("done", "failed", "done")
        assert runs.list() == ()


async def test_a_deleted_name_can_be_given_again(store: str) -> None:
    heard: list[str] = []
    async with working(store, main=saying("hello", heard)) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="r")
        await asyncio.to_thread(runner.runs.delete, "r")
        with pytest.raises(RunNotFound):
            await runner.result("r")
        await runner.run(program.main, "Something else.", run_id="r")

    assert heard == ["hello", "hello"]


async def test_what_is_open_is_not_deleted(store: str) -> None:
    gate = Gate()
    async with working(store, main=gate, person=human_policy(decision)) as (runner, program):
        running = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="running"))
        asking = asyncio.ensure_future(runner.run(program.person, "Well?", run_id="waiting"))
        await gate.reached.wait()
        await waiting(runner, "waiting")
        await refused(runner.runs, "running", "waiting")
        await asyncio.to_thread(runner.runs.pause, "running")
        await refused(runner.runs, "paused", name="running")
        await runner.aclose()
        ended = await asyncio.gather(running, asking, return_exceptions=True)
    with Runs(store) as runs:
        runs.fork("waiting", name="queued")
        await refused(runs, "queued")
        runs.cancel("queued")
        runs.delete("queued")
        assert sorted(each.run for each in runs.list()) == ["running", "waiting"]

    assert all(isinstance(error, RunStopped) for error in ended)


async def refused(runs: Runs, *states: str, name: str | None = None) -> None:
    for state in states:
        with pytest.raises(RunConflict, match=f"is {state} and was not deleted; cancel it first"):
            await asyncio.to_thread(runs.delete, name or state)


async def test_a_fork_outlives_its_origin(store: str) -> None:
    heard: list[str] = []

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        return [*await ctx.first(observations), *await ctx.second(observations)]

    policies = {"main": main, "first": saying("first", heard), "second": saying("second", heard)}
    async with working(store, **policies) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="origin")
    with Runs(store) as runs:
        runs.fork("origin", at="0:main/1:second", name="fork")
        runs.delete("origin")
    async with working(store, **policies) as (runner, _):
        messages = await runner.result("fork")
        summary = await asyncio.to_thread(runner.runs.summary, "fork")

    assert heard == ["first", "second", "second"]
    assert [message.text for message in messages] == ["first", "second"]
    assert summary.forked_from == "origin at 0:main/1:second"


async def test_those_that_ended_long_ago_are_deleted(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "BATCH", 2)
    gate = Gate()
    async with working(store, main=saying("hello"), gate=gate) as (runner, program):
        await end_at(gate, runner, runner.run(program.gate, "Hi.", run_id="open"))
    async with working(store, main=saying("hello")) as (runner, program):
        for index in range(5):
            await runner.run(program.main, "Hi.", run_id=f"r{index}")
    with Runs(store) as runs:
        ends = sorted(each.updated_at for each in runs.list(state="done"))
        assert all(one <= other for one, other in pairwise(ends))
        kept = runs.delete_ended(3600.0)
        deleted = runs.delete_ended(0.0)
        left = [each.run for each in runs.list()]

    assert (kept, deleted, left) == (0, 5, ["open"])
    assert rows(store) == {"sabir_runs": 1, "sabir_calls": 1, "workflow_status": 1, "workflow_input": 1}


async def test_an_interrupted_deletion_is_finished_by_the_next(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever its process ends, what is left is a run that can be deleted, and that no worker takes."""

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    steps: dict[str, Callable[[Runs], object]] = {
        "delete_workflows": lambda runs: runs._client,
        "delete_runs": lambda runs: runs.ledger,
    }
    for step, owner in steps.items():
        await two_ended(store)
        with Runs(store) as runs:
            with monkeypatch.context() as broken:
                broken.setattr(owner(runs), step, dies)
                with pytest.raises(KeyboardInterrupt):
                    runs.delete("done", "failed")
            assert {each.state for each in runs.list()} <= {"done", "failed", "cancelled"}
            assert runs.unfinished("sabir") == []
            assert runs.delete_ended(0.0) == 2
        assert rows(store) == {}


async def test_a_run_that_is_deleted_under_its_worker_ends_there(sqlite: str) -> None:
    """As one that was taken: the worker writes nothing more, and goes on with others."""

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        await asyncio.to_thread(ctx._runner.runs.ledger.delete_runs, ["r"])
        return [sabir.assistant("never written", policy="main")]

    async with working(sqlite, main=main, other=saying("hello")) as (runner, program):
        performing = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="r"))
        await asyncio.wait([performing])
        assert isinstance(performing.exception(), RunNotFound)
        assert [message.text for message in await runner.run(program.other, "Hi.")] == ["hello"]
