"""A worker's memory of ended requests, so that it runs none twice.

    answered   id ──▶ the answer as it was sent: a repeated request is answered with it
    cancelled  id ──▶ nothing: a request that comes after its cancellation is dropped

An answer is kept with who asked: it is for nobody else.

The oldest are forgotten first. A request that is repeated later than that runs again: at least once is the promise.
"""

from collections import OrderedDict
from typing import NamedTuple

MOST_REQUESTS = 10_000
MOST_BYTES = 32 * 1024 * 1024
NOTHING = b""
"""Stands for a cancelled request: there is nothing to answer."""


class Kept(NamedTuple):
    """What is remembered of one request."""

    answer: bytes
    asker: str
    """The result of `asker_of`; empty if it is not known."""

    @property
    def size(self) -> int:
        """The bytes that it counts."""
        return len(self.answer) + len(self.asker)


_UNKNOWN = Kept(NOTHING, "")


class Memory:
    """Request id → answer, for the most recent requests."""

    def __init__(self, *, requests: int = MOST_REQUESTS, size: int = MOST_BYTES) -> None:
        self._requests = requests
        self._size = size
        self._held = 0
        self._answers: OrderedDict[str, Kept] = OrderedDict()

    def keep(self, id: str, answer: bytes, asker: str = "") -> None:
        """Remember an answer and who asked, and forget the oldest beyond the bounds."""
        kept = Kept(answer, asker)
        self._held += kept.size - self._answers.pop(id, _UNKNOWN).size
        self._answers[id] = kept
        while len(self._answers) > self._requests or self._held > self._size:
            _, forgotten = self._answers.popitem(last=False)
            self._held -= forgotten.size

    def recall(self, id: str) -> Kept | None:
        """The answer and its asker; `NOTHING` for a cancelled request, None for an unknown one."""
        return self._answers.get(id)
