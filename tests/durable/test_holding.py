"""A run that was paused goes on nowhere before whoever was at it has let go of it: no effect runs at two workers."""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir
from sabir_runtime import Batch
from sabir_runtime.contexts import BoundCall
from sabir_runtime.durable import DurableFault, DurableRunner, RunConflict, RunPaused, Runs, RunTaken, holds_run
from sabir_runtime.durable.layouts import make_tables
from sabir_runtime.durable.ledger import Ledger
from sabir_runtime.durable.runs import recover_store
from sabir_runtime.durable.statuses import WorkerList
from sabir_runtime.durable.stores import open_store, parse_store
from sabir_runtime.durable.tables import RunRow
from sqlalchemy import Engine

from tests.durable.assistant import Assistant, Journal, Names
from tests.durable.children import BEAT, POLL, hanging_worker
from tests.durable.support import Gate, Program, working
from tests.durable.test_recovery import reached


@pytest.fixture
def engine(store: str) -> Iterator[Engine]:
    engine = open_store(parse_store(store))
    make_tables(engine)
    yield engine
    engine.dispose()


def test_a_run_is_taken_when_its_holder_lets_go_or_is_gone(engine: Engine) -> None:
    """Fencing alone does not do: what was begun before the fence may have its effect after it."""
    ledger, workers = Ledger(engine), WorkerList(engine)
    ledger.create(RunRow("r", "app", "1", "Context", "main", "digest", "{}"))
    for worker in ("one", "two"):
        workers.add(worker, "app", "1", "host", 1)

    assert ledger.claim("r", "one") is not None
    ledger.fence("r")
    assert ledger.claim("r", "two") is None
    assert ledger.claim("r", "one") is not None  # a write that is repeated, for its answer was lost
    ledger.release("r", "two")
    assert ledger.claim("r", "two") is None
    ledger.release("r", "one")
    assert ledger.claim("r", "two") is not None
    assert ledger.claim("r", "one") is None
    workers.remove("two")
    assert ledger.claim("r", "one") is not None


def test_a_run_that_was_stopped_is_not_taken(engine: Engine) -> None:
    """It may have been given to a worker just before somebody paused it."""
    ledger = Ledger(engine)
    ledger.create(RunRow("r", "app", "1", "Context", "main", "digest", "{}"))
    ledger.fence("r", wish="pause")

    with pytest.raises(RunTaken, match="'r' was stopped before a worker began it; resume the run again"):
        ledger.claim("r", "one")


