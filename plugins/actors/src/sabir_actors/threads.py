"""ThreadActor: threads from their creation to their end, each in a journal of its own (CH-14 … CH-21, CH-46).

    CREATE ─▶ journal `thread:<id>` ── START ─▶ a run of its own: for each phase that is left
                                                 PROCESS_PHASE ─▶ PhaseActor ─▶ PHASE_PROCESSED ─▶ recorded
    START, PAUSE, RESUME, TERMINATE are recorded with their answers, before these are given.

No thread waits for another's model: each has its own phase actor and agents, made when they are needed and let go
after. A thread that was processing when its process died goes on at its phase as soon as there is one again.
"""

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from sabir_session import (
    InnerMessage,
    RecordingFailed,
    Session,
    SessionError,
    Store,
    append_item,
    enable_inner_message_recording,
)

from sabir_actors import data as typed
from sabir_actors.actor import Actor, Handled, logger
from sabir_actors.agents import Agent, AgentManagerActor, changed
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phase import PhaseActor
from sabir_actors.phases import AEIOUY_CHAIN, Chain, Phase
from sabir_actors.protocol import Message, Response, data_of, deserialize_message, now
from sabir_actors.state import MOVES, ThreadEvent, ThreadView, What
from sabir_actors.system import raised

if TYPE_CHECKING:
    from sabir_actors.system import ActorSystem

JOURNAL = "thread:"
"""What the names of threads' journals begin with."""
PAUSE = 0.5
"""Seconds before a thread goes on whose journal did not take a record."""
_IDS = UUID("6f1b8f0c-8a0e-4f2e-9d55-0f6f0d8e7a11")
"""The namespace of ids: that of a thread is made of the id of the message that created it."""


