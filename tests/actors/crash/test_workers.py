"""Several workers and one asking program on one Postgres: killed at any moment, stopped, cut off; threads go on.

    ask ─▶ journals · queue ◀─ work · work · work · work       one dies ─▶ another is started, at once or later

The laws of laws.py hold for each thread, and one of several workers: what was asked or run again had been begun by a
worker that was killed.
"""

import asyncio
import os
import random
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sabir_actors import AEIOUY, ActorSystem, ErrorResponse, ThreadClient
from sabir_actors.durable import DurableQueue

from tests import processes
from tests.actors.crash.laws import Recorded, check_laws, said_by_agents
from tests.actors.crash.programs import CHAIN, Crew, Told, ask, opened, work
from tests.actors.crash.test_kill_matrix import KILLED, PROCESSES, WHOLE
from tests.servers.postgres import database, new_database, postgres

__all__ = ["database", "postgres"]  # fixtures

WORKERS = 4
SHORT = ("after write phase_done", "after option", 60, 30, 3)
"""Points at which workers die in the short form: the first of that name, or of that number."""
PATIENCE = 60
"""Seconds after which a process that should die or end is taken to hang."""
SLOW = 1.5
"""Seconds between the beats of a worker that has time to come back before it is taken for dead."""
LATE = 600.0
"""Seconds between the beats of a worker that is to lose its thread: it does not come back in time."""


class Staff:
    """The processes of a crew, and who of them was killed."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.living: dict[BaseProcess, Callable[..., None]] = {}
        self.killed: list[int | None] = []

    def start(self, target: Callable[..., None], die_at: int | str = 0, *more: object) -> BaseProcess:
        process = PROCESSES.Process(target=target, args=(self.crew, die_at, *more))
        processes.start(process)
        self.living[process] = target
        return process

    def dead(self) -> list[Callable[..., None]]:
        """What those were at that died by now; waits for one."""
        sentinels = {each.sentinel: each for each in self.living}
        found = [sentinels[each] for each in wait([*sentinels], PATIENCE) if isinstance(each, int)]
        assert found, "nobody dies"
        return [self.bury(each, processes.exit_code_of(each, PATIENCE)) for each in found]

    def kill(self, process: BaseProcess) -> Callable[..., None]:
        return self.bury(process, processes.kill(process))

    def bury(self, process: BaseProcess, exit_code: int | None) -> Callable[..., None]:
        """Count a process that was killed; what it was at."""
        assert exit_code == KILLED
        self.killed.append(process.pid)
        return self.living.pop(process)

    def end(self, target: Callable[..., None]) -> None:
        """Wait until all of these have ended, by themselves and without an error."""
        for process in [each for each, at in self.living.items() if at is target]:
            assert processes.exit_code_of(process, PATIENCE) == 0
            del self.living[process]


@contextmanager
def staff(crew: Crew) -> Iterator[Staff]:
    """Processes of a crew; at the end no more threads are asked for, all of them end, and so do the workers."""
    made = Staff(crew)
    try:
        yield made
        crew.file("enough").touch()
        made.end(ask)
        crew.file("over").touch()
        made.end(work)
    finally:
        for process in made.living:
            processes.kill(process)


def check_repeats(told: Told, killed: Iterable[int | None]) -> None:
    """Whatever was asked or run again had been begun by a worker that was killed."""
    begun: dict[Hashable, list[int]] = defaultdict(list)
    for phase, has_results, _, process, _ in told.noted("asked"):
        begun[phase, has_results].append(process)
    for key, _, process, _ in told.noted("runs"):
        begun[key].append(process)
    again = [(what, process) for what, each in begun.items() for process in each[:-1] if process not in set(killed)]
    assert again == [], Recorded(told).happened


def check_threads(crew: Crew, killed: Iterable[int | None], whole: Any) -> None:
    assert crew.begun
    for number in range(crew.begun):
        told = crew.numbered(number)
        check_laws(told, whole)
        check_repeats(told, killed)


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory, postgres: str) -> tuple[Any, set[str]]:
    """What agents say of a thread that nothing interrupts, and the names of the points that workers pass."""
    crew = Crew(new_database(postgres), tmp_path_factory.mktemp("unharmed"))
    with staff(crew) as made:
        made.start(work)
        made.start(ask)
        while not crew.begun:
            wait([], 0.05)
    check_threads(crew, (), said := said_by_agents(crew.numbered(0)))
    return said, {name for (name,) in crew.own.noted("points")}


def test_threads_outlive_their_processes(tmp_path: Path, database: str, unharmed: tuple[Any, set[str]]) -> None:
    """These die at points that they count to, then workers at random instants; another is started, or not at once."""
    # CH-17, CH-43, CH-46
    whole, names = unharmed
    chosen = random.Random(1)
    points: list[int | str] = [*range(1, 151), *range(1, 151), *sorted(names)] if WHOLE else [*SHORT]
    asked: list[int | str] = [13]
    if WHOLE:
        asked = [*(chosen.randint(1, 90) for _ in range(40)), "before put", "after put", "after write started"]
    chosen.shuffle(points)
    kills = len(points) + len(asked)
    crew = Crew(database, tmp_path)
    with staff(crew) as made:
        at = {work: points, ask: asked}
        for each in [*[work] * WORKERS, ask]:
            made.start(each, at[each].pop())
        vacant: list[Callable[..., None]] = []
        while len(made.killed) < kills:
            vacant += made.dead()
            if len(made.killed) % 3 or len(vacant) > 1 or ask in vacant or not points:
                for each in vacant:
                    made.start(each, at[each].pop() if at[each] else 0)
                vacant.clear()
        while len(made.killed) < kills + (150 if WHOLE else 3):
            workers = [each for each, at_ in made.living.items() if at_ is work]
            for _ in range(WORKERS - len(workers) if chosen.random() < 0.7 or len(workers) < 2 else 0):
                made.start(work)
            wait([], chosen.uniform(0.1, 2.0))
            made.kill(chosen.choice([each for each, at_ in made.living.items() if at_ is work]))
        made.start(work)
    check_threads(crew, made.killed, whole)


class Asking:
    def __init__(self, crew: Crew, system: ActorSystem, name: str = "one") -> None:
        self.crew, self.system, self.told = crew, system, crew.thread(name)
        self.messages = {each.type.partition("_")[0].lower(): each for each in self.told.messages()}

    async def send(self, *kinds: str) -> None:
        for kind in kinds:
            response = await self.system.send_message(self.messages[kind])
            assert not isinstance(response, ErrorResponse), response

    @property
    def happened(self) -> list[str]:
        return Recorded(self.told).happened

    @property
    def length(self) -> int:
        return len(Recorded(self.told).lines)

    async def ends(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return (await ThreadClient(self.system).result(self.told.thread_id, every=0.05)).status

    def asked_by(self, worker: BaseProcess) -> list[str]:
        """The phases that a worker asked models for, each as often as it did."""
        return [phase for phase, _, _, process, _ in self.told.noted("asked") if process == worker.pid]


@asynccontextmanager
async def asking(crew: Crew) -> AsyncIterator[Asking]:
    with opened(crew.store) as store:
        async with ActorSystem(store=store, queue=DurableQueue(crew.store, at_once=0), chains=[CHAIN]) as system:
            yield Asking(crew, system)


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.02)


def seen_at(crew: Crew, worker: BaseProcess) -> float:
    """When a worker had its lock last, by the server's clock."""
    with psycopg.connect(crew.store) as connection:
        row = connection.execute("SELECT seen_at FROM sabir_workers WHERE process = %s", (worker.pid,)).fetchone()
    assert row is not None
    return float(row[0])


