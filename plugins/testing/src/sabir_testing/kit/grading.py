"""Grades: the result of a complete run of the kit, written for the package whose provider it tested.

pytest's reports ──by distribution──▶ all cases passed? ──▶ PackageGrade ──▶ the user's cache, and --sabir-grade-file
                                          └── no: one line with the reason, and nothing is written

A run of the author declares a grade. A run on the user's machine verifies it, for the version and the digest of the
installed files.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import platformdirs
import sabir
from sabir.authoring import PackageGrade, replace_file

from sabir_testing.kit import GRADED_PROPERTY, SUITE_PROPERTY

_OUTCOMES = ("passed", "failed", "error", "xfailed", "skipped")


class _PackageRun:
    """The results of the suites of one distribution."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(_OUTCOMES, 0)
        self.cases: dict[str, set[str]] = {}
        self.expected: dict[str, int] = {}
        self.examples: set[int] = set()

    def add(self, outcome: str, report: Any, cases: int, examples: int) -> None:
        """Add one of pytest's reports."""
        suite = str(dict(report.user_properties)[SUITE_PROPERTY])
        self.counts[outcome] += 1
        self.cases.setdefault(suite, set()).add(report.nodeid.rpartition("::")[2].partition("[")[0])
        self.expected[suite] = cases
        self.examples.add(examples)

    @property
    def fault(self) -> str:
        """Why the run cannot be graded; "" if it can."""
        if broken := self.counts["failed"] + self.counts["error"]:
            return f"{broken} cases failed"
        missing = sum(self.expected[suite] - len(cases) for suite, cases in self.cases.items())
        return f"{missing} cases of the kit did not run; run the whole suite" if missing else ""


def results_folder() -> Path:
    """Return the folder in the user's cache with the results of graded runs. It may not exist."""
    return platformdirs.user_cache_path("sabir", appauthor=False) / "grades"


def write_grades(stats: Mapping[str, Sequence[Any]], *, seed: int, remember: bool, file: str | None) -> Iterator[str]:
    """Write the grade of each distribution that was tested, and yield one line for each.

    `stats` are pytest's reports by outcome. `remember` writes to the user's cache. `file` is the path of
    `--sabir-grade-file`, for the tests of one distribution; None to write none.
    """
    runs, unknown = _runs_by_package(stats)
    for provider in unknown:
        yield f"no grade: no installed package has the provider {provider!r}; install the package, then run the tests"
    if file and len(runs) > 1:
        yield f"no grade: the tests are of {' and '.join(runs)}, and --sabir-grade-file needs the tests of one package"
        return
    for package, run in runs.items():
        if run.fault:
            yield f"no grade of {package}: {run.fault}"
            continue
        grade = PackageGrade(
            package=package,
            version=version(package),
            digest=PackageGrade.digest_of(package),
            kit=version("sabir-testing"),
            seed=seed,
            suites=tuple(sorted(suite.rpartition("::")[2] for suite in run.cases)),
            examples=min(run.examples),
            passed=run.counts["passed"],
            expected_failures=run.counts["xfailed"],
        )
        yield f"grade of {package} {grade.version}: {grade.passed} cases passed with the kit {grade.kit}, seed {seed}"
        in_cache = PackageGrade.stored_path(results_folder(), package, grade.version, grade.digest)
        for path in (*([in_cache] if remember else ()), *([Path(file)] if file else ())):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, grade.as_json())
            yield f"  written to {path}"


def _runs_by_package(stats: Mapping[str, Sequence[Any]]) -> tuple[dict[str, _PackageRun], list[str]]:
    """Return the runs by distribution, and the names of the providers without one."""
    installed = {each.name: each.distribution for each in sabir.providers() if each.state == "installed"}
    runs: dict[str, _PackageRun] = {}
    unknown: dict[str, None] = {}
    for outcome in _OUTCOMES:
        for report in stats.get(outcome, ()):
            properties = dict(getattr(report, "user_properties", ()))
            if GRADED_PROPERTY not in properties:
                continue
            provider, cases, examples = properties[GRADED_PROPERTY]
            if package := installed.get(provider):
                runs.setdefault(package, _PackageRun()).add(outcome, report, cases, examples)
            else:
                unknown[provider] = None
    return runs, list(unknown)
