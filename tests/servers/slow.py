"""Raw servers that are too slow in every way: a behaviour is a function that returns what is sent.

with Slow(HEADS["continue"]) as server:  …  base_url=server.url     every request gets this until its client leaves
with BlackHole() as server:  …  base_url=server.url                 no connection to it is ever accepted
"""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import Self, TypeAlias

DROP = 0.03
"""Seconds between two drops: far below every timeout, so that no read is late by itself."""

Pieces: TypeAlias = Callable[[], Iterable[bytes]]

REFUSAL: Pieces = lambda: [b"HTTP/1.1 401 No\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"]  # noqa: E731
"""A whole answer, after which the connection stays open."""
SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def drops(opening: bytes, *pieces: bytes) -> Pieces:
    """A behaviour that sends `opening` at once, and then the pieces, again and again."""
    return lambda: chain([opening], chain.from_iterable(repeat(pieces or (b"",))))


HEADS: dict[str, Pieces] = {
    "silence": drops(b""),
    "early hints": drops(b"", b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n"),
    "continue": drops(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "single bytes": drops(b"HTTP/1.1 200 OK\r\nx-long: ", b"a"),
    "endless headers": drops(b"HTTP/1.1 200 OK\r\n", b"x-more: a\r\n"),
    "a drop, then silence": lambda: chain([b"HTTP/1.1 103 Early Hints\r\n\r\n"] * 8, repeat(b"")),
}
"""What comes in place of a head."""
BODIES: dict[str, Pieces] = {
    "body": drops(JSON + b'content-length: 100000\r\n\r\n{"a": "', b"a"),
    "chunks": drops(JSON + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "half a chunk": drops(JSON + b"transfer-encoding: chunked\r\n\r\nffff\r\n", b" "),
    "chunk lengths": drops(JSON + b"transfer-encoding: chunked\r\n\r\n", b"0"),
}
"""What comes in place of a body."""
STREAMS: dict[str, Pieces] = {
    "silence": drops(SSE),
    "comments": drops(SSE, b": ping\n\n"),
    "half a line": drops(SSE + b"data: ", b" "),
    "half an event": drops(SSE, b'data: {"a":\n'),
}
"""What comes in place of a stream's events."""


class Slow:
    """A server that answers every request by `pieces`, and does not read them while `reads` is False."""

    def __init__(self, pieces: Pieces, *, scheme: str = "http") -> None:
        self.pieces = pieces
        self.reads = True
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        """How many connections it accepted."""
        self.left = 0
        """How many of them the client has closed, if requests are read."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(DROP)
        received = bytearray()
        with connection, contextlib.suppress(OSError):
            while not self._over.is_set():
                if self.reads and not _take_request(received):
                    self._receive(connection, received)
                    continue
                for piece in self.pieces():
                    connection.sendall(piece)
                    self._receive(connection, received)
                    if self._over.is_set():
                        return

    def _receive(self, connection: socket.socket, received: bytearray) -> None:
        """Receive for at most DROP seconds. Raises ConnectionResetError if the client has left."""
        if not self.reads:
            self._over.wait(DROP)
            return
        try:
            chunk = connection.recv(2**20)
        except TimeoutError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.left += 1
            raise ConnectionResetError
        received += chunk


def _take_request(received: bytearray) -> bool:
    """Remove a whole request from what was received; return False if there is none."""
    head, end, body = bytes(received).partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    if not end or len(body) < (size := int(length[1]) if length else 0):
        return False
    del received[: len(head) + len(end) + size]
    return True


class BlackHole:
    """A port whose queue of connections is full, so that the kernel drops every further attempt."""

    def __enter__(self) -> Self:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._waiting = [socket.socket() for _ in range(4)]
        for each in self._waiting:
            each.setblocking(False)
            each.connect_ex(self._listener.getsockname())
        return self

    def __exit__(self, *_: object) -> None:
        for each in (*self._waiting, self._listener):
            each.close()