def cut(crew: Crew, worker: str) -> None:
    """End the server's side of all connections of a worker."""
    with psycopg.connect(crew.store) as connection:
        found = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        assert len(connection.execute(found, (worker,)).fetchall()) >= 3


@asynccontextmanager
async def in_phase(crew: Crew, *beat: float) -> AsyncIterator[tuple[Asking, Staff, BaseProcess]]:
    """The program that asks, the staff, and its worker "first", which is held in the first phase of a thread."""
    crew.file("hold-first").touch()
    with staff(crew) as made:
        first = made.start(work, 0, "first", *beat)
        async with asking(crew) as program:
            await program.send("create", "start")
            await until(lambda: program.asked_by(first))
            yield program, made, first


async def second_worker(made: Staff, *beat: float) -> BaseProcess:
    found = made.start(work, 0, "second", *beat)
    await until(made.crew.file("up-second").exists)
    return found


async def test_a_worker_that_wakes_records_nothing_of_the_thread_that_it_lost(tmp_path: Path, database: str) -> None:
    """Stopped in a phase, and its connections gone; it wakes when another has done it all, and serves new ones."""
    crew = Crew(database, tmp_path)
    async with in_phase(crew) as (program, made, first):
        second = await second_worker(made)
        os.kill(first.pid or 0, signal.SIGSTOP)
        cut(crew, "first")
        assert await program.ends() == "completed"
        length, by_first = program.length, program.asked_by(first)
        assert program.happened == ["created", "started", "taken", "taken", *AEIOUY, "completed"]

        crew.file("hold-first").unlink()
        os.kill(first.pid or 0, signal.SIGCONT)
        made.kill(second)
        other = Asking(crew, program.system, "other")
        await other.send("create", "start")
        assert await other.ends() == "completed" and set(other.asked_by(first)) == set(AEIOUY)
        assert (program.length, program.asked_by(first)) == (length, by_first)
    assert by_first == ["action"]
    check_repeats(program.told, [first.pid])


async def test_a_worker_that_was_cut_off_while_it_lives_makes_no_second_copy(tmp_path: Path, database: str) -> None:
    """It is taken for dead in a phase, which is given up; whoever is given the thread anew, itself maybe, ends it."""
    crew = Crew(database, tmp_path)
    async with in_phase(crew, LATE) as (program, made, first):
        await second_worker(made)
        cut(crew, "first")
        await until(lambda: bool(crew.own.noted("interrupted")))
        crew.file("hold-first").unlink()
        assert await program.ends() == "completed"
        assert [each for each in program.happened if each in {*AEIOUY, "completed"}] == [*AEIOUY, "completed"]
    check_repeats(program.told, [first.pid])


async def test_a_worker_that_is_cut_off_and_is_back_soon_goes_on_alone(tmp_path: Path, database: str) -> None:
    """It takes its lock again before others take it for dead: no second copy of the phase begins."""
    crew = Crew(database, tmp_path)
    async with in_phase(crew, SLOW) as (program, made, first):
        second = await second_worker(made, SLOW)
        cut(crew, "first")
        before = seen_at(crew, first)
        await until(lambda: seen_at(crew, first) > before)
        crew.file("hold-first").unlink()
        assert await program.ends() == "completed"
        assert set(program.asked_by(first)) == set(AEIOUY) and program.asked_by(second) == []
        assert [each for each in program.happened if each in AEIOUY] == list(AEIOUY)
