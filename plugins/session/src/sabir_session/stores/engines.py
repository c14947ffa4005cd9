"""The engines of stores: an SQLite file, with nothing to install and nothing to start; Postgres, for several machines.

SQLite: write-ahead logging, and one row an append, committed by itself (https://sqlite.org/wal.html). With durability
"process" (`synchronous=NORMAL`) records survive the death of the process; with "power" (`FULL`) also a power cut, at
the cost of one wait for the disk per append (https://sqlite.org/pragma.html#pragma_synchronous).

Postgres: through psycopg 3, the extra `postgres`. Texts are kept as TEXT, not as JSONB: that would change their bytes,
and refuse the character U+0000.
"""

import os
import re
import sqlite3
import time
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal, LiteralString, TypeAlias

from sabir.authoring import DatabaseFailure, one_line

from sabir_session.errors import StoreError, StoreLost
from sabir_session.stores.claims import Claim, busy, claim_file, remove_lock_file
from sabir_session.stores.database import APPEND, Executed, Row
from sabir_session.stores.files import identity_of, located, scheme_of, text_of
from sabir_session.stores.layouts import POSTGRES_TABLES, POSTGRES_UPGRADES, SQLITE_TABLES, SQLITE_UPGRADES
from sabir_session.stores.names import check_name
from sabir_session.stores.store import Store

if TYPE_CHECKING:
    import psycopg

Durability: TypeAlias = Literal["process", "power"]
_SYNCHRONOUS: dict[str, str] = {"process": "NORMAL", "power": "FULL"}
_LONGEST_TIMEOUT = 1_000_000
"""Seconds; SQLite counts milliseconds in 32 bits."""
_LOCK = 0x5AB1_2005
"""The advisory lock under which Postgres's tables are made: any number that is always the same."""


def open_store(address: str | Path) -> Store:
    """Open the store at a path or a URL: a file's path, `sqlite:///path`, or `postgresql://…`.

    Raises StoreError for anything else, and for a store that cannot be opened.
    """
    text = text_of(address)
    if scheme_of(text).startswith("postgres"):
        return PostgresStore(text)
    return SQLiteStore(text.removeprefix("sqlite:///"))


