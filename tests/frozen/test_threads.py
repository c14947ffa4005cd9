"""Threads of older versions: read as they were written, and moved to their next phases, with and without a queue."""

import asyncio
from typing import Any

import pytest
from sabir_actors import AEIOUY, ThreadClient
from sabir_runtime.durable import Runs

from tests.frozen import readable
from tests.frozen.conftest import Frozen, bounded
from tests.frozen.writing.conversations import open_store
from tests.frozen.writing.runs import POLL
from tests.frozen.writing.threads import Model, system_of

STORES = ("threads", "queued-threads")
OVER = {"completed": "completed", "review": "completed", "failed": "failed", "terminated": "terminated"}


def ids_of(written: dict[str, Any]) -> dict[str, str]:
    """The user's text of each thread → its id."""
    return {text: each["status"]["thread_id"] for text, each in written.items()}


def remaining(written: dict[str, Any], text: str) -> list[str]:
    phases: list[str] = written[text]["status"]["phases_remaining"]
    return phases


@pytest.mark.parametrize("name", STORES)
@bounded
async def test_threads_read_as_they_were_written(frozen: Frozen, name: str) -> None:
    written = frozen.expected(name)
    with open_store(frozen.address(name)) as store:
        readable.check(written, await readable.of_threads(store))

    states = {each["status"]["status"] for each in written.values()}
    assert states == {"created", "processing", "paused", "completed", "failed", "terminated"}
    assert remaining(written, "early") == list(AEIOUY)
    assert remaining(written, "late") == list(AEIOUY[3:])


@pytest.mark.parametrize("is_queued", [False, True], ids=["alone", "queued"])
@bounded
async def test_threads_go_on_where_their_process_was_killed(frozen: Frozen, is_queued: bool) -> None:
    """Only the phases that were not done are asked; what is over and what is paused stays so."""
    name = STORES[is_queued]
    written, model = frozen.expected(name), Model()
    runs = frozen.url("queued-runs") if is_queued else None
    going = ("early", "late", "scheduled") if is_queued else ("early", "late")
    ids = ids_of(written)
    with open_store(frozen.address(name)) as store:
        async with system_of(model, store, runs) as system:
            client = ThreadClient(system)
            for text in going:
                result = await client.result(ids[text], every=POLL)
                assert result.status == "completed" and (result.output or {})["response"] == f"yield of {text}"
            assert {text: (await client.status(ids[text])).status for text in OVER} == OVER
            assert (await client.status(ids["paused"])).status == "paused"
    for text in ids:
        asked = [phase for phase, of in model.asked if of == text]
        assert asked == (remaining(written, text) if text in going else []), text


@pytest.mark.parametrize("is_queued", [False, True], ids=["alone", "queued"])
@bounded
async def test_paused_and_created_threads_are_moved_on(frozen: Frozen, is_queued: bool) -> None:
    """A paused thread is resumed; a created one starts, with the agent that was configured."""
    name = STORES[is_queued]
    written, model = frozen.expected(name), Model()
    runs = frozen.url("queued-runs") if is_queued else None
    ids = ids_of(written)
    with open_store(frozen.address(name)) as store:
        async with system_of(model, store, runs) as system:
            client = ThreadClient(system)
            await client.resume(ids["paused"])
            await client.start(ids["created"])
            await client.start(ids["configured"])
            for text in ("paused", "created", "configured"):
                assert (await client.result(ids[text], every=POLL)).status == "completed", text
                assert [phase for phase, of in model.asked if of == text] == remaining(written, text)
            new = await client.create("traveller", "new")
            await client.start(new)
            assert (await client.result(new, every=POLL)).status == "completed"


@bounded
async def test_the_runs_of_threads_read_as_they_were_written(frozen: Frozen) -> None:
    written, url = frozen.expected("queued-runs"), frozen.url("queued-runs")
    readable.check(written, await asyncio.to_thread(readable.of_runs, url))
    with Runs(url) as runs:
        states = [each.state for each in await asyncio.to_thread(runs.list)]
    assert {"queued", "running", "done"} == set(states)
