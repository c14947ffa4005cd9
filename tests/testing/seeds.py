"""Verdicts of the kit under many seeds: `python -m tests.testing.seeds --seeds 20`.

    subject × seed ──▶ the cases that fail        a subject whose verdict depends on the seed is a fault of the kit

The subjects are suites, which pass (those of tests/conformance that ask no embedded model, of the template and of
lantern), and broken adapters of the families laws and handover, each of which fails its case. Only random cases run; no
other case uses the seed. With `--others`, the random cases also run on the adapters that only another case may stop.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sabir_testing.families.decoding_laws import DecodingLaws
from sabir_testing.families.laws import LawCases
from sabir_testing.kit.suite import Suite, case_names

from tests import acme_path  # noqa: F401  # first: the modules below import sabir_acme
from tests.conformance.suites import SUITES, Echo
from tests.testing.broken import handover, laws
from tests.testing.harness import Breakage, fails, registered, run, sound, suite_of
from tests.testing.test_kit import BROKEN
from tests.third_party.lantern_suite import lantern_suite

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
    return lambda session, examples: _failed_random_cases(session, suite, examples)


def _of_other_breakage(breakage: Breakage) -> Subject:
    """Return the subject of an adapter that no random case may stop."""

    def verdict(session: Any, examples: int) -> Verdict:
        with registered(breakage) as name:
            return _failed_random_cases(session, suite_of(name, breakage, examples), examples)

    return verdict


def _failed_random_cases(session: Any, suite: type[Suite], examples: int) -> Verdict:
    limited = type(suite.__name__, (suite,), {"examples": examples})
    others = [case for case in case_names(limited) if case not in RANDOM]
    outcomes = run(session, limited, *(f"--deselect={MODULE}.py::TestSuite::{case}" for case in others))
    assert {each.name for each in outcomes} == RANDOM
    return tuple(each.name for each in outcomes if each.failed)


def _of_breakage(breakage: Breakage, case: str) -> Subject:
    base = case.partition("[")[0]  # the rows of other sources pass
    return lambda session, examples: (base,) if fails(session, breakage, base, examples) else ()


def further_suites() -> Mapping[str, Subject]:
    """Return the suites that only the command runs. `local` asks an embedded model, and has the dialect of OpenAI."""
    recorded = {name: suite for name, suite in SUITES.items() if name not in ("echo", "local")}
    return {
        f"the suite of {name}": _of_suite(suite) for name, suite in {**recorded, "lantern": lantern_suite()}.items()
    }


def other_breakages() -> Mapping[str, Subject]:
    """Return the adapters with another dialect that only a case without random examples may stop. Random cases use
    neither the provider nor its connection, so adapters with another one are left out.
    """
    others = ((case, breakage) for _, case, breakage in BROKEN if case.partition("[")[0] not in RANDOM)
    return {f"other: {case}": _of_other_breakage(breakage) for case, breakage in others if breakage.dialect}


def subjects() -> Mapping[str, Subject]:
    """Return the subjects that the tests of the kit try, too, by their names."""
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
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="the number of random examples for each law")
    parser.add_argument("--others", action="store_true", help="run only the adapters that no random case may stop")
    parser.add_argument("--only", default="", help="run only the subjects whose name contains this text")
    arguments = parser.parse_args()
    seeds, wrong = range(FIRST_SEED, FIRST_SEED + arguments.seeds), 0
    print(f"one column for each of the seeds {seeds[0]} to {seeds[-1]}; F: cases fail, dot: none does")
    chosen = other_breakages() if arguments.others else {**further_suites(), **subjects()}
    chosen = {name: subject for name, subject in chosen.items() if arguments.only in name}
    start = time.process_time()
    for name, subject in chosen.items():
        results = list(verdicts(subject, seeds, arguments.examples))
        is_broken = not name.startswith(("the suite", "other"))
        wrong += len(set(results)) != 1 or bool(results[0]) is not is_broken
        print(row_of(name, results), flush=True)
    seconds = time.process_time() - start
    print(f"{wrong} of {len(chosen)} subjects have a wrong verdict, or one that depends on the seed")
    print(f"{seconds:.0f} s of processor time")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
