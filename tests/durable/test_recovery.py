"""Runs of dead workers are carried on by live ones; a worker that lives keeps its own, whatever it is busy with."""

import asyncio
import logging
import threading
import time

import pytest
import sabir
from sabir_runtime import Batch, human_policy
from sabir_runtime.durable import DurableRunner, RunTaken, decision, engine, tables
from sabir_runtime.durable.ledger import MOST_DEATHS, Ledger
from sabir_runtime.durable.runs import Runs, recover_store
from sabir_runtime.durable.statuses import WorkerList
from sabir_runtime.durable.stores import ServerLease, make_lease, open_store, parse_store
from sqlalchemy import text, update

from tests.durable.assistant import Journal, Names
from tests.durable.children import BEAT, POLL
from tests.durable.support import Gate, Program, working


async def reached(journal: Journal, line: str) -> None:
    while line not in journal.lines():
        await asyncio.sleep(BEAT)


async def test_a_worker_that_lost_its_run_stops_it_and_writes_no_more(store: str) -> None:
    """Whoever took the run moved its epoch on: the next beat ends the work here, and the run can go on anywhere."""
    gate, cancelled = Gate(), asyncio.Event()

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        try:
            return await gate(ctx, observations)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with working(store, main=main) as (runner, program):
        performing = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="r"))
        await gate.reached.wait()
        run = await asyncio.to_thread(runner.runs.ledger.run, "r")
        await asyncio.to_thread(lambda: runner.runs.ledger.fence("r", worker="another worker"))
        await cancelled.wait()
        gate.opened.set()
        await asyncio.to_thread(runner.runs.requeue, run)
        messages = await performing

    assert [message.text for message in messages] == ["through"]
    assert gate.passed == 2


async def test_a_worker_that_is_closed_has_not_died(
    store: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """However often a program is restarted, a run that waits for a person goes on waiting, and nothing is logged."""
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            async with working(store, main=human_policy(decision)) as (runner, program):
                await runner.start(program.main, "Hi.", run_id="r")
                await in_state(runner, "r", "waiting")
            assert found(store, "r") == ("waiting", 0)

    assert (caplog.records, capfd.readouterr()) == ([], ("", ""))


async def test_a_run_that_is_being_taken_when_its_worker_closes_is_let_go_of(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was claimed, and the worker is told to close before it performs it: it is not left as by a dead one."""
    async with working(store, main=human_policy(decision)) as (runner, program):
        worker, claim, claimed = runner._worker, Ledger.claim, threading.Event()
        assert worker is not None

        def claim_slowly(ledger: Ledger, run: str, worker_name: str) -> object:
            taken = claim(ledger, run, worker_name)
            claimed.set()
            worker._ended.wait()
            time.sleep(BEAT)
            return taken

        monkeypatch.setattr(Ledger, "claim", claim_slowly)
        await runner.start(program.main, "Hi.", run_id="r")
        await asyncio.to_thread(claimed.wait)
    monkeypatch.undo()
    async with working(store, main=human_policy(decision)) as (runner, _):
        await in_state(runner, "r", "waiting")
    assert found(store, "r")[1] == 0


async def test_a_run_that_is_being_started_when_its_runner_closes_is_left_unfinished(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller is told so: the engine that is gone is no failure of the run."""
    begun = asyncio.Event()

    async def start(run: str) -> None:
        begun.set()
        while not worker.is_closed:
            await asyncio.sleep(BEAT)
        raise RuntimeError(f"no engine is there to start {run}")

    async with working(store, main=human_policy(decision)) as (runner, program):
        worker = runner._worker
        assert worker is not None
        monkeypatch.setattr(engine, "start", start)
        performing = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="r"))
        await begun.wait()
        await runner.aclose()
        with pytest.raises(RunTaken, match="is unfinished, because its runner was closed"):
            await performing


