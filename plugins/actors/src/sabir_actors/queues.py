"""Queues of threads: a thread runs in this process, or in a process chosen by a queue.

    START, RESUME ─▶ recorded with the name of a run ─▶ queue.put(thread, run) ┄┄▶ perform(thread, run), in one of them

A run is a thread's work from its start or its resumption until it is paused or over. A queue keeps it until `perform`
returns, and gives it to another process if its process died. A process may be suspended, and continue a run that was
given to another since: so it asks before it takes the thread.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

IsGiven: TypeAlias = Callable[[], Awaitable[bool]]
"""Whether a run still belongs to the process that performs it: False once it was given to another, or stopped."""
Perform: TypeAlias = Callable[[str, str, IsGiven], Awaitable[None]]
"""`perform(thread_id, run, is_given)`: perform a thread until it is paused or over, or the run is given to another;
cancelled, it leaves the run unfinished."""


class ThreadQueue(Protocol):
    """Gives runs of threads to processes; `sabir_actors.durable.DurableQueue` is one."""

    @property
    def performs(self) -> bool:
        """Whether runs are given to this process too."""

    async def open(self, perform: Perform) -> None:
        """Begin to give runs to this process, if it performs any."""

    async def put(self, thread_id: str, run: str) -> None:
        """Give a run to one of the processes; one that was put before is not put again.

        Raises sabir.SabirError where the queue cannot be written.
        """

    async def aclose(self) -> None:
        """Give no more runs to this process; those that it performs are cancelled, and given to another."""
