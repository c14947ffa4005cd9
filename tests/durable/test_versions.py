"""Runs of another version wait for a worker of it: whoever looks, starts a worker or asks for such a run is told."""

import asyncio
import logging
import re

import pytest
from sabir_runtime.durable import DurableRunner, RunConflict, Runs
from sabir_runtime.durable.statuses import WorkerList

from tests.durable.children import BEAT, POLL
from tests.durable.support import Gate, Program, end_at, saying

WAITS = "a worker of version '1' (none is running)"


def runner_of(store: str, version: str) -> DurableRunner:
    return DurableRunner(store, version=version, beat=BEAT, poll=POLL)


async def left_queued(store: str, *names: str, version: str = "1") -> None:
    """Runs that a worker of that version left behind, and that nobody has taken since."""
    for name in names:
        gate = Gate()
        async with runner_of(store, version) as runner:
            await end_at(gate, runner, runner.run(Program(runner, main=gate).main, "Hi.", run_id=name))


async def stranded(runner: DurableRunner, *names: str) -> None:
    """Wait until the worker of the runner has given those runs back to the queue."""
    await runner.launch()
    while {"queued"} != {(await asyncio.to_thread(runner.runs.summary, name)).state for name in names}:
        await asyncio.sleep(POLL)


async def test_a_run_of_a_version_that_nobody_has_says_what_it_waits_for(store: str) -> None:
    await left_queued(store, "r")
    async with runner_of(store, "2") as runner:
        await stranded(runner, "r")
    with Runs(store) as runs:
        assert [(each.state, each.waits_for) for each in runs.list()] == [("queued", WAITS)]
        assert runs.show("r").summary.waits_for == WAITS
        WorkerList(runs.engine).add("another worker", "sabir", "1", "host", 1)  # nobody looks whether it lives
        assert runs.summary("r").waits_for is None


async def test_a_worker_warns_of_what_it_cannot_take(store: str, caplog: pytest.LogCaptureFixture) -> None:
    await left_queued(store, "one", "two", "over")
    await left_queued(store, "three", version="0")
    async with runner_of(store, "2") as runner:
        await stranded(runner, "one", "two", "three", "over")
        await asyncio.to_thread(runner.runs.cancel, "over")
        await runner.run(Program(runner, main=saying("hello")).main, "Hi.")
        while "of version" not in caplog.text:
            await asyncio.sleep(POLL)
    caplog.clear()
    async with runner_of(store, "2") as runner:
        await runner.launch()

    ours = [each for each in caplog.records if (each.name, each.levelno) == ("sabir.durable", logging.WARNING)]
    assert [each.getMessage() for each in ours] == [
        "queued runs wait, because no worker of their version is running: 1 of version '0', 2 of version '1'; "
        "start workers of those versions, or repeat these runs in this version "
        "(`sabir runs fork RUN --for-version 2`), or cancel them"
    ]


async def test_whoever_asks_for_such_a_run_is_told(store: str, caplog: pytest.LogCaptureFixture) -> None:
    await left_queued(store, "r")
    async with runner_of(store, "2") as runner:
        program = Program(runner, main=saying("anew"))
        await stranded(runner, "r")
        told = (
            f"'r' waits for {WAITS}, but this runner has version '2'; start one, or `sabir runs fork r --for-version 2`"
        )
        with pytest.raises(RunConflict, match=re.escape(told)):
            await runner.run(program.main, "Hi.", run_id="r")
        with pytest.raises(RunConflict, match=re.escape(told)):
            await runner.start(program.main, "Hi.", run_id="r")
        caplog.clear()
        waiting = asyncio.ensure_future(runner.result("r"))
        while told not in caplog.text:
            await asyncio.sleep(POLL)
        assert not waiting.done()
        waiting.cancel()
        forked = await asyncio.to_thread(lambda: runner.runs.fork("r", version="2"))
        assert [message.text for message in await runner.result(forked)] == ["anew"]


async def test_a_result_of_another_version_is_given(sqlite: str) -> None:
    async with runner_of(sqlite, "1") as runner:
        await runner.run(Program(runner, main=saying("old")).main, "Hi.", run_id="r")
    async with runner_of(sqlite, "2") as runner:
        program = Program(runner, main=saying("new"))
        assert [message.text for message in await runner.run(program.main, "Hi.", run_id="r")] == ["old"]
        assert await runner.start(program.main, "Hi.", run_id="r") == "r"
