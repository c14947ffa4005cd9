"""A server that misbehaves as it is told: what it sends has no end, unfolds to gigabytes, or comes in drops.

with Hostile("endless", "body") as server:  …  base_url=server.url    each connection gets the same until it leaves
"""

import itertools
import time
import zlib
from collections.abc import Iterator
from typing import Literal, TypeAlias

from sabir_testing.loopback import Server, head

Way: TypeAlias = Literal["endless", "bomb", "drip", "comments"]
Place: TypeAlias = Literal["body", "event", "error"]

_OPENINGS = {"body": b'{"a": "', "event": b'data: {"a": "', "error": b'{"error": {"message": "'}
_BLOCK = b"x" * 65_536
_DROP = 0.05


class Hostile(Server):
    """Refuses the first request, which loads the client's SDK, and answers the others as it is told.

    A stream begins with the events `before`.
    """

    def __init__(self, way: Way, place: Place, before: bytes = b"") -> None:
        self._way, self._place, self._before = way, place, before
        super().__init__(self)  # type: ignore[arg-type]  # its script is itself, and has no end

    def __iter__(self) -> Iterator[bytes]:
        if len(self.requests) == 1:
            yield head(401) + b"{}"
            return
        kind = "text/event-stream" if self._place == "event" else "application/json"
        packed = {"content_encoding": "gzip"} if self._way == "bomb" else {}
        yield head(503 if self._place == "error" else 200, kind, **packed) + self._before
        yield from self._pieces(_OPENINGS[self._place])

    def _pieces(self, opening: bytes) -> Iterator[bytes]:
        if self._way == "bomb":
            packing = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
            yield packing.compress(opening)
            yield from (packing.compress(_BLOCK) for _ in itertools.count())
        if self._way == "endless":
            yield opening
            yield from itertools.repeat(_BLOCK)
        drop = b": alive\n\n" if self._way == "comments" else b"x"
        yield b"" if self._way == "comments" else opening
        while True:
            time.sleep(_DROP)
            yield drop
