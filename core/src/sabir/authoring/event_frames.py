r"""Framings besides server-sent events: the same events, however the bytes of a response are divided into chunks.

    b'{"text": "a"}\n{"te' + b'xt": "b"}\n\n3'        three lines, and an event for each: blank lines are skipped

Only \n ends a line. U+2028, U+0085 and \r are part of the line, because a JSON string may contain the first two, and
JSON ignores a \r between values. https://github.com/ndjson/ndjson-spec

    length │ length of headers │ checksum │ headers │ payload │ checksum      numbers of four bytes, big-endian
    └──────── prelude ────────┘

Both checksums are the CRC-32 of all bytes of the frame before them. https://smithy.io/2.0/aws/amazon-eventstream.html

Use the classes in the `framings` of a dialect: `{CONTENT_TYPE: JSONLines}`, or `{CONTENT_TYPE: partial(EventFrames,
read)}`, where `read` converts a frame to an event.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping

from sabir.base.failures import ResponseInvalid
from sabir.contract.dialect import ServerEvent

LONGEST_FRAME = 25 * 2**20
"""The maximum number of bytes of a frame. Servers send at most 24 MiB of payload and 128 KiB of headers."""


class EventFrames:
    """Splits a stream of binary frames with lengths into events. A Framing for `Dialect.framings`, for the content type
    `application/vnd.….eventstream` of the provider.

    `read` is a function that gets the headers and the payload of a frame and returns a ServerEvent, or None to ignore
    the frame.
    """

    was_invalid = False
    """Always False. Invalid UTF-8 in the headers of a frame is replaced, but not reported here."""

    def __init__(self, read: Callable[[Mapping[str, str], bytes], ServerEvent | None]) -> None:
        self._read = read
        self._bytes = bytearray()

    @property
    def kept(self) -> int:
        """The number of bytes that do not form a complete frame yet."""
        return len(self._bytes)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Add bytes and return the events that are complete now. Raises ResponseInvalid for a frame with a wrong
        checksum or length, or of more than 25 MiB. Exceptions of the function `read`, which converts each frame, are
        raised unchanged.
        """
        self._bytes += chunk
        return [event for frame in self._frames() if (event := self._read(*frame))]

    def close(self) -> list[ServerEvent]:
        """Return an empty list. An incomplete frame at the end of the stream is ignored."""
        return []

    def _frames(self) -> Iterator[tuple[dict[str, str], bytes]]:
        """Yield the headers and the payload of each complete frame, and remove these frames from the stored bytes."""
        while len(self._bytes) >= 12:
            _check_sum(self._bytes[:12], "the prelude of a frame")
            length, head = struct.unpack_from(">II", self._bytes)
            if not head + 16 <= length <= LONGEST_FRAME:
                raise ResponseInvalid(f"a frame has {length} bytes; expected {head + 16} to {LONGEST_FRAME}")
            if len(self._bytes) < length:
                return
            frame = bytes(self._bytes[:length])
            del self._bytes[:length]
            _check_sum(frame, "a frame")
            yield dict(_headers(frame[12 : 12 + head])), frame[12 + head : length - 4]


def _check_sum(data: bytes | bytearray, what: str) -> None:
    """Raise ResponseInvalid unless the last four bytes are the CRC-32 of the bytes before them."""
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
        raise ResponseInvalid(f"{what} of the stream has a wrong checksum; send the request again")


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a frame's headers. Each is: length, name, 7 (the type string), length, value."""
    while len(data) > 4 and data[1 + data[0] : 2 + data[0]] == b"\x07":
        name, after_type = data[1 : 1 + data[0]], data[2 + data[0] :]
        end = 2 + int.from_bytes(after_type[:2], "big")
        yield name.decode("utf-8", "replace"), after_type[2:end].decode("utf-8", "replace")
        data = after_type[end:]


class JSONLines:
    r"""Splits a stream of newline-delimited JSON into events. A Framing for `Dialect.framings`, for content types such
    as `application/x-ndjson`, `application/jsonl` or `application/json-lines`.

    The `data` of an event is one line without its end, and `event` is "". The text is not parsed. Invalid UTF-8 is
    replaced by U+FFFD, and `was_invalid` becomes True.

    >>> from sabir.authoring import JSONLines
    >>> lines = JSONLines()
    >>> [event.data for event in (*lines.feed(b'{"a": 1}\n{"b"'), *lines.feed(b': 2}\n\n3'), *lines.close())]
    ['{"a": 1}', '{"b": 2}', '3']
    """

    def __init__(self) -> None:
        self.was_invalid = False
        self._line = bytearray()

    @property
    def kept(self) -> int:
        """The number of bytes of the line that is not complete yet."""
        return len(self._line)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Add bytes and return an event for each line that is complete now, without blank lines."""
        first, *lines = chunk.split(b"\n")
        self._line += first
        if not lines:
            return []
        first, self._line = bytes(self._line), bytearray(lines.pop())
        return [ServerEvent(text) for line in (first, *lines) if (text := self._decode_line(line)).strip(" \t\r")]

    def close(self) -> list[ServerEvent]:
        """Return an event for the last line if the stream did not end it with a line feed and it is not blank."""
        return self.feed(b"\n")

    def _decode_line(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.was_invalid = True
            return line.decode(errors="replace")
