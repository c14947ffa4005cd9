"""The results of a check as lines for people, and as one JSON document.

question              outcome        seconds  tokens      a reason, on a line of its own
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from sabir.authoring import one_line, printable

from sabir_testing.live.questions import ROW_NAMES, Estimate
from sabir_testing.live.running import LiveCheck, RowResult

_NAME = max(map(len, ROW_NAMES))
_OUTCOME = len("not supported")
UNKNOWN = "?"
"""The text for a number that is not known."""


def header() -> str:
    """Return the line with the titles of the columns."""
    return _table_line("question", "outcome", "seconds", "tokens")


def row_lines(row: RowResult) -> Iterator[str]:
    """Yield the line of a row, and a line with its reason if it has one. On a terminal, the reason is cut to its
    width.
    """
    seconds = f"{row.seconds:.1f}" if row.calls else ""
    tokens = (UNKNOWN if row.tokens is None else f"{row.tokens:,}") if row.calls else ""
    yield _table_line(row.name, row.outcome, seconds, tokens)
    width = shutil.get_terminal_size().columns - 5 if sys.stdout.isatty() else 2_000
    for text in filter(None, (row.reason, row.note)):
        yield f"    {printable(one_line(text, max(20, width)))}"


def _table_line(name: str, outcome: str, seconds: str, tokens: str) -> str:
    return f"{name:<{_NAME}}  {outcome:<{_OUTCOME}}  {seconds:>7}  {tokens:>7}".rstrip()


def summary_lines(check: LiveCheck) -> Iterator[str]:
    """Yield the lines after the table: the numbers of outcomes, and what was sent and paid so far."""
    results = check.results
    outcomes = [each.outcome for each in results]
    counts = [f"{outcomes.count(each)} {each}" for each in ("ok", "failed", "not supported") if each in outcomes]
    if check.interrupted:
        not_sent = sum(not row.unsupported for row in check.rows[len(results) :])
        counts.append(f"interrupted, {not_sent} not sent")
    yield ", ".join(counts)
    tokens, cost = total_tokens(results), total_cost(results)
    paid = "cost unknown" if cost is None else f"${cost:.4f}"
    yield f"{sum(each.calls for each in results)} calls, {UNKNOWN if tokens is None else f'{tokens:,}'} tokens, {paid}"
    if check.save is not None:
        yield f"saved {sum(each.saved is not None for each in results)} cassettes in {check.save}"


def total_tokens(results: Sequence[RowResult]) -> int | None:
    """Return the tokens of all replies; None if the tokens of one of them are unknown."""
    counts = [each.tokens for each in results]
    return None if None in counts else sum(count or 0 for count in counts)


def total_cost(results: Sequence[RowResult]) -> Decimal | None:
    """Return the price of all replies in US dollars; None if the price of one of them is unknown."""
    costs = [each.cost for each in results]
    return None if None in costs else sum((cost or Decimal(0) for cost in costs), Decimal(0))


def document(check: LiveCheck, expected: Estimate) -> dict[str, Any]:  # any JSON
    """Return the JSON document of `--json`. Costs are texts in US dollars; null means unknown."""
    target, results = check.adapter.target, check.results
    return {
        "model": f"{target.provider}:{target.model}",
        "dialect": target.dialect,
        "endpoint": target.endpoint,
        "estimate": {
            "calls": expected.calls,
            "input_tokens": expected.input_tokens,
            "output_tokens": expected.output_tokens,
            "cost": _cost_text(expected.cost),
        },
        "questions": [_row_document(each) for each in results],
        "calls": sum(each.calls for each in results),
        "tokens": total_tokens(results),
        "cost": _cost_text(total_cost(results)),
        "interrupted": check.interrupted,
    }


def _row_document(row: RowResult) -> dict[str, Any]:  # any JSON
    return {
        "question": row.name,
        "outcome": row.outcome,
        "reason": row.reason,
        "seconds": round(row.seconds, 3),
        "calls": row.calls,
        "tokens": row.tokens,
        "cost": _cost_text(row.cost),
        "cassette": str(row.saved) if row.saved else None,
        "note": row.note,
    }


def _cost_text(cost: Decimal | None) -> str | None:
    return None if cost is None else f"{cost:.6f}"
