"""Server-sent events: bytes in any chunks → events.

    b"data: a\\n" + b"data: b\\n\\n"  ──▶  ServerEvent(data="a\\nb")

By the WHATWG algorithm: lines end in LF, CR or CRLF; a leading byte order mark is dropped; lines that begin
with a colon are comments; several data lines join with LF; an event without data is ignored. A last event without a
blank line after it is given at the close, because vendors' streams sometimes end so.

After a first event, a line that begins a JSON object or array is an event too, up to the next blank line: some
servers break off a stream with a bare error body.
"""

import re
from codecs import BOM_UTF8
from typing import NamedTuple, Protocol

from sabir.base.failures import ResponseInvalid

_BARE = re.compile(rb"\s*(\{|\[\s*(\{|\Z))")
"""The beginning of a JSON object, or of an array of objects."""
_RETURN = ord("\r")
_ENDS = (b"\n\n", b"\r\n\r\n")
"""The ends of a chunk of whole events."""


class ServerEvent(NamedTuple):
    """One event of a stream: its data and its name ("" for none)."""

    data: str
    event: str = ""


class Framing(Protocol):
    """Cuts the bytes of one stream into events. Each stream has a new framing; it does no I/O."""

    @property
    def was_invalid(self) -> bool:
        """Whether some bytes were no text, and U+FFFD replaces them."""

    @property
    def kept(self) -> int:
        """How many bytes wait for the end of their event."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are whole after this chunk; raises ResponseInvalid for bytes that it cannot read."""

    def close(self) -> list[ServerEvent]:
        """The events that the end of the stream completes."""


class ServerEventReader:
    """Cuts a byte stream into events; invalid UTF-8 becomes U+FFFD, and `was_invalid` says so.

    Each byte is read once, however small the chunks are: a long line is kept until it ends. Events that stand whole
    between two blank lines of a chunk, as most do, are cut out at once; other bytes are read line by line. `kept`
    is how many bytes wait for the end of their event.
    """

    def __init__(self) -> None:
        self.was_invalid = False
        self.kept = 0
        self._line = bytearray()
        self._started = False
        self._after_return = False
        self._data = bytearray()
        self._event = ""
        self._is_bare = False
        self._has_begun = False
        self._is_between = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are whole after this chunk; raises ResponseInvalid for a chunk that is not bytes."""
        given: object = chunk
        if not isinstance(given, bytes):
            raise ResponseInvalid(f"a stream's chunk is of type {type(given).__name__}; feed takes bytes")
        if self._is_between and chunk.endswith(_ENDS):  # nearly all chunks end so
            lines = chunk.replace(b"\r\n", b"\n") if _RETURN in chunk else chunk
            if _RETURN not in lines:
                return self._cut(lines[:-2])
        events: list[ServerEvent] = []
        if not self._is_between:
            first, blank, chunk = chunk.partition(b"\n\n")
            events = self._read(first + blank)
        if self._is_between and _RETURN not in chunk:
            whole, blank, chunk = chunk.rpartition(b"\n\n")
            events += self._cut(whole) if blank else ()
        return events + self._read(chunk) if chunk else events

    def _cut(self, whole: bytes) -> list[ServerEvent]:
        """The events of the bytes between two blank lines."""
        try:
            text = whole.decode()
        except UnicodeDecodeError:
            return self._read(whole + b"\n\n")
        events = []
        for block in text.split("\n\n") if "\n" in text else (text,):
            name, _, data = block.partition("\n") if block.startswith("event: ") else ("event: ", "", block)
            if data.startswith("data: ") and "\n" not in data:
                events.append(ServerEvent(data[6:], name[7:]))
            else:
                events += self._read(block.encode() + b"\n\n")
        return events

    def close(self) -> list[ServerEvent]:
        """The events that the end of the stream completes."""
        return self._read(b"\n\n")

    def _read(self, chunk: bytes) -> list[ServerEvent]:
        # A CR ends its line at once, so that no event waits for another byte; an LF after it belongs to the same end.
        text = chunk.removeprefix(b"\n") if self._after_return else chunk
        self._after_return = chunk.endswith(b"\r") or (self._after_return and not chunk)
        first, *lines = _lines(text)
        self._line += first
        events = []
        if lines:
            whole, self._line = bytes(self._line), bytearray(lines.pop())
            events = [event for line in (whole, *lines) if (event := self._take(line)) is not None]
        is_amid = self._line or self._data or self._event or self._is_bare
        self._is_between = self._has_begun and not is_amid and chunk.endswith(b"\n")
        self.kept = len(self._line) + len(self._data) + len(self._event)
        return events

    def _take(self, line: bytes) -> ServerEvent | None:
        if not self._started:
            self._started = True
            line = line.removeprefix(BOM_UTF8)
        if not line:
            return self._end()
        if self._is_bare or (self._has_begun and not self._data and _BARE.match(line)):
            self._is_bare = True
            self._keep(line)
            return None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._keep(value.removeprefix(b" "))
        elif name == b"event":
            self._event = self._text(value.removeprefix(b" "))
        else:
            self._text(line)
        return None

    def _keep(self, data: bytes) -> None:
        self._data += data
        self._data += b"\n"

    def _end(self) -> ServerEvent | None:
        """The event that a blank line ends; None where it has no data."""
        event = ServerEvent(self._text(self._data[:-1]), self._event) if self._data else None
        self._has_begun = self._has_begun or event is not None
        self._data, self._event, self._is_bare = bytearray(), "", False
        return event

    def _text(self, line: bytes | bytearray) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.was_invalid = True
            return line.decode(errors="replace")


def _lines(text: bytes) -> list[bytes]:
    if _RETURN in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text.split(b"\n")
