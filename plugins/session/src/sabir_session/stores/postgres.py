"""Journals in Postgres, through psycopg 3 (the extra `postgres`): for processes on several machines.

Texts are kept as TEXT, not as JSONB: that would change their bytes, and refuse the character U+0000.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, LiteralString

from sabir.authoring import DatabaseFailure

from sabir_session.errors import StoreError
from sabir_session.stores import layout
from sabir_session.stores.store import Executed, Row, Store, scheme_of

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x5AB1_2005
"""The advisory lock under which tables are made: any number that is always the same."""


class PostgresStore(Store):
    """Named journals in one Postgres database, by its URL; missing tables are made.

    A broken connection is made again at the next use. Raises StoreError if the server cannot be reached or the extra is
    not installed, StoreTooNew for a database of a newer version.
    """

    _append = f"{layout.APPEND} FOR SHARE"  # a delete at the same time waits, and then sees the record
    _find_tables = "SELECT 1 WHERE to_regclass('sabir_session_schema') IS NOT NULL"
    _tables = layout.POSTGRES_TABLES

    def __init__(self, url: str) -> None:
        super().__init__()
        scheme = scheme_of(str(url))
        if scheme not in ("postgresql", "postgres"):
            found = f"is a URL of {scheme!r}" if scheme else "is no URL"
            remedy = (
                "give a file to SQLiteStore(path)" if scheme in ("", "sqlite", "file") else "give a URL of that form"
            )
            raise StoreError(f"the address {found}; expected postgresql://user@host:port/database; {remedy}")
        try:
            import psycopg
        except ImportError as error:
            raise StoreError("PostgresStore needs psycopg; install sabir-session[postgres]") from error
        self._psycopg = psycopg
        self._secrets = _secrets_of(url)
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
        """Close the connection; later appends fail."""
        with self._lock:
            self._is_closed = True
            self._connection.close()

    def __repr__(self) -> str:
        """Its address, without user and password."""
        return f"PostgresStore({self._described})"

    def _connect(self) -> "psycopg.Connection[Row]":
        try:
            connection = self._psycopg.connect(self._url, autocommit=True)
        except self._psycopg.Error as error:  # it may repeat what it was given
            raise self._psycopg.OperationalError(DatabaseFailure(error, tuple(self._secrets)).text) from None
        known = connection.info
        self._described = f"the Postgres database {known.dbname!r} at {known.host}:{known.port}"
        return connection

    def _connected(self) -> "psycopg.Connection[Row]":
        if self._connection.closed and not self._is_closed:
            self._connection = self._connect()
        return self._connection

    def _execute(self, statement: str, values: Row = ()) -> Executed:
        return self._connected().execute(_with_placeholders(statement), values, prepare=bool(values))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._connected().transaction():
            self._rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield


def _secrets_of(url: str) -> list[str]:
    """The secrets in an address; raises StoreError for an unreadable one, without its text, which may hold secrets."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        known = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except ProgrammingError:
        known = {"port": "?"}
    # The rest of a password with an unescaped / or @ is parsed as the parts after it.
    if "@" in known.get("host", "") + known.get("dbname", "") or not re.fullmatch(r"[\d,]*", known.get("port", "")):
        remedy = "write / as %2F and @ as %40 in user and password"
        raise StoreError(f"the address cannot be read; expected postgresql://user@host:port/database; {remedy}")
    return [known[name] for name in ("password", "sslpassword") if name in known]


@cache
def _with_placeholders(statement: str) -> LiteralString:
    """The statement with psycopg's placeholders."""
    return statement.replace("?", "%s")
