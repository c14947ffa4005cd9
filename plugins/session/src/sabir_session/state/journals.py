"""The journal to which a session writes a log's items before the log changes.

session ──append(kind, body)──▶ journal      on disk when it returns; an error means that nothing was written
        ◀──read()── (kind, body), …          in the order of appending
"""

from collections.abc import Iterable
from typing import Protocol


class Journal(Protocol):
    """An append-only list of texts, each with the kind "module:Class" of its content.

    The length of a journal, if it has one, is its number of records: by it a session sees that another session has
    written to the same object, and refuses to write after it.
    """

    def append(self, kind: str, body: str) -> None:
        """Write one record; it survives the death of the process once this has returned."""

    def read(self) -> Iterable[tuple[str, str]]:
        """The records that were there when the journal was opened, and those appended through it since."""
