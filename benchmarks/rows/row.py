"""What a row of the goals is, and how rows are run.

Row ──measure──▶ records ──▶ table at 80 columns, goals met or NOT met ──▶ the results file
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks import results
from benchmarks.contenders import APART, LABELS
from benchmarks.goals import Goal, Record
from benchmarks.interleave import QUICK, TALKS, Pace, measured, measured_together
from benchmarks.tables import printed
from benchmarks.work import WIRES, Given

Absence = dict[str, str]
Measure = Callable[["Row", Sequence[Given], Sequence[str], Pace, Absence], list[Record]]
EVERYBODY = tuple(name for name in LABELS if name not in APART)


def by_interleaving(
    row: "Row", cases: Sequence[Given], contenders: Sequence[str], pace: Pace, absent: Absence
) -> list[Record]:
    return measured(row.name, cases, contenders, pace, absent)


def all_together(
    row: "Row", cases: Sequence[Given], contenders: Sequence[str], pace: Pace, absent: Absence
) -> list[Record]:
    """As rows are measured whose cases are compared with each other."""
    return measured_together(row.name, cases, contenders, pace, absent)


class Row(NamedTuple):
    """One row of the goals: its work, who does it, what is shown of it, what is promised."""

    name: str
    """The task's of its contenders, too."""
    title: str
    what: str
    unit: str
    cases: tuple[Given, ...]
    goals: tuple[Goal, ...] = ()
    figure: Callable[[Record], float] = lambda record: record["cpu"] / 1e3
    quick: tuple[Given, ...] = ()
    contenders: tuple[str, ...] = EVERYBODY
    column: str = "N"
    curve: str = ""
    """What is drawn: cost against "sizes", the cost of "turns", "bars", or nothing."""
    measure: Measure = by_interleaving
    pace: Pace = Pace()
    concurrencies: bool = False
    also: tuple[tuple[str, Callable[[Record], float]], ...] = ()
    """Further figures, each with its unit: shown in tables of their own."""

    @property
    def reference(self) -> str:
        """Whom the others' figures are divided by: its first contender."""
        return self.contenders[0]

    def views(self) -> "list[Row]":
        return [self, *(self._replace(unit=unit, figure=figure, also=()) for unit, figure in self.also)]

    def of(self, talk: str, sizes: Sequence[int]) -> "Row":
        """The row with the cases of that conversation and of those sizes alone, where any are named."""

        def kept(cases: tuple[Given, ...]) -> tuple[Given, ...]:
            asked = [case for case in cases if not talk or case.talk in ("", talk)]
            return tuple(case for case in asked if not sizes or case.size in sizes)

        return self._replace(cases=kept(self.cases), quick=kept(self.quick or self.cases))

    def run(self, *, quick: bool, contenders: Sequence[str] = ()) -> Record:
        begun, absent = time.monotonic(), Absence()
        chosen = [name for name in self.contenders if not contenders or name in contenders]
        cases = self.quick if quick and self.quick else self.cases
        records = self.measure(self, cases, chosen, QUICK if quick else self.pace, absent)
        seconds = round(time.monotonic() - begun, 1)
        return {"records": records, "absent": absent, "seconds": seconds}


def across(
    sizes: Sequence[int],
    wires: Sequence[str] = WIRES,
    url: str = "",
    concurrency: int = 1,
    talk: str = "",
    other_model: str = "",
) -> tuple[Given, ...]:
    return tuple(Given(wire, size, url, concurrency, talk, other_model) for wire in wires for size in sizes)


def arguments(what: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds: for a look")
    parser.add_argument(
        "--only", default="", metavar="NAMES",
        help=f"only these contenders, with commas between; nothing is stored. They are {', '.join(LABELS)}",
    )  # fmt: skip
    parser.add_argument("--talk", choices=TALKS, default="", help="only this conversation; nothing is stored")
    parser.add_argument("--sizes", default="", help="only these sizes, with commas between; nothing is stored")
    return parser


def run_rows(rows: Sequence[Row], given: Any) -> None:
    chosen = [name for name in given.only.split(",") if name]
    sizes = [int(size) for size in given.sizes.split(",") if size]
    for row in rows:
        print(f"{row.name} …", file=sys.stderr, flush=True)
        found = row.of(given.talk, sizes).run(quick=given.quick, contenders=chosen)
        print(printed(row, found), flush=True)
        if not (chosen or given.talk or sizes):
            results.store(row.name, found, quick=given.quick)
