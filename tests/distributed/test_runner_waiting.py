"""How long a remote call waits, for whom, and what ends it (RN-28, RN-31)."""

import asyncio

import pytest
from nats.aio.client import Client
from sabir_distributed import (
    CallSettings,
    DistributedRunner,
    RequestTimedOut,
    Worker,
    WorkerSettings,
)

from tests.distributed.contexts import Desk
from tests.distributed.support import Gate, Gated, Place, soon, until


async def test_a_worker_that_comes_within_the_patience_answers(place: Place) -> None:
    """Workers and callers may start in any order."""
    async with place.runner(CallSettings(patience=20)) as runner:
        asked = asyncio.ensure_future(Desk(runner).echo("x"))
        await until(lambda: runner._caller is not None and runner._caller._pending)
        async with place.worker(Desk):
            assert (await soon(asked))[0].text == "x"


async def test_a_call_that_takes_too_long_is_an_error_and_is_stopped_at_the_worker(place: Place) -> None:
    """The worker learns how long the caller waits, and hears when it gave up."""
    gate = Gate()
    settings = CallSettings(timeout=0.5)
    async with place.worker(gate.context, WorkerSettings(accept_after=0.0)) as worker:
        async with place.runner(settings) as runner:
            with pytest.raises(RequestTimedOut, match=rf"no answer within 0.5 s; worker {worker.id} had it"):
                await soon(Gated(runner).wait("x"))
            await until(lambda: gate.cancelled)

    assert (gate.began, gate.ended) == (["x"], [])


async def test_a_call_outlasts_every_silence_while_its_worker_beats(client: Client, place: Place) -> None:
    """A long policy is no dead worker, and what is no beat disturbs nothing."""
    gate = Gate()
    strict = CallSettings(silence=0.6, attempts=1)
    async with place.worker(gate.context, WorkerSettings(accept_after=0.0, beat=0.05)) as worker:
        async with place.runner(strict) as runner:
            asked = asyncio.ensure_future(Gated(runner).wait("x"))
            await until(lambda: runner._caller is not None and runner._caller._pending)
            assert runner._caller is not None
            (pending,) = runner._caller._pending.values()
            await client.publish(f"{runner._caller._inbox}.alive", b"no beat")
            await until(lambda: pending.worker == worker.id)
            first = pending._due
            await until(lambda: asked.done() or pending._due > first + 0.8)
            gate.opened.set()
            (said,) = await soon(asked)

    assert said.text == "X"


async def test_a_cancelled_call_is_cancelled_at_its_worker(place: Place) -> None:
    """Before it was accepted as well as after: every worker of the context hears of it."""
    gate = Gate()
    patient = WorkerSettings(accept_after=1000)
    async with place.worker(gate.context, patient), Worker(Desk, place.url, name=f"{place.name}-other"):
        async with place.runner() as runner:
            asked = asyncio.ensure_future(Gated(runner).wait("x"))
            await until(lambda: gate.began)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await until(lambda: gate.cancelled)


async def test_calls_beyond_the_limit_in_flight_wait_for_a_place(place: Place) -> None:
    """Back-pressure on the caller's side: the worker never sees more at once."""
    gate = Gate()
    settings = CallSettings(in_flight=3)
    async with place.worker(gate.context), place.runner(settings) as runner:
        ctx = Gated(runner)
        asked = [asyncio.ensure_future(ctx.wait(str(number))) for number in range(9)]
        await until(lambda: len(gate.began) == 3)
        await soon(_round_trip(runner))
        assert len(gate.began) == 3

        gate.opened.set()
        said = await soon(asyncio.gather(*asked))

    assert [message.text for (message,) in said] == [str(number) for number in range(9)]


async def test_waiting_for_a_place_ends_with_the_time_of_a_call(place: Place) -> None:
    """Nobody waits for ever, and the error says for what."""
    settings = CallSettings(in_flight=1, timeout=0.2)
    async with place.worker(Desk), place.runner(settings) as runner:
        ctx = Desk(runner)
        await soon(ctx.echo("first"))
        assert runner._caller is not None
        await runner._caller._places.acquire()
        with pytest.raises(RequestTimedOut, match="waited in vain for one of 1 places in flight"):
            await soon(ctx.echo("second"))


async def _round_trip(runner: DistributedRunner) -> None:
    """Once to the server and back: what was sent before has arrived."""
    assert runner._caller is not None
    await runner._caller.connection.flush()
