"""What an option may know of its run, how deep calls may be nested, and the threads in which functions wait."""

import asyncio
import socket
import threading
from contextvars import ContextVar

import pytest
import sabir
from sabir.authoring import CallDepth
from sabir.errors import CallsTooDeep, OutsideEvaluation
from sabir.options import execution
from sabir.options.execution import MOST_DEPTH, ToolContext, in_thread
from sabir_testing.histories.samples import call_message

CALL = call_message("c1", {}, "sink")


@sabir.option
def sink() -> str:
    "Go one deeper."
    with CallDepth.one_deeper("sink"):
        return "there"


async def test_a_call_that_is_too_deep_ends_what_it_is_within() -> None:
    """As a result, a model would choose it again; an error of the same name that an option has itself is its result."""
    with CallDepth(MOST_DEPTH - 1).set():
        (result,) = sabir.answer_sync([CALL], [sink])
        assert result.result is not None and result.result.result == "there"
    with (
        CallDepth(MOST_DEPTH).set(),
        pytest.raises(CallsTooDeep, match=f"'sink' is nested in {MOST_DEPTH} other calls"),
    ):
        sabir.answer_sync([CALL], [sink])
    with CallDepth(MOST_DEPTH).set(), pytest.raises(CallsTooDeep):
        await sabir.answer([CALL], [sink])


def test_outside_of_a_run_there_is_no_context() -> None:
    with pytest.raises(OutsideEvaluation, match="does not run inside an option"):
        ToolContext.current()
    with ToolContext("c1", idempotency_key="m1/c1").entered():
        assert ToolContext.current().idempotency_key == "m1/c1"
    with pytest.raises(OutsideEvaluation):
        ToolContext.current()


def test_what_comes_after_a_call_is_as_deep_as_what_came_before_it() -> None:
    with pytest.raises(ZeroDivisionError), CallDepth(7).set():
        assert CallDepth.current().calls == 7
        raise ZeroDivisionError

    assert CallDepth.current().calls == 0


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
    monkeypatch.setattr(execution, "MOST_THREADS", 2)
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
