"""Threads in one process: control messages, flows between actors, and their client (CH-14 … CH-21, CH-44 … CH-48)."""

import asyncio
import gc
import re
from collections.abc import Sequence
from typing import Any, get_args

import pytest
import sabir
from sabir_actors import (
    AEIOUY,
    ActorError,
    AgentManagerActor,
    Chain,
    ErrorCode,
    Phase,
    ThreadClient,
    ThreadEvent,
    ThreadView,
)
from sabir_actors.data import ThreadState
from sabir_actors.state import ENDS, MOVES, EventKind
from sabir_actors.thread import Thread
from sabir_session import SQLiteStore
from sabir_session.state.codec import now
from sabir_testing.scripted import always

from tests.actors.support import Flow, Model, begun, said, scripted, system_of, tell

STEERING = ("START_THREAD", "PAUSE_THREAD", "RESUME_THREAD", "TERMINATE_THREAD", "GET_THREAD_STATUS")


async def test_a_paused_thread_ends_its_phase_and_starts_no_other() -> None:  # CH-15, CH-16, CH-17, CH-46
    model = Model(held=True)
    async with system_of(model) as system:
        client, thread_id = await begun(system)
        await model.gate.reached()
        paused = await client.pause(thread_id)
        assert (paused.status, paused.current_phase) == ("paused", "action")
        model.gate.open()
        async for status in client.watch(thread_id, every=0.01):
            if status.phases_completed:
                break
        assert (status.status, status.phases_completed, model.asked) == ("paused", ["action"], ["action"])
        assert (await client.resume(thread_id)).current_phase == "experience"
        result = await asyncio.wait_for(client.result(thread_id, every=3600), 10)  # told of the end, without looking
        assert result.status == "completed"
    assert model.asked == list(AEIOUY)


async def test_a_thread_that_is_resumed_before_its_phase_ended_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # CH-17
    closing, may_close = asyncio.Event(), asyncio.Event()

    async def stopping(self: AgentManagerActor) -> None:
        closing.set()
        await may_close.wait()

    monkeypatch.setattr(AgentManagerActor, "stopping", stopping)
    model = Model(held=True)
    async with system_of(model) as system:
        client, thread_id = await begun(system)
        await model.gate.reached()
        await client.pause(thread_id)
        model.gate.open()
        await closing.wait()
        await client.resume(thread_id)
        may_close.set()
        assert (await asyncio.wait_for(client.result(thread_id, every=0.01), 10)).status == "completed"


async def test_a_terminated_thread_gives_up_its_phase() -> None:  # CH-18
    model = Model(held=True)
    async with system_of(model) as system:
        client, thread_id = await begun(system)
        await model.gate.reached()
        ended = await client.terminate(thread_id, "enough")
        assert (ended.status, ended.reason) == ("terminated", "enough")
        assert [each for each in system.actors() if each.startswith(thread_id)] == []
        assert (await client.result(thread_id, every=0.01)).status == "terminated"
        assert (await client.status(thread_id)).phases_completed == []
    assert model.asked == ["action"]


async def test_phases_run_in_order_each_once_and_the_status_splits_them() -> None:  # CH-19, CH-21
    model = Model()
    async with system_of(model) as system:
        client, thread_id = await begun(system)
        seen = [status async for status in client.watch(thread_id, every=0)]
        for status in seen:
            assert (*status.phases_completed, *status.phases_remaining) == AEIOUY
            assert status.created_at <= status.updated_at
            if status.status == "processing" and status.phases_remaining:
                assert status.current_phase == status.phases_remaining[0]
    assert seen[-1].status == "completed" and len({each.model_dump_json() for each in seen}) == len(seen)
    assert model.asked == list(AEIOUY)


@pytest.mark.parametrize("kind", STEERING)
async def test_an_unknown_thread_is_an_error(kind: str, store: SQLiteStore) -> None:  # CH-20
    async with system_of(Model(), store) as system:
        response = await tell(system, kind, thread_id="nobody")
        assert (response.type, response.data["error_code"]) == ("ERROR", "UNKNOWN_THREAD")
    assert store.names() == ()


