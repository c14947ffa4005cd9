"""Stores of replies: a SQLite file, or memory.

key ──▶ the reply as JSON       deleted: too old replies, and with too many bytes the least recently used replies
"""

import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from sabir import SabirError, SettingsInvalid
from sabir.authoring import DatabaseFailure, create_private_file

MOST_BYTES = 1 << 30
"""The size limit of a store that sets none: 1 GiB."""


class CacheError(SabirError):
    """Raised if the file of a cache cannot be opened, read or written. The message names the file and the reason."""


class ResponseStore(Protocol):
    """The interface of a store of replies. All methods must be thread-safe, and must not wait for a network, because
    coroutines call them.
    """

    def get(self, key: str) -> bytes | None:
        """Return the stored bytes, or None."""

    def put(self, key: str, reply: bytes) -> None:
        """Store bytes under a key; they replace earlier bytes. The store may have limits, and delete entries."""

    def delete(self, key: str) -> None:
        """Delete the entry of a key, if there is one."""

    def clear(self) -> None:
        """Delete all entries."""


class MemoryResponses:
    """A store in memory, which is lost with the object. `max_age` is in seconds; None means no limit.

    If all entries together have more than `max_bytes`, the entries that were not used for the longest time are deleted.
    Raises SettingsInvalid for an invalid `max_age` or `max_bytes`.
    """

    def __init__(self, *, max_age: float | None = None, max_bytes: int = MOST_BYTES) -> None:
        _check_limits(max_age, max_bytes)
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, key: str) -> bytes | None:
        """Return the stored bytes, or None if there are none or they are older than `max_age`."""
        with self._lock:
            if key not in self._entries:
                return None
            stored, reply = self._entries[key]
            if self._max_age is not None and time.time() - stored > self._max_age:
                self._remove(key)
                return None
            self._entries.move_to_end(key)
            return reply

    def put(self, key: str, reply: bytes) -> None:
        """Store bytes under a key. If all entries together then have more than `max_bytes`, delete the least recently
        used ones. A reply that alone has more than `max_bytes` is not stored; an earlier entry of its key is deleted.
        """
        with self._lock:
            self._remove(key)
            if len(reply) > self._max_bytes:
                return
            self._entries[key] = time.time(), reply
            self._size += len(reply)
            while self._size > self._max_bytes:
                self._remove(next(iter(self._entries)))

    def delete(self, key: str) -> None:
        """Delete the entry of a key, if there is one."""
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        """Delete all entries."""
        with self._lock:
            self._entries.clear()
            self._size = 0

    def _remove(self, key: str) -> None:
        if key in self._entries:
            self._size -= len(self._entries.pop(key)[1])


_LAYOUT = """
CREATE TABLE IF NOT EXISTS sabir_reply_uses
    (key TEXT PRIMARY KEY, stored REAL NOT NULL, used REAL NOT NULL, bytes INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS sabir_reply_uses_by_age ON sabir_reply_uses (stored);
CREATE INDEX IF NOT EXISTS sabir_reply_uses_by_use ON sabir_reply_uses (used, bytes);
CREATE TABLE IF NOT EXISTS sabir_replies
    (key TEXT PRIMARY KEY REFERENCES sabir_reply_uses ON DELETE CASCADE, reply BLOB NOT NULL);
"""
"""SQL of the tables. The replies are in a separate table, so that counting and deleting entries does not read them."""


class SQLiteResponses:
    """A store in a SQLite file, which several processes may use at once. `max_age` is in seconds; None means no limit.

    A new file gets the mode 0600, so that only its user may read it. If all replies together have more than
    `max_bytes`, the replies that were not used for the longest time are deleted. Raises CacheError if the file cannot
    be used, and SettingsInvalid for an invalid `max_age` or `max_bytes`.

    >>> import sabir, sabir_calls, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> store = sabir_calls.SQLiteResponses(f"{folder}/replies.db", max_age=7 * 86400)
    >>> llm = sabir_calls.cached_responses(sabir.adapter("echo:m"), store)
    >>> [llm.complete_sync("Hello!").from_cache for _ in range(2)]
    [False, True]
    """

    def __init__(
        self, path: str | os.PathLike[str], *, max_age: float | None = None, max_bytes: int = MOST_BYTES
    ) -> None:
        _check_limits(max_age, max_bytes)
        self._path = Path(path)
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._lock = Lock()
        try:
            create_private_file(self._path)
            self._database = sqlite3.connect(self._path, timeout=10.0, check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute("PRAGMA foreign_keys=ON")
            self._database.executescript(_LAYOUT)
        except (OSError, sqlite3.Error) as error:
            raise CacheError(f"{str(self._path)!r} cannot be used as a cache: {error}; pass another path") from None

    def __repr__(self) -> str:
        """Show the path."""
        return f"SQLiteResponses({str(self._path)!r})"

    def get(self, key: str) -> bytes | None:
        """Return the stored bytes, or None if there are none or they are older than `max_age`."""
        now = time.time()
        if self._max_age is not None:
            self._run_sql("DELETE FROM sabir_reply_uses WHERE stored < ?", now - self._max_age)
        rows = self._run_sql("SELECT reply FROM sabir_replies WHERE key = ?", key)
        if not rows:
            return None
        self._run_sql("UPDATE sabir_reply_uses SET used = ? WHERE key = ?", now, key)
        reply: bytes = rows[0][0]
        return reply

    def put(self, key: str, reply: bytes) -> None:
        """Store bytes under a key. If all entries together then have more than `max_bytes`, delete the least recently
        used ones. A reply that alone has more than `max_bytes` is not stored; an earlier entry of its key is deleted.
        """
        if len(reply) > self._max_bytes:
            self.delete(key)
            return
        now = time.time()
        with self._in_transaction() as execute:
            execute("INSERT OR REPLACE INTO sabir_reply_uses VALUES (?, ?, ?, ?)", (key, now, now, len(reply)))
            execute("INSERT INTO sabir_replies VALUES (?, ?)", (key, reply))
            (size,) = execute("SELECT sum(bytes) FROM sabir_reply_uses").fetchone()
            while size > self._max_bytes:
                oldest = "SELECT key FROM sabir_reply_uses ORDER BY used, key DESC LIMIT 1"
                sql = f"DELETE FROM sabir_reply_uses WHERE key = ({oldest}) RETURNING bytes"
                size -= execute(sql).fetchone()[0]

    def delete(self, key: str) -> None:
        """Delete the entry of a key, if there is one."""
        self._run_sql("DELETE FROM sabir_reply_uses WHERE key = ?", key)

    def clear(self) -> None:
        """Delete all entries, and shrink the file."""
        self._run_sql("DELETE FROM sabir_reply_uses")
        self._run_sql("VACUUM")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _run_sql(self, sql: str, *values: object) -> list[tuple[Any, ...]]:  # Any: values of columns
        with self._reporting():
            return self._database.execute(sql, values).fetchall()

    @contextmanager
    def _in_transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Run the statements of the `with` block in one transaction. Yields the function that executes a statement."""
        with self._reporting():
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:  # commits, or rolls back after an exception
                yield self._database.execute

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Hold the lock during the `with` block. Raises CacheError for an error of the database."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise CacheError(f"the cache {str(self._path)!r} failed: {DatabaseFailure(error)}") from None


def _check_limits(max_age: float | None, max_bytes: int) -> None:
    if max_age is not None and not max_age > 0:
        raise SettingsInvalid(f"max_age is {max_age!r}; expected a positive number of seconds, or None")
    if max_bytes < 1:
        raise SettingsInvalid(f"max_bytes is {max_bytes!r}; expected a maximum size in bytes, 1 or more")
