"""Functions that wait do so in threads of their own, and hold up nothing else."""

import asyncio
import socket
import threading
from contextvars import ContextVar

import pytest
from sabir.options import execution as threads
from sabir.options.execution import in_thread

WAITING = 64
"""More than asyncio has threads on any machine of these tests: cores and four, at most 32."""
PATIENCE = 30.0
"""Seconds after which a test that would hang fails instead."""


async def test_many_functions_wait_at_once_and_look_ups_go_on() -> None:
    here, leave = threading.Barrier(WAITING + 1), threading.Event()

    def wait() -> int:
        here.wait(PATIENCE)
        leave.wait(PATIENCE)
        return threading.get_ident()

    waiting = [asyncio.ensure_future(in_thread(wait)) for _ in range(WAITING)]
    await in_thread(here.wait, PATIENCE)
    try:
        assert await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
    finally:
        leave.set()

    assert len(set(await asyncio.gather(*waiting))) == WAITING


async def test_what_comes_beyond_the_bound_waits_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MOST_THREADS", 2)
    leave, began = threading.Event(), []

    def wait(number: int) -> None:
        began.append(number)
        leave.wait(PATIENCE)

    waiting = [asyncio.ensure_future(in_thread(wait, number)) for number in range(4)]
    while len(began) < 2:
        await asyncio.sleep(0)
    assert sorted(began) == [0, 1]
    leave.set()
    await asyncio.gather(*waiting)

    assert sorted(began[:2]) == [0, 1]
    assert sorted(began[2:]) == [2, 3]


async def test_a_function_runs_in_its_callers_context_and_its_errors_arrive() -> None:
    said: ContextVar[str] = ContextVar("said")
    said.set("here")

    assert await in_thread(said.get) == "here"
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        await in_thread(lambda: next(iter([])))
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)
