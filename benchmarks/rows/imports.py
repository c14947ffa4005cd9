"""Imports: a fresh process until the library is imported, until the provider is ready, and until its first answer."""

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks import environments, servers
from benchmarks.goals import Record, at_most, field_at_most
from benchmarks.interleave import Pace, workers
from benchmarks.rows.row import Absence, Row, across
from benchmarks.work import Given

STAGES = ("ready", "first answer")
ALONE = "imported"
"""The stage of no wire: the import alone."""
ANSWERED = ("openai.chat",)
"""The wires on which the first answer is awaited too, and those alone who ask there are imported alone."""
QUICK_ENOUGH = 1e9
"""A process that takes less (ns) runs three times a round."""


class Cost(NamedTuple):
    """Of a fresh process: nanoseconds of the wall clock and of the processor, largest resident set in MiB."""

    wall: float
    cpu: float
    resident: float


def fresh(contender: str, source: str) -> Cost:
    python = str(environments.python_of(contender))
    begun = time.perf_counter_ns()
    process = subprocess.Popen(
        [python, "-c", source], cwd=environments.ROOT, env=environments.variables(), stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise environments.Absent(f"its process ended with {process.returncode}")
    wall = time.perf_counter_ns() - begun
    return Cost(wall, (usage.ru_utime + usage.ru_stime) * 1e9, usage.ru_maxrss / 1024)


def measure(row: Row, cases: Sequence[Given], contenders: Sequence[str], pace: Pace, absent: Absence) -> list[Record]:
    """Fresh processes in changing order; the first of each, which fills the disk's cache, is not counted."""
    records: list[Record] = []
    with servers.running() as url, workers(contenders, absent) as ready:
        for case in cases:
            sources: dict[tuple[str, str], str] = {}
            for name, worker in ready.items():
                found = worker.ask("imports", given=list(case._replace(url=url)))
                if found.get("absent"):
                    absent[f"{name} ({case.wire})"] = found["absent"]
                if "ready" in found:
                    sources[name, STAGES[0]] = found["ready"]
                    if case.wire in ANSWERED:
                        if found["alone"]:
                            sources[name, ALONE] = found["alone"]
                        sources[name, STAGES[1]] = found["ready"] + "\n" + found["answer"]
            records += _rounds(case, sources, pace, absent)
    return records


def _rounds(case: Given, sources: dict[tuple[str, str], str], pace: Pace, absent: Absence) -> list[Record]:
    figures: dict[tuple[str, str], list[Cost]] = {}
    for number in range(pace.rounds + 1):
        keys = list(sources)
        turn = number % max(len(keys), 1)
        for key in keys[turn:] + keys[:turn]:
            try:
                found = [fresh(key[0], sources[key])]
                if found[0].wall < QUICK_ENOUGH:
                    found += [fresh(key[0], sources[key]) for _ in range(2)]
            except environments.Absent as reason:
                absent[f"{key[0]} ({case.wire}, {key[1]})"] = str(reason)
                sources.pop(key)
                figures.pop(key, None)
                continue
            figures.setdefault(key, [])
            if number:
                figures[key] += found
    return [_record(case, *key, found) for key, found in figures.items()]


def _record(case: Given, contender: str, stage: str, found: list[Cost]) -> Record:
    record: Record = {
        "task": "imports", "contender": contender, "wire": stage if stage == ALONE else f"{case.wire}, {stage}",
        "size": 0, "concurrency": 1,
        "rounds": len(found), "runs": 1, "resident": statistics.median(cost.resident for cost in found),
    }  # fmt: skip
    for clock in ("cpu", "wall"):
        values = [getattr(cost, clock) for cost in found]
        record |= {clock: statistics.median(values), f"{clock}_spread": [min(values), max(values)]}
    return record


def _resident(record: Record) -> float | None:
    return record["resident"] if record["wire"].endswith(STAGES[0]) else None


READY = tuple(f"{wire}, {STAGES[0]}" for wire in ("openai.chat", "anthropic.messages", "google.generate_content"))

ROW = Row(
    name="imports",
    title="Import, provider ready, first answer",
    what="A fresh process until the library is imported; until the provider is ready; on one wire also until a server "
    "on this machine has answered.",
    unit="ms CPU",
    figure=lambda record: record["cpu"] / 1e6,
    cases=across((0,), ("openai.chat", "anthropic.messages", "google.generate_content")),
    quick=across((0,), ("openai.chat",)),
    measure=measure,
    pace=Pace(rounds=3),
    curve="bars",
    goals=(
        at_most(1.1, "openai_sdk", "first answer ≤ 1.1 × OpenAI's SDK alone", wires=(f"{ANSWERED[0]}, {STAGES[1]}",)),
        at_most(1.3, "floor", "import sabir ≤ 1.3 × importing pydantic's BaseModel", wires=(ALONE,)),
        at_most(1.5, "floor", "ready ≤ 1.5 × importing pydantic and httpx2", wires=READY),
        field_at_most(45, "ready: resident set ≤ 45 MiB", _resident, unit="MiB"),
    ),
)
