"""Caches for the messages of requests, because a conversation sends the same messages at every turn.

    caller    message ──by identity──▶ its JSON line  cached when it is sent twice, while the message exists
    worker    JSON line ──by bytes───▶ the message    cached when it is received twice, up to a total size

Each message is one line of the request. Line breaks are white space in JSON, so other programs can write and read
requests freely. A worker gets the same object for the same message, so core's caches, such as rendered prefixes, are
effective as in one process. A message that is sent only once is not cached.
"""

import weakref
from collections.abc import Iterable, Sequence

from sabir import Message

LARGEST_LINE = 16 * 1024
"""The maximum size in bytes of a cached message, so that media are not stored twice."""
MOST_BYTES = 8 * 1024 * 1024
"""The maximum total size in bytes of the lines whose messages a worker caches."""
BETWEEN = b",\n"
"""The separator of lines. It does not occur inside a line, because the JSON of a message has no line breaks."""

MOST_SEEN = 50_000
"""The maximum number of messages remembered as sent, and as received by one cache. Only their hashes are stored."""

_lines: dict[int, "_CachedLine"] = {}
_sent: set[int] = set()


class _CachedLine(weakref.ref[Message]):
    """A weak reference to a message, with the message's JSON line."""

    __slots__ = ("key", "line")
    key: int
    line: bytes


def lines_of(messages: Iterable[Message]) -> bytes:
    """Return messages as JSON lines, joined by `BETWEEN`.

    Raises PydanticSerializationError if a message contains a value that is not JSON.
    """
    return BETWEEN.join(map(_line_of, messages))


def _line_of(message: Message) -> bytes:
    key = id(message)
    known = _lines.get(key)
    if known is not None and known() is message:
        return known.line
    line = Message.__pydantic_serializer__.to_json(message)
    if _was_seen(_sent, message.id) and len(line) <= LARGEST_LINE:
        cached_line = _lines[key] = _CachedLine(message, _remove_line)
        cached_line.key, cached_line.line = key, line
    return line


def _was_seen(seen_once: set[int], value: str | bytes) -> bool:
    """Return whether a value was passed before with this set, and remember it. A full set is emptied first."""
    key = hash(value)
    if key in seen_once:
        return True
    if len(seen_once) >= MOST_SEEN:
        seen_once.clear()
    seen_once.add(key)
    return False


def _remove_line(cached_line: "weakref.ref[Message]") -> None:
    assert isinstance(cached_line, _CachedLine)
    _lines.pop(cached_line.key, None)


class KnownMessages:
    """A worker's cache of received messages by their JSON lines, with at most `size` bytes of lines.

    The messages that were cached first are removed first.
    """

    def __init__(self, *, size: int = MOST_BYTES) -> None:
        self._size = size
        self._cached_size = 0
        self._seen_once: set[int] = set()
        self._messages: dict[bytes, Message] = {}

    def read(self, lines: Sequence[bytes]) -> tuple[Message, ...] | None:
        """Return the messages of these lines.

        Return None if all lines are new, because the caller can then parse all lines at once, which is faster. Raises
        pydantic.ValidationError if a line is not a message that this version knows.
        """
        cached = list(map(self._messages.get, lines))
        if not any(cached) and self._seen_once.isdisjoint(map(hash, lines)):
            for line in lines:
                _was_seen(self._seen_once, line)
            return None
        return tuple([message or self._parse_line(line) for message, line in zip(cached, lines, strict=True)])

    def _parse_line(self, line: bytes) -> Message:
        """Parse a line. If the line was received before, cache its message."""
        # Each line alone, because two halves of a message in two lines would be accepted if they were joined.
        message: Message = Message.__pydantic_validator__.validate_json(line)
        if _was_seen(self._seen_once, line) and len(line) <= LARGEST_LINE and line not in self._messages:
            self._messages[line] = message
            self._cached_size += len(line)
            while self._cached_size > self._size:
                oldest = next(iter(self._messages))
                del self._messages[oldest]
                self._cached_size -= len(oldest)
        return message
