"""Nothing that a server sends grows without end, and no call takes longer than it may, whatever is asked and how."""

import asyncio
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest
import sabir
from sabir_testing.loopback import Server, whole

from tests.servers.hostile import Hostile, Place, Way

MEGABYTE = 2**20
SMALL = sabir.Bounds(body_bytes=4 * MEGABYTE, event_bytes=4 * MEGABYTE, error_bytes=4 * MEGABYTE)
PATIENCE = 2.0
LATE = 12.0
"""Seconds that no call of that timeout takes, on a machine that is busy."""

OPENAI = '{"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}'
CREATED = '{"type":"response.created","response":{"id":"r","model":"m","status":"in_progress","output":[]}}'
STARTED = '{"type":"message_start","message":{"id":"r","model":"m","content":[],"usage":{}}}'
GEMINI = '{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"modelVersion":"m"}'
WIRES = {
    "openai.chat": OPENAI,
    "openai.responses": CREATED,
    "anthropic.messages": STARTED,
    "google.generate_content": GEMINI,
}
"""Dialect → a first event of it."""
Ask: TypeAlias = Callable[[str, str, Place, sabir.Settings], None]


def ask_waiting(url: str, wire: str, place: Place, settings: sabir.Settings) -> None:
    with sabir.adapter(f"{wire}:m", api_key="k", base_url=url, settings=settings) as llm:
        if place == "event":
            with llm.stream_sync("hi") as stream:
                list(stream)
        else:
            llm.complete_sync("hi")


def ask_async(url: str, wire: str, place: Place, settings: sabir.Settings) -> None:
    async def ask() -> None:
        async with sabir.adapter(f"{wire}:m", api_key="k", base_url=url, settings=settings) as llm:
            if place == "event":
                async with llm.stream("hi") as stream:
                    [event async for event in stream]
            else:
                await llm.complete("hi")

    asyncio.run(ask())


@pytest.fixture(scope="module", params=[ask_waiting, ask_async])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Both kinds of I/O; each SDK has been loaded, which takes time and memory of its own."""
    asking: Ask = request.param
    with Server([whole(b"{}", 401)]) as server:
        for wire in WIRES:
            with pytest.raises(sabir.CallError):
                asking(server.url, wire, "body", sabir.Settings())
    return asking


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["endless", "bomb"])
@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        ("body", sabir.ResponseInvalid, "body_bytes"),
        ("event", sabir.ResponseInvalid, "event_bytes"),
        ("error", sabir.CallError, "503"),
    ],
)
def test_what_has_no_end_ends_at_its_bound(
    way: Way, place: Place, error: type[sabir.CallError], says: str, wire: str, ask: Ask
) -> None:
    """It is asked for once, and nothing holds more than twice the bound; an error is that of its status."""
    settings = sabir.Settings(bounds=SMALL, retries=0 if place == "error" else 2)
    with Hostile(way, place) as server:
        tracemalloc.start()
        try:
            with pytest.raises(error, match=says):
                ask(server.url, wire, place, settings)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert server.asked == 1
    assert most <= 2 * SMALL.body_bytes + MEGABYTE


def ask_all(ask: Ask, way: Way, place: Place, settings: sabir.Settings, *, begun: bool = False) -> list[str]:
    """What each wire's call ends with, all at once; each is sent once, and none is late."""

    def ends(wire: str) -> str:
        before = f"data: {WIRES[wire]}\n\n".encode() if begun else b""
        with Hostile(way, place, before) as server:
            began = time.monotonic()
            with pytest.raises(sabir.CallError) as caught:
                ask(server.url, wire, place, settings)
            assert time.monotonic() - began < LATE
            assert server.asked == 1
        return str(caught.value)

    with ThreadPoolExecutor(len(WIRES)) as pool:
        return list(pool.map(ends, WIRES))


@pytest.mark.parametrize(
    ("way", "place", "says"),
    [
        ("drip", "body", "timeout"),
        ("drip", "error", "503"),
        ("drip", "event", "timeout"),
        ("comments", "event", "timeout"),
    ],
)
def test_what_comes_in_drops_ends_with_the_timeout(way: Way, place: Place, says: str, ask: Ask) -> None:
    """Each read brings something; no repetition begins when the time is over."""
    for said in ask_all(ask, way, place, sabir.Settings(timeout=PATIENCE)):
        assert says in said


@pytest.mark.parametrize("way", ["drip", "comments"])
def test_a_stream_that_brings_no_further_event_ends_with_idle(way: Way, ask: Ask) -> None:
    """Its half events and comments are silence."""
    for said in ask_all(ask, way, "event", sabir.Settings(timeout=60, idle=0.5, retries=0), begun=True):
        assert "Settings.idle" in said
