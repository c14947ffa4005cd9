"""What outlives a process, and two processes on one store: the journal is the one truth.

A system that is left and another one on the same store are a restart; kills are in tests/actors/crash.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir_actors import AEIOUY, Response, ThreadClient
from sabir_actors.state import thread_id_of
from sabir_session import RecordingFailed, SQLiteStore
from sabir_session.stores.journal import StoredJournal

from tests.actors.support import GIVEN, Model, begun, events_of, started, system_of, tell

CONTROL = ("START_THREAD", "PAUSE_THREAD", "RESUME_THREAD", "TERMINATE_THREAD")
TABLE = {
    ("created", "START_THREAD"): "processing",
    ("processing", "PAUSE_THREAD"): "paused",
    ("paused", "RESUME_THREAD"): "processing",
    **{(status, "TERMINATE_THREAD"): "terminated" for status in ("created", "processing", "paused")},
}
"""State and message → the state after it; what is not here is INVALID_STATE."""


class Play:
    """One thread that is sent control messages, duplicates of them, and restarts; its model never answers."""

    def __init__(self) -> None:
        self.model, self.store = Model(held=True), SQLiteStore(":memory:")
        self.status = "created"
        self.answers: list[tuple[str, str, Response]] = []
        """Id, type and response of each message."""

    async def run(self, steps: list[str | int]) -> None:
        """Make the steps: a control message, the number of one that is sent again, or a restart."""
        made = thread_id_of("create")
        system = await system_of(self.model, self.store).__aenter__()
        self.answers.append(("create", "CREATE_THREAD", await tell(system, "CREATE_THREAD", "create", **GIVEN)))
        for number, step in enumerate(steps):
            if step == "restart":
                await system.stop()
                asked = len(self.model.asked)
                system = await system_of(self.model, self.store).__aenter__()
                await tell(system, "GET_THREAD_STATUS", thread_id=made)
                assert self.status == "processing" or len(self.model.asked) == asked
            elif isinstance(step, int):
                sent, kind, first = self.answers[step % len(self.answers)]
                said = GIVEN if kind == "CREATE_THREAD" else {"thread_id": made}
                assert await tell(system, kind, sent, **said) == first
            else:
                response = await tell(system, step, f"m{number}", thread_id=made)
                self.check(step, response)
                self.answers.append((f"m{number}", step, response))
            found = await tell(system, "GET_THREAD_STATUS", thread_id=made)
            assert found.data["status"] == self.status
        await system.stop()
        self.store.close()

    def check(self, kind: str, response: Response) -> None:
        after = TABLE.get((self.status, kind))
        if after is None:
            assert response.data["error_code"] == "INVALID_STATE" and response.message_id
        else:
            assert response.data["status"] == after
            self.status = after


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([*CONTROL, "restart"]) | st.integers(0, 30), max_size=12))
def test_any_messages_duplicates_and_restarts_lead_where_the_table_says(steps: list[str | int]) -> None:
    # CH-20, CH-43, D-24, CH-16, CH-18
    asyncio.run(Play().run(steps))


async def test_of_two_systems_with_one_thread_the_later_goes_on_alone(store: SQLiteStore, other: SQLiteStore) -> None:
    """The first records nothing from then on, does not repeat what is done, and its client is answered all the same."""
    slow, fast = Model(), Model()
    async with system_of(slow, store) as first:
        client, thread_id = await begun(first)
        while slow.asked[-1:] != ["intention"]:
            await asyncio.sleep(0)
        slow.hold()
        while slow.asked[-1:] != ["observation"]:
            await asyncio.sleep(0)
        done = [each for each in events_of(store, thread_id) if each in AEIOUY]
        async with system_of(fast, other) as second:
            assert (await ThreadClient(second).result(thread_id, every=0.01)).status == "completed"
        length = store.length(f"thread:{thread_id}")
        slow.gate.open()
        assert (await client.result(thread_id, every=0.01)).status == "completed"
        while any(each.startswith(thread_id) for each in first.actors()):
            await asyncio.sleep(0.01)
        assert store.length(f"thread:{thread_id}") == length
    assert slow.asked[-1] == "observation" and fast.asked == list(AEIOUY[len(done) :])
    assert [each for each in events_of(store, thread_id) if each in AEIOUY] == list(AEIOUY)


@contextmanager
def full(store: SQLiteStore) -> Iterator[Callable[[], None]]:
    """SQLite finds the disk full, in truth its own limit of pages; what is given makes room again."""
    store._connection.execute("PRAGMA max_page_count = 1")
    filler = store.journal("filler")
    for size in (4000, 200, 1):
        with pytest.raises(RecordingFailed, match="full"):
            while True:
                filler.append("x", "y" * size)
    yield lambda: store._query("PRAGMA max_page_count = 1000000") and None


async def test_a_store_that_is_full_for_a_while_neither_loses_nor_fails_a_thread(
    store: SQLiteStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The phase waits; its model is not asked again and again meanwhile."""
    monkeypatch.setattr("sabir_actors.thread_runs.PAUSE", 0.001)
    model = Model(held=True)
    async with system_of(model, store) as system:
        thread_id = await started(system)
        await model.gate.reached()
        with full(store) as make_room:
            model.gate.open()
            while caplog.text.count("trying again") < 5:
                await asyncio.sleep(0)
            refused = await tell(system, "PAUSE_THREAD", thread_id=thread_id)
            assert (refused.data["error_code"], refused.data["retryable"]) == ("RECORDING_FAILED", True)
            assert system.threads.view(thread_id).status == "processing"
            assert model.asked == ["action"]
            make_room()
            assert (await ThreadClient(system).result(thread_id, every=0.01)).status == "completed"
    assert model.asked == ["action", *AEIOUY]


