"""What a session writes its logs to, before they change.

session ──append(kind, body)──▶ journal      on disk when it returns; raising means: nothing was written
        ◀──read()── (kind, body), …          in the order of appending
"""

from collections.abc import Iterable
from typing import Protocol


class Journal(Protocol):
    """An append-only list of texts, each with the kind "module:Class" of what it describes.

    A journal that has a length says by it how many records it holds: then a session sees that another one has written
    to the same object, and refuses to write behind it.
    """

    def append(self, kind: str, body: str) -> None:
        """Write one record; it survives the death of the process once this has returned."""

    def read(self) -> Iterable[tuple[str, str]]:
        """The records that were there when the journal was opened, and those appended through it since."""
