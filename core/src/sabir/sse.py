"""Server-sent events: bytes in any chunks → events.

    b"data: a\\n" + b"data: b\\n\\n"  ──▶  ServerEvent(data="a\\nb")

After the WHATWG algorithm: lines end in LF, CR or CRLF; a leading byte order mark is dropped; lines that begin
with a colon are comments; several data lines join with LF; an event without data is none. A last event that no
blank line ends is still given at the close, as vendors' streams sometimes end so.

After a first event, what is no field but begins a JSON object or array is an event too, up to the next blank line:
some servers break off a stream with a bare error body.
"""

import re
from codecs import getincrementaldecoder
from typing import NamedTuple

_BARE = re.compile(r"\s*(\{|\[\s*(\{|\Z))")
"""How a JSON object, or an array of them, begins."""
_RETURN = ord("\r")
_ENDS = (b"\n\n", b"\r\n\r\n")
"""How a chunk of whole events ends."""


class ServerEvent(NamedTuple):
    """One event of a stream: its name ("" for none) and its data."""

    data: str
    event: str = ""


class ServerEventReader:
    """Cuts a byte stream into events; invalid UTF-8 becomes U+FFFD, and `was_invalid` says so.

    Each byte is looked at once, however small the chunks are: a long line is kept in pieces until it ends. Events that
    lie whole between two blank lines of a chunk, as most do, are cut out at once; all else is read line by line.
    """

    def __init__(self) -> None:
        self.was_invalid = False
        self._decoder = getincrementaldecoder("utf-8")(errors="surrogateescape")
        self._pieces: list[str] = []
        self._started = False
        self._after_return = False
        self._data: list[str] = []
        self._event = ""
        self._is_bare = False
        self._has_begun = False
        self._is_between = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are whole after this chunk."""
        if self._is_between and chunk.endswith(_ENDS):  # as nearly all do
            lines = chunk.replace(b"\r\n", b"\n") if _RETURN in chunk else chunk
            if _RETURN not in lines:
                return self._cut(lines[:-2])
        events: list[ServerEvent] = []
        if not self._is_between:
            first, blank, chunk = chunk.partition(b"\n\n")
            events = self._read_bytes(first + blank)
        if self._is_between and _RETURN not in chunk:
            whole, blank, chunk = chunk.rpartition(b"\n\n")
            events += self._cut(whole) if blank else ()
        return events + self._read_bytes(chunk) if chunk else events

    def _read_bytes(self, chunk: bytes) -> list[ServerEvent]:
        events = self._read(self._valid(self._decoder.decode(chunk)))
        is_amid = self._pieces or self._data or self._event or self._is_bare
        self._is_between = self._has_begun and not is_amid and chunk.endswith(b"\n")
        return events

    def _cut(self, whole: bytes) -> list[ServerEvent]:
        """The events of what lies between two blank lines."""
        try:
            text = whole.decode()
        except UnicodeDecodeError:
            return self._read_bytes(whole + b"\n\n")
        events = []
        for block in text.split("\n\n") if "\n" in text else (text,):
            name, _, data = block.partition("\n") if block.startswith("event: ") else ("event: ", "", block)
            if data.startswith("data: ") and "\n" not in data:
                events.append(ServerEvent(data[6:], name[7:]))
            else:
                events += self._read(block + "\n\n")
        return events

    def close(self) -> list[ServerEvent]:
        """The events that the end of the stream completes."""
        return self._read(self._valid(self._decoder.decode(b"", final=True)) + "\n\n")

    def _valid(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self.was_invalid = True
            return text.encode(errors="surrogateescape").decode(errors="replace")
        return text

    def _read(self, text: str) -> list[ServerEvent]:
        if text and not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        if not text:
            return []
        # A CR ends its line at once, so that no event waits for a next byte; an LF after it belongs to it.
        if self._after_return:
            text = text.removeprefix("\n")
        self._after_return = text.endswith("\r")
        lines = _lines(text)
        if len(lines) > 1 and self._pieces:
            lines[0] = "".join((*self._pieces, lines[0]))
            self._pieces = []
        if rest := lines.pop():
            self._pieces.append(rest)
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: str) -> ServerEvent | None:
        if not line:
            event = ServerEvent("\n".join(self._data), self._event) if self._data else None
            self._has_begun = self._has_begun or event is not None
            self._data, self._event, self._is_bare = [], "", False
            return event
        if self._is_bare or (self._has_begun and not self._data and _BARE.match(line)):
            self._is_bare = True
            self._data.append(line)
            return None
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        elif name == "event":
            self._event = value.removeprefix(" ")
        return None


def _lines(text: str) -> list[str]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")
