"""The grade of a provider's package: the result of the conformance kit for exactly these files.

    files of the package ──SHA-256──▶ digest
    sabir-grade.json in the package   written by its author: the grade is declared
    FOLDER/PACKAGE-VERSION-….json     written by a run on this machine: the grade is verified, if the digest is equal

The digest covers the files of the import packages that have the distribution's providers, not the grade itself. So the
author can write the grade before the wheel is built, and an editable installation has the digest of its wheel.
"""

import hashlib
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from pydantic import ValidationError

from sabir.base.errors import PluginError
from sabir.base.models import StoredModel, describe_validation_error, load_stored
from sabir.base.values import decode_json
from sabir.discovery import PROVIDERS


class PackageGrade(StoredModel):
    """The result of the conformance kit for the files of one package. `pytest --sabir-grade` creates it.

    `package` and `version` are those of the distribution, `digest` is the digest of its files. `kit` is the version of
    sabir-testing. `seed` is the seed of the random examples, of which each law has at least `examples`. `suites` are
    the names of the suites, `passed` is the number of passed cases, and `expected_failures` the number of cases that
    the suites expect to fail.
    """

    FILE: ClassVar[str] = "sabir-grade.json"
    """The name of the file in the import package."""

    package: str
    version: str
    digest: str
    kit: str
    seed: int
    suites: tuple[str, ...]
    examples: int
    passed: int
    expected_failures: int

    @staticmethod
    def folders(package: str) -> list[Path]:
        """Return the folders of the import packages with the providers of a distribution.

        Raises importlib.metadata.PackageNotFoundError for a distribution that is not installed.
        """
        points = distribution(package).entry_points.select(group=PROVIDERS)
        specs = map(find_spec, sorted({point.module.partition(".")[0] for point in points}))
        return [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]

    @classmethod
    def digest_of(cls, package: str) -> str:
        """Return the digest of an installed distribution's files, without caches, hidden files and the grade. Raises
        like `folders`, and OSError.
        """
        digest = hashlib.sha256()
        for folder in cls.folders(package):
            for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).parts):
                parts = path.relative_to(folder).parts
                is_left_out = path.suffix == ".pyc" or any(each.startswith((".", "__pycache__")) for each in parts)
                if path.is_file() and path.name != cls.FILE and not is_left_out:
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                    digest.update(f"{folder.name}/{'/'.join(parts)} {content}\n".encode())
        return f"sha256:{digest.hexdigest()}"

    @classmethod
    def declared(cls, package: str) -> "PackageGrade | None":
        """Return the grade that a distribution contains; None if there is none. Raises like `folders` and `read`."""
        paths = (folder / cls.FILE for folder in cls.folders(package))
        return next((cls.read(path) for path in paths if path.exists()), None)

    @classmethod
    def read(cls, path: Path) -> "PackageGrade":
        """Return the grade in a file. Raises PluginError for a file without one, and OSError."""
        try:
            return load_stored(cls.model_validate, decode_json(path.read_text("utf-8")))
        except (ValueError, ValidationError) as error:
            reason = describe_validation_error(error) if isinstance(error, ValidationError) else error
            raise PluginError(
                f"{str(path)!r} is not a grade: {reason}; write it with pytest --sabir-grade-file, or remove it"
            ) from None

    @classmethod
    def result(cls, folder: Path, package: str, version: str, digest: str) -> "PackageGrade | None":
        """Return the result in a folder of results for this version and digest; None if there is none. Raises like
        `read`.
        """
        path = cls.result_path(folder, package, version, digest)
        grade = cls.read(path) if path.exists() else None
        return grade if grade and (grade.package, grade.version, grade.digest) == (package, version, digest) else None

    @staticmethod
    def result_path(folder: Path, package: str, version: str, digest: str) -> Path:
        """Return the path in a folder of results for a result of this version and digest."""
        return folder / f"{package}-{version}-{digest.partition(':')[2][:16]}.json"
