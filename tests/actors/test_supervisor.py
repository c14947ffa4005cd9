"""The supervisor: restarts with growing pauses, a limit in a window, then escalation (CH-33, CH-34, CH-36)."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_actors import Actor, ActorSystem, Message, Response, RestartPolicy, SupervisorActor
from sabir_actors import supervisor as supervisor_module
from sabir_actors.actor import HandlerResult

from tests.actors.support import ask, failed


class Clock:
    """Seconds that pass when somebody sleeps, or when a test says so."""

    def __init__(self) -> None:
        self.now, self.pauses = 100.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class Frail(Actor):
    restarts = 0

    async def on_work(self, message: Message) -> HandlerResult:
        raise RuntimeError("no")

    async def restarting(self) -> None:
        self.restarts += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(supervisor_module, "monotonic", clock.monotonic)
    monkeypatch.setattr("asyncio.sleep", clock.sleep)
    return clock


@pytest.fixture
async def system(clock: Clock) -> AsyncIterator[ActorSystem]:
    async with ActorSystem(restarts=RestartPolicy(limit=3, window=60, first_pause=1, longest_pause=3)) as system:
        system.add(Frail("frail", system))
        yield system


def frail(system: ActorSystem) -> Frail:
    found = system.get_actor("frail")
    assert isinstance(found, Frail)
    return found


async def told(system: ActorSystem, actor_id: str = "frail", **more: object) -> Response:
    """The document's own notification, and what is said beside it."""
    said = {"error_message": "Failed to process phase", "error_code": "PHASE_PROCESSING_ERROR", **more}
    details = {"details": "API rate limit exceeded"}
    return await system.send_message(ask("ERROR_NOTIFICATION", "supervisor", actor_id=actor_id, **details, **said))


async def test_pauses_double_up_to_the_longest_and_restarts_end_at_the_limit(system: ActorSystem, clock: Clock) -> None:
    # CH-36
    answers = [await told(system) for _ in range(5)]
    assert {each.type for each in answers} == {"ERROR_ACKNOWLEDGED"}
    assert answers[0].data == {"actor_id": "frail", "action_taken": "restart", "error_logged": True}
    assert [each.data["action_taken"] for each in answers] == ["restart"] * 3 + ["escalate"] * 2
    assert clock.pauses == [1, 2, 3] and frail(system).restarts == 3
    clock.now += 61
    assert (await told(system)).data["action_taken"] == "restart"
    assert clock.pauses[3:] == [1]


async def test_who_is_not_here_is_neither_restarted_nor_supervised(system: ActorSystem, clock: Clock) -> None:
    assert failed(await system.send_message(ask("SUPERVISE", "supervisor", actor_id="gone")))[0] == "UNKNOWN_ACTOR"
    assert (await told(system, "gone")).data["action_taken"] == "escalate"
    await frail(system).stop()
    assert (await told(system)).data["action_taken"] == "escalate"


async def test_an_actor_that_is_supervised_is_restarted_whatever_it_fails_of(system: ActorSystem) -> None:  # CH-33
    assert failed(await system.send_message(ask("WORK", "frail")))[0] == "FAILED"
    assert frail(system).restarts == 0
    response = await system.send_message(ask("SUPERVISE", "supervisor", actor_id="frail"))
    assert (response.type, response.data["status"]) == ("SUPERVISION_STARTED", "supervised")
    assert failed(await system.send_message(ask("WORK", "frail")))[0] == "FAILED"
    assert frail(system).restarts == 1


async def test_restart_by_the_supervisor(system: ActorSystem) -> None:  # CH-34, CH-05
    response = await system.send_message(ask("RESTART", "supervisor", "r1", actor_id="frail", reason="test"))
    assert (response.type, response.data["actor_id"], response.data["status"]) == (
        "RESTART_COMPLETE", "frail", "restarted",
    )  # fmt: skip
    assert frail(system).restarts == 1
    error = await system.send_message(ask("RESTART", "supervisor", "r2", actor_id="gone"))
    assert failed(error)[0] == "UNKNOWN_ACTOR"
    for answer, message_id in [(response, "r1"), (error, "r2")]:
        assert (answer.message_id, answer.sender, answer.receiver) == (message_id, "supervisor", "test")
    itself = await system.send_message(ask("RESTART", "supervisor", actor_id="supervisor"))
    assert itself.data["actor_id"] == "supervisor"


async def test_nothing_is_kept_of_actors_that_are_gone(system: ActorSystem) -> None:
    """A thread's agents come and go; what is known of their restarts goes with them."""
    supervisor = system.get_actor("supervisor")
    assert isinstance(supervisor, SupervisorActor)
    await told(system)
    await system.send_message(ask("SUPERVISE", "supervisor", actor_id="frail"))
    await system.stop_actor("frail")
    await asyncio.sleep(0)
    gc.collect()
    assert len(supervisor.supervised) == len(supervisor._restarts) == 0


@given(limit=st.integers(0, 4), window=st.floats(0.1, 50), pauses=st.lists(st.floats(0, 30), max_size=30))
def test_no_window_holds_more_restarts_than_the_limit(limit: int, window: float, pauses: list[float]) -> None:
    clock, restarts = Clock(), list[float]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervisor_module, "monotonic", clock.monotonic)
        system = ActorSystem(restarts=RestartPolicy(limit=limit, window=window))
        supervisor, actor = SupervisorActor("supervisor", system), Frail("frail", system)
        for pause in pauses:
            clock.now += pause
            if supervisor._may_restart(actor):
                restarts.append(clock.now)
    assert all(after - before >= window for before, after in zip(restarts, restarts[limit:], strict=False)) or not limit
    assert restarts if limit and pauses else not restarts
