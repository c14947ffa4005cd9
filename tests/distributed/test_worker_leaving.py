"""A worker leaves in good order: it finishes what it has, and what it cannot finish goes to another (RN-30)."""

import asyncio

from sabir_distributed import CallSettings, DistributedRunner, Worker, WorkerSettings
from sabir_distributed.envelopes import (
    Released,
    Willing,
)

from tests.distributed.support import Caller, Gate, Gated, soon, until


async def test_a_worker_that_is_told_to_stop_finishes_its_work_and_takes_no_more(
    url: str, name: str, gate: Gate
) -> None:
    """Drain: what it has is answered, what comes later goes to another."""
    other = Gate()
    other.opened.set()
    leaving = Worker(gate.context, url, name=name)
    running = asyncio.ensure_future(leaving.run())
    async with DistributedRunner(url, name=name) as runner:
        ctx = Gated(runner)
        asked = asyncio.ensure_future(ctx.wait("x"))
        await until(lambda: gate.began)
        async with Worker(other.context, url, name=name):
            leaving.stop()
            await until(lambda: all(each._closed for each in leaving._subscriptions[1:]))
            later = await soon(asyncio.gather(*(ctx.wait(str(number)) for number in range(10))))
            gate.opened.set()
            (said,) = await soon(asked)
            await soon(running)

    assert said.text == "X"
    assert gate.began == ["x"]
    assert len(later) == len(other.began) == 10


async def test_what_is_not_finished_within_the_drain_is_given_to_another_at_once(
    url: str, name: str, gate: Gate
) -> None:
    """Released: nobody waits for beats of one that left."""
    other = Gate()
    other.opened.set()
    patient = CallSettings(acceptance=1000, silence=1000)
    leaving = Worker(gate.context, url, name=name, settings=WorkerSettings(drain=0.01))
    running = asyncio.ensure_future(leaving.run())
    async with DistributedRunner(url, name=name, settings=patient) as runner:
        asked = asyncio.ensure_future(Gated(runner).wait("x"))
        await until(lambda: gate.began)
        async with Worker(other.context, url, name=name):
            leaving.stop()
            (said,) = await soon(asked)
            await soon(running)

    assert (said.text, gate.cancelled, other.ended) == ("X", ["x"], ["x"])


async def test_a_second_word_to_stop_ends_the_drain(url: str, name: str, caller: Caller, gate: Gate) -> None:
    """Whoever waits for it is impatient."""
    leaving = Worker(gate.context, url, name=name, settings=WorkerSettings(drain=1000))
    running = asyncio.ensure_future(leaving.run())
    await until(lambda: leaving._subscriptions)
    await leaving._connected().flush()
    await caller.ask("r1")
    await until(lambda: gate.began)

    leaving.stop()
    await until(lambda: all(each._closed for each in leaving._subscriptions[1:]))
    await caller.seek("r2")
    await caller.settle(leaving)
    leaving.stop()
    await soon(running)

    assert caller.of(Willing) == []
    assert (await caller.first(Released)).id == "r1"
