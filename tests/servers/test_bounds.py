"""Nothing that a server sends grows without end, and no call takes longer than it may, whatever is asked and how."""

import asyncio
import contextlib
import json
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sabir
from sabir.authoring import ServerEvent

from tests.servers.hostile import Hostile, Place, Way

MEGABYTE = 2**20
SMALL = sabir.Bounds(body_bytes=4 * MEGABYTE, event_bytes=4 * MEGABYTE, error_bytes=4 * MEGABYTE)
PATIENCE = 1.0
UNHURRIED = sabir.Settings(timeout=60)
LATE = 12.0
"""Seconds that no call of that timeout takes, on a machine that is busy."""

WIRES = {
    "openai.chat": '{"id":"r","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}',
    "openai.responses": '{"type":"response.created","response":{"id":"r","model":"m","output":[]}}',
    "anthropic.messages": '{"type":"message_start","message":{"id":"r","model":"m","content":[],"usage":{}}}',
    "google.generate_content": '{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0}],"modelVersion":"m"}',
}
"""Dialect → a first event of it."""


def ask(
    url: str, wire: str, place: Place, settings: sabir.Settings, begin: Callable[[], object], *, waits: bool
) -> tuple[sabir.CallError, float]:
    """What a call ends with, and after how many seconds; `begin` is called when the client is made."""

    async def asked() -> tuple[sabir.CallError, float]:
        async with sabir.adapter(f"{wire}:m", api_key="k", base_url=url, settings=settings) as llm:
            with pytest.raises(sabir.errors.AuthenticationFailed):
                llm.complete_sync("hi", settings=UNHURRIED) if waits else await llm.complete("hi", settings=UNHURRIED)
            begin()
            began = time.monotonic()
            with pytest.raises(sabir.CallError) as caught:
                if place == "event":
                    list(llm.stream_sync("hi")) if waits else [event async for event in llm.stream("hi")]
                else:
                    llm.complete_sync("hi") if waits else await llm.complete("hi")
            return caught.value, time.monotonic() - began

    return asyncio.run(asked())


each_kind = pytest.mark.parametrize("waits", [True, False], ids=["waiting", "async"])


@each_kind
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["endless", "bomb"])
@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        ("body", sabir.errors.ResponseInvalid, "body_bytes"),
        ("event", sabir.errors.ResponseInvalid, "event_bytes"),
        ("error", sabir.errors.Unavailable, "503"),
    ],
)
def test_what_has_no_end_ends_at_its_bound(
    way: Way, place: Place, error: type[sabir.CallError], says: str, wire: str, waits: bool
) -> None:
    settings = sabir.Settings(bounds=SMALL, retries=0 if place == "error" else 2)
    with Hostile(way, place) as server:
        try:
            ended, _ = ask(server.url, wire, place, settings, tracemalloc.start, waits=waits)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert (len(server.requests), type(ended)) == (2, error)
    assert says in str(ended)
    assert most <= 2 * SMALL.body_bytes + MEGABYTE


def ask_all(waits: bool, way: Way, place: Place, settings: sabir.Settings, *, begun: bool = False) -> list[str]:
    """What each wire's call ends with, all at once; each is sent once, and none is late."""

    def ends(wire: str) -> str:
        before = f"data: {WIRES[wire]}\n\n".encode() if begun else b""
        with Hostile(way, place, before) as server:
            ended, seconds = ask(server.url, wire, place, settings, bool, waits=waits)
        assert seconds < LATE
        assert len(server.requests) == 2
        return str(ended)

    with ThreadPoolExecutor(len(WIRES)) as pool:
        return list(pool.map(ends, WIRES))


@each_kind
@pytest.mark.parametrize(
    ("way", "place", "says"),
    [("drip", "body", "timeout"), ("drip", "error", "503"), ("drip", "event", "idle"), ("comments", "event", "idle")],
)
def test_what_comes_in_drops_ends_with_the_timeout(way: Way, place: Place, says: str, waits: bool) -> None:
    for said in ask_all(waits, way, place, sabir.Settings(timeout=PATIENCE)):
        assert says in said


@each_kind
@pytest.mark.parametrize("way", ["drip", "comments"])
def test_a_stream_that_brings_no_further_event_ends_with_idle(way: Way, waits: bool) -> None:
    for said in ask_all(waits, way, "event", sabir.Settings(timeout=60, idle=0.5, retries=0), begun=True):
        assert "Settings.idle" in said


DEEP = "[" * 1_000_000
ARGUMENTS = json.dumps({"function": {"name": "f", "arguments": DEEP}, "id": "c", "type": "function"})
NESTED = {
    "a whole body": DEEP,
    "one that is whole": DEEP + "]" * len(DEEP),
    "a field of it": f'{{"id": "r", "usage": {DEEP}',
    "an error": f'{{"error": {DEEP}',
    "arguments": f'{{"choices": [{{"message": {{"role": "assistant", "tool_calls": [{ARGUMENTS}]}}}}]}}',
}


@pytest.mark.parametrize("body", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("wire", WIRES)
def test_what_is_nested_without_end_is_read_or_the_librarys_error(wire: str, body: str) -> None:
    dialect = sabir.dialect(wire)
    with contextlib.suppress(sabir.CallError):
        dialect.decode(body)
    with contextlib.suppress(sabir.CallError):
        list(dialect.decoder().feed(ServerEvent(body)))

    assert isinstance(dialect.dialect.decode_error(500, {}, body.encode(), "p"), sabir.errors.ServerFailed)
