"""A process killed at any moment is carried on by another one, which has nothing but the journal.

    count the points of a whole run ─▶ for each: a process dies there ─▶ a new one resumes ─▶ four laws

1. every request is one that the wire's rules and the vendor's own types accept, else its process fails;
2. no option whose result was recorded runs again, and one that runs again knows it, under the same ids;
3. the records are in the end those of a run that nothing interrupted;
4. nothing but the journal was there to go on from.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias

import pytest
from sabir_session import InnerMessage, get_inner_messages

from tests.servers.postgres import database, postgres
from tests.session.support import numbers_of, opener, recording, records_of

__all__ = ["database", "postgres"]  # fixtures

ROOT = Path(__file__).resolve().parents[3]
FEWEST_POINTS = 28
"""8 records, 3 provider calls and 3 runs of options, with a point before and after each."""
KILLED = -signal.SIGKILL
AT_ONCE = os.cpu_count() or 2


Starters: TypeAlias = "SimpleQueue[subprocess.Popen[str]]"
"""Processes of `child.py` that are free to start a child."""


@dataclass(frozen=True)
class Case:
    """One journal, and the log of its options' runs."""

    name: str
    dialect: str
    store: str
    folder: Path
    starters: Starters
    is_awaited: bool = False
    kills: list[int] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self, die_at: int = 0) -> list[str] | None:
        """Run a new process to its end, which is at a point if one is given; the points it passed, None if killed."""
        told = {
            "die_at": die_at,
            "dialect": self.dialect,
            "store": self.store,
            "journal": self.name,
            "log": str(self.log),
            "is_awaited": self.is_awaited,
        }
        starter = self.starters.get()
        assert starter.stdin is not None
        assert starter.stdout is not None
        starter.stdin.write(json.dumps(told) + "\n")
        starter.stdin.flush()
        exit_code, words = json.loads(starter.stdout.readline())
        self.starters.put(starter)
        if die_at and exit_code == KILLED:
            self.kills.append(die_at)
            return None
        assert exit_code == 0, f"{self.name}: {exit_code} {words}"
        passed: list[str] = json.loads(words)
        return passed

    def records(self) -> tuple[InnerMessage, ...]:
        with opener(self.store)() as store:
            return get_inner_messages(recording(store.journal(self.name)))

    def told(self) -> Any:
        with opener(self.store)() as store:
            session = recording(store.journal(self.name))
            return records_of(session), numbers_of(session)

    def runs(self) -> list[list[Any]]:
        """The runs of options: name, call id, idempotency key, whether it was a resume."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def check_laws(self, recorded: Counter[str], whole: Any) -> None:
        """The laws, after the last process has ended; `recorded` are the runs of calls whose results were recorded."""
        runs = self.runs()
        assert recorded == Counter(run[2] for run in runs if run[2] in recorded), "a recorded option ran again"
        first: dict[str, list[Any]] = {}
        for run in runs:
            known = first.setdefault(run[2], run)
            assert run is known or (run[:3], run[3]) == (known[:3], True)
        assert self.told() == whole

    def recorded_runs(self) -> Counter[str]:
        """How often those calls have run whose results the journal holds, by their idempotency keys."""
        records = self.records()
        results = {each.sequence for each in records if each.role == "tool"}
        held = {
            f"{each.message_id}/{index}"
            for each in records
            for index in range(len(each.tool_calls))
            if each.sequence + 1 + index in results
        }
        runs = Counter(run[2] for run in self.runs())
        assert held <= set(runs)
        return Counter({key: runs[key] for key in held})


@pytest.fixture(scope="module")
def starters() -> Iterator[Starters]:
    """As many as run at once."""
    command = [sys.executable, "-m", "tests.session.crash.child"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    free: Starters = SimpleQueue()
    processes = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(AT_ONCE)]
    for process in processes:
        free.put(process)
    yield free
    for process in processes:
        process.communicate(timeout=30)


def kill_everywhere(whole: Case, points: list[str], make: Any) -> int:
    """Kill a process at each point and resume it in another one; how many were killed."""
    expected = whole.told()

    def tried(point: int) -> int:
        case: Case = make(f"{whole.name}-{point}")
        try:
            assert case.start(point) is None, f"nothing died at point {point}"
            recorded = case.recorded_runs()
            assert case.start() is not None
            case.check_laws(recorded, expected)
        except BaseException as error:
            error.add_note(f"killed at point {point} of {len(points)}: {points[point - 1]}")
            raise
        return len(case.kills)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(tried, range(1, len(points) + 1)))


CASES = [
    ("openai.chat", False, "sqlite"), ("anthropic.messages", True, "sqlite"), ("anthropic.messages", False, "postgres"),
]  # fmt: skip
"""Dialect, whether the evaluation is awaited, and the store: a file for each run, or one database."""
if os.environ.get("SABIR_ALL_CRASHES") == "1":  # `nox -s crashes`
    CASES += [("openai.responses", False, "sqlite"), ("google.generate_content", False, "sqlite")]
    CASES += [("openai.chat", False, "postgres")]


@pytest.mark.parametrize(("dialect", "is_awaited", "kind"), CASES)
def test_a_process_killed_anywhere_is_carried_on(
    dialect: str, is_awaited: bool, kind: str, starters: Starters, request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:  # fmt: skip
    """WI-01, WI-03, WI-26, WI-42, WI-45 … WI-48, UP-14, UP-16: at every point of a two-option, three-turn run."""
    database = request.getfixturevalue("database") if kind == "postgres" else None

    def make(name: str) -> Case:
        store = database or str(tmp_path / f"{name}.db")
        return Case(name, dialect, store, tmp_path, starters, is_awaited)

    whole = make(f"{kind}-{dialect}")
    points = whole.start()

    assert points is not None
    assert len(points) >= FEWEST_POINTS
    assert {"before write", "after write", "before call", "after call", "before book", "after look_up"} <= set(points)
    assert whole.told()[1] == [
        ("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1), ("tool", 3, 1), ("tool", 4, 1),
        ("assistant", 5, 2), ("tool", 6, 2), ("assistant", 7, 3),
    ]  # fmt: skip
    assert points.count("after call") == 3
    assert kill_everywhere(whole, points, make) == len(points)


def test_a_run_that_is_killed_again_and_again_ends_all_the_same(starters: Starters, tmp_path: Path) -> None:
    """WI-50: each process dies at its fifth point, until one has nothing left to do."""
    whole = Case("whole", "openai.chat", str(tmp_path / "whole.db"), tmp_path, starters)
    whole.start()
    case = Case("again", "openai.chat", str(tmp_path / "again.db"), tmp_path, starters)
    recorded: Counter[str] = Counter()
    while case.start(5) is None:
        assert len(case.kills) < 20
        recorded = case.recorded_runs() | recorded  # what was recorded once stays as often as it ran

    assert len(case.kills) >= 4
    case.check_laws(recorded, whole.told())
