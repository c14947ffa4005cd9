"""The bytes of a stream → lines. Lantern streams newline-delimited JSON, application/x-ndjson.

    b'{"is": "beg'  b'in"}\\n{"is"…'  ─▶  ServerEvent('{"is": "begin"}'), …

A line ends at \\n only: JSON texts may contain U+2028, U+0085 and other line breaks of Unicode.
"""

from sabir.authoring import ServerEvent

CONTENT_TYPE = "application/x-ndjson"


class Lines:
    """Splits one stream into lines. Blank lines are skipped, and the last line needs no line feed."""

    def __init__(self) -> None:
        self.was_invalid = False
        self._rest = bytearray()

    @property
    def kept(self) -> int:
        """The number of bytes that are stored for a line that is not complete yet."""
        return len(self._rest)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Add bytes and return the lines that are complete now."""
        head, line_feed, tail = chunk.rpartition(b"\n")
        if not line_feed:
            self._rest += chunk
            return []
        lines = (bytes(self._rest) + head).split(b"\n")
        self._rest = bytearray(tail)
        return self._events(lines)

    def close(self) -> list[ServerEvent]:
        """Return the last line if it has no line feed."""
        lines = [bytes(self._rest)]
        self._rest.clear()
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[ServerEvent]:
        return [ServerEvent(self._text(line)) for line in lines if line.strip()]

    def _text(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.was_invalid = True
            return line.decode("utf-8", "replace")
