"""All cells: each library with each history at each wire, and the smallest history with which a failing cell fails.

histories/*.json ──▶ worker of a library ──▶ judge ──▶ cell    refused or lost silently ──▶ messages are removed
recordings ────────▶                                           while the verdict and its reasons stay
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks import environments
from referee import judge, recorded
from referee.contenders import CONTENDERS, MODELS
from referee.judge import FAILING, RAISED, REPORTED, SILENT, UNCLAIMED
from referee.unclaimed import reason_for

Entry = dict[str, Any]
HISTORIES = Path(__file__).with_name("histories")
CONTROL = "plain"


def histories() -> dict[str, Entry]:
    """Return all histories by name, the control first."""
    named = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(HISTORIES.glob("*.json"))}
    return {CONTROL: named.pop(CONTROL), **dict(sorted(named.items(), key=lambda each: str(each[1]["title"])))}


class Library:
    """A library in its own process and environment, for the duration of a `with` block."""

    def __init__(self, name: str) -> None:
        self.name = name
        command = [str(environments.python_of(name)), "-m", "referee.worker", name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            cwd=environments.ROOT, env=environments.variables(),
        )  # fmt: skip
        self.usual = {wire: self.request(wire, histories()[CONTROL])["reports"] for wire in MODELS}

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, frames: TracebackType | None) -> None:
        self.process.terminate()
        self.process.wait()

    def request(self, wire: str, history: Entry) -> Entry:
        """Return the library's answer: body, error and reports."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps({"wire": wire, "history": history}) + "\n")
        stdin.flush()
        answer: Entry = json.loads(stdout.readline())
        return answer

    def judged(self, wire: str, history: Entry) -> tuple[Entry, Entry]:
        """Return verdict and answer; a report counts only if it vanishes together with the content that was lost."""
        answer = self.request(wire, history)
        verdict = judge.judge(history, wire, answer, self.usual[wire])
        if verdict["verdict"] == REPORTED and any(
            judge.says_nothing_of(verdict["reports"], self.request(wire, without(history, mark))["reports"])
            for mark in verdict["marks"]
        ):
            verdict["verdict"] = SILENT
        return verdict, answer

    def cell(self, wire: str, name: str, history: Entry) -> Entry:
        """Return the cell of a stored history; a failing one with its smallest history and body."""
        verdict, answer = self.judged(wire, history)
        cell = {"library": self.name, "history": name, "wire": wire, **verdict}
        claim = reason_for(self.name, name, wire)
        if claim and verdict["verdict"] in (*FAILING, RAISED):
            cell.update(verdict=UNCLAIMED, claim=claim)
        elif verdict["verdict"] in FAILING:
            smallest, answer = self.smallest(wire, history, verdict, answer)
            cell.update(smallest=smallest["messages"], body=answer["body"])
        cell.pop("marks")
        cell["reports"] = [re.sub(r"\b[0-9a-f]{8}\b", "…", each) for each in cell["reports"]]  # random ids
        return cell

    def smallest(self, wire: str, history: Entry, verdict: Entry, answer: Entry) -> tuple[Entry, Entry]:
        """Remove messages while the library still fails for the same reason."""
        number = len(history["messages"]) - 1
        while number >= 0:
            fewer = _without_message(history, number)
            if fewer["messages"]:
                other, sent = self.judged(wire, fewer)
                if _same_failure(verdict, other):
                    history, answer = fewer, sent
            number -= 1
        return history, answer


def without(history: Entry, mark: judge.Mark) -> Entry:
    """Return the history without the message, the setting or the option's words that a mark stands in."""
    if mark.message is not None:
        return _without_message(history, mark.message)
    if mark.kind.startswith("setting"):
        return {name: each for name, each in history.items() if name != "settings"}
    return {**history, "options": []}


def _without_message(history: Entry, number: int) -> Entry:
    return {**history, "messages": [each for place, each in enumerate(history["messages"]) if place != number]}


def _same_failure(verdict: Entry, other: Entry) -> bool:
    if verdict["verdict"] == SILENT:
        return other["verdict"] == SILENT and bool(set(other["lost"]) & set(verdict["lost"]))
    reasons, others = ({judge.shape(each) for each in one["reasons"]} for one in (verdict, other))
    return other["verdict"] == verdict["verdict"] and others <= reasons


def play(names: list[str], tell: Callable[[str], None]) -> Entry:
    """Return all cells of the libraries, and their verdicts on recorded conversations."""
    cells: list[Entry] = []
    joined = recorded.conversations()
    tallies: list[Entry] = []
    for name in names:
        tell(f"{CONTENDERS[name]}: {len(histories())} histories, {len(joined)} recorded conversations")
        with Library(name) as library:
            cells += [library.cell(wire, title, each) for title, each in histories().items() for wire in MODELS]
            tallies += _recorded(library, joined)
    return {"cells": cells, "recorded": tallies}


def _recorded(library: Library, joined: dict[str, Entry]) -> Iterator[Entry]:
    """Yield the verdict on each recorded conversation, without any of its content."""
    for name, history in joined.items():
        for wire in MODELS:
            verdict, _ = library.judged(wire, history)
            kinds = sorted({mark.kind for mark in verdict["marks"]})
            reasons = sorted({judge.shape(reason).split(":")[0] for reason in verdict["reasons"]})
            place = {"library": library.name, "conversation": name, "wire": wire}
            yield {**place, "verdict": verdict["verdict"], "lost": kinds, "reasons": reasons}


def versions(names: list[str]) -> dict[str, dict[str, str]]:
    """Return the versions of the packages that each library's environment has, of those that matter here."""
    shown = ("pydantic-ai", "litellm", "langchain", "lm15", "openai", "anthropic", "google-genai", "sabir")
    return {
        name: {each: version for each, version in environments.versions_of(name).items() if each.startswith(shown)}
        for name in names
    }
