"""A real HTTP server on a loopback port that sends exactly the bytes of a script and records its requests.

    with Server([head(), b'{"ok": true}']) as server:       the script: bytes to send, and events to wait for
        …  sabir.adapter("acme:small", api_key="test", base_url=server.url)
    server.requests[0].body                                    the body of the first request

A step of a script may be an event that the test sets, so that no test depends on time. When the `with` block ends, the
server closes its sockets, ends its threads, and closes connections that still wait for a response.
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
"""A step of a script: bytes to send, or an event to wait for, at most about `Server.patience` seconds. After that, the
script continues.
"""
PATIENCE = 20.0
"""The default of `Server.patience`, in seconds. A test that needs longer is broken, not slow."""
_POLL_SECONDS = 0.02
"""Seconds between two checks whether a waiting client has closed its connection."""


@dataclass
class ReceivedRequest:
    """One received request. The names of the headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """A server on its own port that answers every request with the same script.

    With `keeps_alive`, a connection serves several requests, otherwise one. `patience` is the longest wait for an event
    of the script, in seconds.
    """

    script: Sequence[Step]
    keeps_alive: bool = False
    patience: float = PATIENCE
    requests: list[ReceivedRequest] = field(default_factory=list)
    """The received requests, in order."""
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set when the first request was received."""
    closed: threading.Event = field(default_factory=threading.Event)
    """Set when the server notices that a client closed a connection that is kept alive, or any connection before the
    end of the response.
    """

    gave_up: threading.Event = field(default_factory=threading.Event)
    """Set when an event of the script was not set within `patience` seconds."""

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._serve)  # type: ignore[arg-type]  # any callable
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(_POLL_SECONDS,), daemon=True)
        self._thread.start()

    def __enter__(self) -> "Server":
        """Return the server, which already listens."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections, and wait for the threads to end."""
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
                while self._receive(stream):
                    self._send_script(connection)
                    if not self.keeps_alive:
                        break
            except OSError:
                self._note_closing()
        with self._lock:
            self._open.discard(connection)

    def _note_closing(self) -> None:
        if not self._over.is_set():
            self.closed.set()

    def _receive(self, stream: BinaryIO) -> bool:
        """Record the next request and return True; False if the client closed the connection before.

        Raises ConnectionError if the client closes the connection within the request.
        """
        opening = stream.readline()
        if not opening:
            self._note_closing()
            return False
        headers = {name.lower(): value.strip() for name, value in http.client.parse_headers(stream).items()}
        method, path, _ = opening.decode("latin-1").split(" ")
        body = b"".join(_read_body(stream, headers))
        self.requests.append(ReceivedRequest(method, path, headers, body))
        self.arrived.set()
        return True

    def _send_script(self, connection: socket.socket) -> None:
        for step in self.script:
            if isinstance(step, threading.Event):
                self._wait(step, connection)
            else:
                connection.sendall(step if self.keeps_alive else _add_close_header(step))

    def _wait(self, step: threading.Event, connection: socket.socket) -> None:
        """Wait for the test's event. Raises ConnectionError if the client closes the connection meanwhile."""
        connection.settimeout(_POLL_SECONDS)
        for _ in range(int(self.patience / _POLL_SECONDS)):
            if step.is_set() or self._over.is_set():
                break
            try:
                if connection.recv(1, socket.MSG_PEEK) == b"":
                    raise ConnectionError("the client closed the connection")
            except TimeoutError:
                continue
            step.wait(_POLL_SECONDS)  # the client sends more before the response: that is read later
        else:
            self.gave_up.set()
        connection.settimeout(None)


def head(status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """Return the status line and headers of a response. `kind` is the content type. In the names of `headers`, `_` is
    replaced by `-`.

    The body ends with the connection, unless content_length or transfer_encoding is passed.
    """
    lines = [f"HTTP/1.1 {status} said", f"content-type: {kind}"]
    lines += [] if {"content_length", "transfer_encoding"} & headers.keys() else ["connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """Return a complete response with a content-length, so that the connection can be kept alive."""
    return head(status, kind, content_length=str(len(body)), **headers) + body


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body for `head(transfer_encoding="chunked")`. An empty chunk ends the body; without it, the
    body is incomplete.
    """
    return b"%x\r\n%b\r\n" % (len(data), data)


@contextlib.contextmanager
def unreachable() -> Iterator[str]:
    """Return a context manager with the URL of a reserved loopback port that refuses every connection."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


def _add_close_header(step: bytes) -> bytes:
    """Add the header `connection: close` to the head of a response.

    Otherwise a client would send another request, which nobody reads.
    """
    line, end, fields = step.partition(b"\r\n")
    if not line.startswith(b"HTTP/") or b"connection:" in fields.partition(b"\r\n\r\n")[0].lower():
        return step
    return line + end + b"connection: close\r\n" + fields


def _read_body(stream: BinaryIO, headers: dict[str, str]) -> Iterator[bytes]:
    """Yield a request's body: in one piece of its content-length, or in its chunks."""
    if headers.get("transfer-encoding", "").lower() != "chunked":
        yield _read_exactly(stream, int(headers.get("content-length", 0)))
        return
    while size := int(stream.readline().partition(b";")[0] or b"0", 16):
        yield _read_exactly(stream, size)
        stream.readline()
    stream.readline()


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    received = stream.read(size)
    if len(received) < size:
        raise ConnectionError("the client closed the connection in the middle of its request")
    return received
