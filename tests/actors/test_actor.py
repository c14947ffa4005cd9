"""An actor: messages validated, in turn, answered once, whatever its handlers do (CH-13, CH-32 … CH-45)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_actors import Actor, ActorError, ActorSystem, ErrorCode, Message, Response
from sabir_actors import actor as actor_module
from sabir_actors.actor import HandlerResult
from sabir_actors.protocol import AnyMessage

from tests.actors.support import AT_ONCE, ask, failed


class Worker(Actor):
    def __init__(self, system: ActorSystem, *, mailbox: int = 1000, longest: float | None = None) -> None:
        super().__init__("worker", system, mailbox=mailbox, longest=longest)
        self.gate, self.begun, self.broken_off = asyncio.Event(), list[str](), list[str]()
        self.restarts, self.ended, self.failures = 0, 0, 0

    async def on_work(self, message: Message) -> HandlerResult:
        self.begun.append(message.id)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # it cleans up, and nobody breaks that off
            self.broken_off.append(message.id)
            raise
        return {"done": message.id}

    async def on_fail(self, message: Message) -> HandlerResult:
        self.failures += 1
        if self.failures > message.data.get("times", 99):
            return {"done": message.id}
        raise RuntimeError("the disk\nis full")

    async def on_wait(self, message: Message) -> HandlerResult:
        raise TimeoutError("the other side does not answer")

    async def on_refuse(self, message: Message) -> HandlerResult:
        raise ActorError(ErrorCode.INVALID_STATE, "not now", retryable=True, state="busy")

    async def restarting(self) -> None:
        self.restarts += 1

    async def stopping(self) -> None:
        self.ended += 1


Make = Callable[..., Worker]


@pytest.fixture
async def system() -> AsyncIterator[ActorSystem]:
    async with ActorSystem(restarts=AT_ONCE) as system:
        yield system


@pytest.fixture
async def make(system: ActorSystem) -> AsyncIterator[Make]:
    made: list[Worker] = []

    def maker(**how: object) -> Worker:
        worker = Worker(system, **how)  # type: ignore[arg-type]
        system.add(worker)
        made.append(worker)
        return worker

    yield maker
    for worker in made:
        worker.gate.set()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def sent(system: ActorSystem, message: Message) -> "asyncio.Task[Response]":
    return asyncio.ensure_future(system.send_message(message))


async def test_one_message_at_a_time_in_order(system: ActorSystem, make: Make) -> None:
    worker = make()
    waiting = [sent(system, ask("WORK", "worker", name)) for name in "abc"]
    await settled()
    assert worker.begun == ["a"]
    worker.gate.set()
    assert [(await each).data["done"] for each in waiting] == worker.begun == ["a", "b", "c"]


async def test_a_full_mailbox_refuses_and_says_so(system: ActorSystem, make: Make) -> None:  # CH-32
    worker = make(mailbox=3)
    waiting = [sent(system, ask("WORK", "worker", f"m{number}")) for number in range(8)]
    await settled()
    refused = [each for each in waiting if each.done()]
    assert len(refused) == 5
    code, words = failed(refused[-1].result())
    assert code == "MAILBOX_FULL" and "send the message again later" in words and refused[-1].result().data["retryable"]
    alive = (await system.send_message(ask("HEARTBEAT", "worker"))).data
    assert (alive["status"], alive["load"]) == ("alive", 1.0) and alive["uptime"] >= 0
    worker.gate.set()
    await asyncio.gather(*waiting)
    assert (await system.send_message(ask("HEARTBEAT", "worker"))).data["load"] == 0
    assert (await system.send_message(ask("WORK", "worker", "m7"))).data == {"done": "m7"}


class TestDuplicates:  # CH-43
    @given(
        deliveries=st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=20),
        failing=st.sets(st.sampled_from("abcde")),
    )
    def test_whatever_is_delivered_however_often(self, deliveries: list[tuple[str, bool]], failing: set[str]) -> None:
        async def answers() -> tuple[list[Response], list[str]]:
            worker = Worker(ActorSystem())
            worker.gate.set()
            callers = []
            for message_id, pauses in deliveries:
                kind = "REFUSE" if message_id in failing else "WORK"
                callers.append(asyncio.ensure_future(worker.receive(ask(kind, "worker", message_id))))
                if pauses:
                    await settled()
            return await asyncio.gather(*callers), worker.begun

        found, begun = asyncio.run(answers())
        ids = [message_id for message_id, _ in deliveries]
        assert [each.message_id for each in found] == ids
        assert begun == [each for each in dict.fromkeys(ids) if each not in failing]
        assert len({each.id for each in found}) == len(set(ids))
        assert [each.is_error for each in found] == [each in failing for each in ids]

    async def test_as_many_answers_are_kept_as_said(
        self, system: ActorSystem, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The oldest is forgotten first; its id is a new message then."""
        monkeypatch.setattr(actor_module, "REMEMBERED", 3)
        worker = make()
        worker.gate.set()
        for name in ["a", "b", "c", "d", "b", "a"]:
            await system.send_message(ask("WORK", "worker", name))
        assert worker.begun == ["a", "b", "c", "d", "a"]


