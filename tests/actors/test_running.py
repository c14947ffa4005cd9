"""Runs of threads: put into a queue, performed by one process, left when paused; who has a thread, by its journal."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from sabir_actors import AEIOUY, ActorError, ActorSystem, ThreadClient
from sabir_actors.state import EventKind
from sabir_actors.thread import Thread
from sabir_actors.thread_runs import _record_phase
from sabir_session import PositionTaken, RecordingFailed, SQLiteStore, StoreError

from tests.actors.support import GIVEN, Hall, Model, Processes, begun, started, system_of, tell

pytestmark = pytest.mark.usefixtures("quick")


async def test_a_thread_that_one_process_starts_is_performed_by_another(processes: Processes) -> None:
    system, (_, seat, model) = await processes.asker(), await processes.worker()
    client, thread_id = await begun(system)
    assert processes.hall.put == [(thread_id, f"{thread_id}.1")]
    await seat.begin()
    result = await asyncio.wait_for(client.result(thread_id, every=3600), 10)
    assert (result.status, model.asked) == ("completed", list(AEIOUY))
    assert result.output is not None and result.output["response"] == "yield is done"
    assert processes.events(thread_id) == ["created", "started", "taken", *AEIOUY, "completed"]


async def test_a_thread_that_is_paused_before_its_run_is_performed_is_left(processes: Processes) -> None:
    """The run ends without a phase; resumed, the thread has another."""
    system, (_, seat, model) = await processes.asker(), await processes.worker()
    thread_id = await started(system)
    await tell(system, "PAUSE_THREAD", thread_id=thread_id)
    await seat.begin()
    assert processes.events(thread_id) == ["created", "started", "paused", "left"] and not model.asked
    await tell(system, "RESUME_THREAD", thread_id=thread_id)
    await seat.begin(0)
    assert not model.asked
    await seat.begin(1)
    assert model.asked == list(AEIOUY)


async def test_an_outdated_run_does_not_take_its_thread(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paused and resumed in the moment before the first run takes the thread: it is the second run's, of a process that
    lives, and no question is asked twice."""
    (_, late, slow), (system, seat, model) = await processes.worker(), await processes.worker()
    thread_id, record = await started(system), Thread.record

    def steered(thread: Thread, what: EventKind, said: dict[str, Any], *more: Any) -> None:
        if what == "taken" and len(processes.hall.put) == 1:
            steering = Thread(thread_id, processes.store)
            record(steering, "paused", {})
            record(steering, "resumed", {"by": None, "run": f"{thread_id}.2"})
            processes.hall.put.append((thread_id, f"{thread_id}.2"))
        record(thread, what, said, *more)

    monkeypatch.setattr(Thread, "record", steered)
    await late.begin()
    await seat.begin()
    assert not slow.asked and model.asked == list(AEIOUY)
    assert processes.events(thread_id) == ["created", "started", "paused", "resumed", "taken", *AEIOUY, "completed"]


async def test_a_run_given_to_another_process_takes_its_thread_no_more(processes: Processes) -> None:
    """As a worker that was stopped, and wakes: the queue is asked before the thread is taken from who has it."""
    (system, late, slow), (_, seat, model) = await processes.worker(), await processes.worker()
    thread_id = await started(system)
    await asyncio.gather(late.begin(), seat.begin())
    assert not slow.asked and model.asked == list(AEIOUY)
    assert processes.events(thread_id) == ["created", "started", "taken", *AEIOUY, "completed"]


async def test_a_run_that_is_cancelled_is_unfinished_for_another_process(processes: Processes) -> None:
    """As a worker that closes does; what was recorded is not done again."""
    system = await processes.asker()
    _, seat, model = await processes.worker()
    _, run = await processes.at_work(system, seat, model)
    first, second = model.gate, model.hold()
    first.open()
    await second.reached()
    run.cancel()
    await asyncio.wait([run])
    assert run.cancelled()
    _, other, rest = await processes.worker()
    await other.begin()
    assert (model.asked, rest.asked) == (["action", "experience"], list(AEIOUY[1:]))


async def test_a_sweep_puts_a_run_that_was_not_put(processes: Processes, caplog: pytest.LogCaptureFixture) -> None:
    """The answer stands, for it is recorded; who died in between is no reason to lose the thread."""
    system, hall = await processes.asker(), processes.hall
    hall.is_away = True
    with caplog.at_level(logging.WARNING):
        thread_id = await started(system)
    assert not hall.put and "a later sweep tries again: the queue is away" in caplog.text
    hall.is_away = False
    _, seat, model = await processes.worker()
    assert hall.put == [(thread_id, f"{thread_id}.1")]
    hall.put.clear()
    while not hall.put:
        await asyncio.sleep(0.01)
    await seat.begin()
    hall.put.clear()
    await asyncio.sleep(0.1)
    assert not hall.put
    assert model.asked == list(AEIOUY)


async def test_a_thread_of_a_time_without_a_queue_is_given_a_run(store: SQLiteStore) -> None:
    """A program that becomes many processes keeps its threads; one that becomes a single one again too."""
    alone = Model(held=True)
    async with system_of(alone, store) as system:
        thread_id = await started(system)
        await alone.gate.reached()
    async with AsyncExitStack() as stack:
        processes = Processes(store, stack)
        _, seat, model = await processes.worker()
        assert processes.hall.put == [(thread_id, f"{thread_id}.1")]
        gate = model.hold()
        run = seat.begin()
        await gate.reached()
        run.cancel()
    last = Model()
    async with system_of(last, store) as system:
        assert (await ThreadClient(system).result(thread_id, every=0.01)).status == "completed"
        assert system.threads.view(thread_id).run is None
    assert last.asked == list(AEIOUY)


