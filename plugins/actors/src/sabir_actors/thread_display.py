"""Display a thread as a table for a terminal or as JSON. In a table, an unknown number of tokens or cost is "?"."""

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import sabir
from sabir.authoring import one_line, printable
from sabir_session.state.codec import now

from sabir_actors.state import ThreadView

if TYPE_CHECKING:
    from rich.table import Table

SHORT = 8
"""How many characters of a thread's id are displayed."""
COLUMNS = {"phase": 13, "state": 10, "time": 8, "tokens in": 9, "out": 4, "cost": 8, "sure": 4}
"""Column of the table → its minimum width, so that no column moves while a thread runs. "sure" is the confidence."""


def table_of(view: ThreadView, width: int) -> "Table":
    """Return a thread as a table with a row for each phase and a last row with the sums.

    Columns that do not fit into `width` characters are left out, the last columns first.
    """
    from rich.table import Table
    from rich.text import Text

    names = [name for at, name in enumerate(COLUMNS) if sum(list(COLUMNS.values())[: at + 1]) + 3 * at + 4 <= width]
    table = Table(title=Text(cut(view.initial_input, width)), title_justify="left", width=width, show_footer=True)
    for name, footer in zip(names, _make_footers(view), strict=False):
        side: Literal["left", "right"] = "left" if name in ("phase", "state") else "right"
        ratio = 1 if name == "phase" else None
        table.add_column(name, footer, justify=side, no_wrap=True, min_width=COLUMNS[name], ratio=ratio)
    for name in view.phases:
        table.add_row(*_make_cells(view, name)[: len(names)])
    return table


def _make_footers(view: ThreadView) -> list[str]:
    costs = [cost_of_phase(view.usage.get(name) or {}) for name in view.outputs]
    known = [cost for cost in costs if cost is not None]
    total = "" if not costs else dollars(sum(known, Decimal())) if len(known) == len(costs) else "?"
    tokens = [
        _sum_tokens([tokens_of(view.usage.get(name) or {}, side) for name in view.outputs])
        for side in ("input", "output")
    ]
    return [view.thread_id[:SHORT], view.status, seconds(sum(view.seconds.values())), *tokens, total, ""]


def _make_cells(view: ThreadView, name: str) -> list[str]:
    """Return the cells of a phase, in the order of the columns; only the first three for a phase that is not done."""
    output, usage = view.outputs.get(name), view.usage.get(name) or {}
    if output is None:
        is_next = name == view.current_phase
        elapsed = seconds(_seconds_since(view.updated_at)) if is_next and view.status == "processing" else ""
        return [printable(name), _display_state(view) if is_next else "", elapsed]
    cost = cost_of_phase(usage)
    confidence = "" if output.confidence is None else f"{output.confidence:g}"
    tokens = (tokens_of(usage, "input"), tokens_of(usage, "output"))
    return [
        printable(name),
        "done",
        seconds(view.seconds[name]),
        *tokens,
        "?" if cost is None else dollars(cost),
        confidence,
    ]


def _display_state(view: ThreadView) -> str:
    """Return the state of the running or next phase, for display: "running", or "waiting" for a worker of a queue;
    "left" if the thread was terminated; otherwise the state of the thread.
    """
    if view.status == "processing":
        return "waiting" if view.runner is None else "running"
    return "left" if view.status == "terminated" else view.status


def cut(text: str, width: int) -> str:
    """Return a text in one line of at most `width` terminal columns. Some characters need two columns."""
    from rich.text import Text

    line = Text(printable(one_line(text, width)))
    line.truncate(width, overflow="ellipsis")
    return line.plain


def _sum_tokens(figures: list[str]) -> str:
    return "?" if "?" in figures else str(sum(map(int, figures)))


def tokens_of(usage: dict[str, Any], side: str) -> str:
    """Return a phase's number of tokens as text; "?" if unknown. `side` is "input" or "output"."""
    count = usage.get(f"{side}_tokens")
    return "?" if count is None else str(count)


def cost_of_phase(usage: dict[str, Any]) -> Decimal | None:
    """Return the cost of a phase in US dollars. None if sabir-prices is not installed or does not know the price."""
    try:
        from sabir_prices import cost_of
    except ImportError:
        return None
    provider, _, model = str(usage.get("model", "")).partition(":")
    figures = {name: value for name, value in usage.items() if name in sabir.Usage.model_fields}
    cost = cost_of(sabir.Usage(**figures), provider=provider, model=model) if model else None
    return None if cost is None else cost.total


def dollars(cost: Decimal) -> str:
    """Return a cost in US dollars as text, such as "$0.0123"; "<$0.0001" for a smaller cost above 0."""
    return "<$0.0001" if 0 < cost < Decimal("0.0001") else f"${cost:.4f}"


def reason_of(view: ThreadView) -> str:
    """Return the reason why a thread failed or was terminated, as text; "" if there is none."""
    return str(view.cause.get("error_message") or view.cause.get("reason") or "")


def summary_of(view: ThreadView) -> dict[str, Any]:
    """Return a thread as a JSON object, without the outputs of phases before the last."""
    last = view.last_output
    moments = {"created_at": view.created_at, "updated_at": view.updated_at}
    return {
        "thread_id": view.thread_id,
        "status": view.status,
        "initial_input": view.initial_input,
        **{name: moment and moment.isoformat() for name, moment in moments.items()},
        "phases_completed": list(view.outputs),
        "phases_remaining": list(view.remaining),
        "output": last.model_dump(mode="json") if last else None,
        "cause": view.cause,
    }


def phase_of(view: ThreadView, name: str) -> dict[str, Any]:
    """Return a phase that is done as a JSON object: its output, seconds, token usage and cost."""
    usage = view.usage.get(name) or {}
    cost = cost_of_phase(usage)
    figures = {"seconds": view.seconds[name], "usage": usage, "cost": None if cost is None else str(cost)}
    return {**view.outputs[name].model_dump(mode="json"), **figures}


def _seconds_since(moment: datetime | None) -> float:
    return 0.0 if moment is None else max(0.0, (now() - moment).total_seconds())


def seconds(seconds: float) -> str:
    """Return a number of seconds as text, such as "1.5 s"."""
    return f"{seconds:.1f} s"


def age(moment: datetime | None) -> str:
    """Return how long ago a time is, in one unit, for example "5m" for 5 minutes. "0s" for None."""
    seconds = int(_seconds_since(moment))
    units = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
    return next(f"{seconds // length}{unit}" for unit, length in units.items() if seconds >= length or length == 1)
