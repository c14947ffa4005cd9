"""A process killed at any moment is carried on by another one, which has nothing but the journal.

    count the points of a whole run ─▶ for each: a process dies there ─▶ a new one resumes ─▶ four laws

1. every request is one that the wire's rules and the vendor's own types accept;
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
from typing import Any

import pytest
from sabir_session import InnerMessage, get_inner_messages

from tests.servers.postgres import database, postgres
from tests.session.crash.service import Service, service
from tests.session.support import numbers_of, opener, recording, records_of

__all__ = ["database", "postgres"]  # fixtures

ROOT = Path(__file__).resolve().parents[3]
FEWEST_POINTS = 28
"""8 records, 3 provider calls and 3 runs of options, with a point before and after each."""
KILLED = -signal.SIGKILL
AT_ONCE = os.cpu_count() or 2


@dataclass(frozen=True)
class Case:
    """One journal, the log of its options' runs, and the requests made for it."""

    name: str
    dialect: str
    store: str
    folder: Path
    server: Service
    is_awaited: bool = False
    kills: list[int] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """Where options note their runs."""
        return self.folder / f"{self.name}.log"

    def start(self, die_at: int = 0) -> list[str] | None:
        """Run a new process to its end, which is at a point if one is given; the points it passed, None if killed."""
        told = {
            "die_at": die_at,
            "dialect": self.dialect,
            "url": f"{self.server.url}/{self.dialect}/{self.name}",
            "store": self.store,
            "journal": self.name,
            "log": str(self.log),
            "is_awaited": self.is_awaited,
        }
        command = [sys.executable, "-m", "tests.session.crash.child", json.dumps(told)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
        if die_at and ended.returncode == KILLED:
            self.kills.append(die_at)
            return None
        assert (ended.returncode, ended.stderr) == (0, ""), f"{self.name}: {ended.returncode} {ended.stderr}"
        passed: list[str] = json.loads(ended.stdout)
        return passed

    def records(self) -> tuple[InnerMessage, ...]:
        """What the journal holds."""
        with opener(self.store)() as store:
            return get_inner_messages(recording(store.journal(self.name)))

    def told(self) -> Any:
        """What the records say, and their numbers."""
        with opener(self.store)() as store:
            session = recording(store.journal(self.name))
            return records_of(session), numbers_of(session)

    def runs(self) -> list[list[Any]]:
        """The runs of options: name, call id, idempotency key, whether it was a resume."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def check_laws(self, recorded: Counter[str], whole: Any) -> None:
        """The laws, after the last process has ended; `recorded` are the runs of calls whose results were recorded."""
        assert self.server.refused[self.name] == []
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
def server() -> Iterator[Service]:
    """One provider for all processes."""
    with service() as running:
        yield running


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


WHOLE = os.environ.get("SABIR_ALL_CRASHES") == "1"
"""Whether every dialect has its turn (`nox -s crashes`); each takes some twenty seconds."""
CASES = [
    ("openai.chat", False), ("anthropic.messages", True),
    *([("openai.responses", False), ("google.generate_content", False)] if WHOLE else []),
]  # fmt: skip
"""Dialect, and whether the evaluation is awaited."""


@pytest.mark.parametrize(("dialect", "is_awaited"), CASES)
def test_a_process_killed_anywhere_is_carried_on_from_sqlite(
    dialect: str, is_awaited: bool, server: Service, tmp_path: Path
) -> None:
    """WI-01, WI-03, WI-26, WI-42, WI-45 … WI-48, UP-14, UP-16: at every point of a two-option, three-turn run."""

    def make(name: str) -> Case:
        return Case(name, dialect, str(tmp_path / f"{name}.db"), tmp_path, server, is_awaited)

    check_matrix(make(f"sqlite-{dialect}"), make)


@pytest.mark.parametrize("dialect", ["anthropic.messages", *(["openai.chat"] if WHOLE else [])])
def test_a_process_killed_anywhere_is_carried_on_from_postgres(
    dialect: str, server: Service, tmp_path: Path, database: str
) -> None:
    """The same with journals in one database of Postgres, whose server outlives the processes."""

    def make(name: str) -> Case:
        return Case(name, dialect, database, tmp_path, server)

    check_matrix(make(f"postgres-{dialect}"), make)


def check_matrix(whole: Case, make: Any) -> None:
    """One whole run, whose points are counted, and then one kill at each of them."""
    points = whole.start()

    assert points is not None
    assert len(points) >= FEWEST_POINTS
    assert {"before write", "after write", "before call", "after call", "before book", "after look_up"} <= set(points)
    assert whole.told()[1] == [
        ("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1), ("tool", 3, 1), ("tool", 4, 1),
        ("assistant", 5, 2), ("tool", 6, 2), ("assistant", 7, 3),
    ]  # fmt: skip
    assert len(whole.server.requests[whole.name]) == 3
    assert kill_everywhere(whole, points, make) == len(points)


def test_a_run_that_is_killed_again_and_again_ends_all_the_same(server: Service, tmp_path: Path) -> None:
    """WI-50: each process dies at its fifth point, until one has nothing left to do."""
    whole = Case("whole", "openai.chat", str(tmp_path / "whole.db"), tmp_path, server)
    whole.start()
    case = Case("again", "openai.chat", str(tmp_path / "again.db"), tmp_path, server)
    recorded: Counter[str] = Counter()
    while case.start(5) is None:
        assert len(case.kills) < 20
        recorded = case.recorded_runs() | recorded  # what was recorded once stays as often as it ran

    assert len(case.kills) >= 4
    case.check_laws(recorded, whole.told())
