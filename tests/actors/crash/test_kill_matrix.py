"""A process with a thread is killed at any moment; another one goes on, which has nothing but the journal.

    count the points of a whole run ─▶ for each: a process dies there ─▶ a new one is started ─▶ five laws

1. the thread completes, each phase done once, in order;
2. a message that was sent again is given the response that it was given first, and is recorded once;
3. a phase that was recorded as done asks its model no more;
4. an option whose result was recorded runs no more; one that runs again knows it, under the same key;
5. the records of the agents are those of a run that nothing interrupted.
"""

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from sabir_actors import AEIOUY, ThreadEvent
from sabir_session import InnerMessage, Session, append_item

from tests import processes
from tests.actors.crash.child import Told, opened, run
from tests.runtime.crash.journals import records_of, session_of
from tests.servers.postgres import database, postgres

__all__ = ["database", "postgres"]  # fixtures

WHOLE = os.environ.get("SABIR_ALL_CRASHES") == "1"
"""Whether every point of every store has its turn (`nox -s crashes`); else one of each name, on SQLite."""
THREADS, KILLS = (100 if WHOLE else 1), 8
"""How many threads are killed at random instants, and how often each."""
KILLED = -signal.SIGKILL
AT_ONCE = os.cpu_count() or 2
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.actors.crash.child"])
Maker = Callable[[str], Told]


def start(told: Told, seconds: float | None = None) -> int:
    """Run a process to its end, or kill it after so many seconds; its exit code."""
    process = PROCESSES.Process(target=run, args=(told,))
    processes.start(process)
    exit_code = processes.exit_code_of(process, seconds if seconds is not None else 60)
    exit_code = processes.kill(process) if exit_code is None else exit_code
    assert exit_code is not None
    return exit_code


def session(told: Told) -> Session:
    """What the thread's journal holds."""
    with opened(told.store) as store:
        found = session_of(store.journal(f"thread:{told.thread_id}"))
        found.mutate(ThreadEvent).register(ThreadEvent, append_item)
    return found


def done_phases(told: Told) -> list[str]:
    """The phases that are recorded as done."""
    return [each.data["phase_type"] for each in session(told).select_all(ThreadEvent) if each.what == "phase_done"]


def recorded_runs(told: Told) -> set[str]:
    """The keys of the option's runs whose results are recorded."""
    records = session(told).select_all(InnerMessage)
    results = {(each.evaluation_id, each.sequence) for each in records if each.role == "tool"}
    return {
        f"{each.message_id}/{index}"
        for each in records
        for index in range(len(each.tool_calls))
        if (each.evaluation_id, each.sequence + 1 + index) in results
    }


class Held:
    """What was recorded when a process died, and how often it had run by then."""

    def __init__(self, told: Told) -> None:
        self.told = told
        phases, keys = set(done_phases(told)), recorded_runs(told)
        self.asked = Counter(each for (each,) in told.noted("asked") if each in phases)
        self.runs = Counter(key for _, key, _ in told.noted("runs") if key in keys)
        assert set(self.runs) == keys

    def check(self) -> None:
        """Laws 3 and 4: none of it ran again."""
        assert self.asked == Counter(each for (each,) in self.told.noted("asked") if each in self.asked)
        assert self.runs == Counter(key for _, key, _ in self.told.noted("runs") if key in self.runs)


def check_laws(told: Told, whole: Any) -> None:
    """The laws of one case, after its last process ended."""
    events = session(told).select_all(ThreadEvent)
    assert done_phases(told) == list(AEIOUY)
    assert [each.what for each in events].count("completed") == 1 and told.noted("result")[-1] == ["completed"]
    answers = dict(told.noted("answers"))
    assert all(answers[message_id] == answer for message_id, answer in told.noted("answers"))
    assert sorted(each.message_id for each in events if each.message_id) == sorted(each.id for each in told.messages())
    seen: set[str] = set()
    for _, key, is_resume in told.noted("runs"):
        assert is_resume or key not in seen, "an option ran again and was not told so"
        seen.add(key)
    said = said_by_agents(told)
    assert [each for each, expected in zip(said, whole, strict=True) if each != expected] == []


def said_by_agents(told: Told) -> Any:
    """The records of the agents, without ids and times."""
    return json.loads(json.dumps(records_of(session(told)), default=str).replace(told.thread_id, "thread"))


def tried(told: Told, name: str, whole: Any) -> None:
    """Kill a process at one point, and start another."""
    try:
        assert start(told) == KILLED
        held = Held(told)
        assert start(replace(told, die_at=0)) == 0
        held.check()
        check_laws(told, whole)
    except BaseException as error:
        error.add_note(f"killed at point {told.die_at}: {name}")
        raise


def check_matrix(make: Maker, *, is_whole: bool) -> int:
    """One run that nothing interrupts, whose points are counted, then one kill at each; how many there were."""
    unharmed = make("unharmed")
    assert start(unharmed) == 0
    points = [name for (name,) in unharmed.noted("points")]
    whole = said_by_agents(unharmed)
    check_laws(unharmed, whole)
    kills = range(len(points)) if is_whole else sorted({points.index(name) for name in points})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda at: tried(replace(make(f"at-{at}"), die_at=at + 1), points[at], whole), kills))
    return len(points)


def test_a_thread_goes_on_wherever_its_process_was_killed_on_sqlite(tmp_path: Path) -> None:
    """CH-17, CH-21, CH-43: at the first point of each name, and at every point in the chore."""
    points = check_matrix(lambda name: Told(0, str(tmp_path / f"{name}.db"), tmp_path, name), is_whole=WHOLE)
    assert points > 100


if WHOLE:

    def test_a_thread_goes_on_wherever_its_process_was_killed_on_postgres(tmp_path: Path, database: str) -> None:
        """The same with all journals in one database, whose server outlives the processes."""
        check_matrix(lambda name: Told(0, database, tmp_path, name), is_whole=True)


@pytest.mark.parametrize("number", range(THREADS))
def test_a_thread_ends_though_its_processes_are_killed_at_random_instants(number: int, tmp_path: Path) -> None:
    """Killed again and again, by another process, whatever it is at; the laws hold at the end."""
    unharmed, told = (Told(0, str(tmp_path / f"{name}.db"), tmp_path, name) for name in ("unharmed", "killed"))
    assert start(unharmed) == 0
    chosen = random.Random(number)
    helds: list[Held] = []
    for _ in range(KILLS):
        start(told, chosen.uniform(0.02, 0.4))
        helds.append(Held(told))
    assert start(told) == 0
    for held in helds:
        held.check()
    check_laws(told, said_by_agents(unharmed))
