"""The watchdog ends a blocking step of any client on time, and touches nothing else."""

import asyncio
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from sabir.base.failures import CallTimedOut
from sabir.calling.clock import Clock
from sabir.calling.drive import Done, SyncWire, Wire, drive, result_of, run_blocking
from sabir.calling.exchange import Exchange, call_script, stream_script
from sabir.contract.provider import WireRequest
from sabir.reading.incoming import StreamState
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import RetryPolicy

from tests.core.support import REQUEST, SCOPE, Answer, Scripted, ScriptedResponse, TinyDialect, whole
from tests.servers.slow import BODIES, HEADS, Pieces, Slow

TIMEOUT = 0.3
DIALECT = TinyDialect()
LATEST = TIMEOUT + 5.0


def exchange() -> Exchange:
    return Exchange(REQUEST, DIALECT, SCOPE, RetryPolicy(attempts=1))


def call(connection: Any, seconds: float) -> Reply:
    """A call that is sent once, by a connection that waits."""
    return run_blocking(result_of(call_script(exchange()), SyncWire(connection, clock=Clock(seconds))))


class Answered:
    """A response of the standard library's HTTP client."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status, self.headers = response.status, dict(response.headers)

    def chunks(self) -> Iterator[bytes]:
        while chunk := self._response.read(10):
            yield chunk

    def close(self) -> None:
        self._response.close()


class Plain(Scripted):
    """A connection that blocks on the standard library's HTTP client, which nobody told of a timeout."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._client = http.client.HTTPConnection(urlsplit(url).netloc)

    def open_sync(self, request: WireRequest) -> Any:
        self._client.request("POST", "/", b"{}")
        return Answered(self._client.getresponse())

    def close(self) -> None:
        self._client.close()


@pytest.mark.parametrize(
    "pieces", [HEADS["silence"], HEADS["continue"], HEADS["single bytes"], BODIES["body"]],
    ids=["silence", "continue", "single bytes", "body"],
)  # fmt: skip
def test_a_client_of_another_library_is_ended(pieces: Pieces) -> None:
    with Slow(pieces) as server:
        connection = Plain(server.url)
        began = time.monotonic()
        with pytest.raises(CallTimedOut, match=r"Settings\.timeout"):
            call(connection, TIMEOUT)
        connection.close()

    assert TIMEOUT <= time.monotonic() - began < LATEST


class Receiving(Scripted):
    """A connection that opens by receiving one byte from a socket."""

    def __init__(self, source: socket.socket) -> None:
        super().__init__(whole("x"), whole("x"))
        self.source = source

    def open_sync(self, request: WireRequest) -> ScriptedResponse:
        assert self.source.recv(1) == b"x"
        return super().open_sync(request)


def test_a_late_call_leaves_the_sockets_of_other_calls_alone() -> None:
    pairs = [socket.socketpair() for _ in range(3)]
    texts: list[str] = []

    def receive(pair: int, seconds: float = 30) -> None:
        texts.append(call(Receiving(pairs[pair][0]), seconds).text)

    other = threading.Thread(target=receive, args=(1,))
    other.start()
    pairs[0][1].send(b"x")
    receive(0)
    with pytest.raises(CallTimedOut):
        receive(2, TIMEOUT)
    time.sleep(0.1)
    pairs[0][1].send(b"xy")
    receive(0)
    pairs[1][1].send(b"x")
    other.join(20)

    assert texts == ["x"] * 3
    assert pairs[0][0].recv(1) == b"y"
    for each in (each for pair in pairs for each in pair):
        each.close()


def test_a_step_without_a_socket_is_late_when_it_returns() -> None:
    class Sleeping(Scripted):
        def open_sync(self, request: WireRequest) -> ScriptedResponse:
            time.sleep(0.2)
            return super().open_sync(request)

    connection = Sleeping(whole("x"))
    with pytest.raises(CallTimedOut):
        call(connection, 0.05)
    assert connection.open_responses == 0


