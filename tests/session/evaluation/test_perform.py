"""The performers: what runs at once, who is told, and how an evaluation stops."""

import asyncio
import logging
import subprocess
import sys
from contextlib import suppress
from threading import Event as Gate

import pytest
import sabir
from sabir import ToolContext
from sabir.errors import OutsideEvaluation
from sabir_session import (
    Budget,
    BudgetExhausted,
    CallEnded,
    CallProgress,
    CallStarted,
    EvaluateArguments,
    Event,
    InnerMessage,
    RecordingFailed,
    ReplyArrived,
    RequestStarted,
    Session,
    TextArrived,
    evaluate,
    evaluate_sync,
    get_inner_messages,
    get_pending_tool_calls,
)
from sabir_session.evaluation import performers
from sabir_testing.scripted import ScriptedAdapter, call, calls

from tests.session.support import PARIS, PROMPT, ListJournal, numbers_of, weather


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_whoever_watches_is_told_everything_in_order(is_awaited: bool) -> None:
    told: list[Event] = []

    def count(to: int) -> int:
        ToolContext.current().report(1, to, "counting")
        return to

    def llm() -> ScriptedAdapter:
        return ScriptedAdapter(calls(count={"to": 3}), "It is three.")

    watched, alone = llm(), llm()
    if is_awaited:
        await evaluate(watched, PROMPT, options=[count], watch=told.append)
        await evaluate(alone, PROMPT, options=[count])
    else:
        evaluate_sync(watched, PROMPT, options=[count], watch=told.append)
        evaluate_sync(alone, PROMPT, options=[count])

    assert [type(event) for event in told] == [
        RequestStarted, ReplyArrived, CallStarted, CallProgress, CallEnded,
        RequestStarted, TextArrived, TextArrived, TextArrived, ReplyArrived,
    ]  # fmt: skip
    progress = next(event for event in told if isinstance(event, CallProgress))
    assert (progress.done, progress.total, progress.text) == (1, 3, "counting")
    assert "".join(event.text for event in told if isinstance(event, TextArrived)) == "It is three."
    assert [sent.streaming for sent in (*watched.sent, *alone.sent)] == [True, True, False, False]


def test_a_watcher_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("no display")

    with caplog.at_level(logging.WARNING, "sabir"):
        llm = ScriptedAdapter(calls(weather=PARIS), "Take one.")
        assert evaluate_sync(llm, PROMPT, options=[weather], watch=broken).text == "Take one."
    assert "watch failed at RequestStarted: RuntimeError: no display" in caplog.messages[0]


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_an_option_knows_its_run(is_awaited: bool) -> None:
    """WI-48: the call's id always, and that it is no resume; its idempotency key is unlike that of any other call,
    though the provider uses an id again (UP-13). Functions that it calls, and threads of core, find it too."""
    seen: list[ToolContext] = []

    def deeper() -> None:
        seen.append(ToolContext.current())

    def look() -> None:
        deeper()

    llm = ScriptedAdapter(call("look", id="x"), call("look", id="x"), "Done.")
    response = await evaluate(llm, PROMPT, options=[look]) if is_awaited else evaluate_sync(llm, PROMPT, options=[look])

    assert [(context.call_id, context.is_resume) for context in seen] == [("x", False), ("x", False)]
    assert len({context.idempotency_key for context in seen}) == 2
    assert response.text == "Done."
    with pytest.raises(OutsideEvaluation):
        ToolContext.current()


async def test_what_ends_although_it_is_cancelled_is_recorded() -> None:
    """An option that finishes its work first has its result kept; no resume runs it again (WI-26, WI-43)."""
    session, started = Session(), asyncio.Barrier(4)
    ran: list[str] = []
    contexts: list[ToolContext] = []

    async def pay(to: str) -> str:
        ran.append(to)
        contexts.append(ToolContext.current())
        try:
            await started.wait()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if to == "nobody":
                raise
            await asyncio.sleep(0)
        return f"paid {to}"

    llm = ScriptedAdapter(calls(pay=[{"to": "Ann"}, {"to": "nobody"}, {"to": "Bob"}]))
    told: list[Event] = []
    task = asyncio.create_task(evaluate(llm, PROMPT, session=session, options=[pay], watch=told.append))
    await started.wait()
    assert not contexts[0].cancelled.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert contexts[0].cancelled.is_set()
    evaluation = get_inner_messages(session)[0].evaluation_id
    assert [pending.name for pending in get_pending_tool_calls(session, evaluation)] == ["pay"]
    assert [(record.sequence, record.content) for record in get_inner_messages(session)[3:]] == [
        (3, "paid Ann"), (5, "paid Bob"),
    ]  # fmt: skip
    assert [type(event) for event in told][-2:] == [CallEnded, CallEnded]
    after = ScriptedAdapter("Done.")

    async def pay_now(to: str) -> str:
        ran.append(to)
        return f"paid {to}"

    await evaluate(after, PROMPT, session=session, options=[sabir.option(name="pay")(pay_now)], resume=True)
    assert ran == ["Ann", "nobody", "Bob", "nobody"]
    assert [result.result for result in after.last.results] == ["paid Ann", "paid nobody", "paid Bob"]


