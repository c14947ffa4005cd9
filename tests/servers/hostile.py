"""A server that misbehaves as it is told: what it sends has no end, unfolds to gigabytes, or comes in drops.

with Hostile("endless", "body") as server:  …  base_url=server.url    each connection gets the same until it leaves
"""

import contextlib
import itertools
import socket
import threading
import zlib
from collections.abc import Iterator
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["endless", "bomb", "drip", "comments"]
Place: TypeAlias = Literal["body", "event", "error"]

_HEADS = {
    "body": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
    "event": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n",
    "error": b"HTTP/1.1 503 no\r\ncontent-type: application/json\r\n",
}
_OPENINGS = {"body": b'{"a": "', "event": b'data: {"a": "', "error": b'{"error": {"message": "'}
_BLOCK = b"x" * 65_536
_DROP = 0.05


class Hostile:
    """Refuses the first request, which loads the client's SDK, and answers the others as it is told.

    A stream begins with the events `before`; `asked` counts those others.
    """

    def __init__(self, way: Way, place: Place, before: bytes = b"") -> None:
        self._way, self._place, self._before = way, place, before
        self.asked = -1
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> "Hostile":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            socket.create_connection(self._listener.getsockname()).close()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            connection, _ = self._listener.accept()
            self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(10)
            if not connection.recv(1_048_576):
                return
            self.asked += 1
            if not self.asked:
                connection.sendall(b"HTTP/1.1 401 no\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                return
            encoding = b"content-encoding: gzip\r\n" if self._way == "bomb" else b""
            connection.sendall(_HEADS[self._place] + encoding + b"connection: close\r\n\r\n" + self._before)
            for piece in self._pieces(_OPENINGS[self._place]):
                if self._over.is_set():
                    return
                connection.sendall(piece)

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
        while not self._over.wait(_DROP):
            yield drop
