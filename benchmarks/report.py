"""Write the figures of docs/explanation/performance.md from stored results, and draw the plots.

    python -m benchmarks.report [results.json]

The part of the page between the two marks is generated. The text around the marks is written by hand. The page shows
one table per comparison with other libraries; `results.json` next to the plots has every measured case.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import environments, results
from benchmarks.contenders import LABELS, OWN
from benchmarks.environments import ROOT
from benchmarks.goals import Record, significant
from benchmarks.rows import ROWS
from benchmarks.rows.row import Row
from benchmarks.tables import Line, markdown
from benchmarks.work import AGENTS, PLAIN

PAGE = ROOT / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- measured -->", "<!-- measured until here -->"
HAND_WRITTEN = ("limit", "raw", "floor", "kept")
"""Contenders that are code of the benchmarks, not libraries."""


class Comparison(NamedTuple):
    """One table of the page: a row of the benchmarks at one size, with one column per API."""

    row: str
    title: str
    text: str
    size: int = 0
    concurrency: int = 1
    talk: str = ""

    def selects(self, record: Record) -> bool:
        """Return whether the table shows the record."""
        case = (record["size"], record["concurrency"], record.get("talk") or "")
        return case == (self.size, self.concurrency, self.talk) and not record.get("other_model")


class Baseline(NamedTuple):
    """One line of the table that compares sabir with the operation that a call is built on."""

    row: str
    title: str
    wire: str
    size: int
    against: str
    concurrency: int = 1


COMPARISONS = (
    Comparison(
        "call", "A complete call",
        "sabir and each library render 100 messages with images and reasoning for the first time and send them. The "
        "table shows milliseconds of CPU time per call.", size=100, talk=AGENTS,
    ),
    Comparison(
        "fresh", "A complete call over loopback",
        "sabir and the leanest other libraries render 10 messages for the first time and send them to a server on the "
        "same machine. The table shows microseconds of CPU time per call.", size=10, talk=PLAIN,
    ),
    Comparison(
        "loop", "An agent loop",
        "The loop has 100 turns, each with one option call and its result. The table shows milliseconds of CPU time "
        "for all turns.", size=100, talk=PLAIN,
    ),
    Comparison(
        "stub_loop", "An agent loop over loopback",
        "The loop has 100 turns, which a server on the same machine answers. The table shows milliseconds of CPU time "
        "for all turns.", size=100, talk=PLAIN,
    ),
    Comparison(
        "stream", "A stream",
        "A local server sends one answer as 2,000 events. The table shows microseconds of CPU time per event.",
        size=2000,
    ),
    Comparison(
        "loopback", "Concurrent calls",
        "A program makes 32 calls at once to a local server that answers immediately. The table shows requests per "
        "second; more is better.",
        size=10, concurrency=32,
    ),
    Comparison(
        "imports", "Start of a program",
        "Each column is measured in new processes of its own. They only import the library (*imported*), create the "
        "provider object (*ready*), or create it and receive a first answer from a local server. The table shows the "
        "CPU time of the process in milliseconds.",
    ),
)  # fmt: skip

BASELINES = (
    Baseline("create", "Create a user's message", "text", 0, "lm15"),
    Baseline("create", "Create an option call", "call", 0, "lm15"),
    Baseline("message_memory", "Memory of a text message", "text", 10000, "lm15"),
    Baseline("history", "Read 10,000 stored messages", "at rest", 10000, "limit"),
    Baseline("append", "Append to a manager with 1,000 messages", "in memory", 1000, "bare_append"),
    Baseline("checkpoint", "Store one record in a session of 10,000", "SQLite", 10000, "bare_row"),
    Baseline("durable_step", "Call in a durable run", "SQLite", 10, "bare_step"),
    Baseline("remote", "Remote call with 10 messages", "one worker", 10, "bare_request"),
    Baseline("throughput", "Remote calls, 32 at once", "four workers", 10000, "bare_request", 32),
    Baseline("actor_message", "Message to an actor", "in memory", 0, "bare_queues"),
    Baseline("actor_phase", "Phase of a thread", "SQLite", 6, "bare_records"),
    Baseline("conversation", "Question after 20,000 messages", "openai.chat", 20000, "pydantic_ai"),
)
SDK = "vendor's SDK"
SDKS = ("openai_sdk", "anthropic_sdk", "google_sdk")
"""Shown as one line, because each of them has one vendor's APIs only."""
SDK = "vendor's SDK"
SDKS = ("openai_sdk", "anthropic_sdk", "google_sdk")
"""Shown as one line, because each of them has one vendor's APIs only."""
NAMES = {"limit": "one pydantic validation", "pydantic_ai": "pydantic-ai, stores nothing"}
"""Baselines that need another name here than in the tables of single rows."""


def comparison(chosen: Comparison, stored: dict[str, Any]) -> str:
    """Return the section of a comparison: heading, text, plot and table."""
    row, measured = ROWS[chosen.row], stored["rows"][chosen.row]
    records = [record for record in measured["records"] if chosen.selects(record)]
    parts = [f"### {chosen.title}", f"{chosen.text} {when(measured)}", markdown(_comparison_table(row, records))]
    if row.curve:
        parts.insert(2, f"![{chosen.title}](performance/{row.name}.svg)")
    if names := dict.fromkeys(LABELS[record["contender"]] for record in records if record.get("refused")):
        parts.append(f"These libraries sent call ids that the API would refuse: {', '.join(names)}.")
    if reasons := sorted(measured["absent"].items()):
        absent = "; ".join(f"{LABELS.get(place, place)} ({reason})" for place, reason in reasons)
        parts.append(f"Not measured: {absent}.")
    return "\n\n".join(parts)


