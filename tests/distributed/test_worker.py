"""A worker takes what it can, runs nothing twice, says that it is at it or busy, and leaves in good order (RN-30)."""

import asyncio
import re
from contextlib import AsyncExitStack
from typing import Any

import pytest
import sabir
from sabir import Message
from sabir_runtime import BaseContext, BaseRunner, RuntimeFault
from sabir_runtime.distributed import CallSettings, Worker, WorkerSettings
from sabir_runtime.distributed.envelopes import (
    Accepted,
    Alive,
    Answered,
    Busy,
    Released,
    Request,
    Willing,
    encode,
)
from sabir_runtime.distributed.work_queue import Work

from tests.distributed.contexts import Desk
from tests.distributed.support import DEADLINE, Caller, Gate, Gated, Own, Place, own, soon, until

EAGER = WorkerSettings(accept_after=0.0, beat=0.02)
"""Accepts at once, beats often."""
NEVER = WorkerSettings(accept_after=1000.0)


async def test_a_short_call_is_one_request_and_one_reply(place: Place, caller: Caller) -> None:
    async with place.worker(Desk) as worker:
        await caller.ask("r1", policy="echo")
        answer = await caller.first(Answered)
        await caller.settle(worker)

    assert (answer.id, answer.worker, answer.result[0].text) == ("r1", worker.id, "x")
    assert [subject for subject, _ in caller.heard] == ["r1.1"]


async def test_a_policy_observes_the_same_objects_again(place: Place) -> None:
    """Turn after turn: what core keeps with a message, as rendered prefixes, serves at a worker as in one process."""
    observed: list[list[Message]] = []

    async def observe(ctx: Any, observations: list[Message], options: Any = None) -> list[Message]:
        observed.append(observations)
        return [sabir.assistant("seen")]

    history = [sabir.system("Be brief."), sabir.user("hm")]
    async with place.worker(own(observe=observe)), place.runner() as runner:
        ctx = Own(runner, observe=observe)
        for _ in range(3):
            history += await soon(ctx.observe(history))

    assert [len(each) for each in observed] == [2, 3, 4]
    assert all(again is further for again, further in zip(observed[1][:2], observed[2], strict=False))


async def test_a_longer_call_is_accepted_and_kept_alive(place: Place, caller: Caller, gate: Gate) -> None:
    async with place.worker(gate.context, EAGER) as worker:
        await caller.ask("r1", "a")
        await caller.ask("r2", "b")
        accepted = await caller.first(Accepted)
        await until(lambda: [beat for beat in caller.of(Alive) if set(beat.requests) == {"r1", "r2"}])
        gate.opened.set()
        await until(lambda: len(caller.of(Answered)) == 2)
        await until(lambda: worker._beat is None)

    assert (accepted.worker, accepted.every) == (worker.id, EAGER.beat)
    assert {subject for subject, reply in caller.heard if isinstance(reply, Alive)} == {"alive"}


async def test_a_request_that_is_repeated_runs_once(place: Place, caller: Caller, gate: Gate) -> None:
    """An acceptance may have been lost, and is said again; the answer goes to the latest sending and to later ones."""
    async with place.worker(gate.context, WorkerSettings(accept_after=0.0, beat=1000.0)):
        for sending in (1, 2):
            await caller.ask("r1", sending=sending)
            await until(lambda sending=sending: len(caller.heard) == sending)
        gate.opened.set()
        await caller.first(Answered)
        await caller.ask("r1", sending=3)
        await until(lambda: len(caller.heard) == 4)

    kinds = [(subject, type(reply)) for subject, reply in caller.heard]
    assert kinds == [("r1.1", Accepted), ("r1.2", Accepted), ("r1.2", Answered), ("r1.3", Answered)]
    assert caller.heard[2][1] == caller.heard[3][1]
    assert len(gate.began) == 1


async def test_a_request_whose_time_is_over_is_stopped(place: Place, caller: Caller, gate: Gate) -> None:
    async with place.worker(gate.context) as worker:
        await caller.ask("r1", left=0.05)
        await until(lambda: gate.cancelled)
        await until(lambda: not worker.requests)
        await caller.ask("r1", sending=2)
        await caller.settle(worker)

    assert len(gate.began) == 1


async def test_a_cancelled_request_is_stopped_and_answered_by_nobody(place: Place, caller: Caller, gate: Gate) -> None:
    async with place.worker(gate.context) as worker:
        await caller.ask("r1")
        await until(lambda: gate.began)
        await caller.give_up("r1")
        await until(lambda: not worker.requests)
        gate.opened.set()
        await caller.settle(worker)

    assert (gate.cancelled, gate.ended, caller.of(Answered)) == (["x"], [], [])


async def test_a_cancellation_may_overtake_its_request(place: Place, caller: Caller, gate: Gate) -> None:
    """They travel on two subjects; a request that comes after is dropped."""
    async with place.worker(gate.context) as worker:
        await caller.give_up("r1")
        await until(lambda: worker._memory.find("r1") is not None)
        await caller.ask("r1")
        await caller.ask("r2", "y")
        await until(lambda: gate.began)
        gate.opened.set()
        await caller.first(Answered)

    assert gate.began == ["y"]


async def serve_nobody(ctx: BaseContext) -> list[Message]:
    """A policy, given where a context is asked for."""
    return []


class Needy(BaseContext):
    """Needs more than a runner."""

    def __init__(self, runner: BaseRunner, key: str) -> None:
        super().__init__(runner)


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (lambda runner: {}, "'<lambda>' returned a dict, not a context"),
        (dict, "a worker serves contexts, not the class 'dict'"),
        (serve_nobody, "a worker serves contexts, not the async function 'serve_nobody'"),
        (Needy, "a worker cannot call 'Needy' with only a runner: missing a required argument: 'key'"),
        (lambda: None, "a worker cannot call '<lambda>' with only a runner: too many positional arguments"),
    ],
)
def test_what_is_no_context_is_refused(url: str, context: Any, reason: str) -> None:
    remedy = "; give a class derived from BaseContext, whose __init__ requires only a runner"
    with pytest.raises(RuntimeFault, match=f"^{re.escape(reason + remedy)}$"):
        Worker(context, url)


async def test_a_request_that_names_nobody_to_answer_to_is_dropped(place: Place, caller: Caller, gate: Gate) -> None:
    async with place.worker(gate.context) as worker:
        request = Request(id="r1", context=place.name, policy="wait", observations=(sabir.user("x"),), seconds_left=5)
        await caller.client.publish(f"sabir.{place.name}.wait", encode(request))
        await caller.settle(worker)
        await until(lambda: worker._subscriptions[2].pending_msgs == 0)

    assert gate.began == []


async def test_a_worker_and_its_policies_can_be_shown(name: str) -> None:
    worker = Worker(Desk, "nats://ada:secret@127.0.0.1:1", name=name)

    assert repr(worker) == f"<worker {worker.id} for {name!r} at nats://127.0.0.1:1>"
    assert worker.policies == list(Desk.__annotations__)


async def test_what_is_not_finished_within_the_drain_is_given_to_another_at_once(place: Place, gate: Gate) -> None:
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
    leaving = place.worker(gate.context, WorkerSettings(drain=1000))
    running = asyncio.ensure_future(leaving.run())
    await until(lambda: leaving._subscriptions)
    await leaving._require_connection().flush()
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
    """Newcomers pass nobody who was told Busy; two runners are as two processes, and share nothing but the worker."""
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
