"""Events in binary frames: the same events, however the bytes of a response are divided into chunks.

    length │ length of headers │ checksum │ headers │ payload │ checksum      numbers of four bytes, big-endian

Use it in the `framings` of a dialect: `{CONTENT_TYPE: partial(EventFrames, read)}`, where `read` converts a frame to an
event.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from sabir.base.failures import ResponseInvalid
from sabir.contract.dialect import ServerEvent

LONGEST_FRAME = 25 * 2**20
"""The maximum number of bytes of a frame. Servers send at most 24 MiB of payload and 128 KiB of headers."""

ReadFrame: TypeAlias = Callable[[Mapping[str, str], bytes], ServerEvent | None]
"""A function of the headers and the payload of a frame. Returns the event, or None to ignore the frame."""


class EventFrames:
    """Splits a stream of binary frames with lengths into events. A Framing for `Dialect.framings`, for the content type
    `application/vnd.….eventstream` of the provider.

    `read` is a function that gets the headers and the payload of a frame and returns a ServerEvent, or None to ignore
    the frame. Checksums are not verified.
    """

    was_invalid = False
    """Always False. Invalid UTF-8 in the headers of a frame is replaced, but not reported here."""

    def __init__(self, read: ReadFrame) -> None:
        self._read = read
        self._bytes = bytearray()

    @property
    def kept(self) -> int:
        """The number of bytes that do not form a complete frame yet."""
        return len(self._bytes)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Add bytes and return the events that are complete now. Raises ResponseInvalid for a frame of more than 25
        MiB. Exceptions of the function `read`, which converts each frame, are raised unchanged.
        """
        self._bytes += chunk
        return [event for frame in self._frames() if (event := self._read(*frame))]

    def close(self) -> list[ServerEvent]:
        """Return an empty list. An incomplete frame at the end of the stream is ignored."""
        return []

    def _frames(self) -> Iterator[tuple[dict[str, str], bytes]]:
        while len(self._bytes) >= 12:
            length, head = struct.unpack_from(">II", self._bytes)
            if length > LONGEST_FRAME:
                raise ResponseInvalid(f"a frame of the stream has {length} bytes; at most {LONGEST_FRAME} are allowed")
            if len(self._bytes) < max(length, 16):
                return
            frame = bytes(self._bytes[: max(length, 16)])
            del self._bytes[: len(frame)]
            yield dict(_headers(frame[12 : 12 + head])), frame[12 + head : length - 4]


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a frame's headers. Each is: length, name, 7 (the type string), length, value."""
    while len(data) > 4 and data[1 + data[0] : 2 + data[0]] == b"\x07":
        name, rest = data[1 : 1 + data[0]], data[2 + data[0] :]
        size = int.from_bytes(rest[:2], "big")
        yield name.decode("utf-8", "replace"), rest[2 : 2 + size].decode("utf-8", "replace")
        data = rest[2 + size :]
