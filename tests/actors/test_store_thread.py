"""Steps in the store's thread end whatever becomes of their callers."""

import asyncio
from threading import Event, get_ident

import pytest
from sabir_actors.store_thread import StoreThread


async def test_a_step_runs_in_one_other_thread_and_its_error_reaches_the_caller() -> None:
    call = StoreThread()

    idents = [await call(get_ident), await call(get_ident)]

    assert len(set(idents)) == 1 and get_ident() not in idents
    with pytest.raises(ZeroDivisionError):
        await call(lambda: 1 // 0)


async def test_a_cancelled_caller_waits_for_its_step() -> None:
    """Once: who cancels it again waits no longer. The step runs to its end in any case."""
    call, may_end, has_ended = StoreThread(), Event(), Event()

    def step() -> None:
        may_end.wait(10)
        has_ended.set()

    patient, impatient = asyncio.ensure_future(call(step)), asyncio.ensure_future(call(step))
    await asyncio.sleep(0)
    for caller in (patient, impatient, impatient):
        caller.cancel()
        await asyncio.sleep(0)

    assert impatient.cancelled() and not patient.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await patient
    assert has_ended.is_set()


async def test_a_caller_that_is_cancelled_after_its_step_ended_ends_at_once() -> None:
    call, has_ended = StoreThread(), Event()
    caller = asyncio.ensure_future(call(has_ended.set))
    await asyncio.sleep(0)
    has_ended.wait(10)
    caller.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(caller, 10)