class Forgetful(StoredJournal):
    """A journal that once writes a record and does not say so, as a connection that is cut after the commit."""

    what = ""

    def append(self, kind: str, body: str) -> None:
        super().append(kind, body)
        if Forgetful.what and Forgetful.what in body:
            Forgetful.what = ""
            self._key -= 1
            raise RecordingFailed("the connection was cut")


class ForgetfulStore(SQLiteStore):
    made: type[StoredJournal] = Forgetful

    def journal(self, name: str) -> StoredJournal:
        found = super().journal(name)
        return self.made(self, name, found._identity, len(found))


@pytest.mark.parametrize("what", ['"created"', '"started"', '"taken"', "action is done", '"phase_done"', '"completed"'])
async def test_a_record_that_was_written_unheard_is_not_taken_for_anothers(what: str, tmp_path: Path) -> None:
    """The thread goes on, and what was recorded is not done again."""
    model = Model()
    with ForgetfulStore(tmp_path / "t.db") as store:
        Forgetful.what = what
        async with system_of(model, store) as system:
            thread_id = await started(system)
        async with system_of(model, store) as system:
            assert (await ThreadClient(system).result(thread_id, every=0.01)).status == "completed"
        assert Forgetful.what == ""
        assert [each for each in events_of(store, thread_id) if each in AEIOUY] == list(AEIOUY)
        assert events_of(store, thread_id).count("started") == 1


async def test_a_damaged_journal_stops_no_other_thread(store: SQLiteStore, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged by its thread, and asked about it the system says why it cannot be read."""
    model = Model(held=True)
    async with system_of(model, store) as system:
        threads = [await started(system) for _ in range(2)]
        await model.gate.reached()
    kind = next(iter(store.journal(f"thread:{threads[0]}").read()))[0]
    store.journal(f"thread:{threads[0]}").append(kind, '{"what": "rained"}')
    async with system_of(Model(), store) as system:
        assert (await ThreadClient(system).result(threads[1], every=0.01)).status == "completed"
        response = await tell(system, "GET_THREAD_STATUS", thread_id=threads[0])
        assert "cannot be read: record" in response.data["error_message"] and not response.data["retryable"]
    assert f"thread {threads[0]} was not continued" in caplog.text


async def test_a_status_costs_as_much_in_a_store_of_many_threads_as_in_one_of_few(store: SQLiteStore) -> None:  # CH-19
    statements: list[str] = []

    async def cost(system: object, thread_id: str) -> int:
        gc.collect()  # an object of the thread that is still there would save statements
        statements.clear()
        await tell(system, "GET_THREAD_STATUS", thread_id=thread_id)  # type: ignore[arg-type]
        assert not any("name IS NOT NULL" in each for each in statements)
        return len(statements)

    store._connection.set_trace_callback(statements.append)
    async with system_of(Model(), store) as system:
        first = (await tell(system, "CREATE_THREAD", **GIVEN)).data["thread_id"]
        few = await cost(system, first), await cost(system, "nobody")
        for _ in range(50):
            await tell(system, "CREATE_THREAD", **GIVEN)
    async with system_of(Model(), store) as system:
        assert (await cost(system, first), await cost(system, "nobody")) == few
        assert few[0] <= 8 and few[1] <= 1
