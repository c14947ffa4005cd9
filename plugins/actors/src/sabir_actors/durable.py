"""DurableQueue: run threads on several machines, with queues of sabir_runtime.durable. Needs the extra `durable`.

    worker     ActorSystem("provider:model", store=PostgresStore(url), queue=DurableQueue(url))       any number
    program    ActorSystem(store=PostgresStore(url), queue=DurableQueue(url, at_once=0))              runs no threads

Only the queue's engine decides which worker runs a thread: other workers continue the threads of a dead worker within a
few beats. Only the journal has a thread's state: a worker that was suspended and lost a thread cannot write its
records.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from sabir import Message, assistant
from sabir.authoring import one_line
from sabir.errors import SettingsInvalid
from sabir_runtime import BaseContext
from sabir_runtime.durable import DurableFault, DurableRunner, holds_run

from sabir_actors.queues import Perform

if TYPE_CHECKING:
    from sabir_runtime import BoundPolicy

AT_ONCE = 100
"""The default maximum number of threads that a process runs at the same time."""
APPLICATION = "sabir-threads"
"""The default application name of threads' runs, as `sabir runs` shows it."""


class DurableQueue:
    """Distributes threads over the processes that share a store. Passed to ActorSystem as `queue`.

    `store` is the URL of the queue's database: `postgresql://…` for several machines, `sqlite:///file.db` for one
    machine. The threads' journals may be in the same database. `at_once` is the maximum number of threads that this
    process runs at the same time; use the same number in all workers. With 0, the process creates and controls threads,
    but runs no thread. `application`, `version`, `beat` and `poll` (in seconds) are the arguments of
    `sabir_runtime.durable.DurableRunner`: only processes of the same version continue a thread, and a worker counts as
    dead after missing a few beats.

    Raises SettingsInvalid for a negative `at_once`, and the errors of DurableRunner.
    """

    def __init__(
        self,
        store: str,
        *,
        at_once: int = AT_ONCE,
        application: str = APPLICATION,
        version: str = "1",
        beat: float = 1.0,
        poll: float = 0.2,
    ) -> None:
        if at_once < 0:
            raise SettingsInvalid(f"at_once={at_once} is not a valid limit; pass 1 or more, or 0 to run no threads")
        self._at_once = at_once
        self._runner = DurableRunner(
            store, application=application, version=version, beat=beat, poll=poll, at_once=at_once or None
        )
        self._runs = Threads(self._runner)

    @property
    def performs(self) -> bool:
        """Whether this process runs threads: True if `at_once` is not 0."""
        return self._at_once > 0

    async def open(self, perform: Perform) -> None:
        """Start the queue's worker, if this process runs threads. The worker calls `perform` for each run of a thread.

        Called by ActorSystem when it starts. Raises the errors of `DurableRunner.launch`.
        """
        self._runs.perform, self._runs.loop = perform, asyncio.get_running_loop()
        if self.performs:
            await self._runner.launch()

    async def put(self, thread_id: str, run: str) -> None:
        """Add a run of a thread to the queue, under the unique name `run`. Adding it twice has no effect.

        Called by ActorSystem. Raises the errors of `DurableRunner.submit`.
        """
        await self._runner.submit(self._runs.thread, thread_id, run_id=run, run=run)

    async def aclose(self) -> None:
        """Close the queue in this process, and stop its worker unless another DurableRunner of the process is open.
        Another worker, or the next start, continues the unfinished runs.
        """
        await self._runner.aclose()


class Threads(BaseContext):
    """The context of the policy `_thread`, which performs each run of a thread."""

    stored_as: ClassVar[str] = "Threads"

    thread: "BoundPolicy"
    perform: Perform
    loop: asyncio.AbstractEventLoop

    def __init__(self, runner: DurableRunner) -> None:
        super().__init__(runner)
        self.runner = runner
        self.thread = self._bind(_thread)


async def _thread(
    ctx: Threads, observations: list[Message], options: list[str] | None = None, *, run: str
) -> list[Message]:
    """Run the thread whose id is the last observation, until the thread is paused or has ended. `run` is the run's
    name.

    The work is done in the system's event loop, because actors need it and the engine may use another. If the run
    fails, the run is paused with the reason, and `sabir runs resume` continues the run. The thread does not fail.
    """
    future = asyncio.run_coroutine_threadsafe(_perform_in_loop(ctx, observations[-1].text, run), ctx.loop)
    try:
        await asyncio.wrap_future(future)
    except Exception as error:
        worker = await ctx.runner.launch()
        with suppress(DurableFault):  # the run was stopped meanwhile
            await worker.store(worker.runs.pause, run, reason=one_line(str(error)))
        await asyncio.Event().wait()  # the worker sees that the run is paused, and cancels this function
    return [assistant("performed")]


async def _perform_in_loop(ctx: Threads, thread_id: str, run: str) -> None:
    await ctx.perform(thread_id, run, holds_run)
