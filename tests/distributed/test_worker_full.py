"""Many requests and few places: who is told that a worker is busy, who stands in line, who comes first (RN-30)."""

import asyncio
from contextlib import AsyncExitStack

import sabir
from sabir_runtime.distributed import CallSettings, Worker, WorkerSettings
from sabir_runtime.distributed.envelopes import Accepted, Alive, Answered, Busy, Request, Willing, encode
from sabir_runtime.distributed.work_queue import Work

from tests.distributed.contexts import Desk
from tests.distributed.support import DEADLINE, Caller, Gate, Gated, Place, soon, until

ONE = WorkerSettings(concurrency=1, accept_after=1000)
"""Works on one request at a time, and does not speak of it."""
CALLERS, CALLS, NEARLY = 40, 10, 10
BUSY_FOR_LONG = CallSettings(timeout=DEADLINE)


async def test_a_full_worker_says_so_at_once(place: Place, caller: Caller, gate: Gate) -> None:
    """Back-pressure: what is sent for the first time stands in no line, because another worker may have a place."""
    async with place.worker(gate.context, ONE) as worker:
        await caller.ask("r1", "first")
        await caller.ask("r2", "second")
        busy = await caller.first(Busy)
        gate.opened.set()
        await caller.first(Answered)

    assert (busy.id, busy.worker) == ("r2", worker.id)
    assert gate.began == ["first"]


async def test_workers_that_live_and_have_a_place_are_willing(place: Place, caller: Caller, gate: Gate) -> None:
    async with place.worker(gate.context, ONE) as worker:
        await caller.ask("r1")
        await until(lambda: gate.began)
        async with Worker(Gate().context, place.url, name=place.name) as other:
            await caller.seek("r2")
            await until(lambda: caller.of(Willing))
            await caller.seek("r1")
            await until(lambda: len(caller.of(Willing)) == 3)
        gate.opened.set()
        await caller.first(Answered)

        request = Request(id="r3", context=place.name, policy="wait", observations=(sabir.user("y"),), seconds_left=5)
        await caller.client.publish(
            f"sabir-worker.{worker.id}.{place.name}.wait", encode(request), reply=f"{caller.inbox}.r3.1"
        )
        await until(lambda: len(caller.of(Answered)) == 2)

    told = [(willing.id, willing.worker) for willing in caller.of(Willing)]
    assert told[0] == ("r2", other.id)
    assert set(told[1:]) == {("r1", other.id), ("r1", worker.id)}


async def test_who_asks_again_stands_in_line_the_oldest_first(place: Place, caller: Caller, gate: Gate) -> None:
    async with place.worker(gate.context, ONE) as worker:
        await caller.ask("r1", "first")
        await caller.ask("r2", "younger", waited=1.0, sending=2)
        await caller.ask("r3", "older", waited=2.0, sending=2)
        await until(lambda: worker.waiting == ["r3", "r2"])
        assert worker.requests == ["r1"]
        gate.opened.set()
        await until(lambda: len(caller.of(Answered)) == 3)

    assert gate.began == ["first", "older", "younger"]
    assert caller.of(Busy) == []


async def test_who_stands_in_line_hears_beats_and_then_to_ask_again(place: Place, caller: Caller, gate: Gate) -> None:
    """Its caller knows that the worker lives; after a beat in vain another worker may have a place."""
    eager = WorkerSettings(concurrency=1, accept_after=0.0, beat=0.05)
    async with place.worker(gate.context, eager) as worker:
        await caller.ask("r1")
        await until(lambda: gate.began)
        await caller.ask("r2", waited=1.0, sending=2)
        await until(lambda: [beat for beat in caller.of(Alive) if "r2" in beat.requests])
        busy = await caller.first(Busy)
        assert (busy.id, worker.waiting) == ("r2", [])
        assert "r2" in [accepted.id for accepted in caller.of(Accepted)]
        gate.opened.set()
        await caller.first(Answered)

    assert len(gate.began) == 1


async def test_what_stands_in_line_can_be_cancelled(place: Place, caller: Caller, gate: Gate) -> None:
    async with place.worker(gate.context, ONE.model_copy(update={"accept_after": 0.0})) as worker:
        await caller.ask("r1", "first")
        await until(lambda: gate.began)
        await caller.ask("r2", "cancelled", waited=1.0, sending=2)
        await caller.ask("r3", "too late", waited=2.0, sending=2, left=0.02)
        await caller.ask("r4", "patient", waited=3.0, sending=2)
        await caller.give_up("r2")
        await until(lambda: worker.waiting == ["r4"])
        gate.opened.set()
        await until(lambda: len(caller.of(Answered)) == 2)

    assert gate.began == ["first", "patient"]


async def test_a_worker_that_stops_sends_its_line_to_others(place: Place, caller: Caller, gate: Gate) -> None:
    leaving = place.worker(gate.context, ONE)
    running = asyncio.ensure_future(leaving.run())
    await until(lambda: leaving._subscriptions)
    await leaving._require_connection().flush()
    await caller.ask("r1")
    await caller.ask("r2", waited=1.0, sending=2)
    await until(lambda: leaving.waiting)
    leaving.stop()
    busy = await caller.first(Busy)
    assert not running.done()
    gate.opened.set()
    await soon(running)

    assert (busy.id, len(gate.began)) == ("r2", 1)


async def test_a_worker_that_is_added_takes_over_what_stands_in_line_elsewhere(place: Place, gate: Gate) -> None:
    other = Gate()
    other.opened.set()
    stuck = WorkerSettings(concurrency=1, accept_after=0.0, beat=0.05)
    settings = CallSettings(timeout=DEADLINE, attempts=1)
    async with place.worker(gate.context, stuck) as worker:
        async with place.runner(settings) as runner:
            ctx = Gated(runner)
            first = asyncio.ensure_future(ctx.wait("first"))
            await until(lambda: gate.began)
            asked = [asyncio.ensure_future(ctx.wait(str(number))) for number in range(5)]
            await until(lambda: len(worker.waiting) == 5)
            async with place.worker(other.context):
                said = await soon(asyncio.gather(*asked))
            assert not first.done()
            gate.opened.set()
            await soon(first)

    assert [message.text for (message,) in said] == list("01234")
    assert (gate.began, sorted(other.began)) == (["first"], list("01234"))


async def test_under_lasting_overload_calls_are_served_nearly_in_their_order(place: Place) -> None:
    """One place and forty callers, each with a next call at once: newcomers pass nobody who was told Busy.

    Two runners are as two processes: they share nothing but the worker.
    """
    called: list[int] = []
    served: list[int] = []
    async with (
        place.worker(Desk, WorkerSettings(concurrency=1)) as worker,
        AsyncExitStack() as stack,
    ):
        began = worker._start_work

        def begin(work: Work) -> None:
            served.append(int(work.request.observations[0].text))
            began(work)

        worker._start_work = begin  # type: ignore[method-assign]
        desks = [Desk(await stack.enter_async_context(place.runner(BUSY_FOR_LONG))) for _ in range(2)]

        async def ask(desk: Desk) -> None:
            for _ in range(CALLS):
                called.append(len(called))
                await desk.work(str(called[-1]), number=0)

        await soon(asyncio.gather(*(ask(desks[number % 2]) for number in range(CALLERS))))

    assert sorted(served) == called
    passed = [sum(other > each for other in served[: served.index(each)]) for each in called]
    assert max(passed[:CALLERS]) < 2 * CALLERS  # they all called in the same moment, and come in any order
    assert max(passed[CALLERS:]) <= NEARLY
