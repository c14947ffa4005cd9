"""What packages share that keep something in a database: how a failure is told.

    an error ──DatabaseFailure──▶ "database disk image is malformed; put back a copy of the store, or give another one"

A database's error is repeated in one line, without passwords, with the remedy. Codes are SQLite's
(https://sqlite.org/rescode.html) and Postgres's SQLSTATEs.
"""

import sqlite3
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

from sabir.base.errors import one_line

_DAMAGE = "put back a copy of the store, or give another one"
_ROOM = "make room on its disk, and do it again"
_DISK = "see whether its disk works and has room, and do it again"
_WRITE = "see whether it may be written, and do it again"
_REMEDIES: dict[int | str | None, str] = {
    sqlite3.SQLITE_CORRUPT: _DAMAGE,
    sqlite3.SQLITE_NOTADB: _DAMAGE,
    sqlite3.SQLITE_ERROR: _DAMAGE,  # a table of ours that is not there, or another one
    sqlite3.SQLITE_FULL: _ROOM,
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_READONLY: _WRITE,
    "42P01": _DAMAGE,
    "42703": _DAMAGE,
    "53100": _ROOM,
}
_OTHER = "see whether the store is there, and may be read and written"


@dataclass(frozen=True)
class DatabaseFailure:
    """An error of a database's driver, in which none of `secrets` is shown."""

    DAMAGE: ClassVar = _DAMAGE
    """What to do about a store that is damaged."""

    error: BaseException | None
    secrets: tuple[str, ...] = ()

    def __str__(self) -> str:
        """What it says, and the remedy, in one line."""
        return f"{one_line(self.text, 200)}; {_REMEDIES.get(_code(self.error), _OTHER)}"

    @property
    def text(self) -> str:
        """What it says, with *** for each of the secrets."""
        text = str(self.error)
        for secret in filter(None, self.secrets):
            for written in (secret, quote(secret, safe="")):
                text = text.replace(written, "***")
        return text

    @property
    def is_lasting(self) -> bool:
        """Whether the same statement would fail again: the store is damaged, full, or closed to writers."""
        return _code(self.error) in _REMEDIES


def _code(error: BaseException | None) -> int | str | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return getattr(error, "sqlstate", None) if code is None else code & 0xFF  # the primary code, without extensions