async def test_what_cannot_be_recorded_ends_the_siblings_too() -> None:
    """UP-30: the first result meets a full disk; what the sibling still gives is not taken for recorded."""
    ended: list[str] = []

    def refuse(record: InnerMessage) -> None:
        if record.role == "tool":
            raise OSError("no space left")

    async def sibling() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("sibling")
        return "late"

    async def quick() -> str:
        return "quick"

    session, llm = Session(journal=ListJournal(before=refuse)), ScriptedAdapter(calls(sibling={}, quick={}))
    with pytest.raises(RecordingFailed, match="no space left"):
        await evaluate(llm, PROMPT, session=session, options=[sibling, quick])

    assert ended == ["sibling"]
    assert numbers_of(session)[-1] == ("assistant", 2, 1)


async def test_nobody_hears_of_progress_after_a_cancellation() -> None:
    told: list[Event] = []
    started = asyncio.Event()

    async def slow() -> None:
        run = ToolContext.current()
        run.report(1)
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            run.report(2)

    task = asyncio.create_task(evaluate(ScriptedAdapter(calls(slow={})), PROMPT, options=[slow], watch=told.append))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [event.done for event in told if isinstance(event, CallProgress)] == [1]


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_an_option_that_does_not_return_is_given_up_when_the_time_is_over(
    is_awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The error and the log name it as running on; its call stays pending, and what ended before is recorded."""
    session, opened, contexts = Session(), Gate(), list[ToolContext]()

    def quick() -> str:
        return "quick"

    def fetch() -> str:
        contexts.append(ToolContext.current())
        opened.wait()
        return "fetched"

    llm = ScriptedAdapter(calls(quick={}, fetch={}), "Done.")
    how = EvaluateArguments(session=session, options=[quick, fetch], budget=Budget(seconds=3))
    with caplog.at_level(logging.WARNING, "sabir"):
        with pytest.raises(BudgetExhausted, match=r"3 seconds is exhausted.* still run: fetch") as met:
            if is_awaited:
                await evaluate(llm, PROMPT, **how)
            else:
                evaluate_sync(llm, PROMPT, **how)

    pending = get_pending_tool_calls(session, get_inner_messages(session)[0].evaluation_id)
    assert [each.name for each in pending] == ["fetch"]
    assert [each.call.invocation_id for each in met.value.running if each.call] == ["call-2"]
    logged = "the time is over, but the option fetch still runs for the call call-2; its result will be discarded"
    assert logged in caplog.messages
    assert contexts[0].cancelled.is_set()
    opened.set()
    assert evaluate_sync(llm, PROMPT, session=session, options=[quick, fetch], resume=True).text == "Done."


async def test_a_coroutine_is_cancelled_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performers, "LEAVING", 0.01)
    opened, left = asyncio.Event(), list[str]()

    async def heeds() -> None:
        try:
            await opened.wait()
        finally:
            left.append("heeds")

    async def heedless() -> None:
        while not opened.is_set():
            with suppress(asyncio.CancelledError):
                await opened.wait()
        left.append("heedless")

    llm = ScriptedAdapter(calls(heeds={}, heedless={}))
    with pytest.raises(BudgetExhausted) as met:
        await evaluate(llm, PROMPT, options=[heeds, heedless], budget=Budget(seconds=2))

    assert [each.call.option_name for each in met.value.running if each.call] == ["heedless"]
    assert left == ["heeds"]
    opened.set()
    while len(left) < 2:
        await asyncio.sleep(0)


async def test_what_ends_while_it_is_stopped_is_recorded() -> None:
    """The caller cancels while what the time stopped cleans up; that is cancelled once."""
    stopped, leave, session = asyncio.Event(), asyncio.Event(), Session()

    async def pay() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            await leave.wait()
        return "paid"

    llm, budget = ScriptedAdapter(calls(pay={})), Budget(seconds=1)
    evaluating = asyncio.ensure_future(evaluate(llm, PROMPT, session=session, options=[pay], budget=budget))
    await stopped.wait()
    evaluating.cancel()
    await stopped.wait()
    await asyncio.sleep(0.01)
    leave.set()
    with pytest.raises(asyncio.CancelledError):
        await evaluating

    results = [each for each in get_inner_messages(session) if each.role == "tool"]
    assert len(results) == 1


HANGING = """
import asyncio, threading
from sabir_session import Budget, BudgetExhausted, evaluate, evaluate_sync
from sabir_testing.scripted import ScriptedAdapter, calls

def hang():
    threading.Event().wait()

how = {"options": [hang], "budget": Budget(seconds=2)}
for wait in (evaluate_sync, lambda *asked, **how: asyncio.run(evaluate(*asked, **how))):
    try:
        wait(ScriptedAdapter(calls(hang={})), "Hi.", **how)
    except BudgetExhausted:
        print("given up")
"""


def test_a_process_ends_though_an_option_does_not_return() -> None:
    told = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False)

    assert (told.stdout, told.returncode) == ("given up\ngiven up\n", 0)
