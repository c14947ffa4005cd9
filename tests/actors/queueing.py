"""A queue of runs in memory, and systems that share it and a store, as processes do."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from sabir import SabirError
from sabir_actors import ActorSystem
from sabir_actors.queues import Perform
from sabir_session import Store

from tests.actors.surviving import Model, events_of, started, system_of


class Hall:
    """A queue in memory: what is put waits until a test has one of the processes perform it."""

    def __init__(self) -> None:
        self.put: list[tuple[str, str]] = []
        self.given: dict[str, object] = {}
        """Run → whom it was given to last."""
        self.is_away = False

    def seat(self, *, performs: bool = True) -> "Seat":
        """The queue as one process has it."""
        return Seat(self, performs=performs)


class Seat:
    """A ThreadQueue."""

    def __init__(self, hall: Hall, *, performs: bool) -> None:
        self.hall, self.performs = hall, performs
        self.perform: Perform | None = None
        self.performing: list[asyncio.Future[None]] = []

    async def open(self, perform: Perform) -> None:
        self.perform = perform

    async def put(self, thread_id: str, run: str) -> None:
        if self.hall.is_away:
            raise SabirError("the queue is away")
        if (thread_id, run) not in self.hall.put:
            self.hall.put.append((thread_id, run))

    async def aclose(self) -> None:
        self.perform = None
        for run in self.performing:
            run.cancel()

    def begin(self, number: int = -1) -> "asyncio.Future[None]":
        """Perform a run that was put, the latest if no other is said."""
        assert self.perform is not None
        (thread_id, run), mine = self.hall.put[number], object()
        self.hall.given[run] = mine

        async def is_given() -> bool:
            return self.hall.given[run] is mine

        self.performing.append(asyncio.ensure_future(self.perform(thread_id, run, is_given)))
        return self.performing[-1]


class Processes:
    """Systems that share a store and a queue, each with a model of its own."""

    def __init__(self, store: Store, stack: AsyncExitStack) -> None:
        self.hall, self.store, self._stack = Hall(), store, stack

    async def worker(self, **how: Any) -> tuple[ActorSystem, Seat, Model]:
        """One that performs runs."""
        model, seat = Model(), self.hall.seat()
        return await self._stack.enter_async_context(system_of(model, self.store, queue=seat, **how)), seat, model

    async def asker(self) -> ActorSystem:
        """One that performs none."""
        queue = self.hall.seat(performs=False)
        return await self._stack.enter_async_context(ActorSystem(store=self.store, queue=queue))

    async def at_work(self, system: ActorSystem, seat: Seat, model: Model) -> tuple[str, "asyncio.Future[None]"]:
        """The id of a thread that a process performs, and its run, which waits at the model's gate."""
        gate, thread_id = model.hold(), await started(system)
        run = seat.begin()
        await gate.reached()
        return thread_id, run

    def events(self, thread_id: str) -> list[str]:
        """What happened to a thread."""
        return events_of(self.store, thread_id)

    def length(self, thread_id: str) -> int | None:
        """How many records its journal holds."""
        return self.store.length(f"thread:{thread_id}")