async def test_two_workers_are_never_in_one_option_at_once(
    store: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One hangs in an option; while it lives, nobody else takes its run. The run is paused, resumed, and given to the
    other worker, which waits until the first is killed, and finishes the run: nothing that had ended is done again."""
    journal = Journal(tmp_path / "journal")
    caplog.set_level(logging.INFO, "sabir.durable")
    with hanging_worker(store, tmp_path, "add 4") as worker:
        await reached(journal, "add 4")
        async with DurableRunner(store, application=tmp_path.name, beat=BEAT, poll=POLL) as runner:
            context = Assistant(runner, journal)
            await runner.launch()
            assert await asyncio.to_thread(recover_store, store, unseen=0.0) == []
            await asyncio.to_thread(runner.runs.pause, tmp_path.name)
            with pytest.raises(RunConflict, match="is paused and was not deleted; cancel it first"):
                await asyncio.to_thread(runner.runs.delete, tmp_path.name)
            async with asyncio.timeout(30):
                while not await asyncio.to_thread(taken_elsewhere, runner.runs, tmp_path.name):
                    await asyncio.to_thread(runner.runs.pause, tmp_path.name)
                while caplog.text.count("waits for a worker that has not released it yet") < 3:
                    await asyncio.sleep(BEAT)
            summary = await asyncio.to_thread(runner.runs.summary, tmp_path.name)
            before = journal.lines().count("add 4")
            worker.kill()
            messages = await runner.result(tmp_path.name)
            finisher = (await asyncio.to_thread(runner.runs.summary, tmp_path.name)).worker

    assert context is not None
    assert summary.state == "running"
    assert summary.waits_for == f"worker {summary.worker}, which has not released the run yet"
    assert finisher != summary.worker
    done = Counter(journal.lines())
    assert (before, done["add 4"]) == (1, 2)  # it had not ended when its worker was killed
    assert done["asked 0"] == done["asked 1"] == done["asked 2"] == done["add 3"] == done["shout one"] == 1
    assert messages[-1].text == "done"


def taken_elsewhere(runs: Runs, run: str) -> bool:
    """Resume a run: whether another worker was given it than its holder, whose engine takes runs while it hangs."""
    runs.resume(run)
    while (summary := runs.summary(run)).state == "queued":
        time.sleep(POLL)
    return summary.waits_for is not None


async def test_a_run_goes_on_when_its_holder_lets_go(store: str) -> None:
    """The holder need not die: it sees that the run was paused, stops what runs of it, and says so."""
    gate = Gate()
    gate.opened.set()
    async with working(store, main=gate) as (runner, program):
        ledger, workers = runner.runs.ledger, WorkerList(runner.runs.engine)
        await asyncio.to_thread(workers.add, "other", "sabir", "1", "host", 1)
        lock = (await runner.launch())._lease.take("other")
        with lock as is_free:
            assert is_free  # while it is taken nobody takes the other one for dead
            await asyncio.to_thread(ledger.create, asked(program))
            await asyncio.to_thread(ledger.claim, "r", "other")
            await asyncio.to_thread(runner.runs.requeue, ledger.run("r"))
            while not (await asyncio.to_thread(runner.runs.summary, "r")).waits_for:
                await asyncio.sleep(POLL)
            assert gate.passed == 0
            await asyncio.to_thread(ledger.release, "r", "other")
            messages = await runner.result("r")

    assert [message.text for message in messages] == ["through"]


def asked(program: Program) -> RunRow:
    runner = program._runner
    assert isinstance(runner, DurableRunner)
    return runner._make_run(BoundCall(program.main, "Hi.", None, {}), "r")


async def test_a_policy_learns_whether_its_run_is_still_its_worker_s(sqlite: str) -> None:
    """From the store, whatever the worker has seen by then: its beat is an hour."""
    told: list[bool] = []

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        told.append(await holds_run())
        await asyncio.to_thread(runner.runs.pause, "r")
        told.append(await holds_run())
        return [sabir.assistant("done", policy="main")]

    async with DurableRunner(sqlite, beat=3600.0, poll=POLL) as runner:
        with pytest.raises(RunPaused):
            await runner.run(Program(runner, main=main).main, "Hi.", run_id="r")
    assert told == [True, False]
    with pytest.raises(DurableFault, match="works only in a run of a DurableRunner"):
        await holds_run()


async def test_what_is_stopped_has_stopped_before_the_run_goes_on(sqlite: str) -> None:
    """At one worker too: branches that were cancelled, and still clean up, are waited for."""
    events: list[str] = []
    reached, cleaned = asyncio.Queue[str](), asyncio.Event()

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        await asyncio.gather(ctx.quick(observations), ctx.slow(observations))
        return [sabir.assistant("done", policy="main")]

    async def quick(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        if "end" not in events:
            await asyncio.Event().wait()
        return [sabir.assistant("quick", policy="quick")]

    async def slow(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        events.append("begin")
        reached.put_nowait("slow")
        try:
            if "end" not in events:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            reached.put_nowait("cleaning")
            await cleaned.wait()
            events.append("end")
            raise
        return [sabir.assistant("slow", policy="slow")]

    async with working(sqlite, main=main, quick=quick, slow=slow) as (runner, program):
        await runner.start(program.main, "Hi.", run_id="r")
        assert await reached.get() == "slow"
        await asyncio.to_thread(runner.runs.pause, "r")
        assert await reached.get() == "cleaning"
        with pytest.raises(RunPaused):
            await runner.result("r")
        await asyncio.to_thread(runner.runs.cancel, "r")
        with pytest.raises(RunConflict, match="'r' was not deleted: a worker still performs it"):
            await asyncio.to_thread(runner.runs.delete, "r")
        await asyncio.to_thread(runner.runs.resume, "r")
        while (await asyncio.to_thread(runner.runs.summary, "r")).state != "running":
            await asyncio.sleep(POLL)
        assert events == ["begin"]
        cleaned.set()
        messages = await runner.result("r")

    assert events == ["begin", "end", "begin"]
    assert messages[-1].text == "done"


async def test_a_run_is_waited_for_from_the_moment_that_it_is_written_down(sqlite: str) -> None:
    gate = Gate()
    gate.opened.set()
    async with working(sqlite, main=gate) as (runner, program):
        asked_for, looked = asked(program), threading.Event()
        await asyncio.to_thread(runner.runs.ledger.create, asked_for)
        is_known = runner.runs.statuses.is_known
        runner.runs.statuses.is_known = lambda run: (looked.set(), is_known(run))[1]  # type: ignore[method-assign]
        waiting = asyncio.ensure_future(runner.result("r"))
        while not looked.is_set():
            await asyncio.sleep(POLL)
        await asyncio.to_thread(runner.runs.requeue, asked_for)
        assert [message.text for message in await waiting] == ["through"]


async def test_a_run_that_was_paused_before_the_engine_knew_it_stays_paused(sqlite: str) -> None:
    gate = Gate()
    gate.opened.set()
    async with working(sqlite, main=gate) as (runner, program):
        await asyncio.to_thread(runner.runs.ledger.create, asked(program))
        await asyncio.to_thread(runner.runs.pause, "r")
        with Runs(sqlite) as runs:
            assert runs.summary("r").state == "paused"
        with pytest.raises(RunPaused):
            await runner.run(program.main, "Hi.", run_id="r")
        assert (await asyncio.to_thread(runner.runs.summary, "r")).state == "paused"
        await asyncio.to_thread(runner.runs.resume, "r")
        assert [message.text for message in await runner.result("r")] == ["through"]
