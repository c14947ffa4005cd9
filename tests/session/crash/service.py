"""A provider outside of the processes that are killed: a server on loopback that answers by what a request holds.

POST /<dialect>/<case>  ──▶  the request is kept under its case  ──▶  the answer of wires.py, or 400 if it is broken
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.laws.oracle import check_request
from tests.laws.rules import RULES, check_pairing
from tests.session.crash import wires


class Service(ThreadingHTTPServer):
    """The server; `requests` are the bodies that came, by case, and `refused` what was wrong with some of them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests: dict[str, list[bytes]] = defaultdict(list)
        self.refused: dict[str, list[str]] = defaultdict(list)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed hangs up; the requests tell the rest."""

    def answer(self, dialect: str, case: str, body: bytes) -> tuple[int, bytes]:
        """Status and body: the answer to a request that the wire's rules and the vendor's own types accept."""
        self.requests[case].append(body)
        try:
            check_pairing(dialect, body)
            if dialect in RULES:
                check_request(dialect, body)
            return 200, wires.answer(dialect, body)
        except Exception as error:
            self.refused[case].append(f"{type(error).__name__}: {error}")
            return 400, b"{}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Service)
        _, dialect, case = self.path.split("/", 2)
        body = self.rfile.read(int(self.headers["content-length"]))
        status, answered = self.server.answer(dialect, case, body)
        self.send_response(status)
        self.send_header("content-length", str(len(answered)))
        self.end_headers()
        self.wfile.write(answered)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@contextmanager
def service() -> Iterator[Service]:
    """A running server, closed at the end."""
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
