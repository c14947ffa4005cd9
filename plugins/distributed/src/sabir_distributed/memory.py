"""What a worker remembers of requests that are over, so that it runs none twice.

    answered   id ──▶ the answer as it was sent: a repeated request is answered with it
    cancelled  id ──▶ nothing: a request that comes after its cancellation is dropped

The oldest are forgotten first. A request that is repeated later than that runs again: at least once is the promise.
"""

from collections import OrderedDict

MOST_REQUESTS = 10_000
MOST_BYTES = 32 * 1024 * 1024
NOTHING = b""
"""Stands for a cancelled request: there is nothing to answer."""


class Memory:
    """Request id → what was answered, of the most recent."""

    def __init__(self, *, requests: int = MOST_REQUESTS, size: int = MOST_BYTES) -> None:
        self._requests = requests
        self._size = size
        self._held = 0
        self._answers: OrderedDict[str, bytes] = OrderedDict()

    def keep(self, id: str, answer: bytes) -> None:
        """Remember an answer, and forget the oldest beyond the bounds."""
        self._held += len(answer) - len(self._answers.pop(id, NOTHING))
        self._answers[id] = answer
        while len(self._answers) > self._requests or self._held > self._size:
            _, forgotten = self._answers.popitem(last=False)
            self._held -= len(forgotten)

    def recall(self, id: str) -> bytes | None:
        """What was answered; `NOTHING` for what was cancelled, None for what is not known."""
        return self._answers.get(id)
