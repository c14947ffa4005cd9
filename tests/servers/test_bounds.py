"""Nothing that a server sends grows without end, whatever is asked and how. Slow servers are in test_time.py."""

import asyncio
import contextlib
import json
import tracemalloc
from collections.abc import Callable

import pytest
import sabir
from sabir.authoring import ServerEvent

from tests.servers.attacks import WIRES
from tests.servers.hostile import Hostile, Place, Way

MEGABYTE = 2**20
SMALL = sabir.Bounds(body_bytes=4 * MEGABYTE, event_bytes=4 * MEGABYTE, error_bytes=4 * MEGABYTE)
UNHURRIED = sabir.Settings(timeout=60)


def ask(
    url: str, wire: str, place: Place, settings: sabir.Settings, begin: Callable[[], object], *, waits: bool
) -> sabir.CallError:
    """What a call ends with; `begin` is called when the client is made."""

    async def asked() -> sabir.CallError:
        async with sabir.adapter(f"{wire}:m", api_key="k", base_url=url, settings=settings) as llm:
            with pytest.raises(sabir.errors.AuthenticationFailed):
                llm.complete_sync("hi", settings=UNHURRIED) if waits else await llm.complete("hi", settings=UNHURRIED)
            begin()
            with pytest.raises(sabir.CallError) as caught:
                if place == "event":
                    list(llm.stream_sync("hi")) if waits else [event async for event in llm.stream("hi")]
                else:
                    llm.complete_sync("hi") if waits else await llm.complete("hi")
            return caught.value

    return asyncio.run(asked())


@pytest.mark.parametrize("waits", [True, False], ids=["waiting", "async"])
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
            ended = ask(server.url, wire, place, settings, tracemalloc.start, waits=waits)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert (len(server.requests), type(ended)) == (2, error)
    assert says in str(ended)
    assert most <= 2 * SMALL.body_bytes + MEGABYTE


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
