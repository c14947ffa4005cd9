"""A worker takes what it can, runs nothing twice, says that it is at it, and leaves in good order (RN-30)."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest
import sabir
from nats.aio.client import Client
from nats.aio.msg import Msg
from sabir_distributed import CallSettings, DistributedRunner, NoServer, Worker, WorkerSettings
from sabir_distributed.envelopes import (
    Accepted,
    Alive,
    Answered,
    Busy,
    Cancelled,
    Failed,
    Released,
    Reply,
    Request,
    Sought,
    Willing,
    decode_reply,
    encode,
)
from sabir_runtime import RuntimeFault

from tests.distributed.contexts import Desk
from tests.distributed.support import Gate, Gated, flushed, soon, until

EAGER = WorkerSettings(accept_after=0.0, beat=0.02)
"""Accepts at once, beats often."""
NEVER = WorkerSettings(accept_after=1000.0)


class Caller:
    """A bare client that asks as a runner does, and keeps all that it hears."""

    def __init__(self, client: Client, context: str) -> None:
        self.client = client
        self.context = context
        self.inbox = client.new_inbox()
        self.heard: list[tuple[str, Reply]] = []

    async def listen(self) -> None:
        await self.client.subscribe(f"{self.inbox}.>", cb=self._hear)

    async def _hear(self, message: Msg) -> None:
        self.heard.append((message.subject.removeprefix(f"{self.inbox}."), decode_reply(message.data)))

    async def ask(
        self, id: str, text: str = "x", *, policy: str = "wait", sending: int = 1, left: float = 20.0
    ) -> None:
        request = Request(
            id=id, context=self.context, policy=policy, observations=(sabir.user(text),), seconds_left=left
        )
        subject = f"sabir.{self.context}.{policy}"
        await self.client.publish(subject, encode(request), reply=f"{self.inbox}.{id}.{sending}")

    async def give_up(self, id: str) -> None:
        await self.client.publish(f"sabir-all.{self.context}", encode(Cancelled(id=id)))

    async def seek(self, id: str) -> None:
        await self.client.publish(f"sabir-all.{self.context}", encode(Sought(id=id)), reply=f"{self.inbox}.{id}.1")

    async def settle(self, worker: Worker) -> None:
        """Until all that was sent so far was heard by the worker, and its word here."""
        await flushed(self.client)
        await worker._connected().flush()
        await until(lambda: not any(each.pending_msgs for each in worker._subscriptions))
        await worker._connected().flush()
        await flushed(self.client)
        await asyncio.sleep(0)

    def of(self, kind: type[Any]) -> list[Any]:
        return [reply for _, reply in self.heard if isinstance(reply, kind)]

    async def first(self, kind: type[Any]) -> Any:
        await until(lambda: self.of(kind))
        return self.of(kind)[0]


@pytest.fixture
async def caller(url: str, name: str) -> AsyncIterator[Caller]:
    """A caller of the test's context."""
    client = await nats.connect(url)
    caller = Caller(client, name)
    await caller.listen()
    yield caller
    await client.close()


@pytest.fixture
def gate() -> Gate:
    """Where the policies of this process wait."""
    return Gate()


async def test_a_short_call_is_one_request_and_one_reply(url: str, name: str, caller: Caller) -> None:
    """No acceptance, no beat: what a call costs beside its own work is one message each way."""
    async with Worker(Desk, url, name=name) as worker:
        await caller.ask("r1", policy="echo")
        answer = await caller.first(Answered)
        await caller.settle(worker)

    assert (answer.id, answer.worker, answer.result[0].text) == ("r1", worker.id, "x")
    assert [subject for subject, _ in caller.heard] == ["r1.1"]


async def test_a_longer_call_is_accepted_and_kept_alive_until_it_is_answered(
    url: str, name: str, caller: Caller, gate: Gate
) -> None:
    """A caller learns who is at it, and that it still is: one beat for all of its requests."""
    async with Worker(gate.context, url, name=name, settings=EAGER) as worker:
        await caller.ask("r1", "a")
        await caller.ask("r2", "b")
        accepted = await caller.first(Accepted)
        await until(lambda: [beat for beat in caller.of(Alive) if set(beat.requests) == {"r1", "r2"}])
        gate.opened.set()
        await until(lambda: len(caller.of(Answered)) == 2)

    assert (accepted.worker, accepted.every) == (worker.id, EAGER.beat)
    assert {subject for subject, reply in caller.heard if isinstance(reply, Alive)} == {"alive"}


async def test_a_worker_without_work_is_silent(url: str, name: str, caller: Caller, gate: Gate) -> None:
    """Beats are for those who wait."""
    async with Worker(gate.context, url, name=name, settings=EAGER) as worker:
        await caller.ask("r1")
        await caller.first(Accepted)
        gate.opened.set()
        await caller.first(Answered)
        await until(lambda: worker._beat is None)


