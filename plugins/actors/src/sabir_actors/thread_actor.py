"""ThreadActor: creates, runs and controls the threads of a system. Each thread has its own journal.

    CREATE ─▶ journal `thread:<id>` ── START ─▶ ThreadRuns, here or by a queue: phase by phase

START, PAUSE, RESUME and TERMINATE are recorded with their responses, before the responses are sent.

Any process with the store reads a thread's state from its journal, and can answer messages about it. A thread that was
processing when its process died continues at its phase when an ActorSystem with this store starts, unless `recovers`
is False. With a queue, another worker of the queue continues the thread.
"""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from sabir_session import PositionTaken, RecordingFailed, Store
from sabir_session.state.codec import now

from sabir_actors import data as typed
from sabir_actors.actor import Actor, ActorHost, HandlerResult
from sabir_actors.agents import Agent, AgentManagerActor, apply_change, config_of, settings_of
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.observers import logger
from sabir_actors.phases import AEIOUY_CHAIN
from sabir_actors.protocol import Message, Response, data_of
from sabir_actors.state import MOVES, EventKind, ThreadView, created_fields, status_of, thread_id_of
from sabir_actors.thread import KnownThreads, Thread, run_step
from sabir_actors.thread_runs import ThreadRuns


class ThreadActor(Actor):
    """The actor of all threads of one system. ThreadClient sends its requests to this actor.

    `store` contains the threads' journals. Without a store, threads are in memory only. ActorSystem creates this actor.
    """

    immediate = Actor.immediate | {"GET_THREAD_STATUS"}

    def __init__(self, actor_id: str, system: ActorHost, store: Store | None = None) -> None:
        super().__init__(actor_id, system)
        self.threads = KnownThreads(store, str(uuid4()), system.store_thread)
        self.runs = ThreadRuns(system, self.threads, self._request)
        self._changed_threads: list[Thread] = []
        """Threads whose state was changed by a message whose response is not sent yet."""

    async def recover(self) -> list[str]:
        """Continue all threads in the store that are processing, even if another process runs them, and return their
        ids.

        A thread that cannot continue here, for example because its chain is unknown, is logged and not changed. Raises
        sabir_session.SessionError if the threads in the store cannot be listed.
        """
        continued = []
        for thread_id in await self.threads.call_store(self.threads.ids):
            try:
                if await self.continue_thread(thread_id):
                    continued.append(thread_id)
            except ActorError as error:
                logger.error("thread %s was not continued: %s", thread_id, error)
        return continued

    async def continue_thread(self, thread_id: str) -> bool:
        """Continue a thread that is processing: run it here, even if another process runs it, or queue it. Return
        False, and do nothing, for a thread in another state.

        Raises ActorError: UNKNOWN_THREAD, RECORDING_FAILED if the journal cannot be read, or, without a queue and
        without changing the thread, INVALID_CONFIG if the system does not have the thread's chain, a phase, a model, or
        an option of its agents.
        """
        thread = await self.threads.call_store(lambda: self.threads.open(thread_id))
        if thread.view.status != "processing":
            return False
        if self.system.queue is not None:
            await self.runs.put(thread)
        else:
            self.runs.check(thread)
            self.runs.begin(thread, thread.view.runner, thread.view.run)
        return True

    def thread_ids(self) -> list[str]:
        """Return the sorted ids of all threads, in memory and in the store. Reading the store blocks the OS thread.

        Raises sabir_session.SessionError if the store cannot be read.
        """
        return self.threads.ids()

    def view(self, thread_id: str) -> ThreadView:
        """Return the state of a thread. Raises ActorError: UNKNOWN_THREAD for an unknown id, or RECORDING_FAILED if its
        journal cannot be read.

        Reading the store blocks the OS thread. In an event loop, use `ThreadClient.status` instead.
        """
        return self.threads.view(thread_id)

    # Messages

    async def _answer_message(self, message: Message) -> Response:
        """Answer a message, then run the threads that it started, also if the handler was interrupted."""
        try:
            return await super()._answer_message(message)
        finally:
            changed_threads, self._changed_threads = self._changed_threads, []
            for thread in changed_threads:
                await self.runs.continue_thread(thread)

    async def on_create_thread(self, message: Message) -> HandlerResult:
        """Handle CREATE_THREAD: create a thread without starting it. Raises ActorError (INVALID_CONFIG) for an unknown
        chain.
        """
        request, thread_id = data_of(message, typed.CreateThread), thread_id_of(message.id)
        chain = self.runs.chain(request.chain or AEIOUY_CHAIN.name)
        response = message.response(typed.ThreadCreated(thread_id=thread_id, status="created"))
        fields = created_fields(message, request, chain)

        def create(thread: Thread) -> Response:
            thread.record("created", fields, message, response)
            return response

        return await self._apply_once(message, thread_id, create, self.threads.open_or_create)

    async def on_start_thread(self, message: Message) -> HandlerResult:
        """Handle START_THREAD: start a created thread, and return before its first phase is done."""
        return await self._change_state(message, "started", typed.ThreadStarted)

    async def on_pause_thread(self, message: Message) -> HandlerResult:
        """Handle PAUSE_THREAD: let the running phase end and record its output, but start no further phase."""
        return await self._change_state(message, "paused", typed.ThreadPaused)

    async def on_resume_thread(self, message: Message) -> HandlerResult:
        """Handle RESUME_THREAD: continue a paused thread with the next phase."""
        return await self._change_state(message, "resumed", typed.ThreadResumed)

    async def on_terminate_thread(self, message: Message) -> HandlerResult:
        """Handle TERMINATE_THREAD: end a thread for good, and interrupt its running phase."""
        request = data_of(message, typed.TerminateThread)
        response = await self._change_state(message, "terminated", typed.ThreadTerminated, reason=request.reason)
        thread = self.threads.running.get(request.thread_id)
        if thread is not None and thread.view.status == "terminated" and thread.actors:
            await self.runs.halt(thread)
            await self.runs.continue_thread(thread)
        return response

    async def on_get_thread_status(self, message: Message) -> HandlerResult:
        """Handle GET_THREAD_STATUS: return a thread's status, with the result if the thread has ended."""
        thread_id = data_of(message, typed.OfThread).thread_id
        return status_of((await self.threads.call_store(lambda: self.threads.open(thread_id))).view)

    async def on_update_agent_config(self, message: Message) -> HandlerResult:
        """Handle UPDATE_AGENT_CONFIG: change the agent `<thread id>/<phase>` from its next run on. Raises ActorError
        for an unknown or ended thread, an unknown chain or phase, a wrong setting or, if threads run in this process, a
        wrong model or option.
        """
        request = data_of(message, typed.UpdateAgentConfig)
        settings_of(request.config)
        thread_id, _, phase = request.agent_id.rpartition("/")
        view = await self.threads.call_store(lambda: self._view_unless_answered(message, thread_id))
        if view is not None and self.runs.performs:
            await self._check_change(view, phase, request.config)

        def update(thread: Thread) -> Response:
            if thread.view.is_over:
                reason = f"thread {thread_id} is {thread.view.status}, so its agents cannot be changed"
                raise ActorError(ErrorCode.INVALID_STATE, reason, thread_id=thread_id, status=thread.view.status)
            self.runs.chain(thread.view.chain).phase(phase)
            response = message.response(typed.AgentConfigUpdated(agent_id=request.agent_id))
            fields = {"phase_type": phase, "config": request.config.model_dump(mode="json", exclude_unset=True)}
            thread.record("agent_updated", fields, message, response)
            return response

        return await self._apply_once(message, thread_id, update)

    def _view_unless_answered(self, message: Message, thread_id: str) -> ThreadView | None:
        """Return the state of a thread; None if the thread has ended, or if the message was answered before."""
        thread = self.threads.open(thread_id)
        return None if thread.view.is_over or thread.answer_to(message) else thread.view

    async def _check_change(self, view: ThreadView, phase: str, change: typed.AgentChange) -> None:
        """Raise ActorError (INVALID_CONFIG) if a phase's agent cannot be created with this change."""
        present = config_of(view, self.runs.chain(view.chain).phase(phase), self.system)
        probe = AgentManagerActor("probe", self.system)
        try:
            probe.add_agent(phase, Agent(apply_change(present, change)))
        finally:
            await probe.stop()

    async def _change_state(
        self, message: Message, what: EventKind, answer: type[typed.ThreadCreated], **extra_fields: Any
    ) -> Response:
        """Record a change of a thread's state, and return the response, with the data model `answer`. Raises ActorError
        (INVALID_CONFIG) if a thread that starts or resumes cannot run here.
        """
        after = MOVES[what][1]
        is_run = after == "processing"

        def move(thread: Thread) -> Response:
            view = thread.view
            view.allow(what)
            if is_run:
                self.runs.check(thread)
            response_fields = {"thread_id": view.thread_id, "status": after, f"{what}_at": now(), **extra_fields}
            if "current_phase" in answer.model_fields:
                response_fields["current_phase"] = view.current_phase
            response = message.response(answer.model_validate(response_fields))
            thread.record(
                what, {**extra_fields, **(self.runs.start_fields(thread) if is_run else {})}, message, response
            )
            self._changed_threads.append(thread)
            return response

        return await self._apply_once(message, data_of(message, typed.OfThread).thread_id, move)

    async def _apply_once(
        self,
        message: Message,
        thread_id: str,
        step: Callable[[Thread], Response],
        open_thread: Callable[[str], Thread] | None = None,
    ) -> Response:
        """Call `step` for a message, unless the message was recorded before: then return the recorded response.

        `open_thread` returns the thread, by default `KnownThreads.open`. Raises ActorError (RECORDING_FAILED) if the
        journal cannot be written.
        """

        def change() -> Response:
            is_again = False
            while True:
                thread = (open_thread or self.threads.open)(thread_id)
                answer = thread.answer_to(message)
                if answer is not None:
                    if thread.view.status == "processing":
                        self._changed_threads.append(thread)
                    return answer
                try:
                    return run_step(message, thread, step)
                except PositionTaken:  # another process wrote to the journal in between
                    continue
                except RecordingFailed as error:  # the record may be in the journal nevertheless: read it once
                    if is_again:
                        reason = f"thread {thread_id}: {error}"
                        raise ActorError(ErrorCode.RECORDING_FAILED, reason, retryable=True) from None
                    is_again = True

        return await self.threads.call_store(change)

    async def stopping(self) -> None:
        """Interrupt the phases of all running threads. Threads in a store can continue later."""
        await self.runs.stop()
