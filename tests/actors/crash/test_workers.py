"""Several workers and one asking program on one Postgres: killed at any moment, stopped, cut off; threads go on.

    ask ─▶ journals · queue ◀─ work · work · work · work       one dies ─▶ another is started, at once or later

The laws of laws.py hold for each thread, and one of several workers: what was asked or run again had been begun by a
worker that was killed.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests import processes
from tests.actors.crash.child import Told
from tests.actors.crash.crew import Crew, ask, work
from tests.actors.crash.laws import check_laws, said_by_agents
from tests.actors.crash.test_kill_matrix import KILLED, PROCESSES, WHOLE
from tests.servers.postgres import database, new_database, postgres

__all__ = ["database", "postgres"]  # fixtures

WORKERS = 4
PATIENCE = 60
"""Seconds after which a process that should die or end is taken to hang."""


class Staff:
    """The processes of a crew, and who of them was killed."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.living: dict[BaseProcess, Callable[..., None]] = {}
        self.killed: list[int | None] = []

    def start(self, target: Callable[..., None], die_at: int = 0, *more: object) -> BaseProcess:
        """Start a process."""
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
        """Kill a process; what it was at."""
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
    begun = defaultdict(list)
    for phase, has_results, _, process in told.noted("asked"):
        begun[phase, has_results].append(process)
    for key, _, _, process in told.noted("runs"):
        begun[key].append(process)
    assert {process for each in begun.values() for process in each[:-1]} <= set(killed)


def check_threads(crew: Crew, killed: Iterable[int | None], whole: Any) -> None:
    """The laws, of each thread."""
    assert crew.begun
    for number in range(crew.begun):
        told = crew.numbered(number)
        check_laws(told, whole)
        check_repeats(told, killed)


def unharmed(folder: Path, database: str) -> tuple[Any, set[str]]:
    """What agents say of a thread that nothing interrupts, and the names of the points that workers pass."""
    folder.mkdir()
    crew = Crew(database, folder)
    with staff(crew) as made:
        made.start(work)
        made.start(ask)
        while not crew.begun:
            wait([], 0.05)
    check_threads(crew, (), said := said_by_agents(crew.numbered(0)))
    return said, {name for (name,) in crew.own.noted("points")}


def test_threads_end_though_workers_and_the_program_are_killed_at_points_that_they_count_to(
    tmp_path: Path, database: str, postgres: str
) -> None:
    """CH-17, CH-43, CH-46: before and after each journal write, put, question to a model and run of an option."""
    whole, names = unharmed(tmp_path / "unharmed", new_database(postgres))
    chosen = random.Random(1)
    points = [*range(1, 151), *range(1, 151)] if WHOLE else [90, 60, 30, 12, 3]
    asked = [chosen.randint(1, 90) for _ in range(50)] if WHOLE else [13]
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
            if len(made.killed) % 3 or not points:
                for each in vacant:
                    made.start(each, at[each].pop() if at[each] else 0)
                vacant.clear()
    check_threads(crew, made.killed, whole)
    deaths = {name for name, _ in crew.own.noted("deaths")}
    assert not WHOLE or deaths >= names | {"before put", "after put"}
