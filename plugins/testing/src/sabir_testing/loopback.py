"""A real HTTP server on a loopback port that sends exactly a test's script, and records its requests.

    with Server([head(), b'{"ok": true}']) as server:       the script: bytes to say, and events to wait for
        …  sabir.adapter("acme:small", api_key="test", base_url=server.url)
    server.asked[0].body                                    what came

It waits for the test, not for time: a step of a script may be an event that the test sets. When the `with` block ends,
no socket and no thread is left, and connections that still wait for an answer are closed.
"""

import contextlib
import http.client
import socket
import socketserver
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TypeAlias

Step: TypeAlias = bytes | threading.Event
"""What a server does: say bytes, or wait for an event, and for no longer than its patience."""
PATIENCE = 20.0
"""Seconds after which a test that waits for the other side is broken, not slow."""
_GLANCE = 0.02
"""Seconds between two looks at whether a client that waits is still there."""


@dataclass
class Asked:
    """One request as it came. Names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Answers every request by the same script, on a port of its own.

    A connection serves one request, or as many as come where `keeps_alive` says so. `patience` is how many seconds a
    step waits for its event.
    """

    script: Sequence[Step]
    keeps_alive: bool = False
    patience: float = PATIENCE
    asked: list[Asked] = field(default_factory=list)
    """The requests, in the order in which they came."""
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set when a request is there."""
    closed: threading.Event = field(default_factory=threading.Event)
    """Set when a client hangs up: before the answer's end, or on a connection that would be kept."""

    gave_up: threading.Event = field(default_factory=threading.Event)
    """Set when the server waited for an event of its script in vain."""

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._serve)  # type: ignore[arg-type]  # any callable
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(_GLANCE,), daemon=True)
        self._thread.start()

    def __enter__(self) -> "Server":
        """The server, which listens already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up on everyone, and wait until the last thread is done."""
        with self._lock:
            self._over.set()
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)  # wakes up a thread that reads from it
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join(PATIENCE)

    def _serve(self, connection: socket.socket, address: object, listener: object) -> None:
        with self._lock:
            if self._over.is_set():
                return
            self._open.add(connection)
        with contextlib.suppress(OSError), connection.makefile("rb") as stream:
            try:
                while self._read(stream):
                    self._answer(connection)
                    if not self.keeps_alive:
                        break
            except OSError:
                self._hung_up()
        with self._lock:
            self._open.discard(connection)

    def _hung_up(self) -> None:
        if not self._over.is_set():
            self.closed.set()

    def _read(self, stream: BinaryIO) -> bool:
        """Take the next request; False where none comes any more, ConnectionError where it ends in its middle."""
        opening = stream.readline()
        if not opening:
            self._hung_up()
            return False
        headers = {name.lower(): value.strip() for name, value in http.client.parse_headers(stream).items()}
        method, path, _ = opening.decode("latin-1").split(" ")
        body = b"".join(_body(stream, headers))
        self.asked.append(Asked(method, path, headers, body))
        self.arrived.set()
        return True

    def _answer(self, connection: socket.socket) -> None:
        for step in self.script:
            if isinstance(step, threading.Event):
                self._wait(step, connection)
            else:
                connection.sendall(step if self.keeps_alive else _closing(step))

    def _wait(self, step: threading.Event, connection: socket.socket) -> None:
        """Wait for the test's event, noticing a client that hangs up meanwhile."""
        connection.settimeout(_GLANCE)
        for _ in range(int(self.patience / _GLANCE)):
            if step.is_set() or self._over.is_set():
                break
            try:
                if connection.recv(1, socket.MSG_PEEK) == b"":
                    raise ConnectionError("the client hung up")
            except TimeoutError:
                continue
            step.wait(_GLANCE)  # it sends more before it has its answer: that is read later
        else:
            self.gave_up.set()
        connection.settimeout(None)


def head(status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """The head of an answer. `kind` is its content type; `_` in a header's name stands for `-`.

    The body ends with the connection, unless a length or chunks are announced.
    """
    lines = [f"HTTP/1.1 {status} said", f"content-type: {kind}"]
    lines += [] if {"content_length", "transfer_encoding"} & headers.keys() else ["connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """An answer that tells its length, so that its connection can be kept."""
    return head(status, kind, content_length=str(len(body)), **headers) + body


def chunk(data: bytes) -> bytes:
    """A piece of a body whose head says `transfer_encoding="chunked"`; an empty one ends it, else it breaks off."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@contextlib.contextmanager
def unreachable() -> Iterator[str]:
    """The URL of a loopback port that is taken, and where nobody listens: every connection to it is refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def _closing(step: bytes) -> bytes:
    """The start of an answer, saying that its connection ends with it: else a client sends more where nobody reads."""
    line, end, rest = step.partition(b"\r\n")
    if not line.startswith(b"HTTP/") or b"connection:" in rest.partition(b"\r\n\r\n")[0].lower():
        return step
    return line + end + b"connection: close\r\n" + rest


def _body(stream: BinaryIO, headers: dict[str, str]) -> Iterator[bytes]:
    """The pieces of a request's body: one of its length, or as many as it was sent in."""
    if headers.get("transfer-encoding", "").lower() != "chunked":
        yield _exactly(stream, int(headers.get("content-length", 0)))
        return
    while size := int(stream.readline().partition(b";")[0] or b"0", 16):
        yield _exactly(stream, size)
        stream.readline()
    stream.readline()


def _exactly(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise ConnectionError("the client hung up in the middle of its request")
    return found
