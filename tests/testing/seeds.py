"""Verdicts of the kit under many seeds: `python -m tests.testing.seeds --seeds 20`.

    subject × seed ──▶ the cases that fail        a subject whose verdict depends on the seed is a fault of the kit

The subjects are the suites of echo and of the template, which pass, and broken adapters of the families laws and
handover, each of which fails its case. Of the suites only the random cases run; no other case uses the seed.
"""

import argparse
import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sabir_testing.families.decoding_laws import DecodingLaws
from sabir_testing.families.laws import LawCases
from sabir_testing.kit.suite import Suite, case_names

from tests import acme_path  # noqa: F401  # first: the modules below import sabir_acme
from tests.conformance.suites import Echo
from tests.testing.broken import handover, laws
from tests.testing.harness import Breakage, fails, run, sound

EXAMPLES = 100
"""The default of `Suite.examples`."""
FIRST_SEED = 1
RANDOM = {name for family in (LawCases, DecodingLaws) for name in vars(family) if name.startswith("test_")}
"""The cases with random examples."""
MODULE = "test_suite"
Verdict = tuple[str, ...]
"""The names of the failed cases."""
Subject = Callable[["SeededRun", int], Verdict]
"""Returns the verdict of a run, with a number of examples for each law."""


class _Reports:
    """A pytest plugin that collects the reports of a run."""

    def __init__(self) -> None:
        self.reports: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)

    def getreports(self, names: str) -> list[pytest.TestReport]:
        """Return the reports, as pytester's recorder does."""
        return self.reports


class SeededRun:
    """The part of `pytest.Pytester` that the harness uses, in a folder, with one seed for all runs."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed

    def makepyfile(self, **texts: str) -> None:
        """Write the test files."""
        for name, text in texts.items():
            (self.folder / f"{name}.py").write_text(text, "utf-8")

    def inline_run(self, *arguments: str) -> _Reports:
        """Run pytest in this process, and return the reports."""
        reports, path = _Reports(), list(sys.path)
        here = ("--rootdir", str(self.folder), "-c", str(self.folder / "pytest.ini"), "--assert=plain")
        (self.folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()):
                pytest.main([*here, "--sabir-seed", str(self.seed), *arguments], plugins=[reports])
        finally:
            sys.path[:] = path
            sys.modules.pop(MODULE, None)
        return reports


def _of_suite(suite: type[Suite]) -> Subject:
    def verdict(session: Any, examples: int) -> Verdict:
        limited = type(suite.__name__, (suite,), {"examples": examples})
        others = [case for case in case_names(limited) if case not in RANDOM]
        outcomes = run(session, limited, *(f"--deselect={MODULE}.py::TestSuite::{case}" for case in others))
        assert {each.name for each in outcomes} == RANDOM
        return tuple(each.name for each in outcomes if each.failed)

    return verdict


def _of_breakage(breakage: Breakage, case: str) -> Subject:
    base = case.partition("[")[0]  # the rows of other sources pass
    return lambda session, examples: (base,) if fails(session, breakage, base, examples) else ()


def subjects() -> Mapping[str, Subject]:
    """Return all subjects by their names."""
    broken = {**laws.BROKEN, **handover.BROKEN}
    bare = {f"{case} (bare)": case for case in BARE_CASES}
    return {
        "the suite of echo": _of_suite(Echo),
        "the suite of the template": _of_suite(sound()),
        **{case: _of_breakage(breakage, case) for case, breakage in broken.items()},
        **{name: _of_breakage(laws.BARE, case) for name, case in bare.items()},
    }


BARE_CASES = ("test_a_turn_renders_alike_as_the_tail_and_closed", "test_every_history_is_a_valid_request")
"""The cases that must fail for `laws.BARE`."""


def verdicts(subject: Subject, seeds: Sequence[int], examples: int = EXAMPLES) -> Iterator[Verdict]:
    """Yield the verdict of a subject for each seed."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            yield subject(SeededRun(Path(folder), seed), examples)


def row_of(name: str, results: Sequence[Verdict]) -> str:
    """Return a row of the table: F for a run with failed cases, a dot for one without."""
    cells = "".join("F" if verdict else "." for verdict in results)
    return f"{cells} {name}{'' if len(set(results)) == 1 else '   <- depends on the seed'}"


def main() -> int:
    """Run the command, and return its exit code: 1 if a verdict depends on the seed, or is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.testing.seeds")
    parser.add_argument("--seeds", type=int, default=20, help="the number of seeds")
    parser.add_argument("--only", default="", help="run only the subjects whose name contains this text")
    arguments = parser.parse_args()
    seeds, wrong = range(FIRST_SEED, FIRST_SEED + arguments.seeds), 0
    print(f"one column for each of the seeds {seeds[0]} to {seeds[-1]}; F: cases fail, dot: none does")
    for name, subject in subjects().items():
        if arguments.only in name:
            results = list(verdicts(subject, seeds))
            wrong += len(set(results)) != 1 or bool(results[0]) is name.startswith("the suite")
            print(row_of(name, results), flush=True)
    print(f"{wrong} subjects have a verdict that is wrong or depends on the seed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
