"""Binary event frames, as AWS's services stream them: bytes in any chunks → headers and payload → events.

    length │ length of headers │ checksum │ headers │ payload │ checksum      numbers of four bytes, big-endian

A dialect names them in its `framings`: `{EventFrames.CONTENT_TYPE: partial(EventFrames, read)}`, where `read` makes
an event of a frame.
https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from sabir.base.failures import ResponseInvalid
from sabir.contract.framing import ServerEvent

LONGEST_FRAME = 25 * 2**20
"""The most bytes of a frame: 24 MiB of payload and 128 KiB of headers,
https://github.com/boto/botocore/blob/develop/botocore/eventstream.py"""

ReadFrame: TypeAlias = Callable[[Mapping[str, str], bytes], ServerEvent | None]
"""A frame's headers and payload → its event; None for a frame without meaning."""


class EventFrames:
    """Cuts a stream of frames into events; checksums are ignored, because the connection has its own."""

    CONTENT_TYPE = "application/vnd.amazon.eventstream"
    """That of such a stream."""

    was_invalid = False

    def __init__(self, read: ReadFrame) -> None:
        self._read = read
        self._bytes = bytearray()

    @property
    def kept(self) -> int:
        """How many bytes wait for the end of their frame."""
        return len(self._bytes)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are whole after this chunk; raises ResponseInvalid for a frame that is too long."""
        self._bytes += chunk
        return [event for frame in self._frames() if (event := self._read(*frame))]

    def close(self) -> list[ServerEvent]:
        """No events: a frame that was broken off is ignored."""
        return []

    def _frames(self) -> Iterator[tuple[dict[str, str], bytes]]:
        while len(self._bytes) >= 12:
            length, head = struct.unpack_from(">II", self._bytes)
            if length > LONGEST_FRAME:
                raise ResponseInvalid(f"a frame of the stream is {length} bytes long; expected {LONGEST_FRAME} at most")
            if len(self._bytes) < max(length, 16):
                return
            frame = bytes(self._bytes[: max(length, 16)])
            del self._bytes[: len(frame)]
            yield dict(_headers(frame[12 : 12 + head])), frame[12 + head : length - 4]


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """The string headers, as all headers of a stream are: length, name, 7 (the type string), length, value."""
    while len(data) > 4 and data[1 + data[0] : 2 + data[0]] == b"\x07":
        name, rest = data[1 : 1 + data[0]], data[2 + data[0] :]
        size = int.from_bytes(rest[:2], "big")
        yield name.decode("utf-8", "replace"), rest[2 : 2 + size].decode("utf-8", "replace")
        data = rest[2 + size :]
