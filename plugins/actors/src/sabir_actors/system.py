"""ActorSystem: the actors of one process, with a supervisor, the threads, and the resources that the actors share.

The resources are a model, options by name, settings, chains of phases, and a store in which threads survive the
process.
"""

from typing import Self

from sabir_actors.actor import THREADS, ActorHost
from sabir_actors.resources import SUPERVISOR
from sabir_actors.supervisor import SupervisorActor
from sabir_actors.thread_actor import ThreadActor


class ActorSystem(ActorHost):
    """The actors of one process and the resources that they share. Use it as an async context manager.

    `model` is a model string for the agents of phases without a model. `options` are functions or Options that a phase
    can allow its agent to call, by name. `settings` apply to all agents, if an agent's own configuration does not set
    them. `chains` are further chains of phases next to AEIOUY_CHAIN. `store` (a store of sabir_session) records
    threads; without a store, threads are lost at the end of the block. The store is not closed. Without a queue,
    entering the block continues all threads in the store that are processing, even if another process runs them, unless
    `recovers` is False.

    `queue` distributes threads over all processes that share the store, see `sabir_actors.durable.DurableQueue`.
    `restarts` is the RestartPolicy, with limits for times and restarts. `adapters` is called with a model string and
    returns the adapter, by default `sabir.adapter`. `trace`, `watch` and `spans` are functions that observe messages
    and events: `trace(message)`, also called with responses, `watch(message, event)`, and `spans(message)`, which
    returns a context manager.

    Raises ActorError (INVALID_CONFIG) for a queue without a store, and OptionInvalid for a wrong option.

    >>> import asyncio
    >>> from sabir_actors import ActorSystem, Message
    >>> async def main():
    ...     async with ActorSystem("echo:m") as system:
    ...         response = await system.send_message(Message(type="HEARTBEAT", receiver="supervisor"))
    ...         return response.type, system.actors()
    >>> asyncio.run(main())
    ('HEARTBEAT_RESPONSE', ('supervisor', 'threads'))
    """

    async def __aenter__(self) -> Self:
        """Start the supervisor and the actor of all threads. Start the queue. Without a queue, continue the
        threads in the store that are processing, unless `recovers` is False.

        Raises sabir_session.SessionError if the store cannot be read, and the errors of the queue; everything is
        stopped then.
        """
        threads = ThreadActor(THREADS, self, self.store)
        self.add(SupervisorActor(SUPERVISOR, self))
        self.add(threads)
        try:
            if self.queue is not None:
                await self.queue.open(threads.runs.perform)
                if self.queue.performs:
                    await threads.runs.sweep()
                    threads.runs.start_checking()
            elif self.recovers:
                await threads.recover()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all actors and interrupt running threads. Threads without a store are lost; threads in a store can
        continue later.
        """
        await self.stop()

    @property
    def threads(self) -> ThreadActor:
        """The actor of all threads. Raises ActorError (UNKNOWN_ACTOR) outside of the `async with` block."""
        thread_actor = self.get_actor(THREADS)
        assert isinstance(thread_actor, ThreadActor)
        return thread_actor
