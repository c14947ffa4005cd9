"""The frames in which Tape streams: bytes in any chunks → events.

    kind │ part │ length, two bytes │ checksum │ payload        kinds: start, open, more, close, end, fail

The payload of `m` is a piece of text as it is, that of all others JSON. A frame whose checksum is wrong is refused.
"""

from sabir.authoring import DecodeScope, Fields, ServerEvent
from sabir.errors import ResponseInvalid

KIND = "application/x-tape"
HEAD = 5
KINDS = {"s": "start", "o": "open", "m": "more", "c": "close", "e": "end", "f": "fail"}


class TapeFrames:
    """One stream."""

    was_invalid = False

    def __init__(self) -> None:
        self._bytes = b""

    @property
    def kept(self) -> int:
        """Bytes that wait for the end of their frame."""
        return len(self._bytes)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are whole after this chunk; ResponseInvalid for a wrong checksum."""
        self._bytes += chunk
        found = []
        while len(self._bytes) >= HEAD and len(self._bytes) >= (end := HEAD + int.from_bytes(self._bytes[2:4], "big")):
            payload = self._bytes[HEAD:end]
            if self._bytes[4] != checksum(payload):
                raise ResponseInvalid("tape's checksum is wrong; send the request again")
            name = f"{self._bytes[:1].decode('latin-1')} {self._bytes[1]}"
            found.append(ServerEvent(payload.decode("utf-8", "replace"), name))
            self._bytes = self._bytes[end:]
        return found

    def close(self) -> list[ServerEvent]:
        """None: what is left is half a frame."""
        return []


def checksum(payload: bytes) -> int:
    """One byte that is never that of a text."""
    return 128 + sum(payload) % 128


def read_frame(event: ServerEvent, scope: DecodeScope) -> Fields:
    """What an event says, as the decoder reads it; of an unknown kind, nothing."""
    kind, _, index = event.event.partition(" ")
    if kind == "m":
        return {"type": "more", "index": int(index), "text": event.data}
    fields = {**scope.read_object(event.data), "type": KINDS.get(kind)}
    return {**fields, "index": int(index or 0)} if kind in ("o", "c") else fields
