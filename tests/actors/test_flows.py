"""The three flows of the document, as they were recorded: who → whom: type (CH-46, CH-47, CH-48).

The document's lists leave out what acknowledges a notification (THREAD_RESULT, ERROR_NOTIFICATION) and what a client
asks meanwhile (GET_THREAD_STATUS), and name beside the messages what an actor does by itself ("internal"). So do these.
"""

from collections.abc import Sequence

import sabir
from sabir_actors import AEIOUY
from sabir_testing.scripted import always

from tests.actors.support import Flow, begun, said, scripted

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


async def test_a_thread_goes_through_its_phases_as_the_document_writes_it() -> None:
    recorded = Flow(client=CLIENT)
    system, _ = scripted(always(said()), trace=recorded)
    async with system:
        client, thread_id = await begun(system, name="client")
        await client.result(thread_id, every=0.01)
    lines = [line for line in recorded.lines if not line.endswith(("_ACKNOWLEDGED", "THREAD_STATUS"))]
    inner = ("PREPARE_CONTEXT", "AgentManagerActor")
    assert [line for line in lines if not any(word in line for word in inner)] == CREATION
    assert [of_phase(lines, phase) for phase in AEIOUY] == [PHASE] * 6


async def test_one_run_has_one_correlation_id() -> None:
    system, _ = scripted(sabir.RateLimited("slower"), always(said()), settings=ONCE)
    found: list[str | None] = []
    system._trace = lambda message: found.append(message.correlation_id)
    async with system:
        client, thread_id = await begun(system, name="client")
        await client.result(thread_id, every=0.01)
    assert len(found) > 30 and set(found) == {thread_id}
