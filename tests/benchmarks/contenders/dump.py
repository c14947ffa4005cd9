"""What a checkpoint is where nothing is appended: all records as one JSON text, written to a file each time."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json
from sabir_session import InnerMessage

from tests.benchmarks import work
from tests.benchmarks.contenders.recording import BATCH, Append, Appending
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}")

SIZE = 1000
"""The only number of records that it is measured at: each time costs as much as there are."""


class Dumping(Appending):
    """One validated list, one text, one file."""

    def __init__(self, given: Given) -> None:
        if given.size != SIZE:
            raise ValueError("it takes too long")
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "records.json")
        self.adapter = TypeAdapter(list[InnerMessage])
        super().__init__(given.size, self.appender, lambda record: record)

    def appender(self) -> Append:
        """Append to a list that holds the base already, once it is dumped: the base is not dumped record by record."""
        held: list[InnerMessage] = []

        def append(record: InnerMessage) -> None:
            held.append(record)
            if len(held) > self.size:
                self.path.write_bytes(self.adapter.dump_json(held))

        return append

    def close(self) -> None:
        """Delete it."""
        self.folder.cleanup()


def evidence(given: Given, dumping: Dumping) -> dict[str, Any]:
    """The last records as they are read back, and what a dump takes."""
    stored = from_json(dumping.path.read_bytes())
    bodies = [work.compact(body) for body in stored[-BATCH:]]
    taken = dumping.taken(BATCH, lambda: 0)
    return {"count": len(stored), "bodies": bodies, **taken, "bytes": taken["written"]}


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {"checkpoint": Dumping}
EVIDENCE = {"checkpoint": evidence}