async def test_a_run_that_ends_its_workers_is_paused_at_last(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deaths are counted since something new of the run was written down; the answer that it waits for revives it."""
    monkeypatch.setattr(Ledger, "release", lambda *_: None)  # a killed worker lets go of nothing
    for deaths in (1, MOST_DEATHS):
        async with working(store, main=human_policy(decision)) as (runner, program):
            await runner.start(program.main, "Hi.", run_id="r")
            await taken(runner)
            await asyncio.to_thread(count_deaths, store, MOST_DEATHS - 1)
        assert await asyncio.to_thread(recover_store, store, unseen=0.0) == ["r"]
        assert found(store, "r") == ("paused" if deaths == MOST_DEATHS else "queued", deaths)
    monkeypatch.undo()

    with Runs(store) as runs:
        assert "20 workers died while they performed the run" in (runs.summary("r").fault or "")
        runs.decide("r", "0:main", "yes")
    assert found(store, "r") == ("queued", 0)
    async with working(store, main=human_policy(decision)) as (runner, _):
        assert [message.text for message in await runner.result("r")] == ["yes"]


async def test_a_run_that_somebody_paused_stays_so_when_it_is_decided(store: str) -> None:
    """The answer is kept for its resume."""
    async with working(store, main=human_policy(decision)) as (runner, program):
        await runner.start(program.main, "Hi.", run_id="r")
        await in_state(runner, "r", "waiting")
        await asyncio.to_thread(runner.runs.pause, "r")
        await asyncio.to_thread(runner.runs.decide, "r", "0:main", "yes")
        assert (await asyncio.to_thread(runner.runs.summary, "r")).state == "paused"


async def in_state(runner: DurableRunner, run: str, state: str) -> None:
    while (await asyncio.to_thread(runner.runs.summary, run)).state != state:
        await asyncio.sleep(POLL)


async def taken(runner: DurableRunner) -> None:
    """Until the worker performs a run that waits for a person; what the ledger says may be of an earlier worker's."""
    while runner._worker is None or not runner._worker._waiting:
        await asyncio.sleep(POLL)


def found(store: str, run: str) -> tuple[str, int]:
    with Runs(store) as runs:
        return runs.summary(run).state, runs.ledger.run(run).deaths


def count_deaths(store: str, deaths: int) -> None:
    engine = open_store(parse_store(store))
    with engine.begin() as connection:
        connection.execute(update(tables.runs).values(deaths=deaths))
    engine.dispose()


def test_a_lock_is_held_until_its_worker_lets_go(store: str) -> None:
    """Others see that it lives, and take its lock when it is gone."""
    url = parse_store(store)
    mine, other = make_lease(url, "mine"), make_lease(url, "other")
    assert mine.hold()
    assert mine.hold()
    with other.take("mine") as is_dead:
        assert not is_dead
    mine.release()
    with other.take("mine") as is_dead:
        assert is_dead
        assert not make_lease(url, "mine").hold()
    other.release()


def test_a_lost_connection_is_taken_up_again_unless_somebody_was_quicker(database: str) -> None:
    """The server frees the lock with the connection; the worker takes it again, or learns that it is taken for dead."""
    url = parse_store(database)
    mine, other = ServerLease(url, "mine"), ServerLease(url, "other")
    assert mine.hold()
    cut_off(database)
    assert mine.hold()
    cut_off(database)
    with other.take("mine") as is_dead:
        assert is_dead
        assert not mine.hold()
    assert mine.hold()
    mine.release()


def cut_off(database: str) -> None:
    engine = open_store(parse_store(database))
    with engine.connect() as connection:
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        connection.execute(text(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}"))
    engine.dispose()


async def test_workers_that_were_seen_lately_are_left_alone(sqlite: str) -> None:
    """One that lost its connection has time to take its lock again."""
    async with working(sqlite, main=Gate()):
        pass
    engine = open_store(parse_store(sqlite))
    workers = WorkerList(engine)
    workers.add("somebody", "sabir", "1", "host", 1)

    assert workers.find_unseen(60.0) == []
    assert workers.find_unseen(0.0) == ["somebody"]
    assert workers.mark_seen("somebody")
    workers.remove("somebody")
    assert not workers.mark_seen("somebody")
    engine.dispose()


async def test_the_store_may_be_away_for_a_while(database: str) -> None:
    """Connections that break in the middle of a run are opened again; what was written stays, the rest is repeated."""

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        await asyncio.to_thread(cut_off, database)
        await ctx.second(observations)
        await asyncio.to_thread(cut_off, database)
        return [sabir.assistant("done", policy="main")]

    async def second(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        await asyncio.to_thread(cut_off, database)
        return [sabir.assistant("two", policy="second")]

    async with working(database, main=main, second=second) as (runner, program):
        messages = await runner.run(program.main, "Hi.", run_id="r")

    assert [message.text for message in messages] == ["done"]