@pytest.mark.parametrize(
    ("lacking", "told"),
    [
        ({"chains": []}, "no chain is named 'mine'; .* ActorSystem"),
        ({"chains": [Chain("mine", [Phase("other", "x")])]}, "the chain 'mine' no longer has the phase 'draft'"),
        ({"options": []}, "the phase 'draft' needs the option 'look', which the system does not have"),
        ({"name": None}, "neither the system nor the phase 'draft' has a model"),
    ],
)
async def test_a_thread_that_cannot_run_here_stays(lacking: dict[str, Any], told: str, store: SQLiteStore) -> None:
    """START and RESUME of what this process lacks are refused with the remedy, and change nothing."""

    def look() -> str:
        return "seen"

    whole: dict[str, Any] = {
        "chains": [Chain("mine", [Phase("draft", "You are the draft phase.", options=("look",))])],
        "options": [sabir.option(look)],
    }
    async with system_of(Model(), store, **whole) as system:
        thread_id = await ThreadClient(system).create("u", "hi", chain="mine")
    async with system_of(Model(), store, **{**whole, **lacking}) as system:
        response = await tell(system, "START_THREAD", thread_id=thread_id)
        assert response.data["error_code"] == "INVALID_CONFIG"
        assert re.search(told, response.data["error_message"])
        assert system.threads.view(thread_id).status == "created"
    async with system_of(Model(), store, **whole) as system:
        client = ThreadClient(system)
        await client.start(thread_id)
        assert (await client.result(thread_id, every=0.01)).status == "completed"


async def test_an_agent_of_a_thread_that_is_over_cannot_be_changed() -> None:  # CH-20
    async with system_of(Model()) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi")
        await client.terminate(thread_id)
        said = {"agent_id": f"{thread_id}/yield", "config": {"temperature": 1.0}}
        response = await tell(system, "UPDATE_AGENT_CONFIG", **said)
        assert response.data["error_code"] == "INVALID_STATE"
        assert (await client.status(thread_id)).status == "terminated"


async def test_a_thread_that_a_defect_stops_fails_and_says_so() -> None:  # CH-40, CH-49
    async with system_of(Model()) as system:
        client, thread_id = await begun(system, metadata={"conversation_history": 5})
        result = await asyncio.wait_for(client.result(thread_id, every=0.01), 10)
        assert (result.status, result.error_code, result.output) == ("failed", "FAILED", None)
        assert result.error_message is not None


async def test_a_thread_that_does_not_run_is_not_held_in_memory(store: SQLiteStore) -> None:  # CH-46
    model = Model()
    async with system_of(model, store) as system:
        client = ThreadClient(system)
        threads = [await client.create("u", "hi") for _ in range(4)]
        for thread_id in threads[1:]:
            await client.start(thread_id)
        await client.pause(threads[1])
        await client.terminate(threads[2])
        result = await client.result(threads[3], every=0.01)
        other = ThreadClient(system, "other")  # is told of the result at once, from the state
        assert await asyncio.wait_for(other.result(threads[3], every=3600), 10) == result
        assert result.status == "completed"
        async with asyncio.timeout(10):
            while len(system.actors()) > 4:  # the second client is one more
                await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        gc.collect()
        assert [each for each in gc.get_objects() if isinstance(each, Thread)] == []
        found = [(await client.status(each)).status for each in threads]
        assert found == ["created", "paused", "terminated", "completed"]


async def test_what_is_refused_is_raised() -> None:  # CH-20
    async with system_of(Model()) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi")
        state = "is created and cannot be paused; it must be processing"
        for wrong, code, words in (
            (client.result("nobody", every=0.01), "UNKNOWN_THREAD", "no thread has the id 'nobody'"),
            (client.pause(thread_id), "INVALID_STATE", state),
        ):
            with pytest.raises(ActorError, match=words) as caught:
                await wrong
            assert caught.value.code == code


STATES: tuple[ThreadState, ...] = get_args(ThreadState)
CREATED = {"thread_id": "t", "user_id": "u", "initial_input": "hi", "chain": "aeiou-y", "phases": AEIOUY}


