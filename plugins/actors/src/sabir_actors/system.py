"""The system: a host of actors that has a supervisor and all threads, from its start to its stop.

What an agent may ask with is the system's: a model, options by name, settings, chains of phases, and a store in which
threads outlive the process.
"""

from typing import Self

from sabir_actors.actor import SUPERVISOR, THREADS, ActorHost
from sabir_actors.supervisor import SupervisorActor
from sabir_actors.threads import ThreadActor


class ActorSystem(ActorHost):
    """The actors of one process, and what they have in common; an asynchronous context manager.

    `model` is that of agents whose phase names none, `options` what agents may choose, by name, `settings` hold for
    all. `chains` are known beside the document's. `store` is where threads outlive the process: those that were
    interrupted go on at the start, unless `recovers` is False. `queue` gives threads to the processes that share a
    store, in place of this one (`sabir_actors.durable.DurableQueue`). `adapters` makes the adapter of a model,
    `restarts` says how long a message may take and when an actor is restarted. `observers` are told what happens.
    """

    async def __aenter__(self) -> Self:
        """The system with its supervisor and its threads, of which those that were interrupted go on."""
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
        """The actor of all threads, once the system is at work."""
        found = self.get_actor(THREADS)
        assert isinstance(found, ThreadActor)
        return found
