"""What packages share that keep something in a database: files of the owner's alone, and how a failure is told.

    an error ──describe_failure──▶ "database disk image is malformed; put back a copy of the store, or give another one"

What a database says is repeated in one line, without passwords, with what to do. Codes are SQLite's
(https://sqlite.org/rescode.html) and Postgres's SQLSTATEs.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from sabir.base.errors import one_line

REMEDY_OF_DAMAGE = "put back a copy of the store, or give another one"
_ROOM = "make room on its disk, and do it again"
_DISK = "see whether its disk works and has room, and do it again"
_WRITE = "see whether it may be written, and do it again"
_REMEDIES: dict[int | str | None, str] = {
    sqlite3.SQLITE_CORRUPT: REMEDY_OF_DAMAGE,
    sqlite3.SQLITE_NOTADB: REMEDY_OF_DAMAGE,
    sqlite3.SQLITE_ERROR: REMEDY_OF_DAMAGE,  # a table of ours that is not there, or another one
    sqlite3.SQLITE_FULL: _ROOM,
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_READONLY: _WRITE,
    "42P01": REMEDY_OF_DAMAGE,
    "42703": REMEDY_OF_DAMAGE,
    "53100": _ROOM,
}
_OTHER = "see whether the store is there, and may be read and written"


def make_private(path: str | Path) -> None:
    """Make a file where it is not there, so that nobody else may read it: SQLite would leave that to the umask."""
    with suppress(OSError):  # it is there already, or SQLite says why it cannot be made
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def describe_failure(error: BaseException, *secrets: str) -> str:
    """What a driver's error says, none of these secrets in it, and the remedy."""
    return f"{one_line(hide_secrets(str(error), *secrets), 200)}; {_REMEDIES.get(_code(error), _OTHER)}"


def is_broken(error: BaseException | None) -> bool:
    """Whether the same statement would fail again: the store is damaged, full, or closed to writers."""
    return _code(error) in _REMEDIES


def hide_secrets(text: str, *secrets: str) -> str:
    """A text that may repeat what its writer was given, with *** for each of these secrets."""
    for secret in filter(None, secrets):
        for written in (secret, quote(secret, safe="")):
            text = text.replace(written, "***")
    return text


def _code(error: BaseException | None) -> int | str | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return getattr(error, "sqlstate", None) if code is None else code & 0xFF  # what is above says more than is needed
