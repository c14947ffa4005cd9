"""Write the generated part of docs/explanation/referee.md, and a file for each history that some library fails.

    results.json ──▶ tables between the page's marks
                 └─▶ referee/cells/HISTORY.json    the smallest histories and the bodies of failing cells

The text around the marks is written by hand.
"""

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks import environments
from benchmarks.environments import ROOT
from referee import results
from referee.contenders import CONTENDERS
from referee.judge import COMPLETE, FAILING, RAISED, REPORTED, UNCLAIMED, VERDICTS
from referee.unclaimed import ROWS

Entry = dict[str, Any]
PAGE = ROOT / "docs" / "explanation" / "referee.md"
CELLS = results.FOLDER / "cells"
BEGIN, END = "<!-- judged -->", "<!-- judged until here -->"
SHORT = {"openai.chat": "C", "openai.responses": "R", "anthropic.messages": "A", "google.generate_content": "G"}


def write(stored: Entry) -> None:
    """Write the page, the files of failing cells and the picture."""
    shutil.rmtree(CELLS, ignore_errors=True)
    CELLS.mkdir(parents=True)
    for name in stored["titles"]:
        if failing := [cell for cell in stored["cells"] if cell["history"] == name and "body" in cell]:
            (CELLS / f"{name}.json").write_text(json.dumps(failing, indent=1, ensure_ascii=False) + "\n", "utf-8")
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    part = "\n\n".join([BEGIN, *sections(stored), END])
    PAGE.write_text(between.sub(lambda _: part, PAGE.read_text("utf-8")), "utf-8")
    command = [str(environments.python_of("plots")), "-m", "referee.plots", str(results.STORED)]
    picture = str(results.FOLDER / "referee.svg")
    subprocess.run([*command, picture], cwd=ROOT, env=environments.variables(), check=True)


def sections(stored: Entry) -> Iterator[str]:
    """Yield the paragraphs of the generated part."""
    yield f"Judged {stored['date']} with Python {stored['python']}. {_versions(stored)}"
    yield "![A square for each library, history and API](referee/referee.svg)"
    yield _totals(stored)
    yield "### Every history"
    yield _table(["history", *CONTENDERS.values()], _histories(stored))
    yield "### What failed"
    yield "\n".join(_groups(stored, FAILING))
    yield "### Errors instead of a request"
    yield "\n".join(_groups(stored, (RAISED,)))
    yield "### Not claimed"
    yield "\n".join(_unclaimed(stored))
    yield "### Reported by users"
    yield (
        "Users of these and other libraries reported the faults that the histories show. A report may be fixed "
        "although a library fails its history for another reason."
    )
    yield _table(["report", "history", "libraries that fail or raise an error"], _reports(stored))
    yield "### Recorded conversations"
    yield _recorded(stored)


def _versions(stored: Entry) -> str:
    numbers = (
        f"{CONTENDERS[name]}: {', '.join(f'{each} {number}' for each, number in sorted(installed.items()))}"
        for name, installed in stored["versions"].items()
    )
    return f"Versions: {'; '.join(numbers)}. The types are those of {stored['types']}."


def _totals(stored: Entry) -> str:
    counted = Counter((cell["library"], cell["verdict"]) for cell in stored["cells"])
    lines = [[verdict, *(str(counted[name, verdict]) for name in CONTENDERS)] for verdict in VERDICTS]
    return _table(["cells", *CONTENDERS.values()], lines)


def _histories(stored: Entry) -> Iterator[list[str]]:
    for name, title in stored["titles"].items():
        yield [title, *(_summary(stored, name, library) for library in CONTENDERS)]


