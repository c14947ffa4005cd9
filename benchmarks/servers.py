"""Servers on this machine, each in a process of its own for as long as a row needs it.

stub ─ answers every wire, as fast as a socket allows        nats, postgres ─ from a contender's packages

    python -m benchmarks.servers NAME SIZE ──▶ prints its URL, serves until its stdin closes, however that comes

The stub uses no HTTP library: a request's end is found by its length, and answers are made before anybody asks. A
stream's events, as many as the size says, are each a chunk of their own, as vendors send them.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import answers, environments, work
from benchmarks.environments import ROOT, Absent

STUB, NATS, POSTGRES = "stub", "nats", "postgres"
"""What a case's URL may stand for."""
REQUIRED_BY = {NATS: "bare_request", POSTGRES: "sabir_workers"}
"""Server → a contender that requires its programs."""
_MARKS = {
    b"/chat/completions": "openai.chat",
    b"/responses": "openai.responses",
    b"/messages": "anthropic.messages",
    b"enerateContent": "google.generate_content",
}
"""What a path holds, and the wire that it is of."""
LOOP = "/loop"
"""The stub's base URL ends with it where the answer to each request is the next call of a loop."""
_RESULTS = {b"/messages": b"tool_use_id", b"enerateContent": b"functionResponse"}
"""What a path holds, and what each result in a request's body holds; "tool_call_id" for the others."""
MOST_TURNS = 512
"""A loop at the stub has at most so many turns."""


def whole(content: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content)
    return head + content


def in_chunks(events: list[bytes]) -> list[bytes]:
    """A streamed answer: its head, each event as a chunk, its end."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%s\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"]


class Connection(asyncio.Protocol):
    def __init__(
        self, replies: dict[str, bytes], streams: dict[str, list[bytes]], turns: dict[str, list[bytes]]
    ) -> None:
        self.replies, self.streams, self.turns = replies, streams, turns
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self.waiting) < end + 4 + length:
                return
            body, self.waiting = self.waiting[end + 4 : end + 4 + length], self.waiting[end + 4 + length :]
            self.answer(head.partition(b"\r\n")[0].split(b" ")[1], body)

    def answer(self, path: bytes, body: bytes) -> None:
        """Write the wire's answer, its stream where one is asked for, or in a loop the next call."""
        wire = next(wire for mark, wire in _MARKS.items() if mark.lower() in path)
        if path.startswith(LOOP.encode()):
            result = next((result for mark, result in _RESULTS.items() if mark.lower() in path), b"tool_call_id")
            self.transport.write(self.turns[wire][body.count(result)])
            return
        streaming = b"streamgenerate" in path or b'"stream":true' in body or b'"stream": true' in body
        for chunk in self.streams[wire] if streaming else [self.replies[wire]]:
            self.transport.write(chunk)


async def serve_stub(events: int) -> None:
    replies = {wire: whole(answers.reply(wire)) for wire in work.WIRES}
    streams = {wire: in_chunks(answers.stream(wire, max(events, 20))) for wire in work.WIRES}
    turns = {wire: [whole(answers.reply_with_calls(wire, range(n, n + 1), "")) for n in range(MOST_TURNS)]
             for wire in work.WIRES}  # fmt: skip
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(replies, streams, turns), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def serve(name: str) -> None:
    """A server made of what is installed here; each is imported where it is."""
    if name == POSTGRES:
        from tests.servers.postgres import postgres_server as server
    else:
        from tests.servers.nats import nats_server as server
    try:
        with server() as url:
            print(url, flush=True)
            sys.stdin.read()
    except Exception as reason:
        print(reason, flush=True)


@contextmanager
def running(name: str = STUB, size: int = 20) -> Iterator[str]:
    """A server's URL, while it runs; Absent where none can be started."""
    python = environments.python_of(REQUIRED_BY[name]) if name in REQUIRED_BY else sys.executable
    process = subprocess.Popen(
        [str(python), "-m", "benchmarks.servers", name, str(size)],
        cwd=ROOT, env=environments.variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said = process.stdout.readline().strip()
        if not said.startswith(("http", name)):
            raise Absent(said or f"no {name}: its process ended")
        yield said
    finally:
        process.communicate()


if __name__ == "__main__":
    asyncio.run(serve_stub(int(sys.argv[2]))) if sys.argv[1] == STUB else serve(sys.argv[1])