async def test_a_full_worker_says_so_at_once(url: str, name: str, caller: Caller, gate: Gate) -> None:
    """Back-pressure: it queues nothing, so that another can take it."""
    full = WorkerSettings(concurrency=1, accept_after=1000)
    async with Worker(gate.context, url, name=name, settings=full) as worker:
        await caller.ask("r1", "first")
        await caller.ask("r2", "second")
        busy = await caller.first(Busy)
        gate.opened.set()
        await caller.first(Answered)

    assert (busy.id, busy.worker) == ("r2", worker.id)
    assert gate.began == ["first"]


async def test_a_request_that_is_repeated_while_it_runs_runs_once(
    url: str, name: str, caller: Caller, gate: Gate
) -> None:
    """The answer goes to the latest sending."""
    async with Worker(gate.context, url, name=name, settings=NEVER) as worker:
        await caller.ask("r1", sending=1)
        await caller.ask("r1", sending=2)
        await caller.settle(worker)
        gate.opened.set()
        await caller.first(Answered)
        await caller.settle(worker)

    assert [subject for subject, _ in caller.heard] == ["r1.2"]
    assert len(gate.began) == 1


async def test_a_repeated_request_hears_again_that_it_was_accepted(
    url: str, name: str, caller: Caller, gate: Gate
) -> None:
    """Its first acceptance may have been lost with a connection."""
    async with Worker(gate.context, url, name=name, settings=WorkerSettings(accept_after=0.0)):
        await caller.ask("r1", sending=1)
        await caller.first(Accepted)
        await caller.ask("r1", sending=2)
        await until(lambda: "r1.2" in [subject for subject, _ in caller.heard])
        gate.opened.set()


async def test_a_request_that_is_repeated_after_its_answer_gets_that_answer(
    url: str, name: str, caller: Caller, gate: Gate
) -> None:
    """The answer may have been lost; the work was not."""
    gate.opened.set()
    async with Worker(gate.context, url, name=name):
        await caller.ask("r1", sending=1)
        await caller.first(Answered)
        await caller.ask("r1", sending=2)
        await until(lambda: len(caller.heard) == 2)

    assert [subject for subject, _ in caller.heard] == ["r1.1", "r1.2"]
    assert caller.heard[0][1] == caller.heard[1][1]
    assert len(gate.began) == 1


async def test_a_request_whose_time_is_over_is_stopped_without_a_word_of_the_caller(
    url: str, name: str, caller: Caller, gate: Gate
) -> None:
    """A caller that died tells nobody; the request itself said how long it counts."""
    async with Worker(gate.context, url, name=name) as worker:
        await caller.ask("r1", left=0.05)
        await until(lambda: gate.cancelled)
        await until(lambda: not worker.requests)
        await caller.ask("r1", sending=2)
        await caller.settle(worker)

    assert len(gate.began) == 1


async def test_a_cancelled_request_is_stopped_and_answered_by_nobody(
    url: str, name: str, caller: Caller, gate: Gate
) -> None:
    """The policy is cancelled where it waits."""
    async with Worker(gate.context, url, name=name) as worker:
        await caller.ask("r1")
        await until(lambda: gate.began)
        await caller.give_up("r1")
        await until(lambda: not worker.requests)
        gate.opened.set()
        await caller.settle(worker)

    assert (gate.cancelled, gate.ended, caller.of(Answered)) == (["x"], [], [])


async def test_a_cancellation_may_overtake_its_request(url: str, name: str, caller: Caller, gate: Gate) -> None:
    """They travel on two subjects; a request that comes after is dropped."""
    async with Worker(gate.context, url, name=name) as worker:
        await caller.give_up("r1")
        await until(lambda: worker._memory.recall("r1") is not None)
        await caller.ask("r1")
        await caller.ask("r2", "y")
        await until(lambda: gate.began)
        gate.opened.set()
        await caller.first(Answered)

    assert gate.began == ["y"]


@pytest.mark.parametrize("data", [b"", b"nonsense", b'{"schema": 7, "id": "r1"}', b"x\x9c damaged"])
async def test_a_request_that_cannot_be_read_is_refused_in_words(
    url: str, name: str, caller: Caller, data: bytes
) -> None:
    """RN-31: the caller hears why, and the worker lives on."""
    async with Worker(Desk, url, name=name) as worker:
        await caller.client.publish(f"sabir.{name}.echo", data, reply=f"{caller.inbox}.r1.1")
        failed = await caller.first(Failed)
        await caller.client.publish(f"sabir-all.{name}", data)
        await caller.ask("r2", policy="echo")
        await caller.first(Answered)

    assert (failed.worker, failed.error.type, failed.error.raised_by) == (worker.id, "EnvelopeInvalid", "worker")


