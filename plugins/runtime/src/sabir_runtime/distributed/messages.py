"""The messages of a request: a conversation sends the same ones every turn, so they are not encoded and decoded again.

    caller    message ──by identity──▶ its line       kept from the second time on, while it lives
    worker    line ────by its bytes──▶ the message    kept from the second time on, within a size

Each message is one line of the request. For JSON the line breaks are white space, so other programs may write and read
requests freely. A worker gets the same object for the same message, so core's caches, such as rendered prefixes, serve
the next turn as in one process. A message sent only once is not kept, and costs almost nothing.
"""

import weakref
from collections.abc import Iterable, Sequence

from sabir import Message

LARGEST_LINE = 16 * 1024
"""Bytes; a larger message is written and read anew each time, so that media are not held twice."""
MOST_BYTES = 8 * 1024 * 1024
"""The most bytes of lines whose messages a worker keeps."""
BETWEEN = b",\n"
"""Separates lines; it is never within one, because the JSON of a message has no line breaks."""

MOST_HEARD = 50_000
"""The most messages remembered as seen once: only their hashes, which cost the garbage collector nothing."""

_written: dict[int, "_Written"] = {}
_sent: set[int] = set()


class _Written(weakref.ref[Message]):
    """A message and its line, in one object without a function, since there may be many."""

    __slots__ = ("key", "line")
    key: int
    line: bytes


def lines_of(messages: Iterable[Message]) -> bytes:
    """Messages as JSON, one a line; raises pydantic's error if one has a value that JSON cannot hold."""
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
    """Whether it came before; remembers it."""
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
    """Line → message, for messages received more than once; the oldest are forgotten first.

    A conversation's messages come again with each of its turns, and then count as new.
    """

    def __init__(self, *, size: int = MOST_BYTES) -> None:
        self._size = size
        self._held = 0
        self._heard: set[int] = set()
        self._messages: dict[bytes, Message] = {}

    def read(self, lines: Sequence[bytes]) -> tuple[Message, ...] | None:
        """The messages of some lines; None if all are new: reading them together is faster.

        Raises pydantic.ValidationError if a line is not a message that this version knows.
        """
        found = list(map(self._messages.get, lines))
        if not any(found) and self._heard.isdisjoint(map(hash, lines)):
            for line in lines:
                _is_heard(self._heard, line)
            return None
        return tuple([message or self._read(line) for message, line in zip(found, lines, strict=True)])

    def _read(self, line: bytes) -> Message:
        """The message of a line; kept from the second time on, and the oldest are forgotten beyond the bound."""
        message: Message = Message.__pydantic_validator__.validate_json(line)  # alone: two halves would pass as one
        if _is_heard(self._heard, line) and len(line) <= LARGEST_LINE and line not in self._messages:
            self._messages[line] = message
            self._held += len(line)
            while self._held > self._size:
                oldest = next(iter(self._messages))
                del self._messages[oldest]
                self._held -= len(oldest)
        return message
