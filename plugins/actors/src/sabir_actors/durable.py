"""DurableQueue: threads on many machines, handed out by the queues of sabir_runtime.durable (the extra `durable`).

    worker     ActorSystem("provider:model", store=PostgresStore(url), queue=DurableQueue(url))       as many as wanted
    program    ActorSystem(store=PostgresStore(url), queue=DurableQueue(url, at_once=0))              asks, runs nothing

The engine alone decides which worker has a thread: a dead worker loses its threads to others within a few beats. The
journal alone has a thread's state: a worker that wakes after that records nothing.
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
"""How many threads a process takes at once by default."""
APPLICATION = "sabir-threads"
"""The default application of threads' runs, as `sabir runs list` shows it."""


class DurableQueue:
    """Gives runs of threads to the processes that share a store: a ThreadQueue.

    `store` is that of the runs, `postgresql://…` for several machines, `sqlite:///file.db` for processes of one; the
    threads' journals may be in the same database. `at_once` threads are performed by this process at once, one number
    for all of them; 0 by a process that only asks for them. `application` and `version` are as DurableRunner's: threads
    of one version are given to processes of that version. A worker is taken for dead after a few of its `beat` seconds.

    Raises SettingsInvalid for an `at_once` below 0, and what DurableRunner raises.
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
            raise SettingsInvalid(f"at_once={at_once} is no number of threads; give 1 or more, or 0 to perform none")
        self._at_once = at_once
        self._runner = DurableRunner(
            store, application=application, version=version, beat=beat, poll=poll, at_once=at_once or None
        )
        self._runs = Threads(self._runner)

    @property
    def performs(self) -> bool:
        """Whether runs are given to this process too."""
        return self._at_once > 0

    async def open(self, perform: Perform) -> None:
        """Begin to give runs to this process, if it performs any; raises what DurableRunner.launch raises."""
        self._runs.perform, self._runs.loop = perform, asyncio.get_running_loop()
        if self.performs:
            await self._runner.launch()

    async def put(self, thread_id: str, run: str) -> None:
        """Give a run to one of the processes; one that was put before is not put again."""
        await self._runner.submit(self._runs.thread, thread_id, run_id=run, run=run)

    async def aclose(self) -> None:
        """Give no more runs to this process; another process continues its present runs."""
        await self._runner.aclose()


class Threads(BaseContext):
    """The one policy that every run of a thread calls."""

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
    """Perform a thread, whose id is observed, until it is paused or over.

    The engine may call it in its own event loop; actors live in their system's loop. A failing run does not end its
    thread: the run is paused with the reason, and `sabir runs resume` continues it.
    """
    performed = asyncio.run_coroutine_threadsafe(_performed(ctx, observations[-1].text, run), ctx.loop)
    try:
        await asyncio.wrap_future(performed)
    except Exception as error:
        worker = await ctx.runner.launch()
        with suppress(DurableFault):  # it was stopped meanwhile
            await worker.store(worker.runs.pause, run, reason=one_line(str(error)))
        await asyncio.Event().wait()  # the worker sees that it is paused, and cancels this
    return [assistant("performed")]


async def _performed(ctx: Threads, thread_id: str, run: str) -> None:
    await ctx.perform(thread_id, run, holds_run)
