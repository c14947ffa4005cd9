"""Reports: the text of a failed test case, the advice for other outcomes, and the summary of each suite.

the failure      as `sabir_testing.kit.failures` writes it
the rule, the page                          added by the pytest plugin: the case's docstring, and its documentation

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
import sabir

from sabir_testing.kit import CAPABILITY_PROPERTY, HANDED_OVER, SUITE_PROPERTY, WARNED_PROPERTY
from sabir_testing.kit.failures import ConformanceFailure

COLUMNS = 80
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "error": "could not run",
    "xfailed": "expected to fail",
    "skipped": "skipped",
}
_NARROW = 13


class _SuiteSummary:
    """The results of one suite, from pytest's reports."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.seen: dict[str, str] = {}
        self.expected_failures: dict[str, str] = {}
        self.warned: dict[str, str] = {}
        self.handed_over: list[str] | None = None

    def add(self, outcome: str, report: Any) -> None:
        """Add the report of one test case."""
        case, properties = report.nodeid.rpartition("::")[2], dict(report.user_properties)
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        self.seen |= [value for name, value in report.user_properties if name == CAPABILITY_PROPERTY]
        self.handed_over = properties.get(HANDED_OVER, self.handed_over)
        if WARNED_PROPERTY in properties:
            self.warned[case] = properties[WARNED_PROPERTY]
        if outcome == "xfailed":
            self.expected_failures[case] = getattr(report, "wasxfail", "")

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of the summary. `name` is the suite's name."""
        counts = [f"{self.counts[key]} {words}" for key, words in OUTCOMES.items() if key in self.counts]
        yield f"{name}: {sum(self.counts.values())} cases, {', '.join(counts)}"
        for grade in ("full", "downgraded", "refused"):
            if names := sorted(capability for capability, seen in self.seen.items() if seen == grade):
                yield from _wrap_after(f"  {grade}", ", ".join(names))
        if self.handed_over is not None:
            yield from _wrap_after("  handed to", ", ".join(self.handed_over) or "no provider")
        yield from _list_cases("expected to fail", self.expected_failures)
        heading = "new cases that failed (only a warning in this release, or for this api_version)"
        yield from _list_cases(heading, self.warned)


def summary(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the lines of the summary, from pytest's reports by outcome."""
    suites: dict[str, _SuiteSummary] = {}
    for outcome in OUTCOMES:
        for report in stats.get(outcome, ()):
            name = dict(getattr(report, "user_properties", ())).get(SUITE_PROPERTY)
            if name is not None:
                suites.setdefault(str(name), _SuiteSummary()).add(outcome, report)
    short = [name.partition("::")[2] for name in suites]
    titles = {name: title if short.count(title) == 1 else name for name, title in zip(suites, short, strict=True)}
    return [line for name, suite in suites.items() for line in suite.lines(titles[name])]


def _wrap_after(head: str, text: str) -> list[str]:
    first, later = head.ljust(_NARROW), " " * _NARROW
    return textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _list_cases(head: str, cases: Mapping[str, str]) -> Iterator[str]:
    """Yield a heading and one line for each case with its reason, or nothing if there are no cases."""
    if cases:
        yield f"  {head}"
    for case, reason in cases.items():
        yield from textwrap.wrap(f"{case}: {reason}", COLUMNS, initial_indent="    ", subsequent_indent="      ")


_LIBRARY_PATHS = ("site-packages", "dist-packages", "<frozen", "<string>")
_KIT_FOLDER = str(Path(__file__).parents[1])
MOST_FRAMES = 3


def failure_text(error: BaseException) -> str:
    """Return the text for an error: a ConformanceFailure's own text, otherwise the error and the last lines of the
    author's code.
    """
    if isinstance(error, ConformanceFailure):
        return str(error)
    installed = str(Path(sabir.__file__).parent), str(Path(pytest.__file__).parent.parent)
    frames = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)]
    libraries = (_KIT_FOLDER, *installed, *_LIBRARY_PATHS)
    author_frames = [frame for frame in frames if not any(part in frame[0] for part in libraries)]
    locations = dict.fromkeys([*author_frames[-MOST_FRAMES:], *frames[-1:]])
    lines = "\n".join(f"  {file}:{line}, in {name}" for file, line, name in locations)
    return f"{type(error).__name__}: {error}\n\nraised at:\n{lines}"


def advice_for_skip(report: pytest.TestReport, suite: str, case: str) -> str | None:
    """Return the advice for a skipped case, or None if the kit itself skipped it."""
    where = report.longrepr[0] if isinstance(report.longrepr, tuple) else ""
    if str(where).startswith(_KIT_FOLDER):
        return None
    return how_to_opt_out(suite, case)


def how_to_opt_out(suite: str, case: str) -> str:
    """Return the advice for a skipped case."""
    return f"{suite} skips {case}, which is not allowed; to opt out, write xfail = {{{case!r}: 'the reason'}}"


def advice_for_success(suite: str, xfail: Mapping[str, str], case: str) -> str:
    """Return the advice for a case that passed although `xfail` lists it."""
    entry = case if case in xfail else case.partition("[")[0]
    rows = "" if entry == case else f". {entry!r} expects every row to fail; name only the rows that fail, as {case!r}"
    reason = xfail.get(entry, "none")
    return f"{case} passes now; remove {entry!r} from {suite}.xfail (its reason: {reason}){rows}"
