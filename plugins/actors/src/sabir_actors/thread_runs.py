"""ThreadRuns: runs threads in this process, phase by phase, each thread with its own actors.

    continue_thread ─┬─ no queue ─▶ begin ─▶ claim ─▶ for each remaining phase:
                     └─ queue.put ┄┄▶ perform ─┘       PROCESS_PHASE ─▶ PhaseActor ─▶ PHASE_PROCESSED ─▶ recorded
                                                       then the client gets the thread's result

A process takes a thread by recording in the journal that it runs the thread. After another process took the thread, the
first process cannot write records. A run from a queue takes its thread only while the thread's latest record names this
run, and the queue still assigns the run to this process. Threads do not wait for each other, because each has its own
phase actor and agents.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sabir.authoring import AgentWork, announce_work, one_line
from sabir.errors import SabirError
from sabir_session import JournalInvalid, PositionTaken, RecordingFailed, SessionError

from sabir_actors.actor import Actor, ActorHost
from sabir_actors.agents import Agent, AgentManagerActor, config_of
from sabir_actors.data import ThreadState
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.observers import logger
from sabir_actors.phase import PhaseActor
from sabir_actors.phases import AGENTS, Chain, Phase
from sabir_actors.protocol import Message, raise_for_error
from sabir_actors.queues import IsAssigned
from sabir_actors.state import ENDS, ThreadView, context_of, input_of, result_of
from sabir_actors.thread import JOURNAL, KnownThreads, Thread, fail

StepResult = TypeVar("StepResult")
_SweepResult: TypeAlias = tuple[int | None, ThreadState]
"""A thread's number of records and its state when a sweep read them."""

PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""The first and the longest pause in seconds before a failed use of a journal is repeated. Pauses double."""
LOOK = 2.0
"""The number of seconds between two checks of the journals for records of other processes."""
SWEEP = 15
"""The number of checks between two sweeps. A sweep queues recorded runs that were never queued."""


class ThreadRuns:
    """Runs threads in one process. `request` is the method `_request` of the actor of all threads, which creates
    messages.
    """

    def __init__(self, system: ActorHost, threads: KnownThreads, request: Callable[..., Message]) -> None:
        self.system, self.threads, self._request = system, threads, request
        self.queue = system.queue
        self._check_task: asyncio.Task[None] | None = None
        self._sweep_results: dict[str, _SweepResult] = {}
        self._is_stopped = False

    @property
    def performs(self) -> bool:
        """Whether threads may run in this process: without a queue, or if the queue performs runs here."""
        return self.queue is None or self.queue.performs

    def chain(self, name: str) -> Chain:
        """Return the chain with this name. Raises ActorError (INVALID_CONFIG) for an unknown name."""
        chain = self.system.chains.get(name)
        if chain is None:
            known = ", ".join(self.system.chains)
            reason = f"no chain is named {name!r}; the system has {known}; add the chain to ActorSystem(chains=…)"
            raise ActorError(ErrorCode.INVALID_CONFIG, reason)
        return chain

    def check(self, thread: Thread) -> None:
        """Check that this process can run a thread. Raises ActorError (INVALID_CONFIG) if the system does not have the
        thread's chain, one of its remaining phases, a model, or an option. Checks nothing if `performs` is False.
        """
        if not self.performs:
            return
        chain, options = self.chain(thread.view.chain), self.system.options
        for name in thread.view.remaining:
            if name not in chain.names:
                reason = f"the chain {chain.name!r} no longer has the phase {name!r}, which the thread needs"
                raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; add the phase in ActorSystem(chains=…)")
            tools = config_of(thread.view, chain.phase(name), self.system).tools
            missing = [tool for tool in tools if tool not in options]
            if missing:
                reason = f"the phase {name!r} needs the option {missing[0]!r}, which the system does not have"
                raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; add the option to ActorSystem(options=…)")

    def start_fields(self, thread: Thread) -> dict[str, str | None]:
        """Return the fields for the record that starts or resumes a thread: without a queue, the id of this process;
        with a queue, a new name of a run, or {} if a worker still has the present run.
        """
        if self.queue is None:
            return {"by": self.threads.runner, "run": None}
        view = thread.view
        is_at_work = view.run is not None and view.runner is not None
        return {} if is_at_work else {"by": None, "run": f"{view.thread_id}.{view.runs + 1}"}

    async def continue_thread(self, thread: Thread) -> None:
        """Run or queue a thread that is processing, unless another process runs it. If the thread has ended, send its
        client the result. In other states, do nothing.

        If the queue cannot be written now, a later sweep queues the run.
        """
        view = thread.view
        if view.is_over or (view.status == "processing" and self.queue is None and thread.is_mine):
            self.begin(thread, view.runner, view.run)
        elif view.status == "processing" and self.queue is not None and view.runner is None:
            await self.put(thread)

    def begin(self, thread: Thread, runner: str | None, run: str | None) -> asyncio.Task[None] | None:
        """Start a task that runs a thread, unless its task is running. Return the task; None if the system is stopping.

        `runner` is the process, and `run` the run, that the thread's records must still name when the task takes it.
        """
        if self._is_stopped:
            return None
        if thread.run is None or thread.run.done():
            self.threads.running[thread.thread_id] = thread
            thread.run = asyncio.ensure_future(self._run_thread(thread, runner, run))
            thread.run.add_done_callback(lambda run: self._release_thread(thread, run))
            self.start_checking()
        return thread.run

    async def perform(self, thread_id: str, run: str, is_assigned: IsAssigned) -> None:
        """Perform a run from a queue, until the thread is paused or has ended.

        Raises ActorError (INVALID_CONFIG) if the system does not have the thread's chain, a phase, a model or an
        option, and ActorError (RECORDING_FAILED) or JournalInvalid for an invalid journal.

        If another process takes the thread although the queue still assigns the run to this process, the other process
        was late, and this process takes the thread again. `is_assigned` is called after the journal was read, so its
        answer is valid as long as the journal does not change.
        """
        while (thread := await self._open_patiently(thread_id)) is not None and thread.view.run == run:
            runner = thread.view.runner
            if thread.view.is_over or not await is_assigned():
                return
            if thread.view.status == "processing":
                self.check(thread)
            await self._perform_queued_run(thread, runner, run)
            if thread.view.status != "processing":
                return

    async def _perform_queued_run(self, thread: Thread, runner: str | None, run: str) -> None:
        await self.halt(thread)
        task = self.begin(thread, runner, run)
        try:
            if task is not None:
                await asyncio.wait([task])
            if self._is_stopped:
                await asyncio.Event().wait()  # the queue cancels this, and assigns the run to another process
        except asyncio.CancelledError:
            await self.halt(thread)
            raise
        if task is not None and not task.cancelled():
            task.result()

    async def stop(self) -> None:
        """Interrupt the phases of all running threads. Threads in a store can continue later."""
        self._is_stopped = True
        if self._check_task is not None:
            self._check_task.cancel()
        await asyncio.gather(*map(self.halt, list(self.threads.running.values())))

    async def halt(self, thread: Thread) -> None:
        """Interrupt a running thread and its actors, and wait until they have ended. Nothing is recorded."""
        run = thread.run
        if run is None or run.done():
            return
        for actor in thread.actors:
            actor.interrupt()
        if not run.cancelling():
            run.cancel()
        await asyncio.wait([run])
        await self._remove_actors(thread)  # the run may have been interrupted while it removed the actors

    async def put(self, thread: Thread) -> None:
        """Queue the run of a thread that is processing. A thread that was started without a queue gets a new run.

        A failure of the queue or the journal is logged; a later sweep tries again.
        """
        assert self.queue is not None
        try:
            if thread.view.run is None:
                await self.threads.call_store(lambda: thread.record("queued", self.start_fields(thread)))
            if thread.view.run is not None:
                await self.queue.put(thread.thread_id, thread.view.run)
        except SabirError as error:
            logger.warning("thread %s could not be queued; a later sweep tries again: %s", thread.thread_id, error)

    async def _open_patiently(self, thread_id: str) -> Thread | None:
        """Return a thread, waiting until its journal can be read. None if the thread does not exist."""
        try:
            return await self._retry_journal(thread_id, lambda: self.threads.open(thread_id))
        except ActorError as error:
            if error.code is not ErrorCode.UNKNOWN_THREAD:
                raise
            return None

    # One run

    async def _run_thread(self, thread: Thread, runner: str | None, run: str | None) -> None:
        """Run a thread as `_run_until_left`, and announce this to telemetry as the work of a workflow."""
        with announce_work(AgentWork("workflow", thread.view.chain, thread.thread_id)):
            await self._run_until_left(thread, runner, run)

    async def _run_until_left(self, thread: Thread, runner: str | None, run: str | None) -> None:
        """Run phase by phase until the thread is paused or has ended. If it has ended, send its client the result."""
        while not thread.view.is_over:
            if thread.view.status == "processing":
                if not thread.is_mine and not await self._claim_thread(thread, runner, run):
                    return
                runner = self.threads.runner
                await self._run_phases(thread)
            elif run is None or thread.view.run != run or await self._leave_thread(thread, run):
                return
        await self._send_result(thread.view)

    async def _claim_thread(self, thread: Thread, runner: str | None, run: str | None) -> bool:
        """Record that this process runs the thread, if its records still name `runner` and `run`. Return False if the
        thread is processing and belongs to another process or run.
        """

        def claim() -> None:
            thread.refresh()
            view = thread.view
            if (view.status, view.runner, view.run) == ("processing", runner, run):
                thread.record("taken", {"by": self.threads.runner, **({} if self.queue else {"run": None})})

        await self._retry_journal(thread.thread_id, claim)
        return thread.is_mine or thread.view.status != "processing"

    async def _leave_thread(self, thread: Thread, run: str) -> bool:
        """Record that no process runs a paused thread. Return False if the thread was resumed in the same run."""

        def leave() -> None:
            thread.refresh()
            if (thread.view.status, thread.view.run) == ("paused", run):
                thread.record("left", {"by": None, "run": None})

        await self._retry_journal(thread.thread_id, leave)
        return thread.view.run != run

    async def _retry_journal(self, thread_id: str, step: Callable[[], StepResult]) -> StepResult:
        """Call a function that uses the journal, and return its result. Repeat the call after a pause while the store
        fails, and without a pause if another process wrote to the journal.

        Raises JournalInvalid, and ActorErrors that are not retryable.
        """
        pause = PAUSE
        while True:
            try:
                return await self.threads.call_store(step)
            except PositionTaken:
                continue
            except (ActorError, SessionError) as error:
                if isinstance(error, JournalInvalid) or (isinstance(error, ActorError) and not error.retryable):
                    raise
                logger.warning("thread %s cannot use its journal; trying again in %g s: %s", thread_id, pause, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run_phases(self, thread: Thread) -> None:
        """Run the remaining phases until the thread is not processing, or another process runs the thread. Record that
        the thread is completed or has failed.
        """
        try:
            try:
                while thread.view.status == "processing" and (phase := thread.view.current_phase):
                    await self._run_phase(thread, phase)
                await self.threads.call_store(lambda: _record_completed(thread))
            except (Exception, asyncio.CancelledError) as error:
                if _is_interrupted(error):
                    raise
                await self.threads.call_store(partial(fail, thread, error))
        except RecordingFailed as error:
            logger.warning("thread %s could not be recorded: %s", thread.thread_id, error)
            await self._remove_actors(thread)
            await self._claim_thread(thread, self.threads.runner, thread.view.run)
        finally:
            await self._remove_actors(thread)

    async def _run_phase(self, thread: Thread, name: str) -> None:
        view, chain = thread.view, self.chain(thread.view.chain)
        actor = await self._phase_actor(thread, chain, chain.phase(name))
        fields: dict[str, Any] = {
            "thread_id": view.thread_id,
            "phase_type": name,
            "input": input_of(view, chain.phase(name)),
        }
        fields["context"] = context_of(view)
        request = self._request("PROCESS_PHASE", fields, actor.actor_id, view.correlation_id)
        response = raise_for_error(await self.system.send_message(request))
        await self.threads.call_store(lambda: _record_phase(thread, dict(response.data)))
        await self._remove_actor(thread, actor)

    async def _phase_actor(self, thread: Thread, chain: Chain, phase: Phase) -> PhaseActor:
        """Create and return the actor of a phase of this thread, and add the phase's agent. Raises ActorError
        (INVALID_CONFIG) for a wrong model, option or setting.
        """
        thread_id, system = thread.thread_id, self.system
        if thread.agents is None:
            session = await self.threads.call_store(thread.agents_session)
            thread.agents = AgentManagerActor(f"{thread_id}/{AGENTS}", system, session)
            system.add(thread.agents)
            thread.actors.append(thread.agents)
        actor = PhaseActor(f"{thread_id}/{phase.name}", system, chain, phase, thread.agents)
        config = config_of(thread.view, phase, system, thread.agents.origins)
        thread.agents.add_agent(actor.agent_id, Agent(config, phase.output))
        system.add(actor)
        thread.actors.append(actor)
        return actor

    def _release_thread(self, thread: Thread, run: asyncio.Task[None]) -> None:
        """Log an unexpected exception of a thread's task that ended. With a store, remove the thread from `running`."""
        error = None if run.cancelled() else run.exception()
        if error is not None:
            logger.error("thread %s stopped because of an unexpected error", thread.thread_id, exc_info=error)
        if (
            self.threads.store is not None
            and self.threads.running.get(thread.thread_id) is thread
            and thread.run is run
        ):
            del self.threads.running[thread.thread_id]

    async def _remove_actors(self, thread: Thread) -> None:
        while thread.actors:
            await self._remove_actor(thread, thread.actors[-1])
        thread.agents = None

    async def _remove_actor(self, thread: Thread, actor: Actor) -> None:
        """Stop and remove one actor of a thread. A second call at the same time is harmless."""
        await self.system.stop_actor(actor.actor_id)
        thread.actors = [each for each in thread.actors if each is not actor]

    async def _send_result(self, view: ThreadView) -> None:
        """Send a thread's result to its client, if the thread has one.

        With a queue, a client in another process is not notified, because clients also read the status themselves.
        """
        if view.client is None or (self.queue is not None and view.client not in self.system.actors()):
            return
        fields = result_of(view).model_dump(mode="json")
        await self.system.send_message(self._request("THREAD_RESULT", fields, view.client, view.correlation_id))

    # Other processes

    def start_checking(self) -> None:
        """Start checking the journals of running threads every LOOK seconds for records of other processes; nothing
        without a store.
        """
        if self._check_task is None and self.threads.store is not None:
            self._check_task = asyncio.ensure_future(self._check_regularly())

    async def _check_regularly(self) -> None:
        checks = 0
        while True:
            await asyncio.sleep(LOOK)
            checks += 1
            try:
                own_threads = [each for each in self.threads.running.values() if each.is_mine]
                for thread in await self.threads.call_store(partial(_select_behind, own_threads)):
                    await self._check_thread(thread)
                if self.queue is not None and self.queue.performs and checks % SWEEP == 0:
                    await self.sweep()
            except Exception as error:  # after any error, the next check follows
                logger.warning("a check of the threads failed: %s", one_line(f"{type(error).__name__}: {error}", 200))

    async def _check_thread(self, thread: Thread) -> None:
        """Read the new records of a thread, and interrupt the thread if it has ended or another process took it."""
        try:
            await self.threads.call_store(thread.refresh)
        except (ActorError, SessionError) as error:
            logger.debug("thread %s could not be checked: %s", thread.thread_id, error)
            return
        if not thread.is_mine:
            await self.halt(thread)
        if thread.view.is_over:
            await self.continue_thread(thread)

    async def sweep(self) -> None:
        """Queue the runs of threads that are processing, but not in this process, and did not change since the previous
        sweep. A thread that the previous sweep did not read counts as unchanged.

        This is necessary because a process may die after recording a run and before queueing it. A run that is already
        in the queue is not added again.
        """
        known, self._sweep_results = self._sweep_results, {}
        for thread_id in await self.threads.call_store(self.threads.names):
            try:
                self._sweep_results[thread_id] = await self._sweep_thread(thread_id, known.get(thread_id))
            except (ActorError, SessionError) as error:
                logger.warning("thread %s was skipped in a sweep: %s", thread_id, error)

    async def _sweep_thread(self, thread_id: str, known: _SweepResult | None) -> _SweepResult:
        """Queue a thread's run if necessary. Return the thread's number of records and state; `known` is the result of
        the previous sweep.
        """
        assert self.threads.store is not None
        if known is not None and known[1] in ENDS:
            return known
        length = await self.threads.call_store(partial(self.threads.store.length, f"{JOURNAL}{thread_id}"))
        if not length:
            return length, "created"
        if known is not None and known[0] == length and known[1] != "processing":
            return known
        thread = await self.threads.call_store(partial(self.threads.open, thread_id))
        has_stayed = known is None or known[0] == length
        if thread.view.status == "processing" and has_stayed and thread_id not in self.threads.running:
            await self.put(thread)
        return length, thread.view.status


def _select_behind(threads: list[Thread]) -> list[Thread]:
    """Return the threads whose journals have records that this process has not read."""
    return [each for each in threads if each.is_behind]


def _record_phase(thread: Thread, done: dict[str, Any]) -> None:
    """Record the output of a phase. Raises PositionTaken if the thread has ended or another process runs it."""
    if not thread.is_mine:
        raise PositionTaken(f"thread {thread.thread_id} has ended, or another process runs it")
    thread.record("phase_done", done)


def _record_completed(thread: Thread) -> None:
    """Record that the thread is completed, unless it is not processing any more."""
    if thread.view.status == "processing":
        thread.record("completed", {})


def _is_interrupted(error: BaseException) -> bool:
    """Return whether an exception is a cancellation of the present task by another task."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
