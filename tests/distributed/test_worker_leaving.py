"""A worker leaves in good order: it finishes what it has, and what it cannot finish goes to another (RN-30)."""

import asyncio

from sabir_distributed import CallSettings, WorkerSettings
from sabir_distributed.envelopes import (
    Released,
    Willing,
)

from tests.distributed.support import Caller, Gate, Gated, Place, soon, until


async def test_what_is_not_finished_within_the_drain_is_given_to_another_at_once(place: Place, gate: Gate) -> None:
    """Released: nobody waits for beats of one that left."""
    other = Gate()
    other.opened.set()
    patient = CallSettings(acceptance=1000, silence=1000)
    leaving = place.worker(gate.context, WorkerSettings(drain=0.01))
    running = asyncio.ensure_future(leaving.run())
    async with place.runner(patient) as runner:
        asked = asyncio.ensure_future(Gated(runner).wait("x"))
        await until(lambda: gate.began)
        async with place.worker(other.context):
            leaving.stop()
            (said,) = await soon(asked)
            await soon(running)

    assert (said.text, gate.cancelled, other.ended) == ("X", ["x"], ["x"])


async def test_a_second_word_to_stop_ends_the_drain(place: Place, caller: Caller, gate: Gate) -> None:
    """Whoever waits for it is impatient."""
    leaving = place.worker(gate.context, WorkerSettings(drain=1000))
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
