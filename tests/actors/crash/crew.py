"""Workers, and the program that asks for threads, each a process of its own on one Postgres.

    ask ── the messages of child.Told, of several threads at once ─▶ journals · queue ◀── work, work, work, work

Files in the folder say what the test wants of them: `enough` (ask for no more threads), `over` (end), and
`hold-<worker>` (the models that this worker asks do not answer yet).
"""

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path

from sabir_actors import ActorSystem, ThreadClient, running
from sabir_actors.durable import DurableQueue
from sabir_session import Store

from tests.actors.crash.child import CHAIN, SECONDS, Fuse, Told, Work, dying, opened

BEAT, POLL, LOOK, SWEEP = 0.1, 0.03, 0.1, 5
"""How often workers look around, in seconds; every so many looks is a sweep."""
AT_ONCE, IN_PROGRESS = 2, 8
"""Threads that a worker takes at once, and those that the program has in progress."""


@dataclass(frozen=True)
class Crew:
    """The processes on one database, which note what they do in one folder."""

    store: str
    folder: Path

    def thread(self, name: str) -> Told:
        return Told(0, self.store, self.folder, name)

    @property
    def own(self) -> Told:
        return self.thread("crew")

    def numbered(self, number: int) -> Told:
        """One of the threads that the program asks for."""
        return self.thread(f"fern-{number}")

    @property
    def begun(self) -> int:
        return max((int(each.stem.split("-")[1]) + 1 for each in self.folder.glob("fern-*.answers")), default=0)

    def file(self, name: str) -> Path:
        """One of the files that say what is wanted, or what is."""
        return self.folder / name

    def numbers(self) -> Iterator[int]:
        """Threads to ask for: those that were begun, then new ones until there are enough."""
        begun = self.begun
        return takewhile(lambda number: number < begun or not self.file("enough").exists(), count())

    def fuse(self, die_at: int | str) -> Fuse:
        """A fuse that notes the point at which the process dies."""
        return Fuse(die_at, lambda name: self.own.note("deaths", name, os.getpid()))


class DyingQueue(DurableQueue):
    """A queue with a point before and after each run that is put."""

    fuse: Fuse

    async def put(self, thread_id: str, run: str) -> None:
        self.fuse.point("before put")
        await super().put(thread_id, run)
        self.fuse.point("after put")


def work(crew: Crew, die_at: int | str, name: str = "worker", beat: float = BEAT) -> None:
    """Work until it is over, or until that point."""
    running.LOOK, running.SWEEP = LOOK, SWEEP
    fuse = crew.fuse(die_at)
    with opened(named(crew.store, name)) as store:
        asyncio.run(_working(crew, fuse, dying(store, fuse), name, beat))
    for point in fuse.passed:
        crew.own.note("points", point)


async def _working(crew: Crew, fuse: Fuse, store: Store, name: str, beat: float) -> None:
    async def sleep(seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
            while crew.file(f"hold-{name}").exists():
                await asyncio.sleep(SECONDS)
        except asyncio.CancelledError:
            crew.own.note("interrupted", name)
            raise

    agents = Work(crew.thread, store, fuse, sleep)
    queue = DurableQueue(named(crew.store, name), at_once=AT_ONCE, beat=beat, poll=POLL)
    async with ActorSystem(
        "scripted:model", store=store, queue=queue, chains=[CHAIN], options=[agents.option],
        adapters=lambda _: agents.model,
    ):  # fmt: skip
        crew.file(f"up-{name}").touch()
        while not crew.file("over").exists():
            await asyncio.sleep(SECONDS)


def ask(crew: Crew, die_at: int | str) -> None:
    """Ask for threads until there are enough, and wait for the end of each."""
    fuse = crew.fuse(die_at)
    with opened(crew.store) as store:
        asyncio.run(_asking(crew, fuse, dying(store, fuse)))


async def _asking(crew: Crew, fuse: Fuse, store: Store) -> None:
    queue = DyingQueue(crew.store, at_once=0)
    queue.fuse = fuse
    async with ActorSystem(store=store, queue=queue, chains=[CHAIN]) as system:
        client, numbers = ThreadClient(system, "client"), crew.numbers()

        async def one_after_another() -> None:
            for number in numbers:
                await _asked(system, client, crew.numbered(number))

        await asyncio.gather(*(one_after_another() for _ in range(IN_PROGRESS)))


async def _asked(system: ActorSystem, client: ThreadClient, told: Told) -> None:
    """One thread, from its creation to its end, if that was not seen before."""
    if told.noted("result"):
        return
    for message in told.messages():
        response = await system.send_message(message)
        told.note("answers", message.id, response.model_dump_json())
        await asyncio.sleep(random.uniform(0, 2 * SECONDS))
    told.note("result", (await client.result(told.thread_id, every=SECONDS)).status)


def named(store: str, name: str) -> str:
    """The URL of a store, whose connections say whose they are."""
    return f"{store}?application_name={name}"
