"""Journals in an SQLite file: nothing to install, nothing to start.

Write-ahead logging, and one row an append, committed by itself (https://sqlite.org/wal.html). With durability "process"
(`synchronous=NORMAL`) records survive the death of the process; with "power" (`FULL`) also a power cut, at the cost of
one wait for the disk per append (https://sqlite.org/pragma.html#pragma_synchronous).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

from sabir_session.errors import StoreError
from sabir_session.stores import layout
from sabir_session.stores.store import Executed, Row, Store, scheme_of

Durability: TypeAlias = Literal["process", "power"]
_SYNCHRONOUS: dict[str, str] = {"process": "NORMAL", "power": "FULL"}


class SQLiteStore(Store):
    """Named journals in one SQLite file, which is made if it does not exist.

    Several processes may have the file open, each with its journals. A new file is readable only by its owner (0600).
    The path `:memory:` is a store that ends with its process. `timeout`: seconds to wait while another process writes.
    Raises StoreError for a file that is not a database or cannot be opened, StoreTooNew for one of a newer version.
    """

    _failures = sqlite3.Error
    _taken = sqlite3.IntegrityError
    _find_tables = "SELECT 1 FROM sqlite_master WHERE name = 'sabir_session_schema'"
    _tables = layout.SQLITE_TABLES

    def __init__(self, path: str | Path, *, durability: Durability = "process", timeout: float = 10.0) -> None:
        super().__init__()
        _check_path(str(path))
        self._described = repr(str(path))
        if durability not in _SYNCHRONOUS:
            raise StoreError(f"durability {durability!r} is unknown; expected one of {', '.join(_SYNCHRONOUS)}")
        if str(path) != ":memory:":
            with suppress(OSError):  # it is there already, or SQLite says why it cannot be made
                Path(path).touch(0o600)  # nobody else may read it: SQLite would leave that to the umask
        with self._working("be opened"):
            self._connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
        try:
            self._open()
            with self._working("be opened"):
                ((mode,),) = self._rows("PRAGMA journal_mode = WAL")
                if mode not in ("wal", "memory"):
                    raise StoreError(f"{self._described} lies where no write-ahead log can be; put it on a local disk")
                self._connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; later appends fail."""
        with self._lock:
            self._connection.close()

    def __repr__(self) -> str:
        """Where it is."""
        return f"SQLiteStore({self._described})"

    def _execute(self, statement: str, values: Row = ()) -> Executed:
        return self._connection.execute(statement, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # SQLite itself ends a transaction when the disk is full
                self._connection.execute("ROLLBACK")
            raise


def _check_path(path: str) -> None:
    """Raise StoreError for a path that SQLite would misread as a file name, or refuse without a reason."""
    scheme = scheme_of(path)
    if scheme.startswith("postgres"):
        raise StoreError(f"SQLiteStore takes the path of a file, not a URL of {scheme!r}; give it to PostgresStore")
    if scheme or not path or path.startswith("file:"):
        found = f"a URL of {scheme or 'file'!r}" if path else "an empty text"
        written = repr(path.partition(":///")[2] or "chats.db")
        raise StoreError(f"SQLiteStore takes the path of a file, not {found}; write SQLiteStore({written})")
    if path != ":memory:" and not Path(path).parent.is_dir():
        raise StoreError(f"{path!r} could not be opened: its folder is not there; make the folder first")
    if Path(path).is_dir():
        raise StoreError(f"{path!r} could not be opened: it is a folder; give the path of a file in it")
