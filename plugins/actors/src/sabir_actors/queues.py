"""ThreadQueue: the interface of queues that distribute threads over processes.

    START, RESUME ─▶ recorded with the name of a run ─▶ queue.put(thread, run) ┄┄▶ perform(thread, run), in one process

A run is a thread's work from its start or resumption until the thread is paused or has ended. A queue keeps a run until
`perform` returns, and gives it to another process if its process dies. A process that was suspended may wake up after
its run was given to another process, so it calls `is_given` before it takes the thread.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

IsGiven: TypeAlias = Callable[[], Awaitable[bool]]
"""An async function that returns False once a run was stopped or given to another process."""
Perform: TypeAlias = Callable[[str, str, IsGiven], Awaitable[None]]
"""`perform(thread_id, run, is_given)`: run a thread until it is paused or has ended, or another process has its run.
A cancellation leaves the run unfinished."""


class ThreadQueue(Protocol):
    """Distributes the runs of threads over the processes that share a store. Passed to ActorSystem as `queue`.

    `sabir_actors.durable.DurableQueue` implements this protocol. A run is a thread's work from its start or resumption
    until the thread is paused or has ended.
    """

    @property
    def performs(self) -> bool:
        """True if this process performs runs. False for a process that only creates and controls threads."""

    async def open(self, perform: Perform) -> None:
        """Start. If this process performs runs, call `perform(thread_id, run, is_given)` for each of its runs.

        Called by ActorSystem when it starts.
        """

    async def put(self, thread_id: str, run: str) -> None:
        """Add a run of a thread. Some process then performs it. A run that was added before is not added again.

        `run` is the unique name of the run. Raises sabir.SabirError if the queue cannot be written.
        """

    async def aclose(self) -> None:
        """Stop giving runs to this process. Cancel its present runs, so that another process continues them."""
