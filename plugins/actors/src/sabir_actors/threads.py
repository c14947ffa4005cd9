"""ThreadActor: threads from their creation to their end, each in a journal of its own (CH-14 … CH-21, CH-46).

    CREATE ─▶ journal `thread:<id>` ── START ─▶ a run of its own: for each phase that is left
                                                 PROCESS_PHASE ─▶ PhaseActor ─▶ PHASE_PROCESSED ─▶ recorded
    START, PAUSE, RESUME, TERMINATE are recorded with their answers, before these are given.

No thread waits for another's model: each has its own phase actor and agents, made when they are needed and let go
after. A thread that was processing when its process died goes on at its phase as soon as there is one again.

The journal is the one truth. Whoever runs a thread says so in it first; its records end where another wrote, and then
it reads what that was: a message for the thread is obeyed, a thread that another runs now is left to it.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sabir_session import JournalInvalid, RecordingFailed, SessionError, Store

from sabir_actors import data as typed
from sabir_actors.actor import Actor, Handled, logger
from sabir_actors.agents import Agent, AgentManagerActor, changed
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phase import PhaseActor
from sabir_actors.phases import AEIOUY_CHAIN, AGENTS, Chain, Phase
from sabir_actors.protocol import Message, Response, data_of, now
from sabir_actors.state import MOVES, ThreadView, What
from sabir_actors.system import raised
from sabir_actors.thread import (
    Thread,
    check_runs_here,
    config_of,
    context_of,
    done,
    fail,
    input_of,
    request_of,
    result_of,
    status_of,
    thread_id_of,
    unknown,
)

if TYPE_CHECKING:
    from sabir_actors.system import ActorSystem

JOURNAL = "thread:"
"""What the names of threads' journals begin with."""
PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a thread goes on whose journal took no record, the first time and at most: they double."""


class ThreadActor(Actor):
    """All threads of one system."""

    immediate = Actor.immediate | {"GET_THREAD_STATUS"}

    def __init__(self, actor_id: str, system: "ActorSystem", store: Store | None = None) -> None:
        super().__init__(actor_id, system)
        self.store = store
        """Where threads outlive the process; None for what lives in memory alone."""
        self._threads: dict[str, Thread] = {}
        """Those that run here; without a store all."""
        self._name = str(uuid4())
        """Under which threads are run here: that of no other process."""

    def recover(self) -> list[str]:
        """Let every thread of the store that was processing go on; their ids. What cannot go on here is logged."""
        going = []
        for thread_id in self._stored():
            try:
                if self.go_on(thread_id):
                    going.append(thread_id)
            except ActorError as error:
                logger.error("thread %s stays as it is: %s", thread_id, error)
        return going

    def go_on(self, thread_id: str) -> bool:
        """Let a thread go on that was processing when its process died; False for one that was not.

        Raises ActorError (INVALID_CONFIG), and leaves the thread as it is, where its chain, its model or an option of
        its agents is not known here.
        """
        thread = self._open(thread_id)
        if thread.view.status != "processing":
            return False
        check_runs_here(thread.view, self._chain(thread.view.chain), self.system)
        self._go_on(thread)
        return True

    def thread_ids(self) -> list[str]:
        """Ids of all threads, of those in the store too."""
        return sorted({*self._threads, *self._stored()})

    def view(self, thread_id: str) -> ThreadView:
        """What the events of a thread come to; ActorError (UNKNOWN_THREAD) where there is none."""
        return self._open(thread_id).view

    # Messages

    async def on_create_thread(self, message: Message) -> Handled:
        """Make a thread; it is not started (CH-14)."""
        wanted, thread_id = data_of(message, typed.CreateThread), thread_id_of(message.id)
        chain = self._chain(wanted.chain or AEIOUY_CHAIN.name)
        response = message.response(typed.ThreadCreated(thread_id=thread_id, status="created"))
        said = request_of(message, wanted, chain)

        def create(thread: Thread) -> Response:
            thread.record("created", said, message, response)
            return response

        return self._changed(message, thread_id, create, self._made)

    async def on_start_thread(self, message: Message) -> Handled:
        """Set a thread on its way; the answer does not wait for it (CH-15)."""
        return self._moved(
            message,
            "started",
            lambda view: typed.ThreadStarted(thread_id=view.thread_id, status="processing", started_at=now()),
        )

    async def on_pause_thread(self, message: Message) -> Handled:
        """Let no further phase start; the one that runs ends, and is kept (CH-16)."""
        return self._moved(
            message,
            "paused",
            lambda view: typed.ThreadPaused(
                thread_id=view.thread_id, status="paused", paused_at=now(), current_phase=view.current_phase
            ),
        )

    async def on_resume_thread(self, message: Message) -> Handled:
        """Go on at the phase that is next (CH-17)."""
        return self._moved(
            message,
            "resumed",
            lambda view: typed.ThreadResumed(
                thread_id=view.thread_id, status="processing", resumed_at=now(), current_phase=view.current_phase
            ),
        )

    async def on_terminate_thread(self, message: Message) -> Handled:
        """End a thread; its phase is given up where it stands (CH-18)."""
        wanted = data_of(message, typed.TerminateThread)
        response = self._moved(
            message,
            "terminated",
            lambda view: typed.ThreadTerminated(
                thread_id=view.thread_id, status="terminated", terminated_at=now(), reason=wanted.reason
            ),
            reason=wanted.reason,
        )
        thread = self._threads.get(wanted.thread_id)
        if thread is not None and thread.view.status == "terminated" and thread.actors:
            await self._halt(thread)
            self._go_on(thread)
        return response

    async def on_get_thread_status(self, message: Message) -> Handled:
        """Where a thread is (CH-19), and how it ended."""
        return status_of(self._open(data_of(message, typed.OfThread).thread_id).view)

    async def on_update_agent_config(self, message: Message) -> Handled:
        """Have the agent of a phase, `<thread>/<phase>`, ask otherwise from its next run on (CH-28)."""
        wanted = data_of(message, typed.UpdateAgentConfig)
        thread_id, _, phase = wanted.agent_id.rpartition("/")
        probe = AgentManagerActor("probe", self.system)

        def update(thread: Thread) -> Response:
            if thread.view.is_over:
                reason = f"thread {thread_id} is {thread.view.status}; its agents are asked no more"
                raise ActorError(ErrorCode.INVALID_STATE, reason, thread_id=thread_id, status=thread.view.status)
            config = config_of(thread.view, self._chain(thread.view.chain).phase(phase), self.system)
            probe.add_agent(phase, Agent(changed(config, wanted.config)))
            response = message.response(typed.AgentConfigUpdated(agent_id=wanted.agent_id))
            said = {"phase_type": phase, "config": wanted.config.model_dump(mode="json", exclude_unset=True)}
            thread.record("agent_updated", said, message, response)
            return response

        try:
            return self._changed(message, thread_id, update)
        finally:
            await probe.stop()

    def _moved(
        self, message: Message, what: What, answer: Callable[[ThreadView], typed.ThreadCreated], **said: Any
    ) -> Response:
        """Have a thread change its state, where that is allowed."""
        is_run = MOVES[what][1] == "processing"

        def move(thread: Thread) -> Response:
            thread.view.allow(what)
            if is_run:
                check_runs_here(thread.view, self._chain(thread.view.chain), self.system)
            response = message.response(answer(thread.view))
            thread.record(what, {**said, **({"by": self._name} if is_run else {})}, message, response)
            self._go_on(thread)
            return response

        return self._changed(message, data_of(message, typed.OfThread).thread_id, move)

    def _changed(
        self,
        message: Message,
        thread_id: str,
        step: Callable[[Thread], Response],
        opened: Callable[[str], Thread] | None = None,
    ) -> Response:
        """Do what a message says, once: one that was recorded before has its answer in the journal (CH-43)."""
        failure = ""
        for _ in range(2):  # another may write to the journal in between
            thread = (opened or self._open)(thread_id)
            found = thread.answer_to(message)
            if found is not None:
                if thread.view.status == "processing" and thread.view.runner == self._name:
                    self._go_on(thread)
                return found
            try:
                return done(message, thread, step)
            except RecordingFailed as error:
                failure = str(error)
        raise ActorError(ErrorCode.RECORDING_FAILED, f"thread {thread_id}: {failure}", retryable=True)

    # Runs

    def _go_on(self, thread: Thread) -> None:
        """Do what is left to do for a thread: its phases, or to tell its client."""
        if self._is_stopped or (thread.run is not None and not thread.run.done()):
            return
        if thread.view.is_over or thread.view.status == "processing":
            self._threads[thread.thread_id] = thread
            thread.run = asyncio.ensure_future(self._run(thread))

    async def _run(self, thread: Thread) -> None:
        """Phase by phase, for as long as the thread is processing here; then its client is told how it ended."""
        try:
            if thread.view.runner != self._name:
                await self._take(thread)
            while thread.view.status == "processing" and thread.view.runner == self._name:
                await self._work(thread)
            if thread.view.is_over:
                await self._tell_client(thread.view)
        except Exception:
            logger.exception("thread %s is left where it is", thread.thread_id)
        finally:
            if self.store is not None:
                self._threads.pop(thread.thread_id, None)

    async def _take(self, thread: Thread) -> None:
        """Say in the journal that the thread is run here; wait until it takes records. Not where another runs it."""
        known, pause = thread.view.runner, PAUSE
        while True:
            try:
                self._refresh(thread)
                if thread.view.status == "processing" and thread.view.runner == known:
                    thread.record("taken", {"by": self._name})
                return
            except JournalInvalid:
                raise
            except SessionError as error:
                logger.warning("thread %s waits %g s for its journal: %s", thread.thread_id, pause, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _work(self, thread: Thread) -> None:
        """The phases that are left, until the thread is not processing, or another wrote to its journal."""
        try:
            try:
                while thread.view.status == "processing" and (phase := thread.view.current_phase):
                    await self._run_phase(thread, phase)
                if thread.view.status == "processing":
                    thread.record("completed", {})
            except Exception as error:
                fail(thread, error)
        except RecordingFailed as error:
            logger.warning("thread %s could not be recorded: %s", thread.thread_id, error)
            await self._let_go(thread)
            await self._take(thread)
        finally:
            await self._let_go(thread)

    async def _run_phase(self, thread: Thread, name: str) -> None:
        view, chain = thread.view, self._chain(thread.view.chain)
        actor = self._phase_actor(thread, chain, chain.phase(name))
        said = {"thread_id": view.thread_id, "phase_type": name, "input": input_of(view, chain.phase(name))}
        request = Message(
            type="PROCESS_PHASE",
            data={**said, "context": context_of(view)},
            sender=self.actor_id,
            receiver=actor.actor_id,
            correlation_id=view.correlation_id,
        )
        response = raised(await self.system.send_message(request))
        thread.record("phase_done", dict(response.data))
        await self.system.let_go(actor.actor_id)
        thread.actors.remove(actor)

    def _phase_actor(self, thread: Thread, chain: Chain, phase: Phase) -> PhaseActor:
        """The actor of a phase, made for this thread alone, with the agent that its configuration says."""
        thread_id, system = thread.thread_id, self.system
        if thread.agents is None:
            thread.agents = AgentManagerActor(f"{thread_id}/{AGENTS}", system, thread.session)
            system.add(thread.agents)
            thread.actors.append(thread.agents)
        actor = PhaseActor(f"{thread_id}/{phase.name}", system, chain, phase, thread.agents)
        thread.agents.add_agent(actor.agent_id, Agent(config_of(thread.view, phase, system), phase.output))
        system.add(actor)
        thread.actors.append(actor)
        return actor

    async def _halt(self, thread: Thread) -> None:
        """Interrupt the run of a thread, and what it waits for."""
        run = thread.run
        if run is None or run.done():
            return
        for actor in thread.actors:
            actor.abandon()
        run.cancel()
        await asyncio.wait([run])
        await self._let_go(thread)  # the run may have been interrupted while it did that

    async def _let_go(self, thread: Thread) -> None:
        while thread.actors:
            await self.system.let_go(thread.actors[-1].actor_id)
            thread.actors.pop()
        thread.agents = None

    async def _tell_client(self, view: ThreadView) -> None:
        """Tell who created the thread how it ended."""
        if view.client is None:
            return
        await self.system.send_message(
            Message(
                type="THREAD_RESULT",
                data=result_of(view).model_dump(mode="json"),
                sender=self.actor_id,
                receiver=view.client,
                correlation_id=view.correlation_id,
            )
        )

    async def stopping(self) -> None:
        """Interrupt every run; those of a store go on when there is a process again."""
        for thread in list(self._threads.values()):
            await self._halt(thread)

    # Where threads are

    def _open(self, thread_id: str) -> Thread:
        """A thread as its journal is now; ActorError (UNKNOWN_THREAD) where there is none."""
        thread = self._threads.get(thread_id)
        try:
            if thread is not None:
                self._refresh(thread)
            elif self.store is not None and self.store.length(f"{JOURNAL}{thread_id}"):
                thread = self._made(thread_id)
        except SessionError as error:
            is_damaged = isinstance(error, JournalInvalid)
            reason = f"thread {thread_id} cannot be read: {error}"
            raise ActorError(ErrorCode.RECORDING_FAILED, reason, retryable=not is_damaged) from error
        if thread is None or not thread.view.exists:
            raise unknown(thread_id)
        return thread

    def _made(self, thread_id: str) -> Thread:
        """The thread that is here, or else one with its journal, which is made where there is none."""
        if thread_id in self._threads:
            return self._threads[thread_id]
        if self.store is None:
            return self._threads.setdefault(thread_id, Thread(thread_id, None))
        return Thread(thread_id, self.store.journal(f"{JOURNAL}{thread_id}"))

    def _refresh(self, thread: Thread) -> None:
        """Read a journal anew that is another than the one that was read."""
        if self.store is None or thread.journal is None:
            return
        name = f"{JOURNAL}{thread.thread_id}"
        length = self.store.length(name)
        if length is None:
            raise unknown(thread.thread_id)
        if length != len(thread.journal):
            thread.read(self.store.journal(name))

    def _stored(self) -> list[str]:
        """Ids of the threads that are in the store; a journal without a record is that of one that was not created."""
        if self.store is None:
            return []
        names = [name for name in self.store.names() if name.startswith(JOURNAL) and self.store.length(name)]
        return [name.removeprefix(JOURNAL) for name in names]

    def _chain(self, name: str) -> Chain:
        found = self.system.chains.get(name)
        if found is None:
            known = ", ".join(self.system.chains)
            reason = f"no chain is called {name!r}; the system has {known}; give ActorSystem(chains=…) that one"
            raise ActorError(ErrorCode.INVALID_CONFIG, reason)
        return found