class SQLiteStore(Store):
    """Named journals in one SQLite file, which is made if it does not exist.

    Several processes may have the file open, each with its journals. A new file is readable only by its owner (0600).
    The path `:memory:` is a store that ends with its process. `timeout`: seconds to wait while another process writes.
    Raises StoreError for a file that is not a database or cannot be opened, StoreTooNew for one of a newer version.
    """

    _failures = sqlite3.Error
    _taken = sqlite3.IntegrityError
    _find_tables = "SELECT 1 FROM sqlite_master WHERE name = 'sabir_session_schema'"
    _tables = SQLITE_TABLES
    _upgrades = SQLITE_UPGRADES

    def __init__(self, path: str | Path, *, durability: Durability = "process", timeout: float = 10.0) -> None:
        super().__init__()
        path = text_of(path)
        self._described = one_line(repr(path), 200)
        self._path = located(path)
        self._file: tuple[int, int] | None = None
        _check_options(durability, timeout)
        if self._path is not None:
            with suppress(OSError):  # it is there already, or SQLite says why it cannot be made
                Path(path).touch(0o600)  # nobody else may read it: SQLite would leave that to the umask
        with self._working("be opened"):
            self._connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
        try:
            self._open()
            with self._working("be opened"):
                ((mode,),) = self._write_ahead(time.monotonic() + timeout)
                if mode not in ("wal", "memory"):
                    raise StoreError(f"{self._described} lies where no write-ahead log can be; put it on a local disk")
                self._connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
            self._file = None if self._path is None else identity_of(self._path)
        except BaseException:
            self._connection.close()
            raise

    def _write_ahead(self, until: float) -> list[Row]:
        """Enter the mode of write-ahead logging.

        SQLite does not wait for a process that leaves this mode at the same time, whatever the timeout.
        """
        while True:
            try:
                return self._rows("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname.partition("_")[2][:4] != "BUSY" or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    @property
    def location(self) -> Hashable:
        """The path of the file, which several stores may share; the store itself if it is in memory."""
        return self if self._path is None else self._path

    def claim(self, name: str) -> Claim:
        """Claim a journal by a lock file; no other process can see a store in memory.

        Raises ConversationBusy if another process has the journal.
        """
        check_name(name)
        return Claim(name) if self._path is None else claim_file(self._path, name)

    def delete(self, name: str) -> None:
        """Delete a journal, and its lock file unless a process has claimed it; raise JournalMissing.

        Records that a fork shares stay until the fork is deleted too.
        """
        super().delete(name)
        if self._path is not None:
            remove_lock_file(self._path, name)

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
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # SQLite itself ends a transaction when the disk is full
                self._connection.execute("ROLLBACK")
            raise
        self._check_place()

    def _snapshot(self) -> AbstractContextManager[None]:
        return self._transaction("BEGIN")  # the first statement fixes what the others see

    def _check_place(self) -> None:
        if self._file is not None and self._path is not None and identity_of(self._path) != self._file:
            shown = f"the file of {self._described} was deleted or replaced while it was open"
            raise StoreLost(f"{shown}, so what is written to it would be lost; open the store again")


def _check_options(durability: object, timeout: object) -> None:
    """Raise StoreError for a durability that is unknown, and for a timeout that SQLite does not take."""
    if not isinstance(durability, str) or durability not in _SYNCHRONOUS:
        raise StoreError(f"durability {durability!r} is unknown; expected one of {', '.join(_SYNCHRONOUS)}")
    if not isinstance(timeout, int | float) or not 0 <= timeout < _LONGEST_TIMEOUT:
        raise StoreError(f"timeout is {timeout!r}; expected seconds from 0 to less than {_LONGEST_TIMEOUT}")


class PostgresStore(Store):
    """Named journals in one Postgres database, by its URL; missing tables are made.

    A broken connection is made again at the next use. Raises StoreError if the server cannot be reached or the extra is
    not installed, StoreTooNew for a database of a newer version.
    """

    _append = f"{APPEND} FOR SHARE"  # a delete at the same time waits, and then sees the record
    _find_tables = "SELECT 1 WHERE to_regclass('sabir_session_schema') IS NOT NULL"
    _tables = POSTGRES_TABLES
    _upgrades = POSTGRES_UPGRADES

    def __init__(self, url: str) -> None:
        super().__init__()
        url = text_of(url)
        scheme = scheme_of(url)
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
        self._process = os.getpid()
        self._forgotten: list[int] = []  # keys of claims that were collected, in the middle of a statement perhaps
        self._described = "the Postgres database"
        with self._working("be reached"):
            self._connection = self._connect()
        try:
            self._open()
        except BaseException:
            self._connection.close()
            raise

    def claim(self, name: str) -> Claim:
        """Claim a journal by an advisory lock of this connection; after a reconnect, the next question claims it again.

        Raises ConversationBusy if another connection has the journal, which may be one of this process.
        """
        check_name(name)
        key = int.from_bytes(sha256(name.encode()).digest()[:8], signed=True)
        locked_by: list[int] = []

        def holds() -> bool:
            with self._working(f"claim the journal {name!r}"):
                backend = self._connected().info.backend_pid
                if backend not in locked_by and self._rows("SELECT pg_try_advisory_lock(?)", (key,))[0][0]:
                    locked_by[:] = [backend]
            return backend in locked_by

        def release() -> None:
            with suppress(StoreError):  # a connection that is gone holds nothing
                if not self._is_closed:
                    self._unlock(key)

        while self._forgotten:
            self._unlock(self._forgotten.pop())
        if not holds():
            raise busy(name, "another process, or another store object of this one,")
        return Claim(name, holds, release, lambda: self._forgotten.append(key))

    def _unlock(self, key: int) -> None:
        with self._working("release a journal"):
            self._rows("SELECT pg_advisory_unlock(?)", (key,))

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
        """Return the connection; reconnect if it broke, and in a forked child, whose parent uses the old one."""
        is_of_parent = self._process != os.getpid()
        if (self._connection.closed or is_of_parent) and not self._is_closed:
            self._process, self._connection = os.getpid(), self._connect()
        return self._connection

    def _execute(self, statement: str, values: Row = ()) -> Executed:
        written: LiteralString = statement.replace("?", "%s")  # psycopg's placeholders
        return self._connected().execute(written, values, prepare=bool(values))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._connected().transaction():
            self._rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        with self._connected().transaction():
            self._execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
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
