"""Who has a thread: one process at a time, by its journal; a store that is away loses nothing and ends nothing."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from sabir_actors import AEIOUY
from sabir_actors.thread import Thread
from sabir_session import PositionTaken, RecordingFailed, SQLiteStore, StoreError

from tests.actors.queueing import Hall, Processes
from tests.actors.surviving import GIVEN, Model, started, system_of, tell

CREATED = {
    "thread_id": "t", "user_id": "u", "initial_input": "Why?", "chain": "aeiou-y", "phases": list(AEIOUY),
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("quick")


async def test_a_worker_that_wakes_does_not_take_its_thread_back(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its phase ends when the thread is another's: it records nothing, and asks nothing more."""
    monkeypatch.setattr("sabir_actors.running.LOOK", 100)
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
    """Not the first one alone: what ends late is not written behind the new holder's records."""
    mine = Thread("t", store, "me")
    mine.record("created", CREATED)
    mine.record("started", {"by": "me"})
    Thread("t", store, "other").record("taken", {"by": "other"})
    assert mine.journal is not None
    for _ in range(3):
        with pytest.raises(PositionTaken):
            mine.journal.append("some:Reply", "{}")
    assert store.length("thread:t") == 3


def test_what_cannot_be_read_of_others_is_the_journals_failure(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_a_message_is_not_refused_for_good_while_the_store_is_away(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing happened; the same message, sent again, is done."""
    async with system_of(Model(), store) as system:
        with monkeypatch.context() as patch:
            patch.setattr(store, "journal", raising(StoreError("away")))
            refused = await tell(system, "CREATE_THREAD", "one", **GIVEN)
        assert (refused.data["error_code"], refused.data["retryable"]) == ("RECORDING_FAILED", True)
        assert (await tell(system, "CREATE_THREAD", "one", **GIVEN)).type == "THREAD_CREATED"


async def test_a_run_that_nobody_began_is_replaced_where_its_thread_is_resumed(processes: Processes) -> None:
    """It may wait in the queue, or be paused there for what its worker lacked: the new one does not."""
    system, (_, seat, model) = await processes.asker(), await processes.worker()
    thread_id = await started(system)
    await tell(system, "PAUSE_THREAD", thread_id=thread_id)
    await tell(system, "RESUME_THREAD", thread_id=thread_id)
    assert processes.hall.put == [(thread_id, f"{thread_id}.1"), (thread_id, f"{thread_id}.2")]
    await seat.begin(0)
    assert not model.asked
    await seat.begin(1)
    assert model.asked == list(AEIOUY)


def raising(error: Exception) -> Callable[..., Any]:
    """A function that raises it."""

    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail
