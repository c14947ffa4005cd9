"""The system: a host of actors with a supervisor and all threads, from its start to its stop.

Agents use the system's resources: a model, options by name, settings, chains of phases, and a store in which threads
outlive the process.
"""

from typing import Self

from sabir_actors.actor import THREADS, ActorHost
from sabir_actors.resources import SUPERVISOR
from sabir_actors.supervisor import SupervisorActor
from sabir_actors.threads import ThreadActor


class ActorSystem(ActorHost):
    """The actors of one process, and their shared resources; an asynchronous context manager.

    `model` is for agents whose phase names no model, `options` are what agents may choose, by name, `settings` apply to
    all. `chains` are added to AEIOUY_CHAIN. `store` keeps threads beyond the process: interrupted ones continue at the
    start, unless `recovers` is False. `queue` gives threads to the processes that share a
    store, in place of this one (`sabir_actors.durable.DurableQueue`). `adapters` makes the adapter of a model,
    `restarts` says how long a message may take and when an actor is restarted. `observers` are told what happens.
    """

    async def __aenter__(self) -> Self:
        """Start the supervisor and the threads; interrupted threads continue."""
        threads = ThreadActor(THREADS, self, self.store)
        self.add(SupervisorActor(SUPERVISOR, self))
        self.add(threads)
        try:
            if self.queue is not None:
                await self.queue.open(threads.runs.perform)
                if self.queue.performs:
                    await threads.runs.sweep()
                    threads.runs.look()
            elif self.recovers:
                await threads.recover()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop every actor."""
        await self.stop()

    @property
    def threads(self) -> ThreadActor:
        """The actor of all threads, once the system is started."""
        found = self.get_actor(THREADS)
        assert isinstance(found, ThreadActor)
        return found
