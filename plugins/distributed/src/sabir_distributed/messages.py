"""The messages of a request: a conversation sends the same ones every turn, and they are not written and read anew.

    caller    message ──by identity──▶ its line       kept from the second time on, while it lives
    worker    line ────by its bytes──▶ the message    kept from the second time on, within a size

Each message is one line of the request. To JSON that is white space, so others may write and read requests as they
like. A worker has the same object again for the same message: what core keeps with it, rendered prefixes above all,
serves the next turn there as it does in one process. What is sent but once is not kept, and costs next to nothing.
"""

import weakref
from collections.abc import Iterable, Sequence

from sabir import Message

LARGEST_LINE = 16 * 1024
"""Bytes; a larger message is written and read anew each time, so that media are not held twice."""
MOST_BYTES = 8 * 1024 * 1024
"""Of the lines whose messages a worker keeps."""
BETWEEN = b",\n"
"""Stands between two lines, and nowhere within one: the JSON of a message has no line breaks."""

MOST_HEARD = 50_000
"""Messages that are known to have come once: their hashes, numbers that the garbage collector need not look at."""

_written: dict[int, "_Written"] = {}
_sent: set[int] = set()


class _Written(weakref.ref[Message]):
    """A message and its line: one object, and no function, for what may be many."""

    __slots__ = ("key", "line")
    key: int
    line: bytes


def lines_of(messages: Iterable[Message]) -> bytes:
    """Messages as JSON, one a line; raises what pydantic raises where one holds what JSON cannot."""
    return BETWEEN.join(map(_line_of, messages))


def _line_of(message: Message) -> bytes:
    key = id(message)
    known = _written.get(key)
    if known is not None and known() is message:
        return known.line
    line = Message.__pydantic_serializer__.to_json(message)
    if _is_heard(_sent, message.id) and len(line) <= LARGEST_LINE:
        written = _written[key] = _Written(message, _forget)
        written.key, written.line = key, line
    return line


def _is_heard(heard: set[int], told: str | bytes) -> bool:
    """Whether it came before; it has from now on."""
    key = hash(told)
    if key in heard:
        return True
    if len(heard) >= MOST_HEARD:
        heard.clear()
    heard.add(key)
    return False


def _forget(written: "weakref.ref[Message]") -> None:
    assert isinstance(written, _Written)
    _written.pop(written.key, None)


class KnownMessages:
    """Line → message, of those that were heard more than once; those that are kept longest are forgotten first.

    A conversation's messages come again with each of its turns, and are kept anew with the next.
    """

    def __init__(self, *, size: int = MOST_BYTES) -> None:
        self._size = size
        self._held = 0
        self._heard: set[int] = set()
        self._messages: dict[bytes, Message] = {}

    def read(self, lines: Sequence[bytes]) -> tuple[Message, ...] | None:
        """The messages of some lines; None where all are new: to read them together is quicker.

        Raises pydantic.ValidationError where a line is no message that this version knows.
        """
        found = list(map(self._messages.get, lines))
        if not any(found) and self._heard.isdisjoint(map(hash, lines)):
            for line in lines:
                _is_heard(self._heard, line)
            return None
        return tuple([message or self._read(line) for message, line in zip(found, lines, strict=True)])

    def _read(self, line: bytes) -> Message:
        message: Message = Message.__pydantic_validator__.validate_json(line)  # alone: two halves would pass as one
        if _is_heard(self._heard, line) and len(line) <= LARGEST_LINE and line not in self._messages:
            self._keep(line, message)
        return message

    def _keep(self, line: bytes, message: Message) -> None:
        """Remember it, and forget the oldest beyond the bound."""
        self._messages[line] = message
        self._held += len(line)
        while self._held > self._size:
            oldest = next(iter(self._messages))
            del self._messages[oldest]
            self._held -= len(oldest)
