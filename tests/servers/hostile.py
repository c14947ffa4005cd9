"""A server that misbehaves as it is told: what it sends has no end, or unfolds to gigabytes.

with Hostile("endless", "body") as server:  …  base_url=server.url    each connection gets the same until it leaves
"""

import itertools
import zlib
from collections.abc import Iterator
from typing import Literal, TypeAlias

from sabir_testing.loopback import Server, head

Way: TypeAlias = Literal["endless", "bomb"]
Place: TypeAlias = Literal["body", "event", "error"]

_OPENINGS = {"body": b'{"a": "', "event": b'data: {"a": "', "error": b'{"error": {"message": "'}
_BLOCK = b"x" * 65_536


class Hostile(Server):
    """Refuses the first request, which loads the client's SDK, and answers the others as it is told."""

    def __init__(self, way: Way, place: Place) -> None:
        self._way, self._place = way, place
        super().__init__(self)  # type: ignore[arg-type]  # its script is itself, and has no end

    def __iter__(self) -> Iterator[bytes]:
        if len(self.requests) == 1:
            yield head(401) + b"{}"
            return
        kind = "text/event-stream" if self._place == "event" else "application/json"
        packed = {"content_encoding": "gzip"} if self._way == "bomb" else {}
        yield head(503 if self._place == "error" else 200, kind, **packed)
        opening = _OPENINGS[self._place]
        if self._way == "bomb":
            packing = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
            yield packing.compress(opening)
            yield from (packing.compress(_BLOCK) for _ in itertools.count())
        yield opening
        yield from itertools.repeat(_BLOCK)