class TestFailures:  # CH-40
    async def test_an_exception_is_an_error_and_the_actor_goes_on(
        self, system: ActorSystem, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        sent: list[AnyMessage] = []
        system._trace = sent.append
        worker = make()
        with caplog.at_level(logging.INFO, "sabir.actors"):
            response = await system.send_message(ask("FAIL", "worker", "f1"))
        assert failed(response) == ("FAILED", "Error processing message: RuntimeError: the disk is full")
        (notification,) = [each for each in sent if each.type == "ERROR_NOTIFICATION"]
        assert notification.data["actor_id"] == "worker" and notification.data["message_id"] == "f1"
        (logged,) = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert "FAIL f1 failed at worker" in logged.getMessage() and "\n" not in logged.getMessage()
        assert logged.exc_info is None
        worker.gate.set()
        assert (await system.send_message(ask("WORK", "worker"))).type == "WORK_RESPONSE"

    async def test_flows_are_logged_without_contents(
        self, system: ActorSystem, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:  # CH-45
        make().gate.set()
        with caplog.at_level(logging.INFO, "sabir.actors"):
            await system.send_message(ask("WORK", "worker", "w1", text="my secret"))
            await system.send_message(ask("RETRY", "worker", "r1", text="my secret"))
        lines = [each.getMessage() for each in caplog.records]
        assert lines[0] == "WORK w1 from test to worker (talk)"
        assert [line.split()[0] for line in lines] == ["WORK", "WORK_RESPONSE", "RETRY", "ERROR"]
        assert "secret" not in caplog.text

    async def test_a_trace_that_fails_stops_nobody(self, system: ActorSystem, make: Make) -> None:
        def broken(message: object) -> None:
            raise RuntimeError("no display")

        system._trace = broken
        make().gate.set()
        assert (await system.send_message(ask("WORK", "worker"))).type == "WORK_RESPONSE"


class TestRetry:  # CH-37, CH-38
    @pytest.mark.parametrize(
        ("original", "attempt", "code"), [("f1", 4, "RETRIES_EXHAUSTED"), ("other", 2, "UNKNOWN_MESSAGE")]
    )
    async def test_not_beyond_the_attempts_nor_what_did_not_fail(
        self, system: ActorSystem, make: Make, original: str, attempt: int, code: str
    ) -> None:
        worker = make()
        await system.send_message(ask("FAIL", "worker", "f1"))
        retry = ask("RETRY", "worker", original_message_id=original, attempt=attempt, max_attempts=3)
        assert failed(await system.send_message(retry))[0] == code
        assert worker.failures == 1


class TestEnds:
    async def test_stop(self, system: ActorSystem, make: Make) -> None:  # CH-35
        worker = make()
        handled, waits = sent(system, ask("WORK", "worker", "a")), sent(system, ask("WORK", "worker", "b"))
        await settled()
        response = await system.send_message(ask("STOP", "worker", actor_id="worker", reason="shutdown"))
        assert (response.type, response.data["status"]) == ("STOP_COMPLETE", "stopped")
        assert failed(await system.send_message(ask("HEARTBEAT", "worker")))[0] == "STOPPED"
        going = asyncio.ensure_future(system.stop_actor("worker"))
        await settled()
        assert not (handled.done() or going.done()) and worker.ended == 0
        worker.gate.set()
        await going
        assert (await handled).data == {"done": "a"}
        assert failed(await waits)[0] == "STOPPED"
        assert worker.ended == 1 and worker.begun == ["a"]
        assert failed(await system.send_message(ask("WORK", "worker")))[0] == "UNKNOWN_ACTOR"
        await system.stop_actor("worker")

    @pytest.mark.parametrize("message_type", ["STOP", "RESTART"])
    async def test_messages_about_others_do_nothing(self, system: ActorSystem, make: Make, message_type: str) -> None:
        worker = make()
        assert failed(await system.send_message(ask(message_type, "worker", actor_id="other")))[0] == "INVALID_MESSAGE"
        assert worker.restarts == 0 and (await system.send_message(ask("HEARTBEAT", "worker"))).data

    async def test_what_is_given_up_is_answered_with_an_error(self, system: ActorSystem, make: Make) -> None:
        worker = make()
        waiting = [sent(system, ask("WORK", "worker", name)) for name in "ab"]
        await settled()
        waiting.append(asyncio.ensure_future(worker.receive(ask("WORK", "worker", "c"))))
        await asyncio.sleep(0)
        assert "c" in worker._running
        worker.interrupt()
        worker.interrupt("a")
        answers = await asyncio.gather(*waiting)
        assert [failed(each)[0] for each in answers] == ["STOPPED"] * 3
        assert (worker.begun, worker.broken_off) == (["a"], ["a"])

    async def test_an_end_that_fails_holds_up_nobody(
        self, system: ActorSystem, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def broken() -> None:
            raise RuntimeError("no disk")

        worker = make()
        monkeypatch.setattr(worker, "stopping", broken)
        await system.stop_actor("worker")
        assert "worker" not in system.actors()


async def test_an_error_that_is_told_is_acknowledged(system: ActorSystem, make: Make) -> None:
    response = await system.send_message(ask("ERROR", make().actor_id, error_message="it broke"))
    assert (response.type, response.data["error_logged"]) == ("ERROR_ACKNOWLEDGED", True)
