"""A limited adapter waits, in threads and in event loops, whole and streamed, and gives every slot back."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import sabir
from sabir.errors import RateLimited, SettingsInvalid
from sabir_calls import Limit, estimate_tokens, limited
from sabir_testing import ScriptedAdapter, always, delayed, reply
from sabir_testing.scripted import Gate

ONCE = sabir.Settings(retries=0)
PERIOD = 0.3
"""Seconds of a window in tests. Tests check that at least this time passed, which also holds on a loaded machine."""


def call(llm: sabir.Adapter, way: str) -> sabir.Reply:
    async def stream() -> sabir.Reply:
        async with llm.stream("Hello!") as events:
            return await events.reply()

    match way:
        case "complete":
            return asyncio.run(llm.complete("Hello!"))
        case "complete_sync":
            return llm.complete_sync("Hello!")
        case "send":
            return asyncio.run(llm.send(llm.render("Hello!")))
        case "send_sync":
            return llm.send_sync(llm.render("Hello!"))
        case "stream":
            return asyncio.run(stream())
        case _:
            with llm.stream_sync("Hello!") as events:
                return events.reply()


WAYS = ("complete", "complete_sync", "send", "send_sync", "stream", "stream_sync")


@pytest.mark.parametrize("way", WAYS)
def test_a_request_over_the_limit_waits(way: str) -> None:
    llm = limited(ScriptedAdapter(always("Hi.")), requests=1, per=PERIOD)
    began = time.monotonic()
    assert call(llm, way).text == "Hi."
    assert llm.limit.status() == (0, 0, 0.0)
    assert call(llm, way).text == "Hi."
    assert time.monotonic() - began >= PERIOD


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_call_gives_its_slot_back_and_pauses_all_who_share_the_limit(way: str) -> None:
    busy = ScriptedAdapter(RateLimited("busy", retry_after=PERIOD), "Hi.", settings=ONCE)
    limit = Limit(at_once=1)
    began = time.monotonic()
    with pytest.raises(RateLimited):
        call(limited(busy, limit), way)
    other = limited(ScriptedAdapter(always("Hi.")), limit)
    assert other.complete_sync("Hello!").text == "Hi."
    assert limit.status().running == 0
    assert time.monotonic() - began >= PERIOD


def test_a_retry_pauses_the_others_before_the_call_ends() -> None:
    gate = Gate()
    busy = ScriptedAdapter(RateLimited("busy", retry_after=60), delayed("Hi.", gate))  # it retries at once
    limit = Limit(requests=100)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(limited(busy, limit).complete_sync, "Hello!")
        gate.reached_sync()
        seconds = limit._admission.admit(joined(limit), 0.0)
        gate.open()
        assert first.result().attempts == 2
    assert seconds > 30


def joined(limit: Limit) -> Any:
    ticket = limit.slot()._ticket
    limit._admission.join(ticket)
    return ticket


@pytest.mark.parametrize("is_async", [True, False])
def test_at_most_so_many_calls_run_at_once(is_async: bool) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def enter() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)

    def leave() -> None:
        nonlocal running
        with lock:
            running -= 1

    limit = Limit(at_once=3)

    def work(_: int) -> None:
        with limit.slot():
            enter()
            threading.Event().wait(0.005)
            leave()

    async def work_async() -> None:
        async with limit.slot():
            enter()
            await asyncio.sleep(0.005)
            leave()

    async def all_of_them() -> None:
        await asyncio.gather(*(work_async() for _ in range(20)))

    if is_async:
        asyncio.run(all_of_them())
    else:
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(work, range(20)))
    assert most == 3
    assert limit.status()[:2] == (0, 0)


def test_threads_and_event_loops_share_one_limit() -> None:
    gate = Gate()
    limit = Limit(at_once=1)
    slow, fast = limited(ScriptedAdapter(delayed("slow", gate)), limit), limited(ScriptedAdapter("fast"), limit)

    async def run() -> tuple[str, str]:
        first = asyncio.create_task(asyncio.to_thread(slow.complete_sync, "Hello!"))
        await gate.reached()
        second = asyncio.create_task(fast.complete("Hello!"))
        while limit.status().waiting == 0:
            await asyncio.sleep(0)
        gate.open()
        return (await first).text, (await second).text

    assert asyncio.run(run()) == ("slow", "fast")


def test_a_cancelled_caller_leaves_the_queue() -> None:
    limit = Limit(at_once=1)

    async def run() -> int:
        async with limit.slot():
            waiting = [asyncio.create_task(limit.slot().__aenter__()) for _ in range(3)]
            while limit.status().waiting < 3:
                await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.wait(waiting[:1])
            assert limit.status()[:2] == (1, 2)
        await waiting[1]
        return limit.status().waiting

    assert asyncio.run(run()) == 1


def test_a_caller_whose_event_loop_was_closed_does_not_block_the_others() -> None:
    limit, loop = Limit(at_once=1), asyncio.new_event_loop()
    with limit.slot():
        left = limit.slot()
        assert left._join_queue() > 0
        waiting = left._wait_in_queue(lambda: loop.call_soon_threadsafe(print))
        waiting.__enter__()  # it waits for ever
        loop.close()
    with limit.slot():
        assert limit.status()[:2] == (1, 0)
    assert not waiting.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)  # leaving later does no harm
    assert limit.status()[:2] == (0, 0)


@pytest.mark.parametrize("leave", ["close", "read"])
def test_a_stream_holds_its_slot_until_it_ends(leave: str) -> None:
    llm = limited(ScriptedAdapter(always(reply("One two three."))), at_once=1)
    unread = llm.stream_sync("Hello!")
    assert llm.limit.status().running == 0
    stream = llm.stream_sync("Hello!")
    next(iter(stream))
    assert llm.limit.status().running == 1
    stream.close() if leave == "close" else stream.reply()
    assert llm.limit.status().running == 0
    unread.close()


def test_the_usage_of_a_reply_replaces_the_estimate() -> None:
    usage = sabir.Usage(input_tokens=3, output_tokens=4)
    llm = limited(ScriptedAdapter(always(reply("Hi.", usage=usage))), tokens=100, per=PERIOD, estimate=lambda _: 95)
    began = time.monotonic()
    llm.complete_sync("Hello!")
    llm.complete_sync("Hello!")
    assert time.monotonic() - began >= PERIOD, "102 tokens are used or expected: the second call waits"
    small = limited(ScriptedAdapter(always(reply("Hi.", usage=usage))), tokens=100, per=60, estimate=lambda _: 50)
    for _ in range(8):  # 7 tokens each, and 50 expected: 7 * 7 + 50 = 99
        small.complete_sync("Hello!")
    assert small.limit.status().waited == 0.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Limit(at_once=0), "at_once is 0; expected a whole number"),
        (lambda: Limit(requests=True), "requests is True"),
        (
            lambda: Limit(per="fortnight"),  # type: ignore[arg-type]
            "per is 'fortnight'; expected 'second', 'minute'",
        ),
        (lambda: Limit(per=-1), "per is -1"),
        *(
            (partial(limited, ScriptedAdapter("Hi."), Limit(), **numbers), "a limit and numbers for a new one")
            for numbers in ({"at_once": 0}, {"per": 60.0}, {"requests": 5})
        ),
        (lambda: limited(ScriptedAdapter("Hi."), tokens=10).complete_sync("word " * 100), "more than the limit of 10"),
    ],
)
def test_an_impossible_limit_is_refused_before_anything_is_sent(make: Callable[[], object], text: str) -> None:
    with pytest.raises(SettingsInvalid, match=text):
        make()


def test_an_estimate_counts_a_medium_once_whatever_its_size() -> None:
    llm = sabir.adapter("openai:gpt-5", api_key="k")
    question = sabir.user("What is this?", sabir.image(b"\x89PNG" + bytes(200_000), mime="image/png"))
    estimates = {estimate_tokens(llm.render(question)), estimate_tokens(llm.render(sabir.user("What is this?")))}
    assert max(estimates) - min(estimates) < 1_100


def test_a_conversation_and_a_fallback_use_a_limited_adapter_as_any_other() -> None:
    from sabir_session import Conversation

    llm = limited(ScriptedAdapter(always("Hi.")), requests=100)
    assert Conversation(llm).ask_sync("Hello!").text == "Hi."
    broken = limited(ScriptedAdapter(sabir.errors.Overloaded("busy"), settings=ONCE), llm.limit)
    assert sabir.fallback(broken, llm).complete_sync("Hello!").text == "Hi."
    assert llm.limit.status()[:2] == (0, 0)
