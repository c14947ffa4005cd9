"""A real HTTP server on a loopback port that says exactly what a test tells it, and reports what it was asked.

It waits for the test instead of for time: a step of a script may be an event that the test sets.
"""

import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

Step = bytes | threading.Event
PATIENCE = 20.0
"""Seconds after which a test that waits for the other side is broken, not slow."""


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Answers every request by the same script; `closed` is set when a client hangs up before the end.

    A connection serves one request, or as many as come where `keeps_alive` says so.
    """

    script: Sequence[Step]
    keeps_alive: bool = False
    asked: list[Asked] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while self._read(connection):
                    self._answer(connection)
                    if not self.keeps_alive:
                        return
            except OSError:
                self.closed.set()

    def _read(self, connection: socket.socket) -> bool:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (more := connection.recv(65536)):
                return False
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
        method, path, _ = first.split(" ")
        self.asked.append(Asked(method, path, headers, body))
        return True

    def _answer(self, connection: socket.socket) -> None:
        for step in self.script:
            if isinstance(step, threading.Event):
                self._wait(step, connection)
            else:
                connection.sendall(step)

    def _wait(self, step: threading.Event, connection: socket.socket) -> None:
        """Wait for the test's event, noticing a client that hangs up meanwhile."""
        connection.settimeout(0.02)
        for _ in range(int(PATIENCE / 0.02)):
            if step.is_set():
                break
            try:
                if connection.recv(1) == b"":
                    raise ConnectionError("the client hung up")
            except TimeoutError:
                continue
        connection.settimeout(None)


def head(status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """The head of an answer; its body ends with the connection unless a length is given."""
    lines = [f"HTTP/1.1 {status} said", f"content-type: {kind}"]
    lines += [] if "content_length" in headers else ["connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()
