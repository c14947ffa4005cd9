"""The reports of a run: for each case that did not simply pass, and for each suite at the end.

Broken            as it says itself            any other error   what, and where in the author's code it was raised
a skip            is none: opt out by xfail    a success         of what was expected to fail: the entry has to go

TestAcme: 184 cases, 182 passed, 1 failed, 1 expected to fail
  full         image.url, system, …
  expected to fail
    test_…[seed]: the reason
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Any

import pytest

from sabir_testing.kit import CAPABILITY_PROPERTY, HANDED_OVER, SUITE_PROPERTY, WARNED_PROPERTY
from sabir_testing.kit.broken import Broken
from sabir_testing.kit.capabilities import Grade

COLUMNS = 80
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "error": "could not run",
    "xfailed": "expected to fail",
    "skipped": "skipped",
}
_NARROW = 13


class _Suite:
    """What the reports say of one suite."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.seen: dict[str, str] = {}
        self.excused: dict[str, str] = {}
        self.warned: dict[str, str] = {}
        self.handed_over: list[str] | None = None

    def add(self, outcome: str, report: Any) -> None:
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        for name, value in report.user_properties:
            if name == CAPABILITY_PROPERTY:
                self.seen[value[0]] = value[1]
            if name == HANDED_OVER:
                self.handed_over = list(value)
            if name == WARNED_PROPERTY:
                self.warned[report.nodeid.rpartition("::")[2]] = value
        if outcome == "xfailed":
            self.excused[report.nodeid.rpartition("::")[2]] = getattr(report, "wasxfail", "")

    def lines(self, name: str) -> Iterator[str]:
        told = [f"{self.counts[key]} {words}" for key, words in OUTCOMES.items() if key in self.counts]
        yield f"{name}: {sum(self.counts.values())} cases, {', '.join(told)}"
        for grade in (Grade.FULL, Grade.DOWNGRADED, Grade.REFUSED):
            names = sorted(capability for capability, seen in self.seen.items() if seen == grade)
            if names:
                yield from _hanging(f"  {grade}", ", ".join(names))
        if self.handed_over is not None:
            yield from _hanging("  handed to", ", ".join(self.handed_over) or "nobody")
        yield from _listed("expected to fail", self.excused)
        yield from _listed("new in this release: a failure from the next one on", self.warned)


def summary(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """The lines for the reports of a run, by outcome, as pytest keeps them."""
    suites: dict[str, _Suite] = {}
    for outcome in OUTCOMES:
        for report in stats.get(outcome, ()):
            name = dict(getattr(report, "user_properties", ())).get(SUITE_PROPERTY)
            if name is not None:
                suites.setdefault(str(name), _Suite()).add(outcome, report)
    short = [name.partition("::")[2] for name in suites]
    titles = {name: title if short.count(title) == 1 else name for name, title in zip(suites, short, strict=True)}
    return [line for name, suite in suites.items() for line in suite.lines(titles[name])]


def _hanging(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=head.ljust(_NARROW),
        subsequent_indent=" " * _NARROW,
        break_on_hyphens=False,
    )


def _listed(head: str, cases: Mapping[str, str]) -> Iterator[str]:
    """A head, and below it one case a line with what is said of it; nothing for no cases."""
    if cases:
        yield f"  {head}"
    for case, said in cases.items():
        yield from textwrap.wrap(f"{case}: {said}", COLUMNS, initial_indent="    ", subsequent_indent="      ")


_NOT_THE_AUTHORS = ("site-packages", "dist-packages", "<frozen", "<string>")
_HERE = str(Path(__file__).parents[1])
MOST_FRAMES = 3


def told(error: BaseException) -> str:
    """An error in words: a Broken's own, else its kind and the lines of the author's code that it came through."""
    if isinstance(error, Broken):
        return str(error)
    lines = "\n".join(f"  {line}" for line in _lines(error))
    return f"{type(error).__name__}: {error}\n\nraised at:\n{lines}"


def _lines(error: BaseException) -> list[str]:
    """The last frames that are the author's, and the very last of all."""
    import sabir

    packages = (_HERE, str(Path(sabir.__file__).parent), str(Path(pytest.__file__).parent.parent), *_NOT_THE_AUTHORS)
    frames = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)]
    own = [each for each in frames if not any(part in each[0] for part in packages)]
    shown = list(dict.fromkeys([*own[-MOST_FRAMES:], frames[-1]])) if frames else []
    return [f"{file}:{line}, in {name}" for file, line, name in shown]


def told_of_skip(report: pytest.TestReport, suite: str, case: str) -> str | None:
    """What to write instead of a skip; None for one within the kit: of a marker, or where there is nothing to ask."""
    where = report.longrepr[0] if isinstance(report.longrepr, tuple) else ""
    if str(where).startswith(_HERE):
        return None
    return how_to_opt_out(suite, case)


def how_to_opt_out(suite: str, case: str) -> str:
    """What to write instead of a skip."""
    return f"{suite} skips {case}; to opt out of a case, write xfail = {{{case!r}: 'the reason'}}"


def told_of_success(suite: str, xfail: Mapping[str, str], case: str) -> str:
    """What to take away where a case holds that was expected to fail."""
    entry = case if case in xfail else case.partition("[")[0]
    rows = "" if entry == case else "; an entry without a row expects every row to fail: name those that do"
    reason = xfail.get(entry, "none")
    return f"{case} holds now; take {entry!r} out of {suite}.xfail, which gives the reason: {reason}{rows}"