class Thread:
    """One thread in this process: its session, what its events come to, and its run while there is one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.view = ThreadView()
        self.run: asyncio.Task[None] | None = None
        self.agents: AgentManagerActor | None = None
        enable_inner_message_recording(session)
        session.mutate(ThreadEvent).register(ThreadEvent, append_item)
        for event in session.select_all(ThreadEvent):
            self.view.take(event)

    @property
    def worked(self) -> tuple[int, int]:
        """How far its phases are: those that are done, and what their agents said and were told."""
        return len(self.view.outputs), len(self.session.select_all(InnerMessage))

    def record(
        self, what: What, said: dict[str, Any], message: Message | None = None, response: Response | None = None
    ) -> None:
        """Write one event with the response that it is answered by, then let it count."""
        event = ThreadEvent(
            what=what,
            at=now(),
            data=said,
            message_id=message.id if message else None,
            response=response.model_dump(mode="json") if response else None,
        )
        self.session.mutate(ThreadEvent).append(event)
        self.view.take(event)


class ThreadActor(Actor):
    """All threads of one system."""

    immediate = Actor.immediate | {"GET_THREAD_STATUS"}

    def __init__(self, actor_id: str, system: "ActorSystem", store: Store | None = None) -> None:
        super().__init__(actor_id, system)
        self.store = store
        """Where threads outlive the process; None for what lives in memory alone."""
        self._threads: dict[str, Thread] = {}
        self._known: set[str] = set()
        """Ids of threads that are here or in the store."""

    def recover(self) -> list[str]:
        """Let every thread of the store that was processing go on; their ids."""
        found = self._stored()
        self._known.update(found)
        going = [thread_id for thread_id in found if self._thread(thread_id).view.status == "processing"]
        for thread_id in going:
            self._go_on(self._threads[thread_id])
        for thread_id in set(found) - set(going):
            self._threads.pop(thread_id)
        return going

    def go_on(self, thread_id: str) -> None:
        """Let a thread go on that was processing when its process died."""
        thread = self._thread(thread_id)
        if thread.view.status == "processing":
            self._go_on(thread)

    def thread_ids(self) -> list[str]:
        """Ids of all threads, of those in the store too."""
        return sorted({*self._threads, *self._stored()})

    def view(self, thread_id: str) -> ThreadView:
        """What the events of a thread come to; ActorError (UNKNOWN_THREAD) where there is none."""
        return self._thread(thread_id).view

    def answered(self, message: Message) -> Response | None:
        """The answer that the thread's journal holds for a message (CH-43)."""
        thread_id = self._id_of(message)
        if thread_id is None or (message.type == "CREATE_THREAD" and thread_id not in self._known):
            return None
        if not self._is_here(thread_id):
            return None
        found = self._thread(thread_id).view.answers.get(message.id)
        return None if found is None else _response(found)

    # Threads

    async def on_create_thread(self, message: Message) -> Handled:
        """Make a thread; it is not started (CH-14)."""
        wanted, thread_id = data_of(message, typed.CreateThread), _new_id(message)
        chain = self._chain(wanted.chain or AEIOUY_CHAIN.name)
        thread = Thread(self._session(thread_id))
        if thread.view.exists:  # made by another process, from this very message
            return _response(thread.view.answers[message.id])
        self._threads[thread_id] = thread
        self._known.add(thread_id)
        response = message.response(typed.ThreadCreated(thread_id=thread_id, status="created"))
        said = {
            "thread_id": thread_id,
            "user_id": wanted.user_id,
            "initial_input": wanted.initial_input,
            "metadata": wanted.metadata,
            "chain": chain.name,
            "phases": list(chain.names),
            "client": message.sender,
            "correlation_id": message.correlation_id or thread_id,
        }
        thread.record("created", said, message, response)
        return response

    async def on_start_thread(self, message: Message) -> Handled:
        """Set a thread on its way; the answer does not wait for it (CH-15)."""
        thread = self._of(message)
        self._chain(thread.view.chain)
        return self._moved(thread, "started", message, typed.ThreadStarted, started_at=now())

    async def on_pause_thread(self, message: Message) -> Handled:
        """Let no further phase start; the one that runs ends, and is kept (CH-16)."""
        thread = self._of(message)
        phase = thread.view.current_phase
        return self._moved(thread, "paused", message, typed.ThreadPaused, paused_at=now(), current_phase=phase)

    async def on_resume_thread(self, message: Message) -> Handled:
        """Go on at the phase that is next (CH-17)."""
        thread = self._of(message)
        phase = thread.view.current_phase
        return self._moved(thread, "resumed", message, typed.ThreadResumed, resumed_at=now(), current_phase=phase)

    async def on_terminate_thread(self, message: Message) -> Handled:
        """End a thread; its phase is given up where it stands (CH-18)."""
        thread, reason = self._of(message), data_of(message, typed.TerminateThread).reason
        response = self._moved(
            thread, "terminated", message, typed.ThreadTerminated, terminated_at=now(), reason=reason
        )
        await self._halt(thread)
        return response

    async def on_get_thread_status(self, message: Message) -> Handled:
        """Where a thread is (CH-19)."""
        view = self._of(message).view
        assert view.created_at is not None and view.updated_at is not None
        return typed.ThreadStatus(
            thread_id=view.thread_id,
            status=view.status,
            current_phase=None if view.is_over else view.current_phase,
            created_at=view.created_at,
            updated_at=view.updated_at,
            phases_completed=list(view.outputs),
            phases_remaining=list(view.remaining),
        )

    async def on_update_agent_config(self, message: Message) -> Handled:
        """Have the agent of a phase, `<thread>/<phase>`, ask otherwise from its next run on (CH-28)."""
        wanted = data_of(message, typed.UpdateAgentConfig)
        thread_id, _, phase = wanted.agent_id.rpartition("/")
        thread = self._thread(thread_id)
        self._chain(thread.view.chain).phase(phase)
        probe = AgentManagerActor("probe", self.system)
        probe.add_agent(phase, Agent(changed(self._config(thread, phase), wanted.config)))
        response = message.response(typed.AgentConfigUpdated(agent_id=wanted.agent_id))
        said = {"phase_type": phase, "config": wanted.config.model_dump(mode="json", exclude_unset=True)}
        thread.record("agent_updated", said, message, response)
        return response

    async def stopping(self) -> None:
        """Interrupt every run; those of a store go on when there is a process again."""
        for thread in list(self._threads.values()):
            await self._halt(thread)

    def _moved(
        self, thread: Thread, what: What, message: Message, answer: Callable[..., typed.ThreadCreated], **said: Any
    ) -> Response:
        thread.view.allow(what)
        told = answer(thread_id=thread.view.thread_id, status=MOVES[what][1], **said)
        response = message.response(told)
        thread.record(what, {"reason": said["reason"]} if "reason" in said else {}, message, response)
        if thread.view.status == "processing":
            self._go_on(thread)
        return response

    # Runs

    def _go_on(self, thread: Thread) -> None:
        if thread.run is None or thread.run.done():
            thread.run = asyncio.ensure_future(self._run(thread))

    async def _run(self, thread: Thread) -> None:
        """Phase by phase, for as long as the thread is processing; then its client is told how it ended."""
        view = thread.view
        try:
            try:
                await self._run_phases(thread)
            except ActorError as error:
                if error.code is ErrorCode.RECORDING_FAILED:
                    raise RecordingFailed(str(error)) from error
                if not view.is_over:
                    said = {**error.details, "error_message": str(error), "error_code": error.code.value}
                    thread.record("failed", said)
        except RecordingFailed as error:
            logger.warning("thread %s could not be recorded: %s", view.thread_id, error)
            await self._let_go(thread)
            await asyncio.sleep(PAUSE)
            self._found_changed(thread)
            return
        finally:
            await self._let_go(thread)
        if view.is_over:
            await self._tell_client(view)
            if self.store is not None:
                self._threads.pop(view.thread_id, None)

    async def _run_phases(self, thread: Thread) -> None:
        view = thread.view
        while view.status == "processing" and (phase := view.current_phase):
            await self._run_phase(thread, phase)
        if view.status == "processing":
            thread.record("completed", {})

    def _found_changed(self, thread: Thread) -> None:
        """Read anew a journal that another wrote to: go on where it only steered the thread, leave a run to it."""
        thread_id = thread.view.thread_id
        self._threads.pop(thread_id, None)
        try:
            fresh = self._thread(thread_id)
        except SessionError as error:
            logger.warning("thread %s cannot be read: %s", thread_id, error)
            return
        if fresh.worked == thread.worked and fresh.view.status == "processing":
            self._go_on(fresh)

    async def _run_phase(self, thread: Thread, name: str) -> None:
        view, chain = thread.view, self._chain(thread.view.chain)
        actor = await self._phase_actor(thread, chain, chain.phase(name))
        said = {"thread_id": view.thread_id, "phase_type": name, "input": _input(view, chain.phase(name))}
        request = Message(
            type="PROCESS_PHASE",
            data={**said, "context": _context(view)},
            sender=self.actor_id,
            receiver=actor.actor_id,
            correlation_id=view.correlation_id,
        )
        response = raised(await self.system.send_message(request))
        thread.record("phase_done", dict(response.data))
        await self.system.let_go(actor.actor_id)

    async def _phase_actor(self, thread: Thread, chain: Chain, phase: Phase) -> PhaseActor:
        """The actor of a phase, made for this thread alone, with the agent that its configuration says."""
        thread_id, system = thread.view.thread_id, self.system
        if thread.agents is None:
            thread.agents = AgentManagerActor(f"{thread_id}/agents", system, thread.session)
            system.add(thread.agents)
        actor = PhaseActor(f"{thread_id}/{phase.name}", system, chain, phase, thread.agents)
        thread.agents.add_agent(actor.agent_id, Agent(self._config(thread, phase.name), phase.output))
        system.add(actor)
        return actor

    def _config(self, thread: Thread, name: str) -> typed.AgentConfig:
        """How the agent of a phase asks: as its chain and the system say, with the changes since."""
        phase = self._chain(thread.view.chain).phase(name)
        model = phase.model or self.system.model
        if model is None:
            reason = f"neither the system nor the phase {name!r} names a model; give ActorSystem(model=…)"
            raise ActorError(ErrorCode.INVALID_CONFIG, reason)
        tools = self.system.options if phase.options is None else phase.options
        config = typed.AgentConfig(model=model, tools=list(tools))
        for change in thread.view.configs.get(name, ()):
            config = changed(config, change)
        return config

    async def _halt(self, thread: Thread) -> None:
        """Interrupt the run of a thread, and what it waits for."""
        run, thread.run = thread.run, None
        if run is None or run.done():
            return
        for actor_id in self._actors_of(thread):
            self.system.get_actor(actor_id).abandon()
        run.cancel()
        await asyncio.wait([run])

    async def _let_go(self, thread: Thread) -> None:
        for actor_id in self._actors_of(thread):
            await self.system.let_go(actor_id)
        thread.agents = None

    def _actors_of(self, thread: Thread) -> list[str]:
        return [each for each in self.system.actors() if each.startswith(f"{thread.view.thread_id}/")]

    async def _tell_client(self, view: ThreadView) -> None:
        """Tell who created the thread how it ended."""
        if view.client is None:
            return
        last = next(reversed(view.outputs.values()), None)
        cause = {name: view.cause.get(name) for name in ("error_message", "error_code") if name in view.cause}
        output = last.model_dump(mode="json") if last else None
        told = typed.ThreadResult(thread_id=view.thread_id, status=view.status, output=output, **cause)
        await self.system.send_message(
            Message(
                type="THREAD_RESULT",
                data=told.model_dump(mode="json"),
                sender=self.actor_id,
                receiver=view.client,
                correlation_id=view.correlation_id,
            )
        )

    # Where threads are

    def _of(self, message: Message) -> Thread:
        return self._thread(data_of(message, typed.OfThread).thread_id)

    def _thread(self, thread_id: str) -> Thread:
        if not self._is_here(thread_id):
            reason = f"no thread {thread_id!r} is here; create one, or see the list of threads"
            raise ActorError(ErrorCode.UNKNOWN_THREAD, reason, thread_id=thread_id)
        if thread_id not in self._threads:
            self._threads[thread_id] = Thread(self._session(thread_id))
        return self._threads[thread_id]

    def _is_here(self, thread_id: str) -> bool:
        if thread_id not in self._known and self.store is not None:
            self._known.update(self._stored())
        return thread_id in self._known

    def _stored(self) -> list[str]:
        """Ids of the threads that are in the store."""
        names = self.store.names() if self.store is not None else ()
        return [name.removeprefix(JOURNAL) for name in names if name.startswith(JOURNAL)]

    def _session(self, thread_id: str) -> Session:
        return Session(journal=self.store.journal(f"{JOURNAL}{thread_id}")) if self.store is not None else Session()

    def _id_of(self, message: Message) -> str | None:
        if message.type == "CREATE_THREAD":
            return _new_id(message)
        if message.type == "UPDATE_AGENT_CONFIG":
            return str(message.data.get("agent_id", "")).rpartition("/")[0] or None
        found = message.data.get("thread_id")
        return found if isinstance(found, str) else None

    def _chain(self, name: str) -> Chain:
        found = self.system.chains.get(name)
        if found is None:
            known = ", ".join(self.system.chains)
            raise ActorError(ErrorCode.INVALID_CONFIG, f"no chain is called {name!r}; the system has {known}")
        return found


def _new_id(message: Message) -> str:
    return str(uuid5(_IDS, message.id))


def _response(stored: dict[str, Any]) -> Response:
    """A response as a journal holds it."""
    response = deserialize_message(json.dumps(stored))
    assert isinstance(response, Response)
    return response


def _input(view: ThreadView, phase: Phase) -> str:
    """What a phase is asked: the user's words first, then to go on."""
    return view.initial_input if not view.outputs else phase.ask


def _context(view: ThreadView) -> dict[str, Any]:
    """What a phase is told of its thread: what was said so far, whose it is."""
    last = next(reversed(view.outputs.values()), None)
    said = [{"role": "assistant", "content": output.response} for output in view.outputs.values()]
    asked = [{"role": "user", "content": view.initial_input}] if said else []
    return {
        "conversation_history": [*(view.metadata.get("conversation_history") or ()), *asked, *said],
        "previous_phase_output": last and last.model_dump(mode="json"),
        "user_id": view.user_id,
        "metadata": {name: value for name, value in view.metadata.items() if name != "conversation_history"},
    }
