"""sabir's actors and threads in one process, beside two queues of asyncio and the journal's own rows.

A model is ready with its answer: a phase costs what sabir makes of it, and nothing of a provider's request is among it.
"""

import asyncio
import gc
import json
import statistics
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from sys import intern
from typing import Any

from sabir import Reply
from sabir_actors import Actor, ActorSystem, Chain, Message, Phase, Response, ThreadClient
from sabir_actors.actor import REMEMBERED
from sabir_actors.state import ThreadEvent
from sabir_session import SQLiteStore, Store
from sabir_testing import ScriptedAdapter

from benchmarks import answers, work
from benchmarks.contenders.doing import Contender, awaiting
from benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}", "{testing}", "{actors}")
MODEL, USER, ASKED = "scripted:model", "user", "Do I need an umbrella?"
SAID = {"input": ASKED, "context": {"user_id": USER}}
ANSWERED = {"result": {"response": answers.reply_text(), "confidence": 0.9, "tool_calls": []}, "processing_time": 0.5}
PAUSED = "paused, SQLite"
"""The place of threads that wait in a store."""


class Ready(ScriptedAdapter):
    """Gives one ready reply to every request, some seconds after it; `asked` has the first word of each."""

    def __init__(self, least: float = 0.0, most: float = 0.0) -> None:
        text = json.dumps({"response": answers.reply_text(), "confidence": 0.9})
        super().__init__(text)
        self._reply = super().complete_sync("Ready?")
        self._least, self._span = least, most - least
        self.asked: list[str] = []

    async def complete(self, messages: Any, **how: Any) -> Reply:
        """The reply; how long each request waits for it is spread evenly, and the same each time."""
        self.asked.append(intern(messages[0].text.partition(" ")[0]))
        await asyncio.sleep(self._least + self._span * (len(self.asked) * 0.618 % 1))
        return self._reply


def system_of(model: Ready, store: Store | None = None, **how: Any) -> ActorSystem:
    return ActorSystem(MODEL, store=store, adapters=lambda _: model, **how)


def short_chain(count: int) -> Chain:
    """A chain of so many phases; what a phase is told begins with its name."""
    return Chain("short", [Phase(f"phase{number}", f"phase{number}") for number in range(count)])


def request() -> Message:
    """What an actor is asked, made anew as every sender does."""
    return Message(type="PROCESS_WITH_AGENT", data=SAID, sender="client", receiver="desk")


class EvaluationIO(Actor):
    async def on_process_with_agent(self, message: Message) -> dict[str, Any]:
        return ANSWERED


def message(given: Given) -> Callable[[], Any]:
    system = ActorSystem()
    system.add(EvaluationIO("desk", system))
    return awaiting(lambda: system.send_message(request()))


class Queues:
    """A task that takes requests from one queue, and puts responses into another: sabir's models, made once each."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[Message] = asyncio.Queue()
        self.responses: asyncio.Queue[Response] = asyncio.Queue()
        self.serving: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        while True:
            message = await self.requests.get()
            said: dict[str, Any] = {"sender": message.receiver, "receiver": message.sender, "message_id": message.id}
            self.responses.put_nowait(Response(type="AGENT_RESPONSE", data=ANSWERED, **said))

    async def ask(self) -> Response:
        self.serving = self.serving or asyncio.ensure_future(self.serve())
        self.requests.put_nowait(request())
        return await self.responses.get()


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
        self.thread_id = self.runner.run(self.client.create(USER, ASKED))

    def __call__(self) -> "Phases":
        self.runner.run(self.finished())
        return self

    async def finished(self) -> None:
        """The thread is over, and the client was told."""
        await self.client.start(self.thread_id)
        await self.client.result(self.thread_id)

    def evidence(self) -> dict[str, Any]:
        outputs = self.system.threads.view(self.thread_id).outputs
        return {"phases": list(outputs), "text": outputs[work.PHASES[-1]].response}

    def rows(self) -> list[tuple[str, str]]:
        return list(self.store.journal(f"thread:{self.thread_id}").read())

    def close(self) -> None:
        self.runner.run(self.system.stop())
        self.runner.close()
        if self.store is not None:
            self.store.close()
        self.folder.cleanup()


class Rows:
    """What is timed: all rows of such a thread but its first, appended to a journal as they are, each by itself."""

    units = len(work.PHASES)

    def __init__(self, given: Given) -> None:
        if given.wire != "SQLite":
            raise ValueError("there are no rows")
        phases = Phases(given)
        phases.renew()
        self.first, *self.others = phases().rows()
        phases.close()
        self.folder = tempfile.TemporaryDirectory()
        self.store = SQLiteStore(Path(self.folder.name, "threads.db"))
        self.count = 0

    def renew(self) -> None:
        self.count += 1
        self.journal = self.store.journal(f"thread {self.count}")
        self.journal.append(*self.first)

    def __call__(self) -> "Rows":
        append = self.journal.append
        for kind, body in self.others:
            append(kind, body)
        return self

    def evidence(self) -> dict[str, Any]:
        """Return the phases that the journal records as done, and the text of the last one."""
        event_kind = ThreadEvent.stored_as
        events = [json.loads(body) for kind, body in self.journal.read() if kind == event_kind]
        done = [each["data"] for each in events if each["what"] == "phase_done"]
        return {"phases": [each["phase_type"] for each in done], "text": done[-1]["output"]["response"]}

    def close(self) -> None:
        self.store.close()
        self.folder.cleanup()


LEAST, MOST, CHAIN = 2.0, 6.0, short_chain(3)
"""Seconds that a model takes for its reply, and the phases of a thread that asks it."""
EVERY = 0.01
"""Seconds between a heartbeat and the next."""


class Beats:
    """Heartbeats of the actor of all threads: while all threads are in progress, and before they are started."""

    def __init__(self, given: Given) -> None:
        self.units = given.size

    def __call__(self) -> dict[str, Any]:
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


async def held(given: Given) -> dict[str, Any]:
    """Bytes that so many threads add where as many were before them as an actor remembers answers for.

    They wait: created and never started, or paused, with a store.
    """
    with tempfile.TemporaryDirectory() as folder:
        is_paused = given.wire == PAUSED
        with SQLiteStore(Path(folder, "threads.db")) if is_paused else nullcontext() as store:
            return await _held(given.size, store)


async def _held(size: int, store: Store | None) -> dict[str, Any]:
    async with system_of(Ready(), store) as system:
        client, runs = ThreadClient(system), system.threads.threads.running
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


EVIDENCE: dict[str, Callable[[Given, Any], object]] = {
    "actor_message": lambda given, response: response.data["result"]["response"],
    "actor_phase": lambda given, phases: phases.evidence(),
    "actor_heartbeat": progress,
}
OWN_TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {
    "actor_message": message, "actor_phase": Phases, "actor_heartbeat": Beats,
    "actor_memory": lambda given: lambda: asyncio.run(held(given)),
}  # fmt: skip
CONTENDERS = {
    "sabir_actors": Contender(OWN_TASKS, EVIDENCE),
    "bare_queues": Contender({"actor_message": lambda given: awaiting(Queues().ask)}, EVIDENCE),
    "bare_records": Contender({"actor_phase": Rows}, EVIDENCE),
}
