"""Writes durable runs in every state into a store; the last process with a worker is killed in the middle of four.

worker     finished, branched, option-failed, failed, cancelled, paused      ended or stopped
worker     model, option, branch, ask-*                                      killed while they are at work
no worker  queued, other-version, forked, ask-decided                        wait for a worker
"""

import asyncio
import os
import signal
import socket
from contextlib import suppress

import sabir
from sabir_runtime import PolicyFailed
from sabir_runtime.durable import DurableRunner, Runs, RunStopped

from tests.frozen.programs import OPTIONS, Journey, Places

BEAT, POLL = 0.05, 0.02
APPLICATION = "journeys"
HOST = "writer"
"""What stored workers have as the name of their machine."""
STOPPED = ("cut-in-model: model 0", "cut-in-option: book", "cut-in-branch: step b1")
ASKING = ("ask-open", "ask-decided")


def runner_of(store: str, version: str = "1") -> DurableRunner:
    return DurableRunner(store, application=APPLICATION, version=version, beat=BEAT, poll=POLL)


def write_ended(store: str) -> None:
    """Runs that ended or were stopped."""
    socket.gethostname = lambda: HOST
    asyncio.run(_ended(store))


async def _ended(store: str) -> None:
    stops = Places(frozenset({"cancelled: model 1", "paused: book"}))
    async with runner_of(store) as runner:
        ctx = Journey(runner, stops)
        await runner.run(ctx.main, "finished to Rome", OPTIONS, run_id="finished")
        await runner.run(ctx.main, "option-failed to Nowhere", OPTIONS, run_id="option-failed")
        await runner.run(ctx.branches, "branched to Rome", run_id="branched")
        with suppress(PolicyFailed):
            await runner.run(ctx.fail, "failed to Rome", run_id="failed")
        for name, stop in (("cancelled", runner.runs.cancel), ("paused", runner.runs.pause)):
            running = asyncio.ensure_future(runner.run(ctx.main, f"{name} to Rome", OPTIONS, run_id=name))
            while not any(place.startswith(name) for place in stops.stopped):
                await asyncio.sleep(POLL)
            await asyncio.to_thread(stop, name)
            try:
                await running
            except RunStopped:
                continue
            raise AssertionError(f"the run {name} was not stopped")


def write_cut_off(store: str) -> None:
    """Runs whose worker is killed: while a model is asked, in one of two options, in one of three branches, and while
    a person is asked."""
    socket.gethostname = lambda: HOST
    asyncio.run(_cut_off(store))


async def _cut_off(store: str) -> None:
    places = Places(frozenset(STOPPED))
    async with runner_of(store) as runner:
        ctx = Journey(runner, places)
        for name in ("cut-in-model", "cut-in-option"):
            await runner.start(ctx.main, f"{name} to Rome", OPTIONS, run_id=name)
        await runner.start(ctx.branches, "cut-in-branch to Rome", run_id="cut-in-branch")
        for name in ASKING:
            await runner.start(ctx.ask, f"{name} to Rome", run_id=name)

        def is_there() -> bool:
            waiting = {each.run for each in runner.runs.list(state="waiting")}
            return waiting == set(ASKING) and places.stopped == set(STOPPED) and _branches_are_done(places)

        while not await asyncio.to_thread(is_there):
            await asyncio.sleep(POLL)
        await asyncio.sleep(10 * BEAT)  # what else runs is recorded by then
        os.kill(os.getpid(), signal.SIGKILL)


def _branches_are_done(places: Places) -> bool:
    """Whether the branches that nothing stops have reached their last step."""
    return {"cut-in-branch: step a1", "cut-in-branch: step c1"} <= set(places.reached)


def write_waiting(store: str) -> None:
    """Runs that wait for a worker, and the decision of a person who was asked by the killed one."""
    socket.gethostname = lambda: HOST
    asyncio.run(_submit(store))
    with Runs(store) as runs:
        path = next(call.path for call in runs.show("ask-decided").calls if call.state == "waiting")
        runs.decide("ask-decided", path, [sabir.assistant("allowed", policy="human")])
        second = next(call.path for call in runs.show("finished").calls if call.path.endswith("1:llm"))
        runs.fork("finished", at=second, name="forked")


async def _submit(store: str) -> None:
    for version, name in (("1", "queued"), ("2", "other-version")):
        runner = runner_of(store, version)
        await runner.submit(Journey(runner).main, f"{name} to Rome", OPTIONS, run_id=name)
        await runner.aclose()
