"""Calls at once keep their spans apart, and each span its place: below what was current, above the client's own."""

import asyncio
from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
import sabir
from opentelemetry.trace import get_current_span
from sabir.contract.provider import WireRequest

from tests.otel.conftest import Probe, Recorded

Telling = Callable[..., None]


def parents(recorded: Recorded) -> dict[str, str | None]:
    """Name of each span → name of its parent."""
    names = {span.context.span_id: span.name for span in recorded.spans}
    return {span.name: names[span.parent.span_id] if span.parent else None for span in recorded.spans}


def test_two_threads_that_send_one_rendering_make_two_spans(recorded: Recorded, telling: Telling, probe: Probe) -> None:
    """Each below its own thread's span, although the rendering is one object."""
    telling()
    both_are_out = Barrier(2, timeout=20)
    probe.before = both_are_out.wait
    llm = sabir.adapter("probe:m")
    rendering = llm.render("x")
    tracer = recorded.tracers.get_tracer("test")

    def send(name: str) -> None:
        with tracer.start_as_current_span(name):
            llm.send_sync(rendering)

    threads = [Thread(target=send, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    names = {span.context.span_id: span.name for span in recorded.spans}
    chats = [span for span in recorded.spans if span.name == "chat m"]
    assert sorted(names[span.parent.span_id] for span in chats if span.parent) == ["one", "two"]


async def test_streams_read_in_turns_keep_their_spans_apart(recorded: Recorded, telling: Telling) -> None:
    """One task reads two streams alternately; each span ends with its own stream's figures."""
    telling()
    first, second = sabir.adapter("echo:one").stream("a b c"), sabir.adapter("echo:two").stream("d e f g")
    async for _ in first:
        await anext(second)
    await second.reply()

    told = [(span.name, (span.attributes or {})["gen_ai.usage.output_tokens"]) for span in recorded.spans]
    assert told == [("chat one", 3), ("chat two", 4)]


@pytest.mark.parametrize("way", ["complete_sync", "complete", "stream_sync"])
async def test_the_clients_own_spans_are_below_the_call_where_it_is_awaited_whole(
    recorded: Recorded, telling: Telling, probe: Probe, way: str
) -> None:
    """During a stream they are beside it: between its events the reader's own code runs."""
    telling()
    tracer = recorded.tracers.get_tracer("client")
    probe.before = lambda: tracer.start_span("POST").end()
    llm = sabir.adapter("probe:m")
    with tracer.start_as_current_span("above"):
        if way == "complete":
            await llm.complete("x")
        else:
            getattr(llm, way)("x").text if way == "complete_sync" else llm.stream_sync("x").reply()

    assert parents(recorded) == {
        "POST": "above" if way == "stream_sync" else "chat m",
        "chat m": "above",
        "above": None,
    }


def test_nothing_stays_current_after_a_call_or_during_a_stream(recorded: Recorded, telling: Telling) -> None:
    telling()
    llm = sabir.adapter("echo:small")
    before = get_current_span()
    llm.complete_sync("x")
    with pytest.raises(sabir.SabirError):
        llm.complete_sync("fail 400")
    with llm.stream_sync("x y") as stream:
        next(stream)
        assert get_current_span() is before

    assert get_current_span() is before
    assert len(recorded.spans) == 3


async def test_a_cancelled_call_ends_its_span(recorded: Recorded, telling: Telling, probe: Probe) -> None:
    telling()
    out = asyncio.Event()

    class Silent:
        async def open(self, request: WireRequest) -> Any:
            out.set()
            await asyncio.Event().wait()

        async def aclose(self) -> None: ...

    llm = sabir.adapter("probe:m")
    llm._connection = Silent()  # type: ignore[assignment]
    task = asyncio.create_task(llm.complete("x"))
    await out.wait()
    assert recorded.spans == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert recorded.attributes()["sabir.left"] is True
