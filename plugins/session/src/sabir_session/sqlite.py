"""Journals in an SQLite file: nothing to install, nothing to start.

Write-ahead logging, and one row an append, committed by itself (https://sqlite.org/wal.html). With durability "process"
(`synchronous=NORMAL`) what was appended survives the death of the process; with "power" (`FULL`) that of the machine
too, for one wait for the disk an append (https://sqlite.org/pragma.html#pragma_synchronous).
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sabir_session import layout
from sabir_session.errors import StoreError
from sabir_session.stores import Row, Store

Durability: TypeAlias = Literal["process", "power"]
_SYNCHRONOUS: dict[str, str] = {"process": "NORMAL", "power": "FULL"}


class SQLiteStore(Store):
    """Named journals in one SQLite file, which is made where it is not there.

    Several processes may have the file open, each with its journals. `timeout`: seconds to wait while another one
    writes. Raises StoreError for a file that is no database or cannot be opened, StoreTooNew for one of a newer
    version.
    """

    _failures = sqlite3.Error
    _taken = sqlite3.IntegrityError
    _tables = layout.SQLITE_TABLES

    def __init__(self, path: str | Path, *, durability: Durability = "process", timeout: float = 10.0) -> None:
        super().__init__()
        self._described = repr(str(path))
        if durability not in _SYNCHRONOUS:
            raise StoreError(f"durability {durability!r} is unknown; expected one of {', '.join(_SYNCHRONOUS)}")
        with self._working("be opened"):
            self._connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
        self._cursor = self._connection.cursor()
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
        """Close the file; what is appended afterwards fails."""
        with self._lock:
            self._connection.close()

    def __repr__(self) -> str:
        """Where it is."""
        return f"SQLiteStore({self._described})"

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def _changed(self, statement: str, values: Sequence[Any] = ()) -> int:
        self._cursor.execute(statement, values)
        return self._cursor.rowcount

    def _is_empty(self) -> bool:
        return not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'sabir_session_schema'")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
