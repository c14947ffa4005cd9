"""How long a remote call waits, for whom, what ends it (RN-28, RN-31); and when its connection is made and closed."""

import asyncio

import pytest
from nats.aio.client import Client
from sabir import Message
from sabir_runtime import RuntimeFault
from sabir_runtime.distributed import (
    CallSettings,
    DistributedRunner,
    RequestTimedOut,
    RunnerClosed,
    Worker,
    WorkerSettings,
)

from tests.distributed.contexts import Desk
from tests.distributed.support import Gate, Gated, Place, soon, until


async def test_a_call_that_takes_too_long_is_an_error_and_is_stopped_at_the_worker(place: Place, gate: Gate) -> None:
    settings = CallSettings(timeout=0.5)
    async with place.worker(gate.context, WorkerSettings(accept_after=0.0)) as worker:
        async with place.runner(settings) as runner:
            with pytest.raises(RequestTimedOut, match=rf"no answer within 0.5 s; worker {worker.id} was working on it"):
                await soon(Gated(runner).wait("x"))
            await until(lambda: gate.cancelled)

    assert (gate.began, gate.ended) == (["x"], [])


async def test_a_call_outlasts_every_silence_while_its_worker_beats(client: Client, place: Place, gate: Gate) -> None:
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


async def test_a_cancelled_call_is_cancelled_at_its_worker(place: Place, gate: Gate) -> None:
    patient = WorkerSettings(accept_after=1000)
    async with place.worker(gate.context, patient), Worker(Desk, place.url, name=f"{place.name}-other"):
        async with place.runner() as runner:
            asked = asyncio.ensure_future(Gated(runner).wait("x"))
            await until(lambda: gate.began)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await until(lambda: gate.cancelled)


async def test_calls_beyond_the_limit_in_flight_wait_for_a_place(place: Place, gate: Gate) -> None:
    settings = CallSettings(in_flight=3)
    async with place.worker(gate.context), place.runner(settings) as runner:
        ctx = Gated(runner)
        asked = [asyncio.ensure_future(ctx.wait(str(number))) for number in range(9)]
        await until(lambda: len(gate.began) == 3)
        assert runner._caller is not None
        await soon(runner._caller.connection.flush())
        assert len(gate.began) == 3

        gate.opened.set()
        said = await soon(asyncio.gather(*asked))

    assert [message.text for (message,) in said] == [str(number) for number in range(9)]


async def test_waiting_for_a_place_ends_with_the_time_of_a_call(place: Place) -> None:
    settings = CallSettings(in_flight=1, timeout=0.2)
    async with place.worker(Desk), place.runner(settings) as runner:
        ctx = Desk(runner)
        await soon(ctx.echo("first"))
        assert runner._caller is not None
        await runner._caller._slots.acquire()
        with pytest.raises(RequestTimedOut, match="not sent, because 1 other calls of the runner were in progress"):
            await soon(ctx.echo("second"))


async def test_a_client_of_ones_own_is_used_and_left_open(client: Client, place: Place) -> None:
    async with Worker(Desk, client, name=place.name):
        async with DistributedRunner(client, name=place.name) as runner:
            assert (await soon(Desk(runner).echo("x")))[0].text == "x"

    assert client.is_connected
    assert not client._subs


@pytest.mark.parametrize(
    ("accept_after", "told"),
    [(1000.0, "a worker may have run it, and was told to stop"), (0.0, r"\S+-\S+ may have run it")],
)
async def test_closing_ends_what_is_under_way(place: Place, gate: Gate, accept_after: float, told: str) -> None:
    settings = CallSettings(in_flight=1)
    async with place.worker(gate.context, WorkerSettings(accept_after=accept_after)):
        runner = place.runner(settings)
        ctx = Gated(runner)
        asked, waits = (asyncio.ensure_future(ctx.wait(text)) for text in "xy")
        await until(lambda: gate.began)
        assert runner._caller is not None
        (pending,) = runner._caller._pending.values()
        await until(lambda: pending.worker or accept_after)
        await ctx.aclose()
        closed = rf"^policy 'wait' of '{place.name}': the runner was closed during the call; "
        with pytest.raises(RunnerClosed, match=closed + told):
            await soon(asked)
        with pytest.raises(RunnerClosed, match=closed + "it was not sent; close a runner after its last call$"):
            await soon(waits)
        await until(lambda: gate.cancelled)

    assert gate.began == gate.cancelled == ["x"]


async def test_closing_ends_what_is_about_to_connect(place: Place) -> None:
    async with place.worker(Desk):
        runner = place.runner()
        ctx = Desk(runner)
        asked = [asyncio.ensure_future(ctx.echo(text)) for text in "xy"]
        await asyncio.sleep(0)  # their first steps: one connects, one waits for that
        await runner.aclose()
        for each in asked:
            with pytest.raises(RunnerClosed, match="was closed while connecting, so the call was not sent"):
                await soon(each)
        assert runner._caller is None
        async with runner:
            assert (await soon(ctx.echo("later")))[0].text == "later"


def test_a_runner_serves_one_event_loop_after_the_other(place: Place) -> None:
    """What was closed in one loop connects in the next; what is left open in a live one says so."""
    runner = place.runner()
    ctx = Desk(runner)

    async def ask() -> str:
        async with place.worker(Desk), runner:
            return (await soon(ctx.echo("x")))[0].text

    assert [asyncio.run(ask()) for _ in range(2)] == ["x", "x"]

    async def ask_from_two() -> None:
        async with place.worker(Desk), runner:
            await soon(ctx.echo("x"))
            with pytest.raises(RuntimeFault, match="is connected in another event loop; use one runner for each"):
                await asyncio.to_thread(lambda: asyncio.run(call()))

    async def call() -> list[Message]:
        return await ctx.echo("x")

    asyncio.run(ask_from_two())
