"""A store of layout 1, with what the library of that layout wrote: `layout_1.json`, loaded into SQLite or Postgres.

trip       a conversation of two turns, whose first seven records are those of a conversation that was taken back
east       its fork, from which the last turn was taken back
open       a question whose option was interrupted
notes      two notes of `tests.session.support`, and an evaluation
thread:…   a thread of sabir-actors, paused in its second phase
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

import psycopg

OLD: dict[str, Any] = json.loads(Path(__file__).with_name("layout_1.json").read_text("utf-8"))
THREAD = next(name for _, name, _, _ in OLD["journals"] if name and name.startswith("thread:")).removeprefix("thread:")
_TABLES = (
    "CREATE TABLE sabir_session_schema (version INTEGER NOT NULL)",
    "CREATE TABLE sabir_journals (id {identity}, name TEXT UNIQUE, parent BIGINT, length BIGINT NOT NULL DEFAULT 0)",
    "CREATE INDEX sabir_journals_of_parent ON sabir_journals (parent)",
    "CREATE TABLE sabir_records (id {key} PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE VIEW sabir_journal_records AS SELECT id >> 32 AS journal, id & 4294967295 AS position, kind, body"
    " FROM sabir_records",
    "INSERT INTO sabir_session_schema (version) VALUES (1)",
)
_TYPES = {
    "sqlite": {"identity": "INTEGER PRIMARY KEY AUTOINCREMENT", "key": "INTEGER"},
    "postgres": {"identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "key": "BIGINT"},
}
LAYOUT_1 = {engine: tuple(each.format(**types) for each in _TABLES) for engine, types in _TYPES.items()}
"""Engine → the statements that made the tables of layout 1."""
APPEND_1 = "INSERT INTO sabir_records (id, kind, body) SELECT ?, ?, ? FROM sabir_journals WHERE id = ?"
"""The statement with which a library of layout 1 writes a record."""


def connect(address: str) -> Any:
    """A connection to the database at a path or a URL, of the driver's own class; each statement is committed."""
    if address.startswith("postgresql:"):
        return psycopg.connect(address, autocommit=True)
    return sqlite3.connect(address, isolation_level=None)


def execute(connection: Any, statement: str, values: tuple[Any, ...] = ()) -> Any:
    """Execute a statement with placeholders as SQLite writes them."""
    if isinstance(connection, sqlite3.Connection):
        return connection.execute(statement, values)
    return connection.execute(statement.replace("?", "%s"), values, prepare=bool(values))


def write_old_store(address: str) -> None:
    """Make the store of layout 1 in an empty database."""
    engine = "postgres" if address.startswith("postgresql:") else "sqlite"
    connection = connect(address)
    if engine == "sqlite":
        execute(connection, "PRAGMA journal_mode = WAL")
    for statement in LAYOUT_1[engine]:
        execute(connection, statement)
    overriding = "OVERRIDING SYSTEM VALUE " if engine == "postgres" else ""
    for row in OLD["journals"]:
        values = f"(id, name, parent, length) {overriding}VALUES (?, ?, ?, ?)"
        execute(connection, f"INSERT INTO sabir_journals {values}", tuple(row))
    for row in OLD["records"]:
        execute(connection, "INSERT INTO sabir_records (id, kind, body) VALUES (?, ?, ?)", tuple(row))
    if engine == "postgres":
        execute(connection, f"ALTER TABLE sabir_journals ALTER id RESTART WITH {len(OLD['journals']) + 1}")
    connection.close()


def read_old_store(address: str) -> dict[str, Any]:
    """The rows of a store of layout 1, by the names that they have there."""
    connection = connect(address)
    schema = execute(connection, "SELECT version FROM sabir_session_schema").fetchall()
    journals = execute(connection, "SELECT id, name, parent, length FROM sabir_journals ORDER BY id").fetchall()
    records = execute(connection, "SELECT id, kind, body FROM sabir_records ORDER BY id").fetchall()
    view = execute(connection, "SELECT count(*) FROM sabir_journal_records").fetchall()
    connection.close()
    assert view == [(len(records),)]
    return {
        name: [[*row] for row in rows]
        for name, rows in (("schema", schema), ("journals", journals), ("records", records))
    }


def upgrade_and_die(address: str, statement: int) -> None:
    """Open the store, and be killed before the statement of that number; for a child process."""
    import os
    import signal

    from sabir_session import PostgresStore, SQLiteStore

    kind = PostgresStore if address.startswith("postgresql:") else SQLiteStore
    executed, execute_one = 0, kind._run_statement

    def counted(self: Any, text: str, values: Any = ()) -> Any:
        nonlocal executed
        executed += 1
        if executed == statement:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute_one(self, text, values)

    kind._run_statement = counted  # type: ignore[method-assign]
    kind(address).close()


if __name__ == "__main__":
    import sys

    upgrade_and_die(sys.argv[1], int(sys.argv[2]))
