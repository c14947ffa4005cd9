"""Programs that are killed on the way: one with one thread, and workers with the program that asks for threads.

    run(Told(die_at=7, …)) ── one thread of six phases, in a process of its own; it dies by its own hand at that point
    ask ── the messages of Told, of several threads at once ─▶ journals · queue ◀── work, work, work, work

Points stand before and after each journal write, each question to the model and each run of the option. A program
sends the same five messages whenever it is started, notes what each was answered, and waits for the end of the thread.
Files in a crew's folder say what the test wants of it: `enough` (ask for no more threads), `over` (end), and
`hold-<worker>` (the models that this worker asks do not answer yet).
"""

import asyncio
import json
import os
import random
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any, TypeAlias

import sabir
from sabir import ToolContext
from sabir_actors import AEIOUY_CHAIN, ActorError, ActorSystem, Chain, Message, ThreadClient, ThreadEvent, thread_runs
from sabir_actors.durable import DurableQueue
from sabir_actors.state import thread_id_of
from sabir_session import PostgresStore, SQLiteStore, Store
from sabir_session.stores.journal import StoredJournal
from sabir_testing import Answer, ScriptedAdapter, ScriptedRequest, always, call, delayed, reply

CHAIN = Chain(
    "six",
    [
        replace(each, options=("note",) if each.name in ("action", "understanding") else ())
        for each in AEIOUY_CHAIN.phases
    ],
)
"""The six phases, of which two choose the option."""
QUESTION = "Shall I repot "
"""What each thread is asked, and then its name."""
SECONDS = 0.02
"""How long a model takes, where it takes any time: a worker has several threads in hand then."""
Sleep: TypeAlias = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Told:
    """What a process is told: the point at which it dies, by number (0: nowhere) or by name (the first of it); its
    store; where it notes; and the names of its messages.
    """

    die_at: int | str
    store: str
    folder: Path
    name: str

    @property
    def thread_id(self) -> str:
        return thread_id_of(f"{self.name}-create")

    @property
    def journal(self) -> str:
        return f"thread:{self.thread_id}"

    def messages(self) -> list[Message]:
        thread = {"thread_id": self.thread_id}
        change = {"agent_id": f"{self.thread_id}/yield", "config": {"temperature": 0.5}}
        given = {"user_id": "user1", "initial_input": f"{QUESTION}{self.name}?", "chain": CHAIN.name}
        said = {
            "create": ("CREATE_THREAD", given),
            "start": ("START_THREAD", thread),
            "pause": ("PAUSE_THREAD", thread),
            "configure": ("UPDATE_AGENT_CONFIG", change),
            "resume": ("RESUME_THREAD", thread),
        }
        return [
            Message(id=f"{self.name}-{each}", type=kind, data=data, sender="client", receiver="threads")
            for each, (kind, data) in said.items()
        ]

    def note(self, kind: str, *said: object) -> None:
        with (self.folder / f"{self.name}.{kind}").open("a") as file:
            file.write(json.dumps(said) + "\n")

    def noted(self, kind: str) -> list[list[Any]]:
        path = self.folder / f"{self.name}.{kind}"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Fuse:
    """Counts points, and kills the process at one of them, by number or by name; `dying` is told its name first."""

    def __init__(self, die_at: int | str, dying: Callable[[str], None] = lambda _: None) -> None:
        self.passed: list[str] = []
        self._die_at, self._dying = die_at, dying

    def point(self, name: str) -> None:
        self.passed.append(name)
        if self._die_at in (len(self.passed), name):
            self._dying(name)
            os.kill(os.getpid(), signal.SIGKILL)


class DyingJournal(StoredJournal):
    """A journal with a point before and after each write."""

    fuse: Fuse

    def append(self, kind: str, body: str) -> None:
        is_event = kind == ThreadEvent.stored_as
        what = json.loads(body)["what" if is_event else "role"]
        self.fuse.point(f"before write {what}")
        super().append(kind, body)
        self.fuse.point(f"after write {what}")


def opened(where: str) -> Store:
    """The store of a path, or of a URL of Postgres."""
    return PostgresStore(where) if where.startswith("postgresql:") else SQLiteStore(where)


