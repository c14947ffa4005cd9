"""Whether a worker lives: it holds a lock that any end of it releases, even a kill or a power cut.

    Postgres    pg_advisory_lock on a connection of its own     the server frees it when that connection ends
    SQLite      SQLite's own lock on a file beside the store    the operating system frees it with the process

A worker that can take another worker's lock knows that the other is dead, and that no third one is cleaning up after
it. A living worker is never taken for dead, however busy its program is: no clock is involved.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import URL, Connection, NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from sabir_durable.stores import bounds_of, is_sqlite

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
