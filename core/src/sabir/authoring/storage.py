"""What packages that store data share: the names of stored types, and the errors of databases.

    class Note:                                            written as "app.note"; read under all three names:
        stored_as: ClassVar[str] = "app.note"                  app.note
        stored_before: ClassVar[tuple[str, ...]] = (           app.memo
            "app.memo", "old.module:Note",                     old.module:Note
        )

    an error of sqlite3 or psycopg ──DatabaseFailure──▶ "database disk image is malformed; restore the store from …"

Law: a class with `stored_as` can be moved and renamed, and stored data stays readable. A name applies to the class that
assigns it, not to its subclasses. The message of a database's error is one line with the remedy, without passwords. Its
codes are those of SQLite (https://www.sqlite.org/rescode.html) and the SQLSTATEs of Postgres
(https://www.postgresql.org/docs/current/errcodes-appendix.html).
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar, NamedTuple
from urllib.parse import quote

from sabir.base.errors import one_line


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
_OTHER = "check that the store exists, and that you may read and write it"


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
            for written in (secret, quote(secret, safe="")):
                text = text.replace(written, "***")
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
