"""A server that attacks its client, written without the SDK: `python hostile.py stdio|json|events ATTACK [PID_FILE]`.

Over HTTP it prints its port. `LISTS` and `RESULTS` are attacks by one answer, `RAW` by the bytes of one, and `FLOODS`
by many messages in place of an answer.
"""

import gzip
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BLOCK = 2**16
OBJECT = {"type": "object"}
VULNERABLE = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
LOG = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT, **more}


def text(content: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}]}


def endless(head: bytes, block: bytes) -> Iterator[bytes]:
    yield head
    while True:
        yield block


def values(count: int) -> str:
    return f"[{'{},' * count}0]"


def next_page(params: dict[str, Any]) -> str:
    return str(int(params.get("cursor") or 0) + 1)


LISTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "many_tools": lambda params: {"tools": [tool(f"tool{number}") for number in range(50_000)]},
    "endless_pages": lambda params: {"tools": [], "nextCursor": next_page(params)},
    "large_pages": lambda params: {
        "tools": [tool(f"t{next_page(params)}", description="x" * 2**20)],
        "nextCursor": next_page(params),
    },
    "many_icons": lambda params: {"tools": [tool("call", icons=[{"src": "x"}] * 100_000)]},
    "schema": lambda params: {"tools": [tool("call", outputSchema=VULNERABLE)]},
    "circle": lambda params: {"tools": [], "nextCursor": "round"},
}
RESULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "schema": lambda: {**text("x"), "structuredContent": {"text": "a" * 40 + "!"}},
    "parts": lambda: {"content": [{"type": "text", "text": ""}] * 80_000},
    "more_parts": lambda: {"content": [{"type": "text", "text": ""}] * 500_000},
    "text_bomb": lambda: {**text(values(4_000_000)), "structuredContent": {"x": 1}},
    "emoji": lambda: text("x" * 15 * 2**20 + "😀"),
    "image": lambda: {"content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoA" * 1_300_000}]},
}
RAW: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "endless": lambda head: endless(head + b'{"content":[{"type":"text","text":"', b"x" * BLOCK),
    "values": lambda head: iter(
        [head + b'{"content":[],"structuredContent":{"x":' + values(5_000_000).encode() + b"}}}"]
    ),
    "silent": lambda head: silence(),
    "drip": lambda head: slowly(),
}
FLOODS = {"pings": PING, "logs": LOG}


def silence() -> Iterator[bytes]:
    time.sleep(3600)
    yield b""


def slowly() -> Iterator[bytes]:
    while True:
        time.sleep(0.05)
        yield b" "


def response(request: dict[str, Any], attack: str) -> Iterator[bytes]:
    """The bytes of the response to a request, in pieces."""
    method, params = request["method"], request.get("params") or {}
    head = b'{"jsonrpc":"2.0","id":%d,"result":' % request["id"]
    if method == "initialize":
        if attack == "silent_start":
            return slowly()
        server = {"name": "hostile", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        if attack == "drip_list":
            return slowly()
        result = LISTS.get(attack, lambda params: {"tools": [tool("call")]})(params)
    elif method == "tools/call":
        if attack in RAW:
            return RAW[attack](head)
        result = RESULTS.get(attack, lambda: text("fine"))()
    else:
        error = {"code": -32601, "message": "no such method"}
        return iter([json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()])
    return iter([head + json.dumps(result, ensure_ascii=False).encode() + b"}"])


def serve_streams(attack: str) -> None:
    out = sys.stdout.buffer
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        if request["method"] == "tools/call" and attack in FLOODS:
            while True:
                out.write((FLOODS[attack] + b"\n") * 1_000)
        for piece in response(request, attack):
            out.write(piece)
            out.flush()
        out.write(b"\n")
        out.flush()


class Handler(BaseHTTPRequestHandler):
    attack = ""
    events = False
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in request or "method" not in request:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if self.events else "application/json")
        self.send_header("connection", "close")
        if self.attack == "gzip" and request["method"] == "tools/call":
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        self.close_connection = True
        try:
            for piece in self.body(request):
                self.wfile.write(piece)
        except OSError:
            pass

    def body(self, request: dict[str, Any]) -> Iterator[bytes]:
        called = request["method"] == "tools/call"
        if called and self.attack == "gzip":
            yield gzip.compress(b"x" * 2**28)
            return
        if called and self.attack in FLOODS:
            event = b"data: " + FLOODS[self.attack] + b"\n\n"
            yield from endless(b"", event * 1_000)
        if called and self.attack == "endless_id":
            yield from endless(b"id: ", b"x" * BLOCK)
        if called and self.attack == "quoted_id":
            yield b'id: "\n'
        yield b"data: " if self.events else b""
        yield from response(request, "values" if self.attack == "quoted_id" else self.attack)
        if self.events:
            yield b"\n\n"

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def serve_http(attack: str, *, events: bool) -> None:
    Handler.attack, Handler.events = attack, events
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    _, transport, attack, *pid_file = sys.argv
    if pid_file:
        Path(pid_file[0]).write_text(str(os.getpid()), "utf-8")
    if transport == "stdio":
        serve_streams(attack)
    else:
        serve_http(attack, events=transport == "events")
