"""Create a database engine from a store's URL, with the settings that runs need.

    sqlite:///runs.db         WAL, so that readers need not wait; one writer at a time, others wait for it
    postgresql://host/name    through psycopg 3, a pool of connections

With `durability="process"`, a finished write to SQLite survives the end of the process; with "power" also a power cut.
Postgres has its own setting for this purpose (synchronous_commit), which is not changed.

A worker counts as alive while it has its lock in the store. Any end of the process releases the lock, even a kill:

    Postgres    pg_advisory_lock on a connection of its own     the server frees it when that connection ends
    SQLite      SQLite's own lock on a file next to the store   the operating system frees it with the process

A worker that can lock another worker's lock knows that the other worker is dead, and that no third worker is recovering
its runs. A busy program does not make a living worker count as dead. But on Postgres, a living worker counts as
dead if it lost its connection and does not reconnect within a few beats.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sabir.authoring import DatabaseFailure, create_private_file
from sqlalchemy import URL, Connection, Engine, ExceptionContext, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from sabir_runtime.durable.errors import StoreInvalid
from sabir_runtime.durable.row_guard import guard_engine

Durability: TypeAlias = Literal["process", "power"]

BUSY_MILLISECONDS = 30_000
"""The maximum number of milliseconds that a writer waits for another write to SQLite."""
KNOWS_SUBSECONDS = (3, 42)
"""The first version of SQLite that has `unixepoch('subsec')` (https://sqlite.org/changes.html)."""
POOL = 20
"""The maximum number of Postgres connections that stay open. Under load, up to as many more are opened for a time."""
_SYNCHRONOUS: dict[Durability, str] = {"process": "NORMAL", "power": "FULL"}
_BOUNDS = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Default settings of each connection to Postgres: if the network drops packets, the connection ends within 15 s,
whether this side or the server has data to send (https://www.postgresql.org/docs/current/libpq-connect.html)."""
_VARIABLES = {"connect_timeout": "PGCONNECT_TIMEOUT"}
_FORMS = "give sqlite:///file.db or postgresql://user@host/database"


@dataclass(frozen=True)
class RunnerSettings:
    """The settings of a worker, from DurableRunner. Runners of a process with equal settings share one worker."""

    url: URL
    application: str
    version: str
    durability: Durability
    beat: float
    poll: float
    at_once: int | None = None


def version_of(application: str, version: str) -> str:
    """Return `application.version`, the engine's name for a version. The engine itself has no applications."""
    return f"{application}.{version}"


def parse_store(store: str) -> URL:
    """Parse a store's URL. Raises StoreInvalid if it is invalid, names no file, or has an unsupported scheme.

    The path of an SQLite file is made absolute.
    """
    try:
        url = make_url(store)
    except (ArgumentError, ValueError):
        raise StoreInvalid(f"the store is not a valid URL; {_FORMS}") from None  # the text may contain a password
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        if "@" in f"{url.host}{url.database}":  # from a password with an unescaped / or @
            raise StoreInvalid("the store is not a valid URL; write / as %2F and @ as %40 in user and password")
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise StoreInvalid(f"{display_url(url)} has an unsupported scheme; {_FORMS}")
    if not url.database or url.database == ":memory:":
        raise StoreInvalid(f"the {url.drivername} URL has no file, so runs would be lost with the process; {_FORMS}")
    return url.set(drivername="sqlite", database=str(Path(url.database).resolve()))


def display_url(url: URL) -> str:
    """Return a store's URL for display: *** in place of the password, and without the query."""
    return url.set(query={}).render_as_string()


def is_sqlite(url: URL) -> bool:
    """Return whether a store is an SQLite file."""
    return url.drivername == "sqlite"


def bounds_of(url: URL) -> dict[str, int]:
    """Return default parameters for Postgres connections, without those that the URL or PGCONNECT_TIMEOUT sets."""
    return {
        name: bound
        for name, bound in _BOUNDS.items()
        if name not in url.query and _VARIABLES.get(name, "") not in os.environ
    }


def open_store(url: URL, durability: Durability = "process") -> Engine:
    """Create an SQLAlchemy engine for a store. `row_guard` checks the rows that are read. Does not connect yet."""
    if is_sqlite(url):
        engine = create_engine(url)

        @event.listens_for(engine, "connect")
        def prepare(connection: Any, record: object) -> None:  # the driver's own connection
            connection.isolation_level = "IMMEDIATE"
            connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={_SYNCHRONOUS[durability]}")
            connection.execute("PRAGMA foreign_keys=ON")
            if sqlite3.sqlite_version_info < KNOWS_SUBSECONDS:
                connection.create_function("unixepoch", 1, _unixepoch)

    else:
        engine = create_engine(url, pool_size=POOL, max_overflow=POOL, pool_pre_ping=True, connect_args=bounds_of(url))

    guard_engine(engine)

    @event.listens_for(engine, "handle_error")
    def refuse(context: ExceptionContext) -> None:
        """Raise StoreInvalid for lasting failures, such as a full disk, so that no caller tries again."""
        if DatabaseFailure(context.original_exception).is_lasting:
            task = "opened" if context.connection is None else "used"
            raise store_error(url, context.original_exception, task) from None

    return engine


def _unixepoch(modifier: str) -> float:
    """Return the seconds since 1970: the SQL function `unixepoch('subsec')` for an SQLite that does not have it."""
    if modifier != "subsec":
        raise ValueError(f"unixepoch: {modifier!r} is not a known modifier; expected 'subsec'")
    return time.time()


def reach_store(engine: Engine) -> None:
    """Check that a connection can be opened. Raises StoreInvalid with the driver's message if it cannot."""
    try:
        engine.connect().close()
    except DBAPIError as error:
        raise store_error(engine.url, error.orig or error) from None


def store_error(url: URL, error: BaseException, task: str = "opened") -> StoreInvalid:
    """Return the StoreInvalid error for an unusable store, with the driver's message without passwords, and a remedy.

    `task` is "opened" or "used".
    """
    secrets = [str(url.password or ""), *(str(url.query.get(name, "")) for name in ("password", "sslpassword"))]
    return StoreInvalid(f"{display_url(url)} cannot be {task}: {DatabaseFailure(error, tuple(secrets))}")


def close_store(engine: Engine) -> None:
    """Close all connections. Connections that a thread still uses are closed when the thread returns them."""

    @event.listens_for(engine, "checkin")
    def close(connection: Any, record: ConnectionPoolEntry) -> None:
        record.invalidate()

    engine.dispose()


_KEEPALIVE = ("tcp_keepalives_idle = 5", "tcp_keepalives_interval = 2", "tcp_keepalives_count = 3")
"""Settings of the connection that has a worker's lock. The server then notices a dead machine within 11 s."""


def make_lease(url: URL, worker: str) -> "Lease":
    """Return the lease (lock) of a store's worker. Nothing is locked yet."""
    return FileLease(url, worker) if is_sqlite(url) else ServerLease(url, worker)


class FileLease:
    """A worker's lock on SQLite: a locked file with the worker's name, in the folder `…-workers` next to the store."""

    def __init__(self, url: URL, worker: str) -> None:
        self._folder = Path(f"{url.database}-workers")
        self._worker = worker
        self._locked_file: sqlite3.Connection | None = None

    def hold(self) -> bool:
        """Lock the worker's own file, until `release` or the end of this process.

        If this object has the lock already, change nothing. Return False if another one has locked the file.
        """
        if self._locked_file is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._locked_file = _lock_file(self._folder / self._worker)
        return self._locked_file is not None

    @contextmanager
    def take(self, worker: str) -> Iterator[bool]:
        """Lock another worker's file during the `with` block, then remove it. Yields False if it is locked already."""
        path = self._folder / worker
        self._folder.mkdir(mode=0o700, exist_ok=True)
        taken = _lock_file(path)
        try:
            yield taken is not None
        finally:
            if taken is not None:
                _unlock_file(taken, path)

    def release(self) -> None:
        """Release the lock, and remove the lock file."""
        if self._locked_file is not None:
            _unlock_file(self._locked_file, self._folder / self._worker)
            self._locked_file = None


class ServerLease:
    """A worker's lock on Postgres: an advisory lock on a connection that is used for nothing else."""

    def __init__(self, url: URL, worker: str) -> None:
        self._engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=bounds_of(url))
        self._worker = worker
        self._connection: Connection | None = None
        self._one_at_a_time = threading.Lock()

    def hold(self) -> bool:
        """Take the worker's own lock. If it was taken before, check the connection, and lock again if it is lost.

        Return False if the server cannot be reached, or another connection has the lock.
        """
        with self._one_at_a_time:
            if self._connection is not None:
                try:
                    self._connection.execute(text("SELECT 1"))
                    return True
                except SQLAlchemyError:
                    self._close_connection()
            try:
                self._connection = self._open_connection()
                if _try_lock(self._connection, self._worker):
                    return True
            except SQLAlchemyError:
                pass
            self._close_connection()
            return False

    @contextmanager
    def take(self, worker: str) -> Iterator[bool]:
        """Take another worker's lock during the `with` block. Yields False if another connection has the lock."""
        with closing(self._open_connection()) as connection:
            yield _try_lock(connection, worker)

    def release(self) -> None:
        """Release the lock by closing its connection."""
        with self._one_at_a_time:
            self._close_connection()

    def _open_connection(self) -> Connection:
        connection = self._engine.connect()
        try:
            for setting in _KEEPALIVE:
                connection.execute(text(f"SET {setting}"))
        except SQLAlchemyError:
            connection.close()
            raise
        return connection

    def _close_connection(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()
            connection.close()


Lease: TypeAlias = FileLease | ServerLease
"""The lock of a worker in the store. `hold` takes the worker's own lock, `release` releases it, and `take` takes the
lock of another worker."""


def _try_lock(connection: Connection, worker: str) -> bool:
    # Workers of other versions compute the same key, so this text must not change.
    key = int.from_bytes(sha256(f"sabir-durable:{worker}".encode()).digest()[:8], signed=True)
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}).scalar())


def _lock_file(path: Path) -> sqlite3.Connection | None:
    """Return a connection with the file's exclusive lock; None if another process has the lock."""
    with suppress(OSError):  # if the file cannot be created, SQLite's error below says why
        create_private_file(path)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        connection.close()
        return None
    return connection


def _unlock_file(connection: sqlite3.Connection, path: Path) -> None:
    connection.close()
    with suppress(OSError):  # already removed, or in use
        path.unlink()
