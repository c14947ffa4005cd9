"""Makes a database engine from a URL, with the settings that runs need.

    sqlite:///runs.db         WAL, so that readers never wait; one writer at a time, others wait for it
    postgresql://host/name    through psycopg 3, a pool of connections

`durability` says what a finished write survives on SQLite: the end of the process, or also a power cut. Postgres has
its own setting for this (synchronous_commit), which is not changed.
"""

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sabir.authoring import DatabaseFailure
from sqlalchemy import URL, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from sabir_durable.errors import StoreInvalid

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
    """An engine of that store; it does not connect yet."""
    if is_sqlite(url):
        engine = create_engine(url)
        _prepare(engine, _SYNCHRONOUS[durability])
    else:
        engine = create_engine(url, pool_size=POOL, max_overflow=POOL, pool_pre_ping=True, connect_args=bounds_of(url))

    @event.listens_for(engine, "handle_error")
    def refuse(context: ExceptionContext) -> None:
        """Whoever asks, this package or the engine: no statement is tried again on a store that is broken."""
        if DatabaseFailure(context.original_exception).is_lasting:
            task = "opened" if context.connection is None else "used"
            raise unusable(url, context.original_exception, task) from None

    return engine


def _prepare(engine: Engine, synchronous: str) -> None:
    """Configure each connection to SQLite when it is opened."""

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: object) -> None:  # the driver's own connection
        connection.isolation_level = "IMMEDIATE"
        connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA foreign_keys=ON")
        if sqlite3.sqlite_version_info < KNOWS_SUBSECONDS:
            connection.create_function("unixepoch", 1, _unixepoch)


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
