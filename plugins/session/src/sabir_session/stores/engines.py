"""The engines of stores: an SQLite file on one machine, or a Postgres database for several machines.

SQLite uses write-ahead logging and commits each record (https://sqlite.org/wal.html). With durability "process"
(`synchronous=NORMAL`), records survive a crash of the process. With "power" (`FULL`), they also survive a power cut,
but each append waits for the disk (https://sqlite.org/pragma.html#pragma_synchronous).

Postgres needs psycopg 3, the extra `postgres`. Texts are stored as TEXT, because JSONB would change their bytes and
refuse the character U+0000.
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

from sabir.authoring import DatabaseFailure, create_private_file, one_line

from sabir_session.errors import StoreError, StoreLost
from sabir_session.stores.claims import Claim, busy_error, claim_file, remove_lock_file
from sabir_session.stores.database import INSERT_RECORD, Row, StatementResult
from sabir_session.stores.files import absolute_path, address_text, find_identity, find_scheme
from sabir_session.stores.layouts import POSTGRES_TABLES, POSTGRES_UPGRADES, SQLITE_TABLES, SQLITE_UPGRADES
from sabir_session.stores.names import check_name
from sabir_session.stores.store import Store

if TYPE_CHECKING:
    import psycopg

Durability: TypeAlias = Literal["process", "power"]
_SYNCHRONOUS: dict[str, str] = {"process": "NORMAL", "power": "FULL"}
_LONGEST_TIMEOUT = 1_000_000
"""Every timeout must be below this number of seconds, because SQLite counts milliseconds in 32 bits."""
_TRANSACTION_LOCK = 0x5AB1_2005
"""The number of the advisory lock of every transaction that changes journals or tables. Any constant number serves."""


def open_store(address: str | Path) -> Store:
    """Return the store of an address: the path of an SQLite file, ":memory:", `sqlite:///path`, or `postgresql://…`.

    Raises StoreError for any other address, and for a store that cannot be opened.
    """
    text = address_text(address)
    if find_scheme(text).startswith("postgres"):
        return PostgresStore(text)
    return SQLiteStore(text.removeprefix("sqlite:///"))


class SQLiteStore(Store):
    """A store in one SQLite file, which is created if it does not exist. The path ":memory:" is a store in memory.

    With `durability` "process", records survive a crash of the process; with "power" also a power cut, but each append
    waits for the disk. `timeout` is how many seconds a call waits while another connection writes, before the call
    raises. Several processes may open the file. A new file is readable only by its owner. Raises StoreError if the file
    cannot be opened or is not a database, or for invalid arguments, and StoreTooNew if a newer version of sabir-session
    has written the file.
    """

    _failures = sqlite3.Error
    _duplicate_key_error = sqlite3.IntegrityError
    _find_tables = "SELECT 1 FROM sqlite_master WHERE name = 'sabir_session_schema'"
    _tables = SQLITE_TABLES
    _upgrades = SQLITE_UPGRADES

    def __init__(self, path: str | Path, *, durability: Durability = "process", timeout: float = 10.0) -> None:
        super().__init__()
        path = address_text(path)
        self._description = one_line(repr(path), 200)
        self._path = absolute_path(path)
        self._path_text = str(self._path)
        self._file_identity: tuple[int, int] | None = None
        _check_options(durability, timeout)
        if self._path is not None:
            with suppress(OSError):  # SQLite's error below says why the file cannot be created
                create_private_file(path)
        with self._converting_errors("be opened"):
            self._connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
        try:
            self._prepare_tables()
            with self._converting_errors("be opened"):
                ((mode,),) = self._enable_write_ahead(time.monotonic() + timeout)
                if mode not in ("wal", "memory"):
                    raise StoreError(
                        f"the disk of {self._description} does not support write-ahead logs; use a local disk"
                    )
                self._connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
            self._file_identity = None if self._path is None else find_identity(self._path_text)
        except BaseException:
            self._connection.close()
            raise

    def _enable_write_ahead(self, deadline: float) -> list[Row]:
        """Turn on write-ahead logging. Retry until the time `deadline`.

        SQLite ignores its timeout while another process turns this mode off.
        """
        while True:
            try:
                return self._query("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname.partition("_")[2][:4] != "BUSY" or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    @property
    def location(self) -> Hashable:
        """The absolute path of the file; the store itself for a store in memory."""
        return self if self._path is None else self._path

    def claim(self, name: str) -> Claim:
        """Claim a journal for this process by a lock file in `<database>.locks`. A store in memory needs no file.

        Raises ConversationBusy if another process has claimed the journal, and StoreError for an invalid name or if the
        file cannot be locked.
        """
        check_name(name)
        return Claim(name) if self._path is None else claim_file(self._path, name)

    def delete(self, name: str) -> None:
        """Delete a journal, and its lock file unless a process has claimed the journal.

        Records that forks share stay until the last of these forks is deleted. Raises JournalMissing if there is no
        journal of this name.
        """
        super().delete(name)
        if self._path is not None:
            remove_lock_file(self._path, name)

    def close(self) -> None:
        """Close the file. Later reads and writes raise StoreError or RecordingFailed. A second call has no effect."""
        with self._lock:
            self._connection.close()

    def __repr__(self) -> str:
        """Return `SQLiteStore(path)`."""
        return f"SQLiteStore({self._description})"

    def _run_statement(self, statement: str, values: Row = ()) -> StatementResult:
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
        self._check_file()

    def _snapshot(self) -> AbstractContextManager[None]:
        return self._transaction("BEGIN")  # all statements see the database at the moment of the first statement

    def _check_file(self) -> None:
        opened = self._file_identity
        if opened is not None and find_identity(self._path_text) != opened:
            reason = f"the file of {self._description} was deleted or replaced while it was open"
            raise StoreLost(f"{reason}, so new records would be lost; open the store again")


def _check_options(durability: object, timeout: object) -> None:
    """Raise StoreError for an unknown durability, and for a timeout that SQLite does not accept."""
    if not isinstance(durability, str) or durability not in _SYNCHRONOUS:
        raise StoreError(f"durability {durability!r} is unknown; expected one of {', '.join(_SYNCHRONOUS)}")
    if not isinstance(timeout, int | float) or not 0 <= timeout < _LONGEST_TIMEOUT:
        raise StoreError(f"timeout is {timeout!r}; expected seconds from 0 to less than {_LONGEST_TIMEOUT}")


class PostgresStore(Store):
    """A store in one Postgres database, with one connection. `url` is `postgresql://user:password@host:port/database`.

    Opening the store creates missing tables, and upgrades older tables. Needs the extra `sabir-session[postgres]`. A
    call during which the connection breaks raises an error; the next call reconnects. Raises StoreError for another
    address, if the server cannot be reached or psycopg is not installed, and StoreTooNew if a newer version of
    sabir-session has written the tables.
    """

    _insert_record = f"{INSERT_RECORD} FOR SHARE"  # a delete at the same time waits, and then sees the record
    _find_tables = "SELECT 1 WHERE to_regclass('sabir_session_schema') IS NOT NULL"
    _tables = POSTGRES_TABLES
    _upgrades = POSTGRES_UPGRADES

    def __init__(self, url: str) -> None:
        super().__init__()
        url = address_text(url)
        scheme = find_scheme(url)
        if scheme not in ("postgresql", "postgres"):
            fault = f"is a URL of {scheme!r}" if scheme else "is not a URL"
            remedy = (
                "use SQLiteStore(path) for a file" if scheme in ("", "sqlite", "file") else "pass a URL of this form"
            )
            raise StoreError(f"the address {fault}; expected postgresql://user@host:port/database; {remedy}")
        try:
            import psycopg
        except ImportError as error:
            raise StoreError("PostgresStore needs psycopg; install sabir-session[postgres]") from error
        self._psycopg = psycopg
        self._secrets = _secrets_of(url)
        self._failures = psycopg.Error
        self._duplicate_key_error = psycopg.errors.UniqueViolation
        self._url = url
        self._is_closed = False
        self._process = os.getpid()
        self._keys_to_unlock: list[int] = []  # keys of garbage-collected claims, which cannot unlock during a statement
        self._description = "the Postgres database"
        with self._converting_errors("be reached"):
            self._connection = self._connect()
        try:
            self._prepare_tables()
        except BaseException:
            self._connection.close()
            raise

    def claim(self, name: str) -> Claim:
        """Claim a journal by an advisory lock of this store's connection.

        After a reconnect, the next question claims the journal again. Raises ConversationBusy if another connection has
        claimed the journal, even the connection of another PostgresStore of this process, and StoreError for an invalid
        name or if the database fails.
        """
        check_name(name)
        key = int.from_bytes(sha256(name.encode()).digest()[:8], signed=True)
        locked_by: list[int] = []

        def holds() -> bool:
            with self._converting_errors(f"claim the journal {name!r}"):
                backend = self._live_connection().info.backend_pid
                if backend not in locked_by and self._query("SELECT pg_try_advisory_lock(?)", (key,))[0][0]:
                    locked_by[:] = [backend]
            return backend in locked_by

        def release() -> None:
            with suppress(StoreError):  # the server released the lock of a lost connection
                if not self._is_closed:
                    self._unlock(key)

        while self._keys_to_unlock:
            self._unlock(self._keys_to_unlock.pop())
        if not holds():
            raise busy_error(name, "another process, or another store object in this process,")
        return Claim(name, holds, release, lambda: self._keys_to_unlock.append(key))

    def _unlock(self, key: int) -> None:
        with self._converting_errors("release a journal"):
            self._query("SELECT pg_advisory_unlock(?)", (key,))

    def close(self) -> None:
        """Close the connection. Later reads and writes raise StoreError or RecordingFailed. Releases all claims."""
        with self._lock:
            self._is_closed = True
            self._connection.close()

    def __repr__(self) -> str:
        """Return the name, host and port of the database, without user and password."""
        return f"PostgresStore({self._description})"

    def _connect(self) -> "psycopg.Connection[Row]":
        try:
            connection = self._psycopg.connect(self._url, autocommit=True)
        except self._psycopg.Error as error:  # the driver's message may contain the password
            raise self._psycopg.OperationalError(DatabaseFailure(error, tuple(self._secrets)).text) from None
        known = connection.info
        self._description = f"the Postgres database {known.dbname!r} at {known.host}:{known.port}"
        return connection

    def _live_connection(self) -> "psycopg.Connection[Row]":
        """Return the connection. Reconnect if it is broken, and in a forked child, whose parent uses the old one."""
        is_of_parent = self._process != os.getpid()
        if (self._connection.closed or is_of_parent) and not self._is_closed:
            self._process, self._connection = os.getpid(), self._connect()
        return self._connection

    def _run_statement(self, statement: str, values: Row = ()) -> StatementResult:
        translated: LiteralString = statement.replace("?", "%s")  # psycopg's placeholders
        return self._live_connection().execute(translated, values, prepare=bool(values))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._live_connection().transaction():
            self._query(f"SELECT pg_advisory_xact_lock({_TRANSACTION_LOCK})")
            yield

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        with self._live_connection().transaction():
            self._run_statement("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


def _secrets_of(url: str) -> list[str]:
    """Return the passwords in an address. Raises StoreError for an invalid address, without the address in the text."""
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
