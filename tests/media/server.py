"""A real web server on the loopback interface whose answers are written byte by byte, and what it was asked."""

import contextlib
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))

Writer = Callable[[bytes], None]
Answer = bytes | Callable[[Writer], object]
"""What is written for a request: some bytes, or a function that writes as it likes."""


def response(body: bytes = PNG, mime: str | None = "image/png", status: str = "200 OK", **headers: str | int) -> bytes:
    """A whole HTTP/1.1 response; a header is named as a keyword, `content_length=3`."""
    lines = [f"HTTP/1.1 {status}"]
    if mime is not None:
        lines.append(f"content-type: {mime}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if "content_length" not in headers and "transfer_encoding" not in headers:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str, status: str = "302 Found", **headers: str) -> bytes:
    return response(b"", None, status, location=location, **headers)


def dripping(data: bytes, pause: float) -> Callable[[Writer], None]:
    """An answer that comes byte by byte: no single read of it is slow, the whole is."""

    def write_slowly(write: Writer) -> None:
        for byte in data:
            write(bytes([byte]))
            time.sleep(pause)

    return write_slowly


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


@dataclass
class Loopback:
    """Path → answer; `requests` are the request heads as they came."""

    answers: dict[str, Answer]
    port: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"


@contextlib.contextmanager
def serving(answers: Mapping[str, Answer]) -> Iterator[Loopback]:
    """A server with these answers, on a port that the system chooses."""
    loopback = Loopback(dict(answers))

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head = b""
            while b"\r\n\r\n" not in head:
                received = self.request.recv(65536)
                if not received:
                    return
                head += received
            loopback.requests.append(head.decode())
            answer = loopback.answers[head.split(b" ")[1].partition(b"?")[0].decode()]
            with contextlib.suppress(OSError):  # the reader may leave whenever it likes
                answer(self.request.sendall) if callable(answer) else self.request.sendall(answer)

    with _Server(("127.0.0.1", 0), Handler) as server:
        loopback.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield loopback
        finally:
            server.shutdown()
            thread.join()
