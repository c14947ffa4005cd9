"""ThreadQueue: the interface of queues that distribute threads over processes.

    START, RESUME ─▶ recorded with the name of a run ─▶ queue.put(thread, run) ┄┄▶ perform(thread, run), in one process

A run is a thread's work from its start or resumption until the thread is paused or has ended. A queue stores a run
until `perform` returns, and assigns the run to another process if its process dies. A suspended process may wake up
after its run was assigned to another process, so `perform` calls `is_assigned` before it takes the thread.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

IsAssigned: TypeAlias = Callable[[], Awaitable[bool]]
"""An async function that returns whether a run is still assigned to this process: False if it was stopped or assigned
to another process."""
Perform: TypeAlias = Callable[[str, str, IsAssigned], Awaitable[None]]
"""`perform(thread_id, run, is_assigned)`: run a thread until it is paused or has ended, or another process has its run.
If `perform` is cancelled, the run is unfinished, and another process may continue it."""


class ThreadQueue(Protocol):
    """Distributes the runs of threads over the processes that share a store. Passed to ActorSystem as `queue`.

    `sabir_actors.durable.DurableQueue` implements this protocol. A run is a thread's work from its start or resumption
    until the thread is paused or has ended.
    """

    @property
    def performs(self) -> bool:
        """Whether this process performs runs. False for a process that only creates and controls threads."""

    async def open(self, perform: Perform) -> None:
        """Start the queue. If this process performs runs, call `perform(thread_id, run, is_assigned)` for each run that
        the queue assigns to it.

        Called by ActorSystem when it starts.
        """

    async def put(self, thread_id: str, run: str) -> None:
        """Add a run of a thread to the queue, which assigns the run to a process. A run that was added before is not
        added again.

        `run` is the unique name of the run. Raises sabir.SabirError if the queue cannot be written.
        """

    async def aclose(self) -> None:
        """Assign no more runs to this process, and cancel its present runs, so that another process continues them."""
