"""One adapter in many event loops and in forked children: nothing is left behind, and no answer is another's.

In a process of its own each, over real sockets; by one provider, for what is looked at is core's.
"""

import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

BEGIN = """
import asyncio, gc, os, sys, warnings
import sabir
llm = sabir.adapter("anthropic:claude-haiku-4-5", api_key="k", base_url=sys.argv[1])
"""
RUNS = """
def left():
    with open("/proc/self/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return len(os.listdir("/proc/self/fd")), resident / 1000

def run():
    asyncio.run(llm.complete("hi"))

run()
before = left()
for _ in range(200):
    run()
print(*(after - first for first, after in zip(before, left())))
"""
FORKS = """
def answers_are_its_own(who):
    said = [f"{who}-{number}" for number in range(8)]
    heard = [llm.complete_sync(text).text for text in said[:6]]
    async def together():
        return [reply.text for reply in await asyncio.gather(*map(llm.complete, said[6:]))]
    return heard + asyncio.run(together()) == said

wrong = 0
for number in range(4):
    wrong += not answers_are_its_own(f"parent-{number}")
    children = []
    for child in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            os._exit(not answers_are_its_own(f"child-{number}-{child}"))
    wrong += not answers_are_its_own(f"beside-{number}")
    wrong += sum(os.waitpid(child, 0)[1] != 0 for child in children)
print(wrong)
"""


class Echoes(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        (part,) = asked["messages"][-1]["content"]
        told = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        body = json.dumps({**told, "content": [part], "usage": {"input_tokens": 1, "output_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(params=["http", "https"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server's, with a certificate that the process trusts."""
    with Server(("127.0.0.1", 0), Echoes) as server:
        if request.param == "https":
            authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{request.param}://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def in_a_process(code: str, url: str) -> str:
    """What a program says that tells of every resource it leaves open."""
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", BEGIN + code, url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("url", ["http"], indirect=True)
def test_two_hundred_loops_leave_nothing_behind(url: str) -> None:
    descriptors, megabytes = map(float, in_a_process(RUNS, url).split())

    assert descriptors <= 16
    assert megabytes <= 10


def test_forked_children_and_their_parent_ask_at_once(url: str) -> None:
    assert in_a_process(FORKS, url) == "0\n"