def _comparison_table(row: Row, records: Sequence[Record]) -> list[Line]:
    wires = list(dict.fromkeys(record["wire"] for record in records))
    figures = {(_label(record["contender"]), record["wire"]): row.figure(record) for record in records}
    measured = {label for label, _ in figures}
    lines: list[Line] = [["", *wires]]
    for label in dict.fromkeys(map(_label, LABELS)):
        if label in measured:
            cells = (_cell(figures.get((label, wire)), figures.get(("sabir", wire))) for wire in wires)
            lines.append([label, *cells])
    return lines


def _label(contender: str) -> str:
    if contender in SDKS:
        return SDK
    if contender in SDKS:
        return SDK
    return f"*{LABELS[contender]}*" if contender in HAND_WRITTEN else LABELS[contender]


def _cell(figure: float | None, reference: float | None) -> str:
    if figure is None:
        return "–"
    return f"{significant(figure)} ({significant(figure / reference)})" if reference else significant(figure)


def baselines(stored: dict[str, Any]) -> str:
    """Return the table of what sabir adds to a database row, an engine's step, a request or a queue."""
    lines: list[Line] = [["", "unit", "sabir", "baseline", "ratio"]]
    lines += filter(None, (_baseline_line(each, stored) for each in BASELINES))
    return markdown(lines)


def _baseline_line(chosen: Baseline, stored: dict[str, Any]) -> Line | None:
    row = ROWS[chosen.row]
    records = [
        record
        for record in stored["rows"].get(chosen.row, {"records": []})["records"]
        if (record["wire"], record["size"], record["concurrency"]) == (chosen.wire, chosen.size, chosen.concurrency)
    ]
    own = next((row.figure(record) for record in records if record["contender"] in OWN), None)
    other = next((row.figure(record) for record in records if record["contender"] == chosen.against), None)
    if own is None or other is None:
        return None
    name = NAMES.get(chosen.against) or LABELS[chosen.against]
    return [chosen.title, row.unit, significant(own), f"{significant(other)} ({name})", f"{own / other:.3g}"]


def verdicts(stored: dict[str, Any]) -> Iterator[tuple[Row, Any]]:
    """Yield every goal's verdict with its row."""
    for name, row in ROWS.items():
        measured = stored["rows"].get(name, {"records": [], "absent": {}})
        for goal in row.goals:
            yield row, goal.judge(measured["records"], measured["absent"])


def goals(stored: dict[str, Any]) -> str:
    """Return how many goals are met, and a table of the others with their worst figure."""
    judged = list(verdicts(stored))
    missed = [(row, verdict) for row, verdict in judged if not verdict.met]
    lines: list[Line] = [["benchmark", "goal", "", "worst figure"]]
    lines += [[row.title, verdict.text, verdict.kind, verdict.found or "not measured"] for row, verdict in missed]
    total = f"{len(judged) - len(missed)} of {len(judged)} goals are met. These are not:"
    return f"{total}\n\n{markdown(lines).replace('--:', '---')}"


def when(measured: dict[str, Any]) -> str:
    """Return the sentence that says on which day a row was measured."""
    return f"Measured {measured['date']}."


def versions(stored: dict[str, Any]) -> str:
    """Return the paragraph with the machine and the versions of all libraries."""
    numbers = {name: version for installed in stored["versions"].values() for name, version in installed.items()}
    shown = ", ".join(f"{name} {numbers[name]}" for name in results.SHOWN if name in numbers)
    return f"Machine: {'; '.join(_machines(stored['rows'].values()))}. Versions: {shown}."


def _machines(rows: Iterable[dict[str, Any]]) -> list[str]:
    machines = (row["machine"] for row in rows)
    texts = (
        f"{each['cores']} cores ({each['processor']}, {each['system']}), Python {each['python']}" for each in machines
    )
    return list(dict.fromkeys(texts))


def measured_part(stored: dict[str, Any]) -> str:
    """Return the generated part of the page."""
    tables = [comparison(each, stored) for each in COMPARISONS if each.row in stored["rows"]]
    runs = ["### Sessions, runners and actors", baselines(stored)]
    if ROWS["checkpoint"].curve:
        runs.append("![A record stored in a session](performance/checkpoint.svg)")
    return "\n\n".join([versions(stored), *tables, *runs, "## Goals", goals(stored)])


def with_measured(page: str, stored: dict[str, Any]) -> str:
    """Return the page with its generated part replaced."""
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    part = f"{BEGIN}\n{measured_part(stored)}\n{END}"
    return between.sub(lambda _: part, page)


def main() -> None:
    """Write the page and the plots from the results file that the command line names."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else results.STORED
    PAGE.write_text(with_measured(PAGE.read_text("utf-8"), results.load(path)), "utf-8")
    python = environments.python_of(environments.PLOTS.stem)
    command = [str(python), "-m", "benchmarks.plots", str(path), str(results.FOLDER)]
    subprocess.run(command, cwd=ROOT, env=environments.variables(), check=True)


if __name__ == "__main__":
    main()
