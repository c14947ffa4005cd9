"""Systems whose models answer as a test says, the messages that it sends, and what went between actors."""

import json
from typing import Any

from sabir_actors import ActorSystem, ErrorResponse, Message, Response, RestartPolicy, ThreadClient
from sabir_testing.scripted import Scriptable, ScriptedAdapter

AT_ONCE = RestartPolicy(first_pause=0.0)
"""Restarts without pauses."""
MODEL = "scripted:model"


def said(response: str = "Fine.", confidence: float | None = None) -> str:
    """A reply as a phase's model writes it."""
    return json.dumps({"response": response, **({} if confidence is None else {"confidence": confidence})})


def scripted(*answers: Scriptable, **how: Any) -> tuple[ActorSystem, ScriptedAdapter]:
    """A system whose agents ask one scripted model, and that model."""
    llm = ScriptedAdapter(*answers)
    return ActorSystem(MODEL, **{"adapters": lambda _: llm, "restarts": AT_ONCE, **how}), llm


async def begun(
    system: ActorSystem, text: str = "Hello", *, name: str | None = None, **how: Any
) -> tuple[ThreadClient, str]:
    """A client of a system, and the id of a thread that it created and started."""
    client = ThreadClient(system, name)
    thread_id = await client.create("user", text, **how)
    await client.start(thread_id)
    return client, thread_id


def ask(message_type: str, receiver: str | None, message_id: str | None = None, /, **data: Any) -> Message:
    """A message of a test to an actor."""
    message = Message(type=message_type, data=data, sender="test", receiver=receiver, correlation_id="talk")
    return message if message_id is None else message.model_copy(update={"id": message_id})


def failed(response: Response) -> tuple[str | None, str]:
    """Code and words of an ERROR."""
    assert isinstance(response, ErrorResponse), response
    return response.error_code, response.error_message


class Flow:
    """What went between actors, as the document writes it: `who -> whom: type`."""

    def __init__(self, **names: str) -> None:
        self._names = names
        self.lines: list[str] = []

    def __call__(self, message: Message | Response) -> None:
        """Take one message."""
        who, whom = self.name(message.sender), self.name(message.receiver)
        phase = message.data.get("phase_type")
        shown = f" (phase_type={phase})" if message.type == "PROCESS_PHASE" else ""
        self.lines.append(f"{who} -> {whom}: {message.type}{shown}")

    def name(self, actor_id: str | None) -> str:
        """What the document calls an actor."""
        last = str(actor_id).rpartition("/")[2]
        names = {"threads": "ThreadActor", "supervisor": "SupervisorActor", "agents": "AgentManagerActor"}
        return self._names.get(last) or names.get(last) or f"{last.capitalize()}PhaseActor"
