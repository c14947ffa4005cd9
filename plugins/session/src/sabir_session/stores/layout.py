"""The layout of journals in a database, and the statements for each engine.

    sabir_session_schema   version
    sabir_journals         id · name (none: deleted, kept for its forks) · parent · length (of the parent's part)
    sabir_records          id = journal · 2³² + position · kind · body

One row for each append, in one tree: a row's key is its place, so two writers of one place conflict in the key. A fork
is a row that names its parent and how much of the parent is its past: its own records begin at that position.
"""

from collections.abc import Mapping

VERSION = 1
"""The layout that this version writes."""

POSITIONS = 1 << 32
"""Positions of one journal; journal n's records have keys from n · POSITIONS."""

UPGRADES: Mapping[int, tuple[str, ...]] = {}
"""Layout → the statements that upgrade it to the next one; empty, since there is only one layout."""

_TABLES = (
    "CREATE TABLE sabir_session_schema (version INTEGER NOT NULL)",
    "CREATE TABLE sabir_journals (id {identity}, name TEXT UNIQUE, parent BIGINT, length BIGINT NOT NULL DEFAULT 0)",
    "CREATE INDEX sabir_journals_of_parent ON sabir_journals (parent)",
    "CREATE TABLE sabir_records (id {key} PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE VIEW sabir_journal_records AS SELECT id >> 32 AS journal, id & 4294967295 AS position, kind, body"
    " FROM sabir_records",
    "INSERT INTO sabir_session_schema (version) VALUES (1)",
)
SQLITE_TABLES = tuple(each.format(identity="INTEGER PRIMARY KEY AUTOINCREMENT", key="INTEGER") for each in _TABLES)
POSTGRES_TABLES = tuple(
    each.format(identity="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", key="BIGINT") for each in _TABLES
)

READ_VERSION = "SELECT version FROM sabir_session_schema"
WRITE_VERSION = "UPDATE sabir_session_schema SET version = ?"

APPEND = (
    "INSERT INTO sabir_records (id, kind, body) SELECT ?, ?, ? FROM sabir_journals WHERE id = ? AND name IS NOT NULL"
)
RECORDS = "SELECT id, kind, body FROM sabir_records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
LAST_KEY = "SELECT max(id) FROM sabir_records WHERE id >= ? AND id < ?"
DROP_RECORDS = "DELETE FROM sabir_records WHERE id >= ? AND id < ?"

MAKE = "INSERT INTO sabir_journals (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
FORK = "INSERT INTO sabir_journals (name, parent, length) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
FIND = "SELECT id FROM sabir_journals WHERE name = ?"
PAST = "SELECT parent, length, name FROM sabir_journals WHERE id = ?"
NAMES = "SELECT name FROM sabir_journals WHERE name IS NOT NULL"
LONGEST_FORK = "SELECT max(length) FROM sabir_journals WHERE parent = ?"
HIDE = "UPDATE sabir_journals SET name = NULL WHERE id = ?"
DROP = "DELETE FROM sabir_journals WHERE id = ?"
