"""Systems of tests: models that answer as a test says or are held, what went between actors, a queue in memory."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

from sabir import SabirError
from sabir_actors import ActorSystem, ErrorResponse, Message, Response, RestartPolicy, ThreadClient, ThreadEvent
from sabir_actors.queues import Perform
from sabir_session import Session, Store, append_item
from sabir_testing import Answer, Gate, ScriptedAdapter, ScriptedRequest, always, delayed, reply
from sabir_testing.scripted import Scriptable

AT_ONCE = RestartPolicy(first_pause=0.0)
"""Restarts without pauses."""
MODEL = "scripted:model"


def said(response: str = "Fine.", confidence: float | None = None) -> str:
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
    message = Message(type=message_type, data=data, sender="test", receiver=receiver, correlation_id="talk")
    return message if message_id is None else message.model_copy(update={"id": message_id})


def failed(response: Response) -> tuple[str | None, str]:
    assert isinstance(response, ErrorResponse), response
    return response.error_code, response.error_message


class Flow:
    """What went between actors, as the document writes it: `who -> whom: type`."""

    def __init__(self, **names: str) -> None:
        self._names = names
        self.lines: list[str] = []

    def __call__(self, message: Message | Response) -> None:
        who, whom = self.name(message.sender), self.name(message.receiver)
        phase = message.data.get("phase_type")
        shown = f" (phase_type={phase})" if message.type == "PROCESS_PHASE" else ""
        self.lines.append(f"{who} -> {whom}: {message.type}{shown}")

    def name(self, actor_id: str | None) -> str:
        last = str(actor_id).rpartition("/")[2]
        names = {"threads": "ThreadActor", "supervisor": "SupervisorActor", "agents": "AgentManagerActor"}
        return self._names.get(last) or names.get(last) or f"{last.capitalize()}PhaseActor"


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
        self.gate = Gate()
        return self.gate

    def __call__(self, model: str) -> ScriptedAdapter:

        def answer(sent: ScriptedRequest) -> Answer:
            phase = sent.messages[0].text.split()[3]  # "You are the action phase."
            self.asked.append(phase)
            self.models.append(model)
            return delayed(reply(f"{phase} is done"), self.gate)

        return ScriptedAdapter(always(answer))


def system_of(model: Model, store: Store | None = None, **how: Any) -> ActorSystem:
    return ActorSystem(how.pop("name", "scripted:model"), store=store, adapters=model, **how)


async def tell(system: ActorSystem, kind: str, message_id: str | None = None, **data: Any) -> Response:
    named = {} if message_id is None else {"id": message_id}
    return await system.send_message(Message(type=kind, data=data, sender="test", receiver="threads", **named))


async def started(system: ActorSystem) -> str:
    thread_id: str = (await tell(system, "CREATE_THREAD", **GIVEN)).data["thread_id"]
    assert (await tell(system, "START_THREAD", thread_id=thread_id)).type == "THREAD_STARTED"
    return thread_id


def events_of(store: Store, thread_id: str) -> list[str]:
    """What happened to a thread, as its journal says; of phases that are done their names."""
    session = Session(journal=store.journal(f"thread:{thread_id}"))
    session.mutate(ThreadEvent).register(ThreadEvent, append_item)
    events = session.select_all(ThreadEvent)
    return [each.data["phase_type"] if each.what == "phase_done" else each.what for each in events]


class Hall:
    """A queue in memory: what is put waits until a test has one of the processes perform it."""

    def __init__(self) -> None:
        self.put: list[tuple[str, str]] = []
        self.given: dict[str, object] = {}
        """Run → whom it was given to last."""
        self.is_away = False

    def seat(self, *, performs: bool = True) -> "Seat":
        return Seat(self, performs=performs)


class Seat:
    def __init__(self, hall: Hall, *, performs: bool) -> None:
        self.hall, self.performs = hall, performs
        self.perform: Perform | None = None
        self.performing: list[asyncio.Future[None]] = []

    async def open(self, perform: Perform) -> None:
        self.perform = perform

    async def put(self, thread_id: str, run: str) -> None:
        if self.hall.is_away:
            raise SabirError("the queue is away")
        if (thread_id, run) not in self.hall.put:
            self.hall.put.append((thread_id, run))

    async def aclose(self) -> None:
        self.perform = None
        for run in self.performing:
            run.cancel()

    def begin(self, number: int = -1) -> "asyncio.Future[None]":
        """Perform a run that was put, the latest if no other is said."""
        assert self.perform is not None
        (thread_id, run), mine = self.hall.put[number], object()
        self.hall.given[run] = mine

        async def is_assigned() -> bool:
            return self.hall.given[run] is mine

        self.performing.append(asyncio.ensure_future(self.perform(thread_id, run, is_assigned)))
        return self.performing[-1]


class Processes:
    """Systems that share a store and a queue, each with a model of its own."""

    def __init__(self, store: Store, stack: AsyncExitStack) -> None:
        self.hall, self.store, self._stack = Hall(), store, stack

    async def worker(self, **how: Any) -> tuple[ActorSystem, Seat, Model]:
        model, seat = Model(), self.hall.seat()
        return await self._stack.enter_async_context(system_of(model, self.store, queue=seat, **how)), seat, model

    async def asker(self) -> ActorSystem:
        queue = self.hall.seat(performs=False)
        return await self._stack.enter_async_context(ActorSystem(store=self.store, queue=queue))

    async def at_work(self, system: ActorSystem, seat: Seat, model: Model) -> tuple[str, "asyncio.Future[None]"]:
        """The id of a thread that a process performs, and its run, which waits at the model's gate."""
        gate, thread_id = model.hold(), await started(system)
        run = seat.begin()
        await gate.reached()
        return thread_id, run

    def events(self, thread_id: str) -> list[str]:
        return events_of(self.store, thread_id)

    def length(self, thread_id: str) -> int | None:
        return self.store.length(f"thread:{thread_id}")