def dying(store: Store, fuse: Fuse) -> Store:
    """A store whose journals are written to under a fuse."""
    journal_of = store.journal

    def journal(name: str) -> StoredJournal:
        found = journal_of(name)
        made = DyingJournal.__new__(DyingJournal)
        vars(made).update(vars(found), fuse=fuse)
        return made

    store.journal = journal  # type: ignore[method-assign]
    return store


class Work:
    """What agents do for some threads: it notes who asks a model or runs the option, and how long the journal was."""

    def __init__(self, told_of: Callable[[str], Told], store: Store, fuse: Fuse, sleep: Sleep | None = None) -> None:
        self._told_of, self._store, self._fuse, self._sleep = told_of, store, fuse, sleep

    @property
    def model(self) -> ScriptedAdapter:
        """A model that chooses the option where it is offered, then says that the phase is done."""
        return ScriptedAdapter(always(self._answer), sleep=self._sleep)

    @property
    def option(self) -> sabir.Option:

        @sabir.option
        def note(phase: str, thread: str) -> str:
            run = ToolContext.current()
            self._fuse.point("before option")
            self._note("runs", thread, run.idempotency_key, run.is_resume)
            self._fuse.point("after option")
            return f"noted {phase}"

        return note

    def _answer(self, sent: ScriptedRequest) -> Answer:
        phase = sent.messages[0].text.split()[3]  # "You are the action phase."
        thread = next(each.text for each in sent.messages if each.text.startswith(QUESTION))[len(QUESTION) : -1]
        self._fuse.point("before call")
        self._note("asked", thread, phase, bool(sent.results), sent.settings.temperature)
        chosen = sent.option_names and not sent.results
        said = (
            reply(call("note", {"phase": phase, "thread": thread}, id=f"call-{phase}"))
            if chosen
            else reply(f"{phase} is done")
        )
        self._fuse.point("after call")
        return said if self._sleep is None else delayed(said, SECONDS)

    def _note(self, kind: str, thread: str, *said: object) -> None:
        told = self._told_of(thread)
        told.note(kind, *said, os.getpid(), self._store.length(told.journal))


async def program(told: Told, fuse: Fuse, store: Store) -> None:
    """Let the thread go on, of those in the store that alone; send the messages, note the answers, wait for the end."""
    work = Work(lambda _: told, store, fuse)
    async with ActorSystem(
        "scripted:model", store=store, recovers=False, chains=[CHAIN], options=[work.option],
        adapters=lambda _: work.model,
    ) as system:  # fmt: skip
        with suppress(ActorError):  # the first process of a case has no thread yet
            await system.threads.continue_thread(told.thread_id)
        for message in told.messages():
            response = await system.send_message(message)
            told.note("answers", message.id, response.model_dump_json())
        result = await ThreadClient(system, "client").result(told.thread_id)
        told.note("result", result.status)


def run(told: Told) -> None:
    fuse = Fuse(told.die_at)
    with opened(told.store) as store:
        asyncio.run(program(told, fuse, dying(store, fuse)))
    for name in fuse.passed:
        told.note("points", name)


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
        return self.thread(f"fern-{number}")

    @property
    def begun(self) -> int:
        return max((int(each.stem.split("-")[1]) + 1 for each in self.folder.glob("fern-*.answers")), default=0)

    def file(self, name: str) -> Path:
        return self.folder / name

    def numbers(self) -> Iterator[int]:
        """Threads to ask for: those that were begun, then new ones until there are enough."""
        begun = self.begun
        return takewhile(lambda number: number < begun or not self.file("enough").exists(), count())

    def fuse(self, die_at: int | str) -> Fuse:
        return Fuse(die_at, lambda name: self.own.note("deaths", name, os.getpid()))


class DyingQueue(DurableQueue):
    """A queue with a point before and after each run that is put."""

    fuse: Fuse

    async def put(self, thread_id: str, run: str) -> None:
        self.fuse.point("before put")
        await super().put(thread_id, run)
        self.fuse.point("after put")


def work(crew: Crew, die_at: int | str, name: str = "worker", beat: float = BEAT) -> None:
    thread_runs.LOOK, thread_runs.SWEEP = LOOK, SWEEP
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