def event(what: EventKind, **data: object) -> ThreadEvent:
    return ThreadEvent(what=what, at=now(), data=dict(data))


def view_of(*events: ThreadEvent) -> ThreadView:
    view = ThreadView()
    for each in (event("created", **CREATED), *events):
        view.apply(each)
    return view


@pytest.mark.parametrize("status", STATES)
@pytest.mark.parametrize("what", MOVES)
def test_a_move_is_allowed_from_the_states_of_the_table_alone(what: EventKind, status: ThreadState) -> None:
    # CH-20, D-24
    view = view_of()
    view.status = status
    if status in MOVES[what][0]:
        view.allow(what)
        return
    with pytest.raises(ActorError, match=f"thread t is {status} and cannot be {what}; it must be") as caught:
        view.allow(what)
    assert caught.value.code is ErrorCode.INVALID_STATE and not caught.value.retryable
    assert view.status == status


def test_no_move_leads_out_of_an_end() -> None:  # CH-20
    assert {"completed", "failed", "terminated"} == ENDS
    assert all(before.isdisjoint(ENDS) for before, _ in MOVES.values())


CLIENT = "User/Client"
ONCE = sabir.Settings(retries=sabir.RetryPolicy(attempts=1))
CREATION = [
    "User/Client -> ThreadActor: CREATE_THREAD",
    "ThreadActor -> User/Client: THREAD_CREATED",
    "User/Client -> ThreadActor: START_THREAD",
    "ThreadActor -> User/Client: THREAD_STARTED",
    *(
        line
        for phase in AEIOUY
        for line in (
            f"ThreadActor -> {phase.capitalize()}PhaseActor: PROCESS_PHASE (phase_type={phase})",
            f"{phase.capitalize()}PhaseActor -> ThreadActor: PHASE_PROCESSED",
        )
    ),
    "ThreadActor -> User/Client: THREAD_RESULT",
]
PHASE = [
    "ThreadActor -> PhaseActor: PROCESS_PHASE",
    "PhaseActor -> PhaseActor: PREPARE_CONTEXT",
    "PhaseActor -> AgentManagerActor: PROCESS_WITH_AGENT",
    "AgentManagerActor -> PhaseActor: AGENT_RESPONSE",
    "PhaseActor -> ThreadActor: PHASE_PROCESSED",
]


def of_phase(lines: Sequence[str], phase: str) -> list[str]:
    name = f"{phase.capitalize()}PhaseActor"
    first = lines.index(f"ThreadActor -> {name}: PROCESS_PHASE (phase_type={phase})")
    last = lines.index(f"{name} -> ThreadActor: PHASE_PROCESSED")
    return [line.replace(name, "PhaseActor").partition(" (")[0] for line in lines[first : last + 1]]


async def test_a_thread_goes_through_its_phases_as_the_document_writes_it() -> None:  # CH-46, CH-27, CH-47
    """The document leaves out acknowledgements, and what a client asks meanwhile."""
    recorded = Flow(client=CLIENT)
    system, _ = scripted(always(said()), trace=recorded)
    async with system:
        client, thread_id = await begun(system, name="client")
        await client.result(thread_id, every=0.01)
    lines = [line for line in recorded.lines if not line.endswith(("_ACKNOWLEDGED", "THREAD_STATUS"))]
    inner = ("PREPARE_CONTEXT", "AgentManagerActor")
    assert [line for line in lines if not any(word in line for word in inner)] == CREATION
    assert [of_phase(lines, phase) for phase in AEIOUY] == [PHASE] * 6


async def test_one_run_has_one_correlation_id() -> None:  # CH-44
    system, _ = scripted(sabir.RateLimited("slower"), always(said()), settings=ONCE)
    found: list[str | None] = []
    system._trace = lambda message: found.append(message.correlation_id)
    async with system:
        client, thread_id = await begun(system, name="client")
        await client.result(thread_id, every=0.01)
    assert len(found) > 30 and set(found) == {thread_id}
