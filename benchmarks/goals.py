"""What was promised, and whether a run keeps it.

    records ──goal──▶ Verdict: the worst figure found, where, met or not

A goal compares medians of one case: the same task, wire, model, conversation, size and concurrency, in the same
interleaved run. The worst case decides. A gate must be met; an aim that is missed is told with its figure. What was not
measured is neither met nor missed, and says so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from benchmarks.contenders import LABELS, OWN
from benchmarks.interleave import place_of

Record = dict[str, Any]
Figure: TypeAlias = tuple[float, str]
"""A figure, and where it was found."""

_SAME = ("task", "wire", "other_model", "talk", "size", "concurrency")
OPENAI = {"openai.chat": ("openai_sdk",), "openai.responses": ("openai_sdk",)}
GOOGLE = {"google.generate_content": ("google_sdk",)}
ANTHROPIC = {"anthropic.messages": ("anthropic_sdk",)}
SDKS = OPENAI | GOOGLE | ANTHROPIC
"""Wire → the vendor's SDK, whose typed methods are called."""


class Verdict(NamedTuple):
    """What came of a goal; `met` is None where nothing of it was measured."""

    text: str
    found: str
    met: bool | None
    is_gate: bool = False

    @property
    def kind(self) -> str:
        return "gate" if self.is_gate else "aim"

    @property
    def word(self) -> str:
        """Met, missed, not measured; a gate is NOT met."""
        return {True: "met", False: "NOT met" if self.is_gate else "missed", None: "not measured"}[self.met]


class Goal(NamedTuple):
    """What is promised, and the figures that it is about; the largest must be at most, or the smallest at least."""

    text: str
    figures: Callable[[Sequence[Record]], Iterator[Figure]]
    bound: float
    is_ceiling: bool = True
    unit: str = "×"
    is_gate: bool = False

    def judge(self, records: Sequence[Record], absent: Iterable[str] = ()) -> Verdict:
        """The worst figure against the bound; nothing is met where a case of sabir's own is absent."""
        if missing := [place for place in absent if place.partition(" ")[0] in OWN]:
            return Verdict(self.text, f"absent: {missing[0]}", None, self.is_gate)
        found = list(self.figures(records))
        if not found:
            return Verdict(self.text, "", None, self.is_gate)
        worst, where = max(found) if self.is_ceiling else min(found)
        met = worst <= self.bound if self.is_ceiling else worst >= self.bound
        return Verdict(self.text, f"{significant(worst)} {self.unit} ({where})", met, self.is_gate)


def gate(goal: Goal) -> Goal:
    return goal._replace(is_gate=True)


def at_most(
    bound: float,
    against: str,
    text: str,
    *,
    sizes: Sequence[int] = (),
    wires: Sequence[str] = (),
    clock: str = "cpu",
    concurrency: int | None = None,
) -> Goal:
    """sabir takes at most so many times what another takes, wherever both were measured."""

    def figures(records: Sequence[Record]) -> Iterator[Figure]:
        for one, other in _pairs(records, (against,)):
            of_this = (not sizes or one["size"] in sizes) and (not wires or one["wire"] in wires)
            if of_this and concurrency in (None, one["concurrency"]):
                yield one[clock] / other[clock], _place(one)

    return Goal(text, figures, bound)


def faster(
    bound: float, than: Mapping[str, Sequence[str]], text: str, *, sizes: Sequence[int] = (), clock: str = "cpu"
) -> Goal:
    """sabir is at least so many times faster than each of those, by wire."""

    def figures(records: Sequence[Record]) -> Iterator[Figure]:
        for wire, names in than.items():
            for one, other in _pairs([each for each in records if each["wire"] == wire], names):
                if not sizes or one["size"] in sizes:
                    yield other[clock] / one[clock], f"{LABELS[other['contender']]}, {_place(one)}"

    return Goal(text, figures, bound, is_ceiling=False)


def field_at_most(bound: float, text: str, figure: Callable[[Record], float | None], unit: str = "×") -> Goal:
    """A figure of sabir's own records is at most so much."""

    def figures(records: Sequence[Record]) -> Iterator[Figure]:
        for record in records:
            found = figure(record) if record["contender"] in OWN else None
            if found is not None:
                yield found, _place(record)

    return Goal(text, figures, bound, unit=unit)


def takes_at_most(
    bound: float, text: str, *, sizes: Sequence[int], wires: Sequence[str] = (), by_message: bool = False
) -> Goal:
    """sabir takes at most so many microseconds of the processor, in all or for each message."""

    def figures(records: Sequence[Record]) -> Iterator[Figure]:
        for record in records:
            if record["contender"] in OWN and record["size"] in sizes and (not wires or record["wire"] in wires):
                yield record["cpu"] / 1e3 / (record["size"] if by_message else 1), _place(record)

    return Goal(text, figures, bound, unit="µs")


def adds_at_most(bound: float, against: str, text: str, *, clock: str = "cpu", wires: Sequence[str] = ()) -> Goal:
    """sabir takes at most so many microseconds more than another takes, wherever both were measured."""

    def figures(records: Sequence[Record]) -> Iterator[Figure]:
        for one, other in _pairs(records, (against,)):
            if not wires or one["wire"] in wires:
                yield (one[clock] - other[clock]) / 1e3, _place(one)

    return Goal(text, figures, bound, unit="µs")


def grows_at_most(bound: float, sizes: tuple[int, int], text: str, *, field: str = "cpu") -> Goal:
    """What sabir takes at the second size is at most so many times what it takes at the first."""
    small, large = sizes

    def figures(records: Sequence[Record]) -> Iterator[Figure]:
        own = [record for record in records if record["contender"] in OWN]
        at = {(place_of(each), each["concurrency"], each["size"]): each for each in own}
        for (place, concurrency, size), record in at.items():
            first = at.get((place, concurrency, small))
            if size == large and first:
                yield record[field] / first[field], _place(record)

    return Goal(text, figures, bound)


def turns_ratio(record: Record) -> float | None:
    """What turn 500 costs, by what turn 50 costs."""
    turns = record.get("turns", {})
    return turns["500"] / turns["50"] if {"50", "500"} <= turns.keys() else None


def significant(figure: float) -> str:
    if figure >= 1000:
        return f"{figure:,.0f}"
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.1f}" if figure >= 10 else f"{figure:.2f}"


def _pairs(records: Sequence[Record], others: Sequence[str]) -> Iterator[tuple[Record, Record]]:
    for left in records:
        for right in records:
            same = all(left.get(key) == right.get(key) for key in _SAME)
            if left["contender"] in OWN and right["contender"] in others and same:
                yield left, right


def _place(record: Record) -> str:
    concurrent = f", c={record['concurrency']}" if record["concurrency"] > 1 else ""
    place = place_of(record)
    return f"{place}, {record['size']}{concurrent}" if record["size"] else place
