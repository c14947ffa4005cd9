"""To close a runner ends, whatever its store and its policies do."""

import asyncio
import socket
import threading
from contextlib import suppress

import pytest
import sabir
from sabir_runtime import Batch
from sabir_runtime.durable import DurableRunner, RunTaken, engine, worker
from sqlalchemy import make_url

from tests.durable.assistant import Names
from tests.durable.children import BEAT, POLL
from tests.durable.support import Gate, Program, left_at, saying, working


class Line:
    """The way to a server, that can be cut; in threads of its own: the engine blocks the event loop as it starts."""

    def __init__(self, store: str) -> None:
        self._url = make_url(store)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.store = self._url.set(port=self._server.getsockname()[1]).render_as_string(hide_password=False)
        threading.Thread(target=self._listen, daemon=True).start()

    def cut(self) -> None:
        for end in [self._server, *self._ends]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection((self._url.host or "", self._url.port or 0))
                self._ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pour, args=(source, sink), daemon=True).start()


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while some := source.recv(65536):
            sink.sendall(some)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


async def test_a_store_that_is_away_is_not_waited_for(database: str) -> None:
    """What the runner had is carried on by the next one, when the store is back."""
    gate, line = Gate(), Line(database)
    runner = DurableRunner(line.store, beat=BEAT, poll=POLL)
    performing = asyncio.ensure_future(runner.run(Program(runner, main=gate).main, "Hi.", run_id="r"))
    await gate.reached.wait()
    line.cut()
    async with asyncio.timeout(100):
        await runner.aclose()
    with pytest.raises(RunTaken, match="'r' is unfinished"):
        await performing
    async with working(database, main=saying("carried on")) as (runner, _):
        assert [message.text for message in await runner.result("r")] == ["carried on"]


async def test_a_policy_that_cleans_up_is_waited_for(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others take its run when it has stopped, and not before."""
    gate, events = Gate(), list[str]()
    shut_down = engine.shut_down

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        try:
            return await gate(ctx, observations)
        finally:
            turns = 0
            while turns < 20_000 and not events:
                turns += 1
                await asyncio.sleep(0)
            events.append("cleaned")

    async def noted() -> None:
        events.append("closed")
        await shut_down()

    monkeypatch.setattr(engine, "shut_down", noted)
    await left_at(gate, sqlite, main=main)

    assert events == ["cleaned", "closed"]


async def test_a_policy_that_does_not_stop_is_not_waited_for(
    sqlite: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After a while the runner ends without it, and says so."""
    monkeypatch.setattr(worker, "CLOSING", 0.01)
    reached, freed = asyncio.Event(), asyncio.Event()

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        reached.set()
        while not freed.is_set():
            with suppress(asyncio.CancelledError):
                await freed.wait()
        return [sabir.assistant("too late", policy="main")]

    async with working(sqlite, main=main) as (runner, program):
        performing = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="r"))
        await reached.wait()
        await runner.aclose()
        assert "ends while 1 of its runs have not stopped" in caplog.text
        freed.set()
        with pytest.raises(Exception, match="'r'"):
            await performing