class Clinging:
    """A response that neither ends nor closes."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, source: socket.socket) -> None:
        self._source = source

    def chunks(self) -> Iterator[bytes]:
        yield self._source.recv(1)

    def close(self) -> None:
        self._source.recv(1)


class AsyncClinging(Clinging):
    async def chunks(self) -> AsyncIterator[bytes]:  # type: ignore[override]
        await asyncio.sleep(60)
        yield b""

    async def aclose(self) -> None:
        await asyncio.sleep(60)


class Opened(Scripted):
    def __init__(self, *responses: Any) -> None:
        super().__init__()
        self._responses = list(responses)

    def open_sync(self, request: WireRequest) -> Any:
        return self._responses.pop(0)

    async def open(self, request: WireRequest) -> Any:
        return self._responses.pop(0)


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_closing_a_late_response_does_not_block(is_sync: bool) -> None:
    class Separate(Clinging):
        def close(self) -> None:  # its body's socket is shut down already
            second.recv(1)

    first, _first = socket.socketpair()
    second, _second = socket.socketpair()
    began = time.monotonic()
    with pytest.raises(CallTimedOut):
        if is_sync:
            call(Opened(Separate(first)), TIMEOUT)
        else:
            asyncio.run(result_of(call_script(exchange()), Wire(Opened(AsyncClinging(first)), clock=Clock(TIMEOUT))))
    assert time.monotonic() - began < LATEST
    for each in (first, _first, second, _second):
        each.close()


def test_a_silent_stream_is_tried_again() -> None:
    """What the watchdog ended once does not count for the next attempt."""
    first, second = socket.socketpair()
    words = [b'data: {"open": "r"}\n\n', b'data: {"text": "a"}\n\n', b'data: {"finish": "stop"}\n\n']
    script = stream_script(
        replace(exchange(), retries=RetryPolicy(attempts=2, first_delay=0)), StreamState(DIALECT, SCOPE)
    )
    connection = Opened(Clinging(first), ScriptedResponse(Answer(words)))
    wire = SyncWire(connection, clock=Clock(30, 0.1, is_stream=True))
    while not isinstance(step := run_blocking(drive(script, wire)), Done):
        pass

    assert (step.result.text, step.result.attempts) == ("a", 2)
    for each in (first, second):
        each.close()


def test_a_readers_time_counts_for_total_alone() -> None:
    state = StreamState(DIALECT, SCOPE)
    script = stream_script(exchange(), state)
    words = [b'data: {"open": "r"}\n\n', b'data: {"text": "a"}\n\n', b'data: {"text": "b"}\n\n']
    wire = SyncWire(Scripted(Answer(words)), clock=Clock(5, 5, 0.2, is_stream=True))
    run_blocking(drive(script, wire))
    time.sleep(0.3)
    with pytest.raises(Exception, match=r"Settings\.total"):
        while not isinstance(run_blocking(drive(script, wire)), Done):
            pass


BLOCKED = """
import os, socket
from tests.core.calling.test_watchdog import CallTimedOut, Receiving, call
source, sink = socket.socketpair()

"""


def run_blocked(program: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", BLOCKED + program]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.getcwd())


def test_an_interrupt_ends_a_call_at_once() -> None:
    program = """
print("ready", flush=True)
try:
    call(Receiving(source), 60)
except KeyboardInterrupt:
    print("interrupted")
"""
    with run_blocked(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[0] == "interrupted\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_a_forked_child_has_a_watchdog_of_its_own() -> None:
    program = """
def late():
    try:
        call(Receiving(source), 0.2)
    except CallTimedOut:
        return 7

assert late() == 7
source, sink = socket.socketpair()
if (child := os.fork()) == 0:
    os._exit(late() or 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    with run_blocked(program) as process:
        assert process.communicate(timeout=20)[0] == "7\n"


COLLECTS = """
import gc, threading
from sabir.calling.watchdog import _hang_up
for threshold in range(1, 60):  # with one of them, the collector runs when a frame is made
    gc.collect()
    gc.set_threshold(threshold)
    cycle = [threading.local()]
    cycle[0].value = cycle
    cycle.append(cycle)
    del cycle
    assert not _hang_up(0)
    assert gc.isenabled()
gc.disable()
_hang_up(0)
print(gc.isenabled())
"""


def test_a_garbage_collection_while_frames_are_read_ends_no_program() -> None:
    """Before 3.11.9, CPython deadlocks there: https://github.com/python/cpython/issues/106883."""
    done = subprocess.run([sys.executable, "-c", COLLECTS], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
