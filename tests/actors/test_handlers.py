"""Handlers that return their own responses, cancel themselves, raise anything or hang (CH-05, CH-08, CH-34, CH-40)."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import Any

import pytest
from sabir_actors import Actor, ActorSystem, ErrorResponse, Message, Response, RestartPolicy
from sabir_actors.actor import HandlerResult
from sabir_actors.protocol import AnyMessage
from sabir_testing import always

from tests.actors.support import ask, begun, failed, said, scripted

LIMIT = 0.2
QUICK = RestartPolicy(first_pause=0.0, patience=LIMIT, leaving=LIMIT)
BOUND = 4.0
"""Seconds within which a system with such limits is left, whatever hangs."""
LONG = 2 * BOUND
"""Seconds for which a handler hangs that cannot be interrupted."""


class Worker(Actor):
    """Does whatever a test says."""

    def __init__(self, system: ActorSystem) -> None:
        super().__init__("worker", system)
        self.todo: Callable[[Message], Awaitable[Any]] = self.nothing
        self.restarted = 0

    async def nothing(self, message: Message) -> HandlerResult:
        return {"id": message.id}

    async def on_work(self, message: Message) -> HandlerResult:
        result: HandlerResult = await self.todo(message)
        return result

    on_heartbeat = on_get_thread_status = on_process_phase = on_create_thread = on_work

    async def restarting(self) -> None:
        self.restarted += 1


@pytest.fixture
def sent() -> list[AnyMessage]:
    return []


@pytest.fixture
async def worker(sent: list[AnyMessage]) -> AsyncIterator[Worker]:
    async with ActorSystem(restarts=QUICK, trace=sent.append) as system:
        worker = Worker(system)
        system.add(worker)
        yield worker


def notified(sent: list[AnyMessage]) -> list[str]:
    return [str(each.data["error_message"]) for each in sent if each.type == "ERROR_NOTIFICATION"]


async def answered(worker: Worker, todo: Callable[[Message], Any], kind: str = "WORK", **data: Any) -> Response:
    async def work(message: Message) -> Any:
        return todo(message)

    worker.todo = work
    return await worker.system.send_message(ask(kind, "worker", "m1", **data))


class TestOwnResponses:
    @pytest.mark.parametrize(
        "envelope",
        [
            {},
            {"message_id": "other", "sender": "somebody", "receiver": "nobody", "correlation_id": "another"},
        ],
    )
    @pytest.mark.parametrize("is_error", [False, True])
    async def test_a_response_of_a_handler_answers_its_message(
        self, worker: Worker, envelope: dict[str, Any], is_error: bool
    ) -> None:  # CH-05
        """Fields that are missing are filled in, and those of another message, as of one that was forwarded, too."""
        own = ErrorResponse(error_message="no", **envelope) if is_error else Response(type="DONE", **envelope)
        response = await answered(worker, lambda _: own)
        assert (response.message_id, response.sender, response.receiver) == ("m1", "worker", "test")
        assert (response.correlation_id, response.type, response.id) == ("talk", own.type, own.id)
        assert response.data == own.data and type(response) is type(own)

    async def test_a_retry_of_such_a_response_answers_the_retry(self, worker: Worker) -> None:  # CH-05
        """An ERROR that a handler returns is a failure, and can be tried again."""
        assert failed(await answered(worker, lambda _: ErrorResponse(error_message="no")))[1] == "no"
        retry = ask("RETRY", "worker", "r1", original_message_id="m1", attempt=2, max_attempts=9)
        again = await worker.system.send_message(retry)
        assert failed(again)[1] == "no" and again.message_id == "r1"
        worker.todo = worker.nothing
        last = await worker.system.send_message(retry.model_copy(update={"id": "r2"}))
        assert (last.type, last.message_id, last.data) == ("WORK_RESPONSE", "r2", {"id": "m1"})

    @pytest.mark.parametrize("kind", ["Response", "data"])
    @pytest.mark.parametrize(
        ("message", "response_type", "data", "field"),
        [
            (("HEARTBEAT", {}), "HEARTBEAT_RESPONSE", {"uptime": -1, "load": 0}, "uptime"),
            (("GET_THREAD_STATUS", {"thread_id": "t"}), "THREAD_STATUS", {"thread_id": "t"}, "status"),
            (("CREATE_THREAD", {"user_id": "u", "initial_input": "x"}), "THREAD_CREATED",
             {"thread_id": "t", "status": "asleep"}, "status"),
            (("PROCESS_PHASE", {"thread_id": "t", "phase_type": "action", "input": "x"}), "PHASE_PROCESSED",
             {"thread_id": "t", "phase_type": "action", "processing_time": 1, "output": {"response": 7}},
             "output.response"),
        ],
    )  # fmt: skip
    async def test_data_of_a_handlers_response_is_validated(
        self, worker: Worker, sent: list[AnyMessage], kind: str, message: Any, response_type: str, data: Any, field: str
    ) -> None:  # CH-08
        result = Response(type=response_type, data=data) if kind == "Response" else data
        response = await answered(worker, lambda _: result, message[0], **message[1])
        code, words = failed(response)
        assert code == "FAILED" and field in words and response_type in words
        assert response.message_id == "m1" and notified(sent) == [words]

    @pytest.mark.parametrize("result", [None, "done", 7, [{}], Message(type="WORK")])
    async def test_no_other_result_is_accepted(self, worker: Worker, sent: list[AnyMessage], result: object) -> None:
        # CH-08
        code, words = failed(await answered(worker, lambda _: result))
        assert code == "FAILED" and type(result).__name__ in words and len(notified(sent)) == 1


async def inner_task() -> None:
    task = asyncio.ensure_future(asyncio.sleep(60))
    asyncio.get_running_loop().call_soon(task.cancel)
    await task


async def own_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)


async def open_timeout() -> None:
    """Enter a timeout and never leave it, so that its cancellation is not turned into a TimeoutError."""
    await asyncio.timeout(0.01).__aenter__()
    await asyncio.sleep(60)


async def raised_error() -> None:
    raise asyncio.CancelledError("by a library")


async def group() -> None:
    raise BaseExceptionGroup("several", [asyncio.CancelledError(), RuntimeError("the disk")])


class Panic(BaseException):
    """As native extensions raise it."""


async def panic() -> None:
    raise Panic("at the disco")


RAISING = [inner_task, own_task, open_timeout, raised_error, group, panic]


class TestCancellations:
    @pytest.mark.parametrize("raising", RAISING)
    async def test_a_cancellation_within_a_handler_is_its_error(
        self, worker: Worker, sent: list[AnyMessage], raising: Callable[[], Awaitable[None]]
    ) -> None:  # CH-40
        async def work(message: Message) -> None:
            await raising()

        worker.todo = work
        response = await asyncio.wait_for(worker.system.send_message(ask("WORK", "worker", "m1")), BOUND)
        code, words = failed(response)
        assert code == "FAILED" and "Error processing message" in words and response.message_id == "m1"
        assert notified(sent) == [words]
        worker.todo = worker.nothing
        assert not (await worker.system.send_message(ask("WORK", "worker", "m2"))).is_error

    async def test_a_caller_that_is_cancelled_is_cancelled_and_the_work_continues(self, worker: Worker) -> None:
        # CH-40
        gate, begun_ = asyncio.Event(), asyncio.Event()

        async def work(message: Message) -> dict[str, Any]:
            begun_.set()
            await gate.wait()
            return {"done": True}

        worker.todo = work
        caller = asyncio.ensure_future(worker.system.send_message(ask("WORK", "worker", "m1")))
        await begun_.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        gate.set()
        assert (await worker.system.send_message(ask("WORK", "worker", "m1"))).data == {"done": True}

    async def test_a_cancellation_of_the_task_that_answers_propagates(self, worker: Worker) -> None:  # CH-40
        """As asyncio.run cancels all tasks at its end: no ERROR, and the handler is cancelled."""
        ended = asyncio.Event()

        async def work(message: Message) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        worker.todo = work
        caller = asyncio.ensure_future(worker.system.send_message(ask("WORK", "worker", "m1")))
        await asyncio.sleep(0.01)
        worker._running["m1"].cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert ended.is_set()

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_an_end_of_the_program_is_not_an_error_of_a_handler(self, error: type[BaseException]) -> None:  # CH-40
        async def run() -> None:
            async with ActorSystem(restarts=QUICK) as system:
                worker = Worker(system)
                system.add(worker)

                async def work(message: Message) -> None:
                    raise error

                worker.todo = work
                await system.send_message(ask("WORK", "worker"))

        with pytest.raises(error):
            asyncio.run(run())

    @pytest.mark.parametrize("raising", RAISING)
    async def test_no_thread_stays_processing(self, raising: Callable[[], Awaitable[None]]) -> None:  # CH-40
        system, llm = scripted(always(said()))

        async def complete(*_: object, **__: object) -> None:
            await raising()

        llm.complete = complete  # type: ignore[method-assign, assignment]
        async with system:
            client, thread_id = await begun(system)
            result = await asyncio.wait_for(client.result(thread_id, every=60), BOUND)
            assert (result.status, result.error_code) == ("failed", "FAILED")
            assert (await client.status(thread_id)).status == "failed"

    async def test_an_adapter_that_is_not_made_fails_its_thread(self) -> None:  # CH-40
        def adapters(model: str) -> Any:
            raise asyncio.CancelledError

        async with ActorSystem("m", adapters=adapters) as system:
            client, thread_id = await begun(system)
            result = await asyncio.wait_for(client.result(thread_id, every=60), BOUND)
            assert (result.status, result.error_code) == ("failed", "FAILED")


async def forever(ends: threading.Event) -> None:
    await asyncio.Event().wait()


async def in_a_thread(ends: threading.Event) -> None:
    await asyncio.get_running_loop().run_in_executor(None, ends.wait, LONG)


async def swallowing(ends: threading.Event) -> None:
    until = monotonic() + LONG
    while not ends.is_set() and monotonic() < until:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


async def shielding_a_thread(ends: threading.Event) -> None:
    thread = asyncio.ensure_future(asyncio.to_thread(ends.wait, LONG))
    while not thread.done():
        try:
            await asyncio.shield(thread)
        except asyncio.CancelledError:
            continue


LOCK = asyncio.Lock()


async def holding_a_lock(ends: threading.Event) -> None:
    async with LOCK:
        await asyncio.Event().wait()


HANGING = [forever, in_a_thread, swallowing, shielding_a_thread, holding_a_lock]


class TestHanging:
    @pytest.fixture
    def ends(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr("sabir_actors.actor.CLEANUP", LIMIT)
        ends = threading.Event()
        yield ends
        ends.set()

    async def hang(self, worker: Worker, hanging: Any, ends: threading.Event) -> "asyncio.Task[Response]":
        begun_ = asyncio.Event()

        async def work(message: Message) -> None:
            begun_.set()
            await hanging(ends)

        worker.todo = work
        caller = asyncio.ensure_future(worker.system.send_message(ask("WORK", "worker", "m1")))
        await begun_.wait()
        return caller

    @pytest.mark.parametrize("by", ["worker", "supervisor"])
    @pytest.mark.parametrize("hanging", HANGING)
    async def test_a_restart_reaches_a_hanging_actor(
        self, worker: Worker, hanging: Any, by: str, ends: threading.Event
    ) -> None:  # CH-34
        caller = await self.hang(worker, hanging, ends)
        waiting = asyncio.ensure_future(worker.system.send_message(ask("WORK", "worker", "m2")))
        await asyncio.sleep(0)
        worker.todo = worker.nothing
        restart = ask("RESTART", by, actor_id="worker")
        response = await asyncio.wait_for(worker.system.send_message(restart), BOUND)
        assert (response.type, response.data["status"]) == ("RESTART_COMPLETE", "restarted")
        assert (await waiting).data == {"id": "m2"} and worker.restarted == 1
        answer = await asyncio.wait_for(caller, BOUND)
        assert failed(answer)[0] == "STOPPED" and "RESTART" in failed(answer)[1] and answer.data["retryable"]
        retry = ask("RETRY", "worker", original_message_id="m1", attempt=2, max_attempts=2)
        assert (await worker.system.send_message(retry)).data == {"id": "m1"}
        ends.set()

    async def test_a_message_that_ends_in_time_is_not_interrupted_by_a_restart(self, worker: Worker) -> None:  # CH-34
        gate, order = asyncio.Event(), list[str]()

        async def work(message: Message) -> dict[str, Any]:
            await gate.wait()
            order.append(f"{message.id} after {worker.restarted} restarts")
            return {}

        worker.todo = work
        callers = [asyncio.ensure_future(worker.system.send_message(ask("WORK", "worker", each))) for each in "ab"]
        await asyncio.sleep(0.01)
        restarting = asyncio.ensure_future(worker.system.send_message(ask("RESTART", "worker", actor_id="worker")))
        await asyncio.sleep(0.01)
        gate.set()
        assert not any(each.is_error for each in [await restarting, *await asyncio.gather(*callers)])
        assert order == ["a after 0 restarts", "b after 1 restarts"]

    async def test_a_restart_interrupts_a_hanging_one(self, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        # CH-34
        async def restarting() -> None:
            worker.restarted += 1
            if worker.restarted == 1:
                await asyncio.Event().wait()

        monkeypatch.setattr(worker, "restarting", restarting)
        restarts = [ask("RESTART", "worker", each, actor_id="worker") for each in ("r1", "r2")]
        first, second = await asyncio.wait_for(asyncio.gather(*map(worker.system.send_message, restarts)), BOUND)
        assert failed(first)[0] == "STOPPED" and second.data["status"] == "restarted"
        assert not (await worker.system.send_message(ask("WORK", "worker"))).is_error

    @pytest.mark.parametrize("hanging", HANGING)
    async def test_leaving_a_system_takes_bounded_time(self, hanging: Any, ends: threading.Event) -> None:  # CH-34
        """Several actors hang at once, and the models of several threads; each caller is answered."""
        system, llm = scripted(always(said()), restarts=QUICK)

        async def complete(*_: object, **__: object) -> None:
            await hanging(ends)

        llm.complete = complete  # type: ignore[method-assign, assignment]
        async with system:
            callers = []
            for number in range(9):
                worker = Worker(system)
                worker.actor_id = f"worker{number}"
                system.add(worker)
                worker.todo = lambda message: hanging(ends)
                callers.append(asyncio.ensure_future(system.send_message(ask("WORK", worker.actor_id))))
                await begun(system)
            await asyncio.sleep(0.05)
            began = monotonic()
        assert monotonic() - began < BOUND
        assert {failed(each)[0] for each in await asyncio.gather(*callers)} == {"STOPPED"}
        assert system.actors() == ()
        ends.set()

    @pytest.mark.parametrize("hanging", HANGING)
    async def test_leaving_waits_for_no_closing_that_hangs(self, hanging: Any, ends: threading.Event) -> None:  # CH-34
        class Clinging(Worker):
            async def stopping(self) -> None:
                await hanging(ends)

        system, llm = scripted(always(said()), restarts=QUICK)

        async def aclose() -> None:
            await hanging(ends)

        llm.aclose = aclose  # type: ignore[method-assign]
        async with system:
            system.add(Clinging(system))
            client, thread_id = await begun(system)
            assert (await client.result(thread_id, every=0.01)).status == "completed"
            began = monotonic()
        assert monotonic() - began < BOUND
        ends.set()

    def test_the_default_limits_are_those_of_the_documentation(self) -> None:  # CH-34
        assert (RestartPolicy().patience, RestartPolicy().leaving) == (1.0, 5.0)
