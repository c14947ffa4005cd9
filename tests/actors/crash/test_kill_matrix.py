"""A process with a thread is killed at any moment; another one goes on, which has nothing but the journal.

count the points of a whole run ─▶ for each: a process dies there ─▶ a new one is started ─▶ the laws (laws.py)
"""

import os
import random
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.actors.crash.laws import check_laws, said_by_agents
from tests.actors.crash.programs import Told, run
from tests.servers.postgres import database, postgres

__all__ = ["database", "postgres"]  # fixtures

WHOLE = os.environ.get("SABIR_ALL_CRASHES") == "1"
"""Whether every point of every store has its turn (`nox -s crashes`); else one after each kind of step, on SQLite.

A process that dies before a step leaves what one leaves that dies after the step before it.
"""
LONGEST = 300
"""Seconds within which a process ends. One whose modules are not compiled yet, beside many others, takes long."""
THREADS, KILLS = (100 if WHOLE else 1), 8
"""How many threads are killed at random instants, and how often each."""
KILLED = -signal.SIGKILL
AT_ONCE = os.cpu_count() or 2
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["tests.actors.crash.programs", "sabir_runtime.durable.worker", "sabir_runtime.durable.runs"]
)
Maker = Callable[[str], Told]


def start(told: Told, seconds: float | None = None) -> int:
    """Run a process to its end, or kill it after so many seconds; its exit code.

    A process that must end by itself, and does not, is an error: killed by this test, it would look like one that died.
    """
    process = PROCESSES.Process(target=run, args=(told,))
    processes.start(process)
    exit_code = processes.exit_code_of(process, LONGEST if seconds is None else seconds)
    if exit_code is None:
        exit_code = processes.kill(process)
        assert seconds is not None, f"the process did not end within {LONGEST} s"
    assert exit_code is not None
    return exit_code


def tried(told: Told, whole: Any) -> None:
    try:
        assert start(told) == KILLED
        assert start(replace(told, die_at=0)) == 0
        check_laws(told, whole)
    except BaseException as error:
        error.add_note(f"killed at the point {told.die_at}")
        raise


def check_matrix(make: Maker, *, is_whole: bool) -> int:
    """One run that nothing interrupts, whose points are counted, then one kill at each; how many there were.

    A thread writes while messages arrive, so points of different names change places from run to run. So a kill that is
    meant for a kind of step is at the first point of its name. All runs have the same points.
    """
    unharmed = make("unharmed")
    assert start(unharmed) == 0
    points = [name for (name,) in unharmed.noted("points")]
    whole = said_by_agents(unharmed)
    check_laws(unharmed, whole)
    after = dict.fromkeys(name for name in points if name.startswith("after"))
    kills: list[int | str] = [*range(1, len(points) + 1)] if is_whole else [1, *after]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda at: tried(replace(make(f"at-{kills.index(at)}"), die_at=at), whole), kills))
    return len(points)


def test_a_thread_goes_on_wherever_its_process_was_killed_on_sqlite(tmp_path: Path) -> None:  # CH-17, CH-21, CH-43
    points = check_matrix(lambda name: Told(0, str(tmp_path / f"{name}.db"), tmp_path, name), is_whole=WHOLE)
    assert points > 100


if WHOLE:

    def test_a_thread_goes_on_wherever_its_process_was_killed_on_postgres(tmp_path: Path, database: str) -> None:
        check_matrix(lambda name: Told(0, database, tmp_path, name), is_whole=True)


@pytest.mark.parametrize("number", range(THREADS))
def test_a_thread_ends_though_its_processes_are_killed_at_random_instants(number: int, tmp_path: Path) -> None:
    unharmed, told = (Told(0, str(tmp_path / f"{name}.db"), tmp_path, name) for name in ("unharmed", "killed"))
    assert start(unharmed) == 0
    chosen = random.Random(number)
    for _ in range(KILLS):
        start(told, chosen.uniform(0.02, 0.4))
    assert start(told) == 0
    check_laws(told, said_by_agents(unharmed))
