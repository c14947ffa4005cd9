"""A worker takes what it can, runs nothing twice, says that it is at it, and leaves in good order (RN-30)."""

import asyncio
import json
import re
from typing import Any

import pytest
import sabir
from sabir import Message
from sabir_distributed import DistributedRunner, NoServer, Worker, WorkerSettings
from sabir_distributed.envelopes import (
    Accepted,
    Alive,
    Answered,
    Busy,
    Failed,
    Request,
    encode,
)
from sabir_runtime import BaseContext, BaseRunner, RuntimeFault

from tests.distributed.contexts import Desk
from tests.distributed.support import Caller, Gate, soon, until

EAGER = WorkerSettings(accept_after=0.0, beat=0.02)
"""Accepts at once, beats often."""
NEVER = WorkerSettings(accept_after=1000.0)


async def test_a_short_call_is_one_request_and_one_reply(url: str, name: str, caller: Caller) -> None:
    """No acceptance, no beat: what a call costs beside its own work is one message each way."""
    async with Worker(Desk, url, name=name) as worker:
        await caller.ask("r1", policy="echo")
        answer = await caller.first(Answered)
        await caller.settle(worker)

    assert (answer.id, answer.worker, answer.result[0].text) == ("r1", worker.id, "x")
    assert [subject for subject, _ in caller.heard] == ["r1.1"]


async def test_a_policy_observes_the_same_objects_again(url: str, name: str) -> None:
    """Turn after turn: what core keeps with a message, as rendered prefixes, serves at a worker as in one process."""
    observed: list[list[Message]] = []

    async def observe(ctx: Any, observations: list[Message], options: Any = None) -> list[Message]:
        observed.append(observations)
        return [sabir.assistant("seen")]

    class Seeing(BaseContext):
        def __init__(self, runner: BaseRunner) -> None:
            super().__init__(runner)
            self.observe = self._bind(observe)

    history = [sabir.system("Be brief."), sabir.user("hm")]
    async with Worker(Seeing, url, name=name), DistributedRunner(url, name=name) as runner:
        ctx = Seeing(runner)
        for _ in range(3):
            history += await soon(ctx.observe(history))

    assert [len(each) for each in observed] == [2, 3, 4]
    assert all(again is further for again, further in zip(observed[1][:2], observed[2], strict=False))


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
        (lambda runner: {}, "a worker serves contexts, not a dict"),
        (dict, "a worker serves contexts, not the class 'dict'"),
        (serve_nobody, "a worker serves contexts, not the async function 'serve_nobody'"),
        (Needy, "a worker cannot make 'Needy' with a runner alone: missing a required argument: 'key'"),
        (lambda: None, "a worker cannot make '<lambda>' with a runner alone: too many positional arguments"),
    ],
)
def test_what_is_no_context_is_refused(url: str, context: Any, reason: str) -> None:
    """In one line, before anything is connected to."""
    remedy = "; give it a class derived from BaseContext, whose __init__ needs a runner alone"
    with pytest.raises(RuntimeFault, match=f"^{re.escape(reason + remedy)}$"):
        Worker(context, url)


async def test_a_request_for_another_context_is_refused(url: str, name: str, caller: Caller) -> None:
    """A subject and its envelope must agree."""
    async with Worker(Desk, url, name=name):
        request = Request(id="r1", context="Other", policy="echo", observations=(), seconds_left=5)
        await caller.client.publish(f"sabir.{name}.echo", encode(request), reply=f"{caller.inbox}.r1.1")
        failed = await caller.first(Failed)

    told = f"request is for 'echo' of 'Other', and came to 'sabir.{name}.echo'; send it to its policy's own subject"
    assert failed.error.message == told


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

    assert (failed.error.raised_by, failed.error.type) == ("policy", "CancelledError")


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


def test_an_envelope_of_a_worker_is_json() -> None:
    """Whoever reads a trace of the wire can read it."""
    assert json.loads(encode(Busy(id="r1", worker="w"))) == {"schema": 1, "kind": "busy", "id": "r1", "worker": "w"}
