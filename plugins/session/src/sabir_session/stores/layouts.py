"""The tables of a store, and the steps that upgrade the tables of an earlier version.

    layout 1 ──step 1──▶ layout 2                    the number is in sabir_session_schema

1  0.1.0 before stored names   records in sabir_records, named by module and class
2  0.1.0                       records in sabir_session_records, named by stored names

Law: a store is opened in one transaction, which makes all the missing steps, or none. No step rewrites a record.

An earlier version of this library refuses to open a store whose layout number is higher than its own. But a process of
that version may have the store open during the upgrade. It would not see records under names that it does not know, and
would continue a conversation without them. So step 1 renames the table, and the statements of such a process fail.
"""

from collections.abc import Mapping

VERSION = 2
"""The layout number that this version writes, and the highest layout number that this version opens."""

_VIEW = (
    "CREATE VIEW sabir_journal_records AS SELECT id >> 32 AS journal, id & 4294967295 AS position, kind, body"
    " FROM sabir_session_records"
)
_TABLES = (
    "CREATE TABLE sabir_session_schema (version INTEGER NOT NULL)",
    "CREATE TABLE sabir_journals (id {identity}, name TEXT UNIQUE, parent BIGINT, length BIGINT NOT NULL DEFAULT 0)",
    "CREATE INDEX sabir_journals_of_parent ON sabir_journals (parent)",
    "CREATE TABLE sabir_session_records (id {key} PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL)",
    _VIEW,
    f"INSERT INTO sabir_session_schema (version) VALUES ({VERSION})",
)
SQLITE_TABLES = tuple(each.format(identity="INTEGER PRIMARY KEY AUTOINCREMENT", key="INTEGER") for each in _TABLES)
POSTGRES_TABLES = tuple(
    each.format(identity="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", key="BIGINT") for each in _TABLES
)

_RENAME = "ALTER TABLE sabir_records RENAME TO sabir_session_records"
SQLITE_UPGRADES: Mapping[int, tuple[str, ...]] = {
    # Some builds of SQLite do not change the table's name in the view.
    1: ("DROP VIEW IF EXISTS sabir_journal_records", _RENAME, _VIEW),
}
"""Layout number → the statements that upgrade tables of this layout to the next layout."""
POSTGRES_UPGRADES: Mapping[int, tuple[str, ...]] = {
    1: (_RENAME,),  # the view refers to the table itself, so the view and its permissions stay
}
"""Layout number → the statements that upgrade tables of this layout to the next layout."""