async def test_a_thread_that_another_process_terminates_is_interrupted(processes: Processes) -> None:
    system, (_, seat, model) = await processes.asker(), await processes.worker()
    thread_id, run = await processes.at_work(system, seat, model)
    await tell(system, "TERMINATE_THREAD", thread_id=thread_id, reason="enough")
    await run
    assert processes.events(thread_id) == ["created", "started", "taken", "terminated"]


async def test_a_queue_needs_a_store() -> None:
    with pytest.raises(ActorError, match=r"pass ActorSystem\(store=…\)"):
        ActorSystem("echo:small", queue=Hall().seat())


async def test_a_run_of_a_thread_that_was_deleted_is_over(store: SQLiteStore, processes: Processes) -> None:
    system, (_, seat, model) = await processes.asker(), await processes.worker()
    thread_id = await started(system)
    store.delete(f"thread:{thread_id}")
    await seat.begin()
    assert not model.asked


CREATED = {
    "thread_id": "t", "user_id": "u", "initial_input": "Why?", "chain": "aeiou-y", "phases": list(AEIOUY),
}  # fmt: skip


async def test_a_waking_worker_takes_no_thread_back(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its phase ends when the thread is another's: it records nothing, and asks nothing more."""
    monkeypatch.setattr("sabir_actors.thread_runs.LOOK", 100)
    system = await processes.asker()
    _, asleep, first = await processes.worker()
    _, other, second = await processes.worker()
    second.hold()
    thread_id, late = await processes.at_work(system, asleep, first)
    run = other.begin()
    await second.gate.reached()
    length = processes.length(thread_id)
    first.gate.open()
    await asyncio.sleep(0.02)
    assert processes.length(thread_id) == length
    late.cancel()  # as the queue does, which gave the run to the other
    second.gate.open()
    await run
    assert (first.asked, second.asked) == (["action"], list(AEIOUY))
    assert processes.events(thread_id).count("taken") == 2


async def test_a_run_that_comes_back_to_a_worker_takes_its_thread_again(processes: Processes) -> None:
    """Whoever had it in between died; the thread is not lost between the two, and nothing is recorded twice."""
    system = await processes.asker()
    _, holder, first = await processes.worker()
    _, other, second = await processes.worker()
    second.hold()
    thread_id, run = await processes.at_work(system, holder, first)
    taken = other.begin()
    await second.gate.reached()
    first.gate.open()
    await run
    taken.cancel()
    await holder.begin()
    assert processes.events(thread_id)[-1] == "completed"
    assert [each for each in processes.events(thread_id) if each in AEIOUY] == list(AEIOUY)


def test_the_records_of_who_lost_a_thread_are_refused_for_good(store: SQLiteStore) -> None:
    mine = Thread("t", store, "me")
    mine.record("created", CREATED)
    mine.record("started", {"by": "me"})
    Thread("t", store, "other").record("taken", {"by": "other"})
    assert mine.journal is not None
    for _ in range(3):
        with pytest.raises(PositionTaken):
            mine.journal.append("some:Reply", "{}")
    mine.refresh()
    with pytest.raises(PositionTaken, match="another process runs it"):
        _record_phase(mine, {})
    assert store.length("thread:t") == 3


def test_an_unreadable_journal_does_not_fail_its_thread(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread waits for its journal then, and does not fail; and what was held of it stays."""
    mine = Thread("t", store, "me")
    mine.record("created", CREATED)
    mine.record("started", {"by": "me"})
    Thread("t", store, "other").record("paused", {})

    with monkeypatch.context() as patch:
        patch.setattr(store, "journal", raising(StoreError("away")))
        with pytest.raises(RecordingFailed, match="away"):
            mine.record("failed", {"error_message": "no", "error_code": "FAILED"})
        with pytest.raises(StoreError, match="away"):
            mine.read()
    assert mine.is_mine and mine.view.status == "processing"
    mine.refresh()
    assert mine.view.status == "paused"


async def test_a_look_that_fails_is_not_the_last_one(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is away for a moment ends neither looks nor sweeps."""
    worker, _, _ = await processes.worker()
    failures = iter([StoreError("away")] * 3)
    names = worker.threads.threads.names

    def shaky() -> list[str]:
        for failure in failures:
            raise failure
        return names()

    monkeypatch.setattr(worker.threads.threads, "names", shaky)
    while next(failures, None) is not None:
        await asyncio.sleep(0.01)
    processes.hall.is_away = True
    thread_id = await started(worker)
    processes.hall.is_away = False
    while not processes.hall.put:
        await asyncio.sleep(0.01)
    assert processes.hall.put == [(thread_id, f"{thread_id}.1")]


async def test_a_system_that_cannot_begin_closes_its_queue(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given to a process whose program has gone on without it."""
    seat = Hall().seat()
    monkeypatch.setattr(store, "names", raising(StoreError("away")))
    with pytest.raises(StoreError, match="away"):
        async with system_of(Model(), store, queue=seat):
            pass
    assert seat.perform is None


async def test_a_refused_message_is_done_when_sent_again(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happened; the same message, sent again, is done."""
    async with system_of(Model(), store) as system:
        with monkeypatch.context() as patch:
            patch.setattr(store, "journal", raising(StoreError("away")))
            refused = await tell(system, "CREATE_THREAD", "one", **GIVEN)
        assert (refused.data["error_code"], refused.data["retryable"]) == ("RECORDING_FAILED", True)
        assert (await tell(system, "CREATE_THREAD", "one", **GIVEN)).type == "THREAD_CREATED"


def raising(error: Exception) -> Callable[..., Any]:

    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail
