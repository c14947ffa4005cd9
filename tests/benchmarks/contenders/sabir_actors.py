"""sabir's actors and threads, in one process."""

import asyncio
import gc
import statistics
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from sabir_actors import Actor, ActorSystem, Message, ThreadClient
from sabir_actors.actor import REMEMBERED
from sabir_session import SQLiteStore, Store

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import awaiting
from tests.benchmarks.contenders.threads import ANSWERED, ASKED, USER, Ready, request, short_chain, system_of
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}", "{testing}", "{actors}")
PAUSED = "paused, SQLite"
"""The place of threads that wait in a store."""


class EvaluationIO(Actor):
    """An actor that has its answer ready."""

    async def on_process_with_agent(self, message: Message) -> dict[str, Any]:
        """The answer."""
        return ANSWERED


def message(given: Given) -> Callable[[], Any]:
    """A request to an actor, and its response."""
    system = ActorSystem()
    system.add(EvaluationIO("desk", system))
    return awaiting(lambda: system.send_message(request()))


class Phases:
    """What is timed: a thread that was created goes through all its phases."""

    units = len(work.PHASES)

    def __init__(self, given: Given) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name, "threads.db")
        self.store = SQLiteStore(path) if given.wire == "SQLite" else None
        self.runner = asyncio.Runner()
        self.system = system_of(Ready(), self.store)
        self.runner.run(self.system.__aenter__())
        self.client = ThreadClient(self.system)

    def renew(self) -> None:
        """Create it."""
        self.thread_id = self.runner.run(self.client.create(USER, ASKED))

    def __call__(self) -> "Phases":
        """Start it, and await its result."""
        self.runner.run(self.finished())
        return self

    async def finished(self) -> None:
        """The thread is over, and the client was told."""
        await self.client.start(self.thread_id)
        await self.client.result(self.thread_id)

    def rows(self) -> list[tuple[str, str]]:
        """What its journal holds."""
        assert self.store is not None
        return list(self.store.journal(f"thread:{self.thread_id}").read())

    def close(self) -> None:
        """Stop the system, and delete what it wrote."""
        self.runner.run(self.system.stop())
        self.runner.close()
        if self.store is not None:
            self.store.close()
        self.folder.cleanup()


def done(given: Given, phases: Phases) -> dict[str, Any]:
    """The phases that were done, and what the last one came to."""
    outputs = phases.system.threads.view(phases.thread_id).outputs
    return {"phases": list(outputs), "text": outputs[work.PHASES[-1]].response}


LEAST, MOST, CHAIN = 2.0, 6.0, short_chain(3)
"""Seconds that a model takes for its reply, and the phases of a thread that asks it."""
EVERY = 0.01
"""Seconds between a heartbeat and the next."""


class Beats:
    """Heartbeats of the actor of all threads: while all threads are in progress, and before they are started."""

    def __init__(self, given: Given) -> None:
        self.units = given.size

    def __call__(self) -> dict[str, Any]:
        """All threads, from their start to their end."""
        return asyncio.run(self.all())

    async def all(self) -> dict[str, Any]:
        """The threads go through their phases; heartbeats go on until the last has ended."""
        model = Ready(LEAST, MOST)
        async with system_of(model, chains=[CHAIN]) as system:
            client = ThreadClient(system)
            made = [await client.create(USER, ASKED, chain=CHAIN.name) for _ in range(self.units)]
            alone = [await beat(system) for _ in range(100)]
            await asyncio.gather(*map(client.start, made))
            view = system.threads.view
            together = sum(view(each).status == "processing" for each in made)
            meanwhile = []
            while any(view(each).status == "processing" for each in made):
                meanwhile.append(await beat(system))
            results = [await client.result(each) for each in made]
        figures = {"alone": statistics.median(alone), "median": statistics.median(meanwhile)}
        figures["p99"] = statistics.quantiles(meanwhile, n=100)[98]
        return {"figures": figures, "together": together, "asked": model.asked, "results": results}


async def beat(system: ActorSystem) -> int:
    """Nanoseconds until a heartbeat is answered, some time after the last one."""
    await asyncio.sleep(EVERY)
    asked = Message(type="HEARTBEAT", sender="client", receiver="threads")
    begun = time.perf_counter_ns()
    response = await system.send_message(asked)
    taken = time.perf_counter_ns() - begun
    assert response.data["status"] == "alive"
    return taken


def progress(given: Given, found: dict[str, Any]) -> dict[str, Any]:
    """How many threads were in progress together and ended well, how often each phase asked.

    "begun" says how many had begun before the first of all asked for its last phase.
    """
    asked, (first, *_, last) = found["asked"], CHAIN.names
    return {
        "together": found["together"],
        "completed": sum(each.status == "completed" for each in found["results"]),
        "phases": sorted(Counter(asked).values()),
        "begun": asked[: asked.index(last)].count(first),
    }


def memory(given: Given) -> Callable[[], Any]:
    """What a process holds of threads that wait: created and never started, or paused, with a store."""
    return lambda: asyncio.run(held(given))


async def held(given: Given) -> dict[str, Any]:
    """Bytes that so many threads add where as many were before them as an actor remembers answers for."""
    with tempfile.TemporaryDirectory() as folder:
        is_paused = given.wire == PAUSED
        opened = SQLiteStore(Path(folder, "threads.db")) if is_paused else nullcontext()
        with opened as store:
            return await _held(given.size, store)


async def _held(size: int, store: Store | None) -> dict[str, Any]:
    async with system_of(Ready(), store) as system:
        client, runs = ThreadClient(system), system.threads.threads.held
        made: list[str] = []

        async def wait(count: int) -> None:
            for _ in range(count):
                made.append(await client.create(USER, ASKED))
                if store is not None:
                    await client.start(made[-1])
                    await client.pause(made[-1])
            while store is not None and runs:
                await asyncio.sleep(0.01)
            gc.collect()

        tracemalloc.start()
        await wait(REMEMBERED)
        before = tracemalloc.get_traced_memory()[0]
        await wait(size)
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return {"held": taken, "states": Counter(system.threads.view(each).status for each in made[-size:])}


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {
    "actor_message": message, "actor_phase": Phases, "actor_heartbeat": Beats, "actor_memory": memory,
}  # fmt: skip
EVIDENCE: dict[str, Callable[[Given, Any], object]] = {
    "actor_message": lambda given, response: response.data["result"]["response"],
    "actor_phase": done,
    "actor_heartbeat": progress,
}
