"""Checks each fetched row before the engine reads it, and replaces values in other serializations.

    DBOS ─▶ SELECT … serialization … ─▶ the driver's row factory ─▶ guard_row ─▶ DBOS ─▶ ReadableJSON.deserialize
                                          ("gASV…", "py_pickle")       (refusal, "sabir_json")       └ raises RowRefused

DBOS selects the deserializer of a value by the column `serialization` of its row. `py_pickle` is always among the
choices, whatever serializer its configuration names, so a changed row could run code in every process that reads it.
DBOS has no setting against this. It reads all rows through the engine that `stores` makes, and both drivers have a
public hook for each fetched row: sqlite3 and psycopg call `row_factory`.

The check and the deserializer use the same row in memory, so a row that changes in the database in between is checked
as well. A refused row does not end the query, because one query reads the rows of many runs.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from sabir.authoring import one_line
from sqlalchemy import Engine, event

from sabir_runtime.durable.errors import RowRefused

SERIALIZATION = "sabir_json"
"""The name of the only serialization that is read. Rows that name no serialization are read in the same way."""
REFUSED = "sabir_refused"
"""The key of the object that replaces a refused value."""

_PAYLOADS = frozenset({"inputs", "output", "error", "message", "value"})
"""Columns whose values the engine deserializes."""
_UNNAMED = "coalesce"
"""The beginning of SQLAlchemy's names for unnamed columns: DBOS reads results as `coalesce(output, …)`."""
_RUNS = ("workflow_uuid", "destination_uuid")
"""Columns that name the run of a row."""

Row: TypeAlias = tuple[Any, ...]  # a driver returns values of any type


@dataclass(frozen=True)
class Columns:
    """The positions of columns in a row with serialized values.

    `names` are all columns, `serializations` the columns that name a serialization, and `payloads` the columns with
    serialized values. `run` is the column with the run's name, or None.
    """

    names: tuple[str, ...]
    serializations: tuple[int, ...]
    payloads: tuple[int, ...]
    run: int | None


def guard_engine(engine: Engine) -> None:
    """Call `guard_row` for every fetched row with serialized values, also on connections that are open already."""
    if not event.contains(engine, "checkout", _set_row_factory):
        event.listen(engine, "checkout", _set_row_factory)


def _set_row_factory(connection: Any, *_: object) -> None:  # the driver's own connection
    connection.row_factory = _make_sqlite_row if isinstance(connection, sqlite3.Connection) else _make_psycopg_maker


def guard_row(row: Sequence[Any], columns: Columns) -> Row:
    """Return the row. If its values are in another serialization, a refusal replaces each value that is not NULL."""
    for position in columns.serializations:
        if row[position] is not None and row[position] != SERIALIZATION:
            return _replace_payloads(row, columns, row[position])
    return tuple(row)


@lru_cache(1024)
def find_columns(names: tuple[str, ...]) -> Columns | None:
    """Return the positions in a row with these columns; None if nothing in the row is serialized."""
    serializations = tuple(position for position, name in enumerate(names) if "serialization" in name)
    if not serializations:
        return None
    payloads = (at for at, name in enumerate(names) if name in _PAYLOADS or name.startswith(_UNNAMED))
    run = next((names.index(name) for name in _RUNS if name in names), None)
    return Columns(names, serializations, tuple(payloads), run)


def refusal_error(refusal: object) -> RowRefused:
    """Return the error that a refusal describes. The refusal may be forged, so its fields are checked."""
    fields = refusal if isinstance(refusal, dict) else {}
    run, column = fields.get("run"), str(fields.get("column"))
    column = "output or error" if column.startswith(_UNNAMED) else one_line(column, 40)
    written = f"is in the serialization {one_line(repr(fields.get('serialization')), 40)}, not {SERIALIZATION!r}"
    remedy = "check which other program writes to the store, then fork the run"
    return RowRefused(
        f"the value in the engine's column {column} {written}, so it was not loaded; {remedy}", run and str(run)
    )


def _replace_payloads(row: Sequence[Any], columns: Columns, serialization: object) -> Row:
    """Replace the values that the engine would deserialize by refusals in `SERIALIZATION`.

    DBOS then passes the refusals to the deserializer of this package, which raises RowRefused.
    """
    values = list(row)
    run = None if columns.run is None else str(row[columns.run])
    for position in columns.serializations:
        values[position] = SERIALIZATION
    for position in columns.payloads:
        if row[position] is not None:
            values[position] = _refusal_json(run, columns.names[position], serialization)
    return tuple(values)


def _refusal_json(run: str | None, column: str, serialization: object) -> str:
    """Return the JSON that replaces a refused value. In the column `inputs`, it is an argument of `run_workflow`."""
    refusal = {REFUSED: {"run": run, "column": column, "serialization": str(serialization)}}
    return json.dumps({"args": [], "kwargs": refusal} if column == "inputs" else refusal)


def _column_names(description: Iterable[Sequence[Any]] | None) -> tuple[str, ...]:
    return tuple([column[0] for column in description or ()])


def _make_sqlite_row(cursor: sqlite3.Cursor, row: Row) -> Row:
    """Return a fetched row of sqlite3, guarded. See https://docs.python.org/3/library/sqlite3.html#sqlite3.Cursor.row_factory."""
    columns = find_columns(_column_names(cursor.description))
    return row if columns is None else guard_row(row, columns)


def _make_psycopg_maker(cursor: Any) -> Callable[[Sequence[Any]], Row]:  # psycopg's Cursor, which need not be loaded
    """Return the function that guards each row of a result of psycopg. See https://www.psycopg.org/psycopg3/docs/advanced/rows.html."""
    columns = find_columns(_column_names(cursor.description))
    return tuple if columns is None else lambda row: guard_row(row, columns)
