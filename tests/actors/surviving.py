"""A scripted model that notes who asks and may be held, and systems that have it; for tests of threads."""

from typing import Any

from sabir_actors import ActorSystem, Message, Response, ThreadEvent
from sabir_session import Session, Store, append_item
from sabir_testing import Answer, Gate, ScriptedAdapter, Sent, always, delayed, reply

GIVEN = {"user_id": "user1", "initial_input": "Shall I repot my fern?"}


class Model:
    """Answers each phase that it is done; where it is held, not before its gate is opened."""

    def __init__(self, *, held: bool = False) -> None:
        self.asked: list[str] = []
        """The phases that asked, each as often as it did."""
        self.models: list[str] = []
        """The models that were asked for, in order."""
        self.gate = Gate()
        if not held:
            self.gate.open()

    def hold(self) -> Gate:
        """Answer no question from now on before the gate is opened."""
        self.gate = Gate()
        return self.gate

    def __call__(self, model: str) -> ScriptedAdapter:
        """An adapter of it."""

        def answer(sent: Sent) -> Answer:
            phase = sent.messages[0].text.split()[3]  # "You are the action phase."
            self.asked.append(phase)
            self.models.append(model)
            return delayed(reply(f"{phase} is done"), self.gate)

        return ScriptedAdapter(always(answer))


def system_of(model: Model, store: Store | None = None, **how: Any) -> ActorSystem:
    """A system whose agents ask it."""
    return ActorSystem(how.pop("name", "scripted:model"), store=store, adapters=model, **how)


async def tell(system: ActorSystem, kind: str, message_id: str | None = None, **data: Any) -> Response:
    """Send a message to the threads of a system; its response."""
    named = {} if message_id is None else {"id": message_id}
    return await system.send_message(Message(type=kind, data=data, sender="test", receiver="threads", **named))


async def started(system: ActorSystem) -> str:
    """The id of a thread that was created and started."""
    thread_id: str = (await tell(system, "CREATE_THREAD", **GIVEN)).data["thread_id"]
    assert (await tell(system, "START_THREAD", thread_id=thread_id)).type == "THREAD_STARTED"
    return thread_id


def events_of(store: Store, thread_id: str) -> list[str]:
    """What happened to a thread, as its journal says; of phases that are done their names."""
    session = Session(journal=store.journal(f"thread:{thread_id}"))
    session.mutate(ThreadEvent).register(ThreadEvent, append_item)
    events = session.select_all(ThreadEvent)
    return [each.data["phase_type"] if each.what == "phase_done" else each.what for each in events]
