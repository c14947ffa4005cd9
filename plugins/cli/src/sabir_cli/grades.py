"""The grades of installed packages, as `sabir providers` shows them.

    sabir-grade.json in the package            ──▶ declared
    a result in the cache for the same files   ──▶ verified: `pytest --sabir-grade` passed on this machine

A package whose files change has another digest, so it is only declared until its tests pass here again.
"""

from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, Literal, NamedTuple

import platformdirs
import sabir
from sabir.authoring import PackageGrade, one_line
from sabir.errors import PluginError

from sabir_cli.folders import APP


class GradeState(NamedTuple):
    """The grade of an installed package. `fits` says whether its digest is the digest of the installed files."""

    state: Literal["declared", "verified"]
    grade: PackageGrade
    fits: bool

    def __str__(self) -> str:
        """Return the state in a few words, with the number of passed cases if the grade fits."""
        return f"{self.state}, {self.grade.passed} cases" if self.fits else f"{self.state} for other files"

    @property
    def document(self) -> dict[str, Any]:  # any JSON
        """The grade for `--json`."""
        return {"state": self.state, "fits": self.fits, **asdict(self.grade)}


def results_folder() -> Path:
    """Return the folder in the user's cache in which `pytest --sabir-grade` stores results. It may not exist."""
    return platformdirs.user_cache_path(APP, appauthor=False) / "grades"


def package_grades(statuses: Iterable[sabir.ProviderStatus]) -> tuple[dict[str, GradeState], list[str]]:
    """Return distribution → its grade, for those that have one, and one line for each grade that cannot be read."""
    grades: dict[str, GradeState] = {}
    faults: list[str] = []
    for package, version in dict.fromkeys((each.distribution, each.version) for each in statuses if each.distribution):
        try:
            if grade := _grade_of(package, version):
                grades[package] = grade
        except PackageNotFoundError:  # a distribution that only a test or a program knows
            continue
        except (PluginError, OSError) as error:
            faults.append(f"the grade of {package}: {one_line(str(error))}")
    return grades, faults


def _grade_of(package: str, version: str) -> GradeState | None:
    folder, declared = results_folder(), PackageGrade.declared(package)
    has_results = any(folder.glob(f"{package}-{version}-*.json"))
    if not (declared or has_results):
        return None  # hashing the files of every package would take time
    digest = PackageGrade.digest_of(package)
    path = PackageGrade.stored_path(folder, package, version, digest)
    local = PackageGrade.read(path) if path.exists() else None
    if local and local.fits(package, version, digest):
        return GradeState("verified", local, fits=True)
    return GradeState("declared", declared, declared.fits(package, version, digest)) if declared else None
