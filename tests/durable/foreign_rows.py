"""Changes rows of the engine's tables behind its back, so that loading one would create a file.

    poison(store, folder, "streams")  ─▶  serialization = 'py_pickle', value = a pickle that creates streams.value

The names of the files in the folder are the columns that were loaded.
"""

import base64
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sabir_runtime.durable.stores import parse_store
from sqlalchemy import Connection, create_engine, text

SCHEMAS = {"sqlite": "", "postgresql": "dbos."}

PAYLOADS: dict[str, Sequence[str]] = {
    "workflow_status": ("inputs", "output", "error"),
    "workflow_input": ("inputs",),
    "workflow_output": ("output", "error"),
    "operation_outputs": ("output", "error"),
    "notifications": ("message",),
    "workflow_events": ("value",),
    "workflow_events_history": ("value",),
    "streams": ("value",),
    "workflow_schedules": ("context",),
}
"""Every column of the engine's tables with a value that the engine serialized."""
UNMARKED = ("workflow_input", "workflow_output", "workflow_schedules")
"""Tables without a column `serialization`: that of `workflow_status` counts, or the configured serializer."""


class Creates:
    """A value whose pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._path,)


def pickle_of(path: Path) -> str:
    """Return a pickle, as the engine stores pickles, that creates the file when it is loaded."""
    return base64.b64encode(pickle.dumps(Creates(path))).decode()


def poison(store: str, folder: Path, *tables: str, run: str | None = None, only: str | None = None) -> None:
    """Replace values in these tables by pickles: of one run or of all, in the column `only` or in all columns."""
    with unguarded(store) as connection:
        schema = SCHEMAS[connection.dialect.name]
        for table in tables:
            for column in PAYLOADS[table]:
                if only in (None, column):
                    path = folder / f"{table}.{column}"
                    where = f"{column} IS NOT NULL" + (" AND workflow_uuid = :run" if run else "")
                    values = {"value": pickle_of(path)} | ({"run": run} if run else {})
                    connection.execute(text(f"UPDATE {schema}{table} SET {column} = :value WHERE {where}"), values)
            if table not in UNMARKED:
                mark(connection, table, "py_pickle", run)


def mark(connection: Connection, table: str, serialization: object, run: str | None = None) -> None:
    """Set the column that the engine selects a deserializer by."""
    where = " WHERE workflow_uuid = :run" if run else ""
    values = {"serialization": serialization} | ({"run": run} if run else {})
    schema = SCHEMAS[connection.dialect.name]
    connection.execute(text(f"UPDATE {schema}{table} SET serialization = :serialization{where}"), values)


@contextmanager
def unguarded(store: str) -> Iterator[Connection]:
    """Begin a transaction as a program that is not sabir."""
    engine = create_engine(parse_store(store))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()
