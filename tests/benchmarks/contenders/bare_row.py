"""The limit of a checkpoint: one row of an SQLite file, by the standard library alone.

The text of each row is the one that sabir writes, made before the clock runs; so both write the same bytes.
"""

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sabir_session import InnerMessage

from tests.benchmarks.contenders.recording import BATCH, KEPT, Append, Appending
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}")

INSERT = "INSERT INTO records (kind, body) VALUES ('record', ?)"


class Rows(Appending):
    """Write-ahead log, no wait for the disk, each row committed by itself, its statement prepared once."""

    def __init__(self, given: Given) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name, "rows.db")
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, kind TEXT, body TEXT)")
        super().__init__(given.size, self.appender, lambda record: (InnerMessage.model_dump_json(record),))

    def appender(self) -> Append:
        """A prepared statement."""
        execute = self.connection.cursor().execute
        return lambda row: execute(INSERT, row)

    def pages(self) -> int:
        """Bytes of the database."""
        return int(self.connection.execute("PRAGMA page_count").fetchone()[0]) * 4096

    def close(self) -> None:
        """Delete it."""
        self.connection.close()
        self.folder.cleanup()


def evidence(given: Given, rows: Rows) -> dict[str, Any]:
    """The last rows as they are read back, and what a row takes."""
    (count,) = rows.connection.execute("SELECT count(*) FROM records").fetchone()
    last = rows.connection.execute("SELECT body FROM records ORDER BY id DESC LIMIT ?", (BATCH,)).fetchall()
    return {"count": count, "bodies": [body for (body,) in last[::-1]], **rows.taken(KEPT, rows.pages)}


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {"checkpoint": Rows}
EVIDENCE = {"checkpoint": evidence}
