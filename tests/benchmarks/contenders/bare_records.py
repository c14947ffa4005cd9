"""The limit of a recorded phase: the rows that a thread of sabir's wrote, appended to a journal as they are."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sabir_session import SQLiteStore

from tests.benchmarks import work
from tests.benchmarks.contenders.sabir_actors import Phases
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}", "{testing}", "{actors}")


def recorded(given: Given) -> list[tuple[str, str]]:
    """The rows of a thread that went through all its phases; the first was written when it was created."""
    if given.wire != "SQLite":
        raise ValueError("there are no rows")
    phases = Phases(given)
    try:
        phases.renew()
        phases()
        return phases.rows()
    finally:
        phases.close()


class Rows:
    """What is timed: all rows of a thread but its first, each committed by itself."""

    units = len(work.PHASES)

    def __init__(self, given: Given) -> None:
        self.first, *self.others = recorded(given)
        self.folder = tempfile.TemporaryDirectory()
        self.store = SQLiteStore(Path(self.folder.name, "threads.db"))
        self.count = 0

    def renew(self) -> None:
        """The journal of a thread that was created."""
        self.count += 1
        self.journal = self.store.journal(f"thread {self.count}")
        self.journal.append(*self.first)

    def __call__(self) -> "Rows":
        """Append the others."""
        append = self.journal.append
        for kind, body in self.others:
            append(kind, body)
        return self

    def close(self) -> None:
        """Delete the file."""
        self.store.close()
        self.folder.cleanup()


def evidence(given: Given, rows: Rows) -> dict[str, Any]:
    """The phases that the journal says were done, and what the last one came to."""
    events = [json.loads(body) for kind, body in rows.journal.read() if kind.endswith("ThreadEvent")]
    done = [each["data"] for each in events if each["what"] == "phase_done"]
    return {"phases": [each["phase_type"] for each in done], "text": done[-1]["output"]["response"]}


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {"actor_phase": Rows}
EVIDENCE = {"actor_phase": evidence}
