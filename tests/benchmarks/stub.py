"""A server on this machine that answers every wire, as fast as a socket allows; in a process of its own.

    python -m tests.benchmarks.stub EVENTS ──▶ prints its port, serves until its stdin closes

No HTTP library: a request's end is found by its length, and answers are made before anybody asks. A stream's events
are each a chunk of their own, as vendors send them.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks import answers, work

ROOT = Path(__file__).parents[2]
_MARKS = {
    b"/chat/completions": "openai.chat",
    b"/responses": "openai.responses",
    b"/messages": "anthropic.messages",
    b"enerateContent": "google.generate_content",
}
"""What a path holds, and the wire that it is of."""


def whole(content: bytes) -> bytes:
    """A JSON answer."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content)
    return head + content


def in_chunks(events: list[bytes]) -> list[bytes]:
    """A streamed answer: its head, each event as a chunk, its end."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%s\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"]


class Connection(asyncio.Protocol):
    """One client's connection, kept alive."""

    def __init__(self, replies: dict[str, bytes], streams: dict[str, list[bytes]]) -> None:
        self.replies, self.streams = replies, streams
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what to write to."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self.waiting) < end + 4 + length:
                return
            body, self.waiting = self.waiting[end + 4 : end + 4 + length], self.waiting[end + 4 + length :]
            self.answer(self.waiting_path(head), body)

    @staticmethod
    def waiting_path(head: bytes) -> bytes:
        """The path of a request, in small letters."""
        return head.partition(b"\r\n")[0].split(b" ")[1]

    def answer(self, path: bytes, body: bytes) -> None:
        """Write the wire's answer, or its stream where one is asked for."""
        wire = next(wire for mark, wire in _MARKS.items() if mark.lower() in path)
        streaming = b"streamgenerate" in path or b'"stream":true' in body or b'"stream": true' in body
        if not streaming:
            self.transport.write(self.replies[wire])
            return
        for chunk in self.streams[wire]:
            self.transport.write(chunk)


async def serve(events: int) -> None:
    """Serve until stdin closes."""
    replies = {wire: whole(answers.reply(wire)) for wire in work.WIRES}
    streams = {wire: in_chunks(answers.stream(wire, max(events, 20))) for wire in work.WIRES}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(replies, streams), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


@contextmanager
def running(events: int = 20) -> Iterator[str]:
    """A stub's URL, while it runs."""
    command = [sys.executable, "-m", "tests.benchmarks.stub", str(events)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
