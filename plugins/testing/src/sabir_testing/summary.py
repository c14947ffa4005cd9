"""What is said of each suite at the end of a run, in lines of at most 80 characters.

TestAcme: 184 cases, 182 passed, 1 failed, 1 expected to fail
  full         image.url, system, …
  expected to fail
    test_…[seed]: the reason
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sabir_testing.capabilities import Grade
from sabir_testing.plugin import SUITE_PROPERTY, WARNED_PROPERTY
from sabir_testing.subject import CAPABILITY_PROPERTY, HANDED_OVER

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
            yield from _hanging("  handed to", ", ".join(self.handed_over) or "nobody: no other provider is installed")
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
