"""A scripted answer may come late: when the test opens a gate, or after seconds that nobody waits."""

import asyncio
import threading

import pytest
import sabir
from sabir_testing.scripted import (
    Gate,
    ScriptedAdapter,
    ScriptMismatch,
    delayed,
    reply,
)


async def test_a_gate_holds_an_answer_until_the_test_opens_it() -> None:
    """What a program shows meanwhile can be looked at, in the midst of a stream too."""
    gate = Gate()
    llm = ScriptedAdapter(delayed("late", gate), reply("first ", later := Gate(), "second"))
    calling = asyncio.create_task(llm.complete("Hi"))
    await gate.reached()
    assert not calling.done()
    gate.open()
    assert (await calling).text == "late"

    seen: list[str] = []

    async def show() -> None:
        async for text in llm.stream("Hi").text:
            seen.append(text)

    showing = asyncio.create_task(show())
    await later.reached()
    assert seen == ["first "]
    later.open()
    await showing
    assert seen == ["first ", "second"]


def test_a_gate_serves_threads_alike() -> None:
    """The program waits in one, the test opens the gate in the other."""
    llm = ScriptedAdapter(delayed("late", gate := Gate()))
    found: list[str] = []
    program = threading.Thread(target=lambda: found.append(llm.complete_sync("Hi").text))
    program.start()
    gate.reached_sync()
    assert found == []
    gate.open()
    program.join()
    assert found == ["late"]


async def test_a_gate_may_be_opened_from_another_thread() -> None:
    """The event loop is woken as loops demand it, which its debug mode checks."""
    asyncio.get_running_loop().set_debug(True)
    llm = ScriptedAdapter(delayed("late", gate := Gate()))
    calling = asyncio.create_task(llm.complete("Hi"))
    await gate.reached()
    opening = threading.Thread(target=gate.open)
    opening.start()
    opening.join()

    assert (await calling).text == "late"


async def test_a_call_held_at_a_gate_can_be_cancelled() -> None:
    """As a program does that runs out of patience; the gate may be opened all the same."""
    llm = ScriptedAdapter(delayed("never", gate := Gate()))
    calling = asyncio.create_task(llm.complete("Hi"))
    await gate.reached()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    gate.open()
    await gate.wait()


async def test_a_gate_that_nobody_opens_fails_the_test_in_place_of_hanging_it() -> None:
    """Its patience ends, and it says what is missing."""
    llm = ScriptedAdapter(*[delayed("never", Gate(patience=0))] * 2)

    with pytest.raises(ScriptMismatch, match=r"nobody opened the gate within 0 s; run the program in a task or"):
        llm.complete_sync("Hi")
    with pytest.raises(ScriptMismatch, match="nobody opened the gate"):
        await llm.complete("Hi")
    with pytest.raises(ScriptMismatch, match="no call reached the gate"):
        Gate(patience=0).reached_sync()


async def test_seconds_beyond_the_timeout_time_out_without_waiting() -> None:
    """As a vendor's client does; a retry takes the next answer."""
    hurried = sabir.Settings(timeout=5, retries=0)
    llm = ScriptedAdapter(delayed("late", 30), delayed("soon", 3), *[delayed("late", 30), "again"] * 2)

    with pytest.raises(sabir.errors.CallTimedOut, match=r"no answer within 5 s, the script's comes after 30 s"):
        llm.complete_sync("Hi", settings=hurried)
    assert llm.complete_sync("Hi", settings=hurried).text == "soon"
    assert (await llm.complete("Hi", settings=sabir.Settings(timeout=5))).text == "again"
    assert (await llm.complete("Hi")).text == "late"


async def test_seconds_are_given_to_the_sleep_that_is_given() -> None:
    """A fake clock's own, or an asynchronous one where calls are so; a waiting call cannot await."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(-seconds)

    ScriptedAdapter(delayed("late", 30), sleep=slept.append).complete_sync("Hi")
    await ScriptedAdapter(delayed("late", 30), sleep=slept.append).complete("Hi")
    await ScriptedAdapter(delayed("late", 30), sleep=sleep).complete("Hi")

    assert slept == [30, 30, -30]
    with pytest.raises(sabir.SettingsInvalid, match="sleep= is asynchronous"):
        ScriptedAdapter(delayed("late", 30), sleep=sleep).complete_sync("Hi")
