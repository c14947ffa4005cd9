"""The runs of threads in this process: phase by phase, each with its own actors.

    go_on ─┬─ no queue ─▶ here ─▶ taken ─▶ for each phase that is left:
           └─ queue.put ┄┄▶ perform ─┘       PROCESS_PHASE ─▶ PhaseActor ─▶ PHASE_PROCESSED ─▶ recorded
                                             then the client is told how the thread ended

The process that runs a thread records that in its journal first; its records end when another process takes the thread.
A queue's run takes its thread only while the thread has that run, and the queue gives it to this process. No thread
waits for another's model: each has its own phase actor and agents, made when needed and removed after.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sabir.authoring import one_line
from sabir.errors import SabirError
from sabir_session import JournalInvalid, PositionTaken, RecordingFailed, SessionError

from sabir_actors.actor import Actor, ActorHost
from sabir_actors.agents import Agent, AgentManagerActor, config_of
from sabir_actors.data import ThreadState
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.observers import logger
from sabir_actors.phase import PhaseActor
from sabir_actors.phases import AGENTS, Chain, Phase
from sabir_actors.protocol import Message, raised
from sabir_actors.queues import IsGiven
from sabir_actors.state import ENDS, ThreadView, context_of, input_of, result_of
from sabir_actors.thread import JOURNAL, KnownThreads, Thread, fail

Given = TypeVar("Given")
_Swept: TypeAlias = tuple[int | None, ThreadState]
"""A thread's number of records at a sweep, and its state."""

PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds of the first and the longest pause of a thread whose journal took no record: pauses double."""
LOOK = 2.0
"""Seconds between two checks of the journals of the threads that run here, for records of other processes."""
SWEEP = 15
"""After this many checks, a sweep puts recorded runs that were never put."""


class ThreadRuns:
    """The threads that run in one process; `request` makes a message from the actor of all threads."""

    def __init__(self, system: ActorHost, threads: KnownThreads, request: Callable[..., Message]) -> None:
        self.system, self.threads, self._request = system, threads, request
        self.queue = system.queue
        self._looking: asyncio.Task[None] | None = None
        self._swept: dict[str, _Swept] = {}
        self._is_stopped = False

    @property
    def performs(self) -> bool:
        """Whether threads may run in this process."""
        return self.queue is None or self.queue.performs

    def chain(self, name: str) -> Chain:
        """The chain of that name; raises ActorError (INVALID_CONFIG) if the system has none."""
        found = self.system.chains.get(name)
        if found is None:
            known = ", ".join(self.system.chains)
            reason = f"no chain is called {name!r}; the system has {known}; give ActorSystem(chains=…) that one"
            raise ActorError(ErrorCode.INVALID_CONFIG, reason)
        return found

    def check(self, thread: Thread) -> None:
        """Raise ActorError (INVALID_CONFIG) if a thread may run here, but its phases' model or options are missing."""
        if not self.performs:
            return
        chain, options = self.chain(thread.view.chain), self.system.options
        for name in thread.view.remaining:
            if name not in chain.names:
                reason = f"the chain {chain.name!r} has no phase {name!r} here, as it had when the thread was created"
                raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; give ActorSystem(chains=…) that one")
            tools = config_of(thread.view, chain.phase(name), self.system).tools
            missing = [tool for tool in tools if tool not in options]
            if missing:
                reason = f"the phase {name!r} may choose {missing[0]!r}, which is no option here"
                raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; give ActorSystem(options=…) with it")

    def beginning(self, thread: Thread) -> dict[str, str | None]:
        """The fields of the record that starts a thread: its runner, or the name of the run to put."""
        if self.queue is None:
            return {"by": self.threads.runner, "run": None}
        view = thread.view
        is_at_work = view.run is not None and view.runner is not None
        return {} if is_at_work else {"by": None, "run": f"{view.thread_id}.{view.runs + 1}"}

    async def go_on(self, thread: Thread) -> None:
        """Perform a processing thread, as its latest record says; for a finished one, tell its client.

        If the queue does not take the run now, a later sweep puts it.
        """
        view = thread.view
        if view.is_over or (view.status == "processing" and self.queue is None and thread.is_mine):
            self.begin(thread, view.runner, view.run)
        elif view.status == "processing" and self.queue is not None and view.runner is None:
            await self.put(thread)

    def begin(self, thread: Thread, runner: str | None, run: str | None) -> asyncio.Task[None] | None:
        """Run a thread here, if it does not run yet and that runner still has it, for that run of the queue, if any.

        Returns the task that runs it; None once the system stops.
        """
        if self._is_stopped:
            return None
        if thread.run is None or thread.run.done():
            self.threads.held[thread.thread_id] = thread
            thread.run = asyncio.ensure_future(self._run(thread, runner, run))
            thread.run.add_done_callback(lambda run: self._ended(thread, run))
            self.look()
        return thread.run

    async def perform(self, thread_id: str, run: str, is_given: IsGiven) -> None:
        """Perform a run from a queue.

        Raises ActorError (INVALID_CONFIG) if a model or option of the thread is missing here.

        If another process takes the thread meanwhile, but the queue still gives the run to this process, the other was
        late: the thread is taken again. The queue is asked after the thread's holder was read, so the answer is valid
        as long as the journal does not change.
        """
        while (thread := await self._opened(thread_id)) is not None and thread.view.run == run:
            runner = thread.view.runner
            if thread.view.is_over or not await is_given():
                return
            if thread.view.status == "processing":
                self.check(thread)
            await self._performed(thread, runner, run)
            if thread.view.status != "processing":
                return

    async def _performed(self, thread: Thread, runner: str | None, run: str) -> None:
        await self.halt(thread)
        task = self.begin(thread, runner, run)
        try:
            if task is not None:
                await asyncio.wait([task])
            if self._is_stopped:
                await asyncio.Event().wait()  # the queue cancels this, and gives the run to another
        except asyncio.CancelledError:
            await self.halt(thread)
            raise
        if task is not None and not task.cancelled():
            task.result()

    async def stop(self) -> None:
        """Interrupt every run; runs with a store continue when a process opens it again."""
        self._is_stopped = True
        if self._looking is not None:
            self._looking.cancel()
        await asyncio.gather(*map(self.halt, list(self.threads.held.values())))

    async def halt(self, thread: Thread) -> None:
        """Interrupt the run of a thread, and the actors that it waits for."""
        run = thread.run
        if run is None or run.done():
            return
        for actor in thread.actors:
            actor.abandon()
        if not run.cancelling():
            run.cancel()
        await asyncio.wait([run])
        await self._let_go(thread)  # the run may have been interrupted while it did that

    async def put(self, thread: Thread) -> None:
        """Put the run of a processing thread; a thread that began without a queue gets a run."""
        assert self.queue is not None
        try:
            if thread.view.run is None:
                await self.threads.apart(lambda: thread.record("queued", self.beginning(thread)))
            if thread.view.run is not None:
                await self.queue.put(thread.thread_id, thread.view.run)
        except SabirError as error:
            logger.warning("thread %s waits for a later sweep; its run was not put: %s", thread.thread_id, error)

    async def _opened(self, thread_id: str) -> Thread | None:
        """A thread, once its journal can be read; None if it no longer exists."""
        try:
            return await self._patiently(thread_id, lambda: self.threads.open(thread_id))
        except ActorError as error:
            if error.code is not ErrorCode.UNKNOWN_THREAD:
                raise
            return None

    # One run

    async def _run(self, thread: Thread, runner: str | None, run: str | None) -> None:
        """Run phase by phase until the thread is paused or over; then tell its client the result."""
        while not thread.view.is_over:
            if thread.view.status == "processing":
                if not thread.is_mine and not await self._take(thread, runner, run):
                    return
                runner = self.threads.runner
                await self._work(thread)
            elif run is None or thread.view.run != run or await self._leave(thread, run):
                return
        await self._tell_client(thread.view)

    async def _take(self, thread: Thread, runner: str | None, run: str | None) -> bool:
        """Record that the thread is run here; False if it belongs to another runner or run."""

        def take() -> None:
            thread.refresh()
            view = thread.view
            if (view.status, view.runner, view.run) == ("processing", runner, run):
                thread.record("taken", {"by": self.threads.runner, **({} if self.queue else {"run": None})})

        await self._patiently(thread.thread_id, take)
        return thread.is_mine or thread.view.status != "processing"

    async def _leave(self, thread: Thread, run: str) -> bool:
        """Record that no process runs a paused thread; False if it continues in the same run."""

        def leave() -> None:
            thread.refresh()
            if (thread.view.status, thread.view.run) == ("paused", run):
                thread.record("left", {"by": None, "run": None})

        await self._patiently(thread.thread_id, leave)
        return thread.view.run != run

    async def _patiently(self, thread_id: str, step: Callable[[], Given]) -> Given:
        """The result of a step on the journal, waiting while the store fails.

        Others' records in between cause no wait.
        """
        pause = PAUSE
        while True:
            try:
                return await self.threads.apart(step)
            except PositionTaken:
                continue
            except (ActorError, SessionError) as error:
                if isinstance(error, JournalInvalid) or (isinstance(error, ActorError) and not error.retryable):
                    raise
                logger.warning("thread %s waits %g s for its journal: %s", thread_id, pause, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _work(self, thread: Thread) -> None:
        """Run the remaining phases, until the thread is not processing, or another process runs it."""
        try:
            try:
                while thread.view.status == "processing" and (phase := thread.view.current_phase):
                    await self._run_phase(thread, phase)
                await self.threads.apart(lambda: _complete(thread))
            except (Exception, asyncio.CancelledError) as error:
                if _is_interrupted(error):
                    raise
                await self.threads.apart(partial(fail, thread, error))
        except RecordingFailed as error:
            logger.warning("thread %s could not be recorded: %s", thread.thread_id, error)
            await self._let_go(thread)
            await self._take(thread, self.threads.runner, thread.view.run)
        finally:
            await self._let_go(thread)

    async def _run_phase(self, thread: Thread, name: str) -> None:
        view, chain = thread.view, self.chain(thread.view.chain)
        actor = await self._phase_actor(thread, chain, chain.phase(name))
        said: dict[str, Any] = {
            "thread_id": view.thread_id,
            "phase_type": name,
            "input": input_of(view, chain.phase(name)),
        }
        said["context"] = context_of(view)
        request = self._request("PROCESS_PHASE", said, actor.actor_id, view.correlation_id)
        response = raised(await self.system.send_message(request))
        await self.threads.apart(lambda: _finish(thread, dict(response.data)))
        await self._let_go_of(thread, actor)

    async def _phase_actor(self, thread: Thread, chain: Chain, phase: Phase) -> PhaseActor:
        """The actor of a phase, made only for this thread, with the agent of its configuration."""
        thread_id, system = thread.thread_id, self.system
        if thread.agents is None:
            session = await self.threads.apart(thread.agents_session)
            thread.agents = AgentManagerActor(f"{thread_id}/{AGENTS}", system, session)
            system.add(thread.agents)
            thread.actors.append(thread.agents)
        actor = PhaseActor(f"{thread_id}/{phase.name}", system, chain, phase, thread.agents)
        config = config_of(thread.view, phase, system, thread.agents.origins())
        thread.agents.add_agent(actor.agent_id, Agent(config, phase.output))
        system.add(actor)
        thread.actors.append(actor)
        return actor

    def _ended(self, thread: Thread, run: asyncio.Task[None]) -> None:
        """Handle the end of a run: log a failure, and release its thread."""
        error = None if run.cancelled() else run.exception()
        if error is not None:
            logger.error("thread %s is left where it is", thread.thread_id, exc_info=error)
        if self.threads.store is not None and self.threads.held.get(thread.thread_id) is thread and thread.run is run:
            del self.threads.held[thread.thread_id]

    async def _let_go(self, thread: Thread) -> None:
        while thread.actors:
            await self._let_go_of(thread, thread.actors[-1])
        thread.agents = None

    async def _let_go_of(self, thread: Thread, actor: Actor) -> None:
        """Remove one actor; the run and its interrupter may do so at once."""
        await self.system.let_go(actor.actor_id)
        thread.actors = [each for each in thread.actors if each is not actor]

    async def _tell_client(self, view: ThreadView) -> None:
        """Tell the thread's client the result; with a queue, a client in another process asks itself."""
        if view.client is None or (self.queue is not None and view.client not in self.system.actors()):
            return
        said = result_of(view).model_dump(mode="json")
        await self.system.send_message(self._request("THREAD_RESULT", said, view.client, view.correlation_id))

    # Other processes

    def look(self) -> None:
        """Start to check regularly for other processes' records of the threads that run here."""
        if self._looking is None and self.threads.store is not None:
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(LOOK)
            looks += 1
            try:
                held = [each for each in self.threads.held.values() if each.is_mine]
                for thread in await self.threads.apart(partial(_behind, held)):
                    await self._look_at(thread)
                if self.queue is not None and self.queue.performs and looks % SWEEP == 0:
                    await self.sweep()
            except Exception as error:  # after any error, the next check follows
                logger.warning("a look at the threads failed: %s", one_line(f"{type(error).__name__}: {error}", 200))

    async def _look_at(self, thread: Thread) -> None:
        """Interrupt the run of a thread that is over, or that another process took."""
        try:
            await self.threads.apart(thread.refresh)
        except (ActorError, SessionError) as error:
            logger.debug("thread %s could not be looked at: %s", thread.thread_id, error)
            return
        if not thread.is_mine:
            await self.halt(thread)
        if thread.view.is_over:
            await self.go_on(thread)

    async def sweep(self) -> None:
        """Put the runs of threads that are processing and did not change since the latest sweep.

        A process may die after it recorded a run and before it put it. A thread that has a run is not given another.
        """
        known, self._swept = self._swept, {}
        for thread_id in await self.threads.apart(self.threads.names):
            try:
                self._swept[thread_id] = await self._sweep(thread_id, known.get(thread_id))
            except (ActorError, SessionError) as error:
                logger.warning("thread %s stays as it is: %s", thread_id, error)

    async def _sweep(self, thread_id: str, known: _Swept | None) -> _Swept:
        """A thread's present state at a sweep, given the previous one; its run is put if it waits."""
        assert self.threads.store is not None
        if known is not None and known[1] in ENDS:
            return known
        length = await self.threads.apart(partial(self.threads.store.length, f"{JOURNAL}{thread_id}"))
        if not length:
            return length, "created"
        if known is not None and known[0] == length and known[1] != "processing":
            return known
        thread = await self.threads.apart(partial(self.threads.open, thread_id))
        has_stayed = known is None or known[0] == length
        if thread.view.status == "processing" and has_stayed and thread_id not in self.threads.held:
            await self.put(thread)
        return length, thread.view.status


def _behind(threads: list[Thread]) -> list[Thread]:
    """Return the threads to whose journals others wrote."""
    return [each for each in threads if each.is_behind]


def _finish(thread: Thread, done: dict[str, Any]) -> None:
    """Record that a phase is done; raise PositionTaken if the thread is over or another process runs it."""
    if not thread.is_mine:
        raise PositionTaken(f"thread {thread.thread_id} is over, or is run by another process")
    thread.record("phase_done", done)


def _complete(thread: Thread) -> None:
    """Record that the last phase is done, unless the thread was paused or ended meanwhile."""
    if thread.view.status == "processing":
        thread.record("completed", {})


def _is_interrupted(error: BaseException) -> bool:
    """Return whether an error is the cancellation of the present task from outside."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
