"""Journals in Postgres, through psycopg 3 (the extra `postgres`): for processes on several machines.

Texts are kept as TEXT, not as JSONB: that would change their bytes, and refuse the character U+0000.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, LiteralString

from sabir_session import layout
from sabir_session.errors import StoreError
from sabir_session.stores import Row, Store

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x5AB1_2005
"""The advisory lock under which tables are made: any number that is always the same."""


class PostgresStore(Store):
    """Named journals in one Postgres database, by its URL; the tables are made where they are not there.

    A connection that broke is made again at the next use. Raises StoreError where the server cannot be reached or the
    extra is not installed, StoreTooNew for a database of a newer version.
    """

    _append = f"{layout.APPEND} FOR SHARE"  # a delete at the same time waits, and then sees the record
    _tables = layout.POSTGRES_TABLES

    def __init__(self, url: str) -> None:
        super().__init__()
        if not url.startswith(("postgresql://", "postgres://")):  # what is no URL is not shown: it may hold a password
            raise StoreError(
                "the address of a Postgres database is a URL; expected postgresql://user@host:port/database"
            )
        try:
            import psycopg
        except ImportError as error:
            raise StoreError("PostgresStore needs psycopg; install sabir-session[postgres]") from error
        self._psycopg = psycopg
        self._failures = psycopg.Error
        self._taken = psycopg.errors.UniqueViolation
        self._url = url
        self._is_closed = False
        self._described = "the Postgres database"
        with self._working("be reached"):
            self._connection = self._connect()
        try:
            self._open()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the connection; what is appended afterwards fails."""
        with self._lock:
            self._is_closed = True
            self._connection.close()

    def __repr__(self) -> str:
        """Where it is, without user and password."""
        return f"PostgresStore({self._described})"

    def _connect(self) -> "psycopg.Connection[Row]":
        connection = self._psycopg.connect(self._url, autocommit=True)
        known = connection.info
        self._described = f"the Postgres database {known.dbname!r} at {known.host}:{known.port}"
        return connection

    def _connected(self) -> "psycopg.Connection[Row]":
        if self._connection.closed and not self._is_closed:
            self._connection = self._connect()
        return self._connection

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connected().execute(_with_placeholders(statement), values).fetchall()

    def _changed(self, statement: str, values: Sequence[Any] = ()) -> int:
        cursor = self._connected().execute(_with_placeholders(statement), values, prepare=bool(values))
        return cursor.rowcount

    def _is_empty(self) -> bool:
        return self._rows("SELECT to_regclass('sabir_session_schema')") == [(None,)]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._connected().transaction():
            self._rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield


@cache
def _with_placeholders(statement: str) -> LiteralString:
    """The statement with psycopg's placeholders."""
    return statement.replace("?", "%s")
