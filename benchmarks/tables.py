"""A row's figures as text: at 80 columns for whoever runs it, as Markdown for the page."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from benchmarks.contenders import LABELS
from benchmarks.goals import Record, significant
from benchmarks.interleave import place_of

if TYPE_CHECKING:
    from benchmarks.rows.row import Row

Line = list[str]
WIDTH = 80


def table(row: "Row", records: Sequence[Record], place: str) -> list[Line]:
    """The figures of one place: a line a contender, a column a size; beside each its ratio to the reference."""
    here = [record for record in records if place_of(record) == place]
    columns = sorted({(record["size"], record["concurrency"]) for record in here})
    are_many = len({size for size, _ in columns}) > 1
    lines = [[row.unit, *(_heading(row, *column, are_many=are_many) for column in columns)]]
    for contender in LABELS:
        own = {(each["size"], each["concurrency"]): each for each in here if each["contender"] == contender}
        if own:
            cells = [_cell(row, own.get(column), _reference(row, here, column)) for column in columns]
            lines.append([LABELS[contender], *cells])
    return lines


def places_of(records: Iterable[Record]) -> list[str]:
    """Where was measured, in their order: wires, each with the conversations."""
    return list(dict.fromkeys(place_of(record) for record in records))


def refusals(records: Iterable[Record]) -> list[str]:
    """Who sends ids that a wire refuses, as they came, and where."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        if record.get("refused"):
            found.setdefault(LABELS[record["contender"]], {})[record["wire"]] = None
    return [f"{name} ({', '.join(wires)})" for name, wires in found.items()]


def printed(row: "Row", found: Record) -> str:
    records = found["records"]
    lines = ["", f"{row.title}: {row.unit} (× {LABELS[row.reference]})"]
    for place in places_of(records):
        lines.append(f"  {place}")
        for view in row.views():
            lines += _aligned(table(view, records, place))
    if named := refusals(records):
        lines += _wrapped(f"ids that the wire refuses go as they came: {'; '.join(named)}")
    for name, reason in found["absent"].items():
        lines += _wrapped(f"absent: {LABELS.get(name, name)}: {reason}")
    for goal in row.goals:
        verdict = goal.judge(records, found["absent"])
        worst = f"; worst: {verdict.found}" if verdict.found else ""
        lines += _wrapped(f"{verdict.kind} {verdict.text}: {verdict.word}{worst}")
    return "\n".join([*lines, f"  {found['seconds']} s", ""])


def markdown(lines: Sequence[Line]) -> str:
    head, *rest = lines
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *rest])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="       ")


def _aligned(lines: Sequence[Line]) -> list[str]:
    first = max(len(line[0]) for line in lines)
    width = min(14, (WIDTH - 4 - first) // max(len(lines[0]) - 1, 1))
    return ["    " + line[0].ljust(first) + "".join(cell.rjust(width) for cell in line[1:]) for line in lines]


def _heading(row: "Row", size: int, concurrency: int, *, are_many: bool) -> str:
    if row.concurrencies:
        return f"{row.column}={size:,}, c={concurrency}" if are_many else f"c={concurrency}"
    return f"{row.column}={size:,}" if size else "median"


def _reference(row: "Row", records: Sequence[Record], column: tuple[int, int]) -> Record | None:
    same = (each for each in records if (each["size"], each["concurrency"]) == column)
    return next((each for each in same if each["contender"] == row.reference), None)


def _cell(row: "Row", record: Record | None, reference: Record | None) -> str:
    if record is None:
        return "–"
    figure = row.figure(record)
    if reference is None:
        return significant(figure)
    ratio = figure / row.figure(reference)
    return f"{significant(figure)} ({significant(ratio)})"