def _summary(stored: Entry, history: str, library: str) -> str:
    """Return the verdicts of a library on a history, each with its APIs unless all are equal."""
    cells = [cell for cell in stored["cells"] if (cell["history"], cell["library"]) == (history, library)]
    groups: dict[str, list[str]] = {}
    for cell in cells:
        groups.setdefault(cell["verdict"], []).append(SHORT[cell["wire"]])
    shown = []
    for verdict in sorted(groups, key=VERDICTS.index):
        text = f"[{verdict}](referee/cells/{history}.json)" if verdict in FAILING else verdict
        shown.append(text if len(groups) == 1 else f"{text} {''.join(groups[verdict])}")
    return ", ".join(shown)


def _groups(stored: Entry, verdicts: Iterable[str]) -> Iterator[str]:
    """Yield a line for each history, with its reasons and the libraries and APIs that fail for each of them."""
    for name, title in stored["titles"].items():
        reasons: dict[str, dict[str, str]] = {}
        for cell in stored["cells"]:
            if cell["history"] == name and cell["verdict"] in verdicts:
                reason = f"`{_plain(cell['reasons'][0])}`" if cell["reasons"] else f"without {_kinds(cell['lost'])}"
                libraries = reasons.setdefault(f"{cell['verdict']}, {reason}", {})
                label = CONTENDERS[cell["library"]]
                libraries[label] = libraries.get(label, "") + SHORT[cell["wire"]]
        if reasons:
            texts = (
                f"{reason} ({', '.join(' '.join(each) for each in own.items())})" for reason, own in reasons.items()
            )
            yield f"- **{title}**: {'; '.join(texts)}"


def _kinds(lost: list[str]) -> str:
    counted = Counter(each.rpartition(" ")[0] for each in lost)
    names = {"pair": "the right call for a result"}
    return ", ".join(names.get(kind, f"the {kind}") for kind in counted)


def _plain(reason: str) -> str:
    """Return a reason as one short line without the characters that end code in Markdown."""
    text = re.sub(r"MARK\d{4}", "…", " ".join(reason.split())).replace("`", "'")
    return f"{text[:117]}…" if len(text) > 120 else text


def _unclaimed(stored: Entry) -> Iterator[str]:
    for row in ROWS:
        cells = [
            cell
            for cell in stored["cells"]
            if cell["verdict"] == UNCLAIMED and (cell["library"], cell["claim"]) == (row.library, row.reason)
        ]
        titles = dict.fromkeys(stored["titles"][cell["history"]] for cell in cells)
        if cells:
            yield f"- {CONTENDERS[row.library]} ({', '.join(titles)}): {row.reason}."


def _reports(stored: Entry) -> Iterator[list[str]]:
    for name, faults in stored["faults"].items():
        failing = (
            CONTENDERS[library]
            for library in CONTENDERS
            if any(
                (cell["history"], cell["library"]) == (name, library) and cell["verdict"] in (*FAILING, RAISED)
                for cell in stored["cells"]
            )
        )
        links = (f"[{fault}](https://github.com/{fault.replace('#', '/issues/')})" for fault in faults)
        yield [", ".join(links), stored["titles"][name], ", ".join(failing) or "none"]


def _recorded(stored: Entry) -> str:
    if not stored["recorded"]:
        return "The recordings were not on the machine that judged, so no recorded conversation is included."
    number = len({each["conversation"] for each in stored["recorded"]})
    lines = []
    for verdict in (COMPLETE, REPORTED, *FAILING):
        row = [verdict]
        for name in CONTENDERS:
            own = [each for each in stored["recorded"] if (each["library"], each["verdict"]) == (name, verdict)]
            row.append(str(len(own)) + (f" ({_why(own)})" if own and verdict != COMPLETE else ""))
        lines.append(row)
    text = f"{number} conversations, each joined from recorded requests to three vendors, sent to four APIs."
    return f"{text}\n\n{_table(['cells', *CONTENDERS.values()], lines)}"


def _why(cells: list[Entry]) -> str:
    return ", ".join(dict.fromkeys(reason for cell in cells for reason in (cell["reasons"] or cell["lost"])))


def _table(head: list[str], lines: Iterable[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