def test_what_is_no_context_is_refused(url: str) -> None:
    """In one line, before anything is connected to."""
    made: Any = dict  # called with a runner, it would have to be a context
    with pytest.raises(RuntimeFault, match="a worker serves contexts, not a dict; give it a class derived from Base"):
        Worker(lambda runner: made(), url)


async def test_a_request_for_another_context_is_refused(url: str, name: str, caller: Caller) -> None:
    """A subject and its envelope must agree."""
    async with Worker(Desk, url, name=name):
        request = Request(id="r1", context="Other", policy="echo", observations=(), seconds_left=5)
        await caller.client.publish(f"sabir.{name}.echo", encode(request), reply=f"{caller.inbox}.r1.1")
        failed = await caller.first(Failed)

    assert failed.error.message == f"request is for 'echo' of 'Other', not for {name!r}"


async def test_a_request_that_names_nobody_to_answer_to_is_dropped(
    url: str, name: str, caller: Caller, gate: Gate
) -> None:
    """A stray message does no work."""
    async with Worker(gate.context, url, name=name) as worker:
        request = Request(id="r1", context=name, policy="wait", observations=(sabir.user("x"),), seconds_left=5)
        await caller.client.publish(f"sabir.{name}.wait", encode(request))
        await caller.settle(worker)
        await until(lambda: worker._subscriptions[2].pending_msgs == 0)

    assert gate.began == []


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


async def test_workers_that_live_and_have_a_place_are_willing(url: str, name: str, caller: Caller, gate: Gate) -> None:
    """Who is full says nothing, unless it has that very request; and then it may be asked alone."""
    full = WorkerSettings(concurrency=1, accept_after=1000)
    async with Worker(gate.context, url, name=name, settings=full) as worker:
        await caller.ask("r1")
        await until(lambda: gate.began)
        async with Worker(Gate().context, url, name=name) as other:
            await caller.seek("r2")
            await until(lambda: caller.of(Willing))
            await caller.seek("r1")
            await until(lambda: len(caller.of(Willing)) == 3)
        gate.opened.set()
        await caller.first(Answered)

        request = Request(id="r3", context=name, policy="wait", observations=(sabir.user("y"),), seconds_left=5)
        await caller.client.publish(f"sabir-worker.{worker.id}", encode(request), reply=f"{caller.inbox}.r3.1")
        await until(lambda: len(caller.of(Answered)) == 2)

    told = [(willing.id, willing.worker) for willing in caller.of(Willing)]
    assert told[0] == ("r2", other.id)
    assert set(told[1:]) == {("r1", other.id), ("r1", worker.id)}


async def test_a_policy_that_cancels_itself_fails(url: str, name: str, caller: Caller) -> None:
    """Only a caller's or the worker's own cancellation ends a request without an answer."""

    async def give_in(ctx: Any, observations: Any, options: Any = None) -> Any:
        raise asyncio.CancelledError

    class Weak(Desk):
        def __init__(self, runner: Any) -> None:
            super().__init__(runner)
            self.give_in = self._bind(give_in)

    async with Worker(Weak, url, name=name):
        await caller.ask("r1", policy="give_in")
        failed = await caller.first(Failed)

    assert (failed.error.raised_by, "CancelledError" in failed.error.message) == ("policy", True)


async def test_a_worker_without_a_server_says_so() -> None:
    """Within its patience."""
    worker = Worker(Desk, "nats://127.0.0.1:1", settings=WorkerSettings(patience=0.2))

    with pytest.raises(NoServer, match=r"no NATS server at nats://127.0.0.1:1 within 0.2 s"):
        await soon(worker.run())


async def test_a_worker_and_its_policies_can_be_shown(name: str) -> None:
    """Without the secrets of its URL."""
    worker = Worker(Desk, "nats://ada:secret@127.0.0.1:1", name=name)

    assert repr(worker) == f"<worker {worker.id} for {name!r} at nats://127.0.0.1:1>"
    assert worker.policies == list(Desk.__annotations__)


async def test_workers_of_one_context_share_its_requests(url: str, name: str) -> None:
    """A queue group: each request goes to one of them."""
    gates = [Gate(), Gate()]
    for each in gates:
        each.opened.set()
    async with Worker(gates[0].context, url, name=name), Worker(gates[1].context, url, name=name):
        async with DistributedRunner(url, name=name) as runner:
            ctx = Gated(runner)
            await soon(asyncio.gather(*(ctx.wait(str(number)) for number in range(100))))

    counts = [len(each.began) for each in gates]
    assert sum(counts) == 100
    assert min(counts) > 0


def test_an_envelope_of_a_worker_is_json() -> None:
    """Whoever reads a trace of the wire can read it."""
    assert json.loads(encode(Busy(id="r1", worker="w"))) == {"schema": 1, "kind": "busy", "id": "r1", "worker": "w"}
