"""Makes a database engine from a URL, with the settings that runs need.

    sqlite:///runs.db         WAL, so that readers never wait; one writer at a time, others wait for it
    postgresql://host/name    through psycopg 3, a pool of connections

`durability` says what a finished write survives on SQLite: the end of the process, or also a power cut. Postgres has
its own setting for this (synchronous_commit), which is not changed.

A worker lives as long as it holds its lock in the store, which any end of it releases, even a kill or a power cut:

    Postgres    pg_advisory_lock on a connection of its own     the server frees it when that connection ends
    SQLite      SQLite's own lock on a file beside the store    the operating system frees it with the process

A worker that can take another worker's lock knows that the other is dead, and that no third one is cleaning up after
it. A living worker is never taken for dead, however busy its program is: no clock is involved.
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

from sabir.authoring import DatabaseFailure
from sqlalchemy import URL, Connection, Engine, ExceptionContext, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from sabir_runtime.durable.errors import StoreInvalid
from sabir_runtime.durable.row_guard import guard_engine

Durability: TypeAlias = Literal["process", "power"]

BUSY_MILLISECONDS = 30_000
"""How long a writer waits for another process's write to SQLite."""
KNOWS_SUBSECONDS = (3, 42)
"""The first SQLite that knows `unixepoch('subsec')` (https://sqlite.org/changes.html)."""
POOL = 20
"""Connections to Postgres that stay open; as many more are opened under load."""
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
whichever side is to send (https://www.postgresql.org/docs/current/libpq-connect.html)."""
_VARIABLES = {"connect_timeout": "PGCONNECT_TIMEOUT"}
_FORMS = "give sqlite:///file.db or postgresql://user@host/database"


@dataclass(frozen=True)
class Settings:
    """The settings of a worker; runners with equal settings share one."""

    url: URL
    application: str
    version: str
    durability: Durability
    beat: float
    poll: float
    at_once: int | None = None


def version_of(application: str, version: str) -> str:
    """A version's name in the engine, where it belongs to one application of a store."""
    return f"{application}.{version}"


def parse_store(store: str) -> URL:
    """The URL of a store; raises StoreInvalid for a URL that is invalid, keeps nothing or has an unsupported scheme."""
    try:
        url = make_url(store)
    except (ArgumentError, ValueError):
        raise StoreInvalid(f"the store is no URL that can be read; {_FORMS}") from None  # it may hold a password
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        if "@" in f"{url.host}{url.database}":  # the rest of a password with an unescaped / or @ is parsed into these
            raise StoreInvalid("the store is no URL that can be read; write / as %2F and @ as %40 in user and password")
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise StoreInvalid(f"{shown(url)} is of no known kind; {_FORMS}")
    if not url.database or url.database == ":memory:":
        raise StoreInvalid(f"{url.drivername} names no file, and a run would die with its process; {_FORMS}")
    return url.set(drivername="sqlite", database=str(Path(url.database).resolve()))


def shown(url: URL) -> str:
    """A store's URL without a password, which may also be in its query."""
    return url.set(query={}).render_as_string()


def is_sqlite(url: URL) -> bool:
    """Whether a store is a file on this machine."""
    return url.drivername == "sqlite"


def bounds_of(url: URL) -> dict[str, int]:
    """Parameters for connections to Postgres, apart from those that the URL or libpq's own variable gives."""
    return {
        name: bound
        for name, bound in _BOUNDS.items()
        if name not in url.query and _VARIABLES.get(name, "") not in os.environ
    }


def open_store(url: URL, durability: Durability = "process") -> Engine:
    """Make an engine of that store, whose rows are guarded; it does not connect yet."""
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
        """Whoever asks, this package or the engine: no statement is tried again on a store that is broken."""
        if DatabaseFailure(context.original_exception).is_lasting:
            task = "opened" if context.connection is None else "used"
            raise unusable(url, context.original_exception, task) from None

    return engine


def _unixepoch(modifier: str) -> float:
    """The SQL function that the engine needs; it assumes that newer Pythons have a newer SQLite, which may not hold."""
    if modifier != "subsec":
        raise ValueError(f"unixepoch: {modifier!r} is not known here; it takes 'subsec'")
    return time.time()


def reach_store(engine: Engine) -> None:
    """Connect once; raises StoreInvalid with the store's own words if it cannot be reached, or is not a store."""
    try:
        engine.connect().close()
    except DBAPIError as error:
        raise unusable(engine.url, error.orig or error) from None


def unusable(url: URL, error: BaseException, task: str = "opened") -> StoreInvalid:
    """The error that a store is unusable: in the driver's words, without the password, with a remedy."""
    secrets = [str(url.password or ""), *(str(url.query.get(name, "")) for name in ("password", "sslpassword"))]
    return StoreInvalid(f"{shown(url)} cannot be {task}: {DatabaseFailure(error, tuple(secrets))}")


def close_store(engine: Engine) -> None:
    """Close its connections; those that a thread of the engine still uses are closed when it returns them."""

    @event.listens_for(engine, "checkin")
    def close(connection: Any, record: ConnectionPoolEntry) -> None:
        record.invalidate()

    engine.dispose()


_KEEPALIVE = ("tcp_keepalives_idle = 5", "tcp_keepalives_interval = 2", "tcp_keepalives_count = 3")
"""Settings of the connection that holds the lock: the server notices a dead machine within 11 s."""


def make_lease(url: URL, worker: str) -> "Lease":
    """The lease of a worker of that store; nothing is locked yet."""
    return FileLease(url, worker) if is_sqlite(url) else ServerLease(url, worker)


class FileLease:
    """A lock on a file of the worker's name, in a folder beside the store."""

    def __init__(self, url: URL, worker: str) -> None:
        self._folder = Path(f"{url.database}-workers")
        self._worker = worker
        self._held: sqlite3.Connection | None = None

    def hold(self) -> bool:
        """Take the lock, which only the end of this process takes away."""
        if self._held is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._held = _lock_file(self._folder / self._worker)
        return self._held is not None

    @contextmanager
    def take(self, worker: str) -> Iterator[bool]:
        """A context that holds the lock of another worker; yields False if that worker lives."""
        path = self._folder / worker
        self._folder.mkdir(mode=0o700, exist_ok=True)
        taken = _lock_file(path)
        try:
            yield taken is not None
        finally:
            if taken is not None:
                _let_go(taken, path)

    def release(self) -> None:
        """Release the lock, and remove its file."""
        if self._held is not None:
            _let_go(self._held, self._folder / self._worker)
            self._held = None


class ServerLease:
    """An advisory lock of the server, held by a connection that does nothing else."""

    def __init__(self, url: URL, worker: str) -> None:
        self._engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=bounds_of(url))
        self._worker = worker
        self._connection: Connection | None = None
        self._one_at_a_time = threading.Lock()

    def hold(self) -> bool:
        """Take the lock, or see that its connection still stands; a lost one is opened again."""
        with self._one_at_a_time:
            if self._connection is not None:
                try:
                    self._connection.execute(text("SELECT 1"))
                    return True
                except SQLAlchemyError:
                    self._drop()
            try:
                self._connection = self._open()
                if _try_lock(self._connection, self._worker):
                    return True
            except SQLAlchemyError:
                pass
            self._drop()
            return False

    @contextmanager
    def take(self, worker: str) -> Iterator[bool]:
        """A context that holds another worker's lock, on a separate connection; yields False if that worker lives."""
        with closing(self._open()) as connection:
            yield _try_lock(connection, worker)

    def release(self) -> None:
        """Release the lock by closing its connection."""
        with self._one_at_a_time:
            self._drop()

    def _open(self) -> Connection:
        connection = self._engine.connect()
        try:
            for setting in _KEEPALIVE:
                connection.execute(text(f"SET {setting}"))
        except SQLAlchemyError:
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()
            connection.close()


Lease: TypeAlias = FileLease | ServerLease
"""`hold` takes the worker's own lock, `take` that of another worker, `release` releases its own."""


def _try_lock(connection: Connection, worker: str) -> bool:
    # The key is shared with workers of other versions, so its text stays.
    key = int.from_bytes(sha256(f"sabir-durable:{worker}".encode()).digest()[:8], signed=True)
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}).scalar())


def _lock_file(path: Path) -> sqlite3.Connection | None:
    """A connection that holds the file's exclusive lock; None if another one holds it."""
    with suppress(OSError):  # it is there already, or SQLite says why it cannot be made; nobody else may read it
        Path(path).touch(0o600)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        connection.close()
        return None
    return connection


def _let_go(held: sqlite3.Connection, path: Path) -> None:
    held.close()
    with suppress(OSError):  # already removed, or in use
        path.unlink()
