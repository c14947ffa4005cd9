"""The process of one library: it gives histories to the library and records the requests that reach a local server.

    stdin   {"wire": "openai.chat", "history": {…}}
    stdout  {"body": {…} | null, "error": "" | "TypeError: …", "reports": ["…"]}

The server on 127.0.0.1 plays every vendor. A report is a warning, a log record of level WARNING or above, or a line
that the library's own interface returns.
"""

import importlib
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from referee import replies

Entry = dict[str, Any]


class Server(ThreadingHTTPServer):
    """A vendor's server that answers every request with `answer` and records the bodies."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = b""
        self.bodies: list[bytes] = []
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    wbufsize = -1  # one packet for headers and body: two make the client wait for an acknowledgement

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"log: {record.getMessage()}")


@contextmanager
def reporting(lines: list[str]) -> Iterator[None]:
    """Add every warning and log record of the block to `lines`."""
    records = _Records()
    loggers = [logging.getLogger(), *map(logging.getLogger, logging.root.manager.loggerDict)]
    heard = [logger for logger in loggers if logger.parent is None or not logger.propagate]
    for logger in heard:
        logger.addHandler(records)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        for logger in heard:
            logger.removeHandler(records)
        lines += [f"warning: {each.message}" for each in caught if not _is_about_python(each)] + records.lines


def _is_about_python(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, (ResourceWarning, DeprecationWarning, PendingDeprecationWarning))


class Referee:
    def __init__(self, module: Any) -> None:
        self.module, self.server = module, Server()

    def request(self, wire: str, history: Entry) -> Entry:
        """Return the body that the library sends for a history, or its error, and what it reports."""
        reports: list[str] = []
        error = ""
        try:
            messages = self.messages(history)
            self.server.answer = replies.body(wire, replies.FINE)
            with reporting(reports):
                for line in self.module.connect(wire, self.server.url).send(messages, history) or ():
                    reports.append(line)
        except Exception as raised:
            error = f"{type(raised).__name__}: {' '.join(str(raised).split())[:300]}"
        body = json.loads(self.server.bodies[0]) if self.server.bodies else None
        self.server.bodies.clear()
        return {"body": body, "error": error.replace(self.server.url, "URL"), "reports": reports}

    def messages(self, history: Entry) -> list[Any]:
        """Return a history as the library's own messages; it decodes the vendors' replies itself."""
        messages: list[Any] = []
        renamed: dict[str, str] = {}
        for message in history["messages"]:
            if "from" in message:
                self.server.answer = replies.body(message["from"], message)
                try:
                    decoded, ids = self.module.connect(message["from"], self.server.url).reply(history)
                finally:
                    self.server.bodies.clear()
                named = [part["id"] for part in message["content"] if part["kind"] == "call"]
                renamed.update(zip(named, ids, strict=False))
                messages += decoded
            else:
                messages += self.module.connect("openai.chat", self.server.url).build(_with_ids(message, renamed))
        return messages


def _with_ids(message: Entry, renamed: dict[str, str]) -> Entry:
    """Return the message with the ids that the library gave to calls which it decoded."""
    content = [
        {**part, "id": renamed.get(part["id"], part["id"])} if part["kind"] == "result" else part
        for part in message["content"]
    ]
    return {**message, "content": content}


def main(contender: str) -> None:
    """Answer each line of standard input with one line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print do so to stderr
    referee = Referee(importlib.import_module(f"referee.contenders.{contender}"))
    for line in sys.stdin:
        answers.write(json.dumps(referee.request(**json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
