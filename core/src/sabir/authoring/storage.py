"""Helpers for packages that store data: the names of stored types, the errors of databases, and grades of packages.

    class Note:                                            written as "app.note"; read under all three names:
        stored_as: ClassVar[str] = "app.note"                  app.note
        stored_before: ClassVar[tuple[str, ...]] = (           app.memo
            "app.memo", "old.module:Note",                     old.module:Note
        )

    an error of sqlite3 or psycopg ──DatabaseFailure──▶ "database disk image is malformed; restore the store from …"

    files of a provider's package ──SHA-256──▶ digest
    sabir-grade.json in the package             written by its author: the grade is declared
    FOLDER/PACKAGE-VERSION-….json               written by a run on this machine: verified, if the digest is equal

Law: a class with `stored_as` can be moved and renamed, and stored data stays readable. A name applies to the class that
assigns it, not to its subclasses. The message of a database's error is one line with the remedy, without passwords. Its
codes are those of SQLite (https://www.sqlite.org/rescode.html) and the SQLSTATEs of Postgres
(https://www.postgresql.org/docs/current/errcodes-appendix.html). A grade's digest covers the import packages with the
distribution's providers, so an editable installation has the digest of its wheel.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, NamedTuple
from urllib.parse import quote

from sabir.base.errors import PluginError, one_line


class StoredNames(NamedTuple):
    """The name under which values of a type are stored, and earlier names that are still accepted when reading. Created
    by `StoredNames.of`.

    A class sets the names in `stored_as` and `stored_before`, so that the class can be renamed or moved.
    """

    name: str
    """The name that is written."""
    earlier: tuple[str, ...] = ()
    """Earlier names that are still read."""

    @property
    def all(self) -> tuple[str, ...]:
        """The name and all earlier names."""
        return (self.name, *self.earlier)

    @classmethod
    def of(cls, stored_type: type, default: str) -> "StoredNames":
        """Return the stored names of a class, from its attributes `stored_as` and `stored_before`. Inherited attributes
        do not count.

        `default` is the name for a class without `stored_as`. For a class with `stored_as` and without `stored_before`,
        `default` is an earlier name.
        """
        data = {field.name for field in fields(stored_type)} if is_dataclass(stored_type) else set[str]()
        own = {name: value for name, value in vars(stored_type).items() if name not in data}
        name, earlier = own.get("stored_as"), own.get("stored_before")
        earlier = tuple(earlier) if isinstance(earlier, tuple | list) else None
        if not (name and isinstance(name, str)):
            return cls(default, earlier or ())
        if earlier is None:
            earlier = (default,)
        return cls(name, tuple(each for each in earlier if each != name))


_DAMAGE = "restore the store from a backup, or use another store"
_ROOM = "free space on the store's disk, and try again"
_REMEDIES: dict[int | str | None, str] = {
    11: _DAMAGE,  # SQLITE_CORRUPT (https://www.sqlite.org/rescode.html)
    26: _DAMAGE,  # SQLITE_NOTADB
    1: _DAMAGE,  # SQLITE_ERROR: one of sabir's tables is missing or has other columns
    13: _ROOM,  # SQLITE_FULL
    10: "check that the store's disk works and has space, and try again",  # SQLITE_IOERR
    8: "check that you may write to the store, and try again",  # SQLITE_READONLY
    "42P01": _DAMAGE,
    "42703": _DAMAGE,
    "53100": _ROOM,
}
"""Code of an error of SQLite or Postgres → the remedy."""
_OTHER = "check that the store exists, and that you may read and write it"
"""The remedy for errors with other codes."""


@dataclass(frozen=True)
class DatabaseFailure:
    """An error of a database driver, prepared for an error message without the texts in `secrets`. `str()` returns the
    message and the remedy in one line.

    `error` is the driver's exception, or None. `secrets` are texts, such as passwords, that must not be shown.
    """

    DAMAGE: ClassVar = _DAMAGE
    """The remedy for a damaged store, for use in messages."""

    error: BaseException | None
    secrets: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the driver's message and the remedy in one line."""
        return f"{one_line(self.text, 200)}; {_REMEDIES.get(_code(self.error), _OTHER)}"

    @property
    def text(self) -> str:
        """The driver's message, with "***" in place of each secret, also if the secret is percent-encoded."""
        text = str(self.error)
        for secret in filter(None, self.secrets):
            for spelling in (secret, quote(secret, safe="")):
                text = text.replace(spelling, "***")
        return text

    @property
    def is_lasting(self) -> bool:
        """Whether the error's code says that the store is damaged, full, not writable or on a failing disk, so that
        trying again helps only after a repair.
        """
        return _code(self.error) in _REMEDIES


