"""The page docs/explanation/performance.md, its figures and plots, from stored results.

    python -m tests.benchmarks.report [results.json]

What stands between the page's two marks is written anew; the rest is written by hand.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks import environments, results
from tests.benchmarks.contenders import LABELS
from tests.benchmarks.environments import ROOT
from tests.benchmarks.rows import ROWS
from tests.benchmarks.rows.row import Row
from tests.benchmarks.tables import markdown, places_of, refusals, table

PAGE = ROOT / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- measured -->", "<!-- measured until here -->"


def summary(stored: dict[str, Any]) -> str:
    """Every goal, whether it is a gate or an aim, the worst figure found, and whether it is met."""
    lines = [["of", "goal", "", "worst figure", ""]]
    for name, row in ROWS.items():
        found = stored["rows"].get(name, {"records": [], "absent": {}})
        for goal in row.goals:
            verdict = goal.judge(found["records"], found["absent"])
            lines.append([row.title, verdict.text, verdict.kind, verdict.found or "–", f"**{verdict.word}**"])
    return markdown(lines).replace("--:", "---")


def section(row: Row, found: dict[str, Any]) -> str:
    """A row: what is measured, when and where, its tables, its plot, who is absent and why."""
    text = [f"### {row.title}", row.what, measured(found)]
    records = found["records"]
    if row.curve:
        text.append(f"![{row.title}](performance/{row.name}.svg)")
    for place in places_of(records):
        for view in row.views():
            lines = table(view, records, place)
            lines[0][0] = f"{place}, {view.unit} (× {LABELS[row.reference]})"
            text.append(markdown(lines))
    if named := refusals(records):
        text.append(f"Ids that the wire refuses go out as they came, and are counted as done: {'; '.join(named)}.")
    if found["absent"]:
        reasons = [f"- {LABELS.get(place, place)}: {reason}" for place, reason in sorted(found["absent"].items())]
        text.append("\n".join(["Absent:", "", *reasons]))
    return "\n\n".join(text)


def measured(found: dict[str, Any]) -> str:
    machine = found["machine"]
    loop = machine.get("additions")
    speed = f", where a Python loop of a million additions takes {loop} ms" if loop else ""
    return (
        f"Measured {found['date']} on {machine['cores']} cores ({machine['processor']}, {machine['system']}), "
        f"Python {machine['python']}{speed}."
    )


def setting(stored: dict[str, Any]) -> str:
    versions = {name: version for held in stored["versions"].values() for name, version in held.items()}
    return "Versions: " + ", ".join(f"{name} {versions[name]}" for name in results.SHOWN if name in versions) + "."


def measured_part(stored: dict[str, Any]) -> str:
    rows = [section(row, stored["rows"][name]) for name, row in ROWS.items() if name in stored["rows"]]
    return "\n\n".join([setting(stored), "## Figures", *rows, "## Goals", summary(stored)])


def with_measured(page: str, stored: dict[str, Any]) -> str:
    """The page with its measured part written anew."""
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    made = f"{BEGIN}\n{measured_part(stored)}\n{END}"
    return between.sub(lambda _: made, page)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else results.STORED
    PAGE.write_text(with_measured(PAGE.read_text("utf-8"), results.load(path)), "utf-8")
    python = environments.python_of(environments.PLOTS.stem)
    command = [str(python), "-m", "tests.benchmarks.plots", str(path), str(results.FOLDER)]
    subprocess.run(command, cwd=ROOT, env=environments.variables(), check=True)


if __name__ == "__main__":
    main()