def _code(error: BaseException | None) -> int | str | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return getattr(error, "sqlstate", None) if code is None else code & 0xFF  # the primary code, without extensions


@dataclass(frozen=True)
class PackageGrade:
    """The result of the conformance kit for the files of one package. `pytest --sabir-grade` creates it.

    `package` and `version` name the distribution, and `digest` is the digest of its files. `kit` is the version of
    sabir-testing. `seed` is the seed of the random examples, and `examples` the least number of examples of a law.
    `suites` are the names of the suites, `passed` is the number of passed cases, and `expected_failures` the number of
    cases that the suites expect to fail.
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
    def digest_of(package: str) -> str:
        """Return the digest of an installed distribution's files, without caches, hidden files and the grade.

        Raises importlib.metadata.PackageNotFoundError for a distribution that is not installed, and OSError.
        """
        digest = hashlib.sha256()
        for folder in _provider_folders(package):
            for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).parts):
                parts = path.relative_to(folder).parts
                is_cache = path.suffix == ".pyc" or any(part.startswith((".", "__pycache__")) for part in parts)
                if path.is_file() and path.name != PackageGrade.FILE and not is_cache:
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                    digest.update(f"{folder.name}/{'/'.join(parts)} {content}\n".encode())
        return f"sha256:{digest.hexdigest()}"

    @classmethod
    def declared(cls, package: str) -> "PackageGrade | None":
        """Return the grade that a distribution contains; None if there is none. Raises like `digest_of` and `read`."""
        paths = (folder / cls.FILE for folder in _provider_folders(package))
        return next((cls.read(path) for path in paths if path.exists()), None)

    @classmethod
    def read(cls, path: Path) -> "PackageGrade":
        """Return the grade in a file, without fields of later versions. Raises PluginError for a file without a grade,
        and OSError.
        """
        try:
            stored = json.loads(path.read_text("utf-8"))
            grade = cls(**{field.name: stored[field.name] for field in fields(cls)} | {"suites": (*stored["suites"],)})
            numbers = (grade.seed, grade.examples, grade.passed, grade.expected_failures)
            if not all(type(number) is int for number in numbers):
                raise TypeError("a number is missing")
        except (ValueError, KeyError, TypeError) as error:
            remedy = "write it with pytest --sabir-grade-file, or remove it"
            raise PluginError(f"{str(path)!r} is not a grade: {one_line(error, 100)}; {remedy}") from None
        return grade

    @staticmethod
    def stored_path(folder: Path, package: str, version: str, digest: str) -> Path:
        """Return the path of the grade for this version and digest in `folder`, which has the grades of runs."""
        return folder / f"{package}-{version}-{digest.partition(':')[2][:16]}.json"

    def as_json(self) -> str:
        """Return the content of a file with this grade."""
        return json.dumps(asdict(self), indent=2) + "\n"

    def fits(self, package: str, version: str, digest: str) -> bool:
        """Return whether this is the grade of these files."""
        return (self.package, self.version, self.digest) == (package, version, digest)


def _provider_folders(package: str) -> Iterator[Path]:
    """Yield the folders of the import packages with the providers of a distribution, sorted by name."""
    points = distribution(package).entry_points.select(group="sabir.providers")
    for spec in map(find_spec, sorted({point.module.partition(".")[0] for point in points})):
        yield from map(Path, (spec and spec.submodule_search_locations) or ())
