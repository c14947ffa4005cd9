"""ThreadClient: threads without writing messages; their ends are told whoever ran them (CH-14 … CH-20, CH-46)."""

import asyncio
import gc
from pathlib import Path

import pytest
from sabir_actors import AEIOUY, ActorError, ErrorCode, ThreadClient
from sabir_actors.data import ThreadResult
from sabir_session import SQLiteStore
from sabir_testing import Gate

from tests.actors.surviving import Model, system_of


async def test_the_result_of_a_thread_that_ended_before_this_process_is_given(tmp_path: Path) -> None:
    """CH-46: at once, from the state, to any client; as it was given first."""
    with SQLiteStore(tmp_path / "t.db") as store:
        async with system_of(Model(), store) as system:
            client = ThreadClient(system)
            thread_id = await client.create("u", "hi")
            await client.start(thread_id)
            first = await client.result(thread_id)
        async with system_of(Model(), store) as system:
            again = await asyncio.wait_for(ThreadClient(system).result(thread_id, every=3600), 10)
    assert again == first
    assert first.output is not None and first.output["response"] == "yield is done"


async def test_a_client_that_was_away_is_given_the_result_of_a_thread_that_goes_on(tmp_path: Path) -> None:
    """CH-17, CH-46: the client of the first process is gone; one of the second waits for the end."""
    model = Model()
    model.held = Gate()
    with SQLiteStore(tmp_path / "t.db") as store:
        async with system_of(model, store) as system:
            client = ThreadClient(system)
            thread_id = await client.create("u", "hi")
            await client.start(thread_id)
            await model.held.reached()
        async with system_of(Model(), store) as system:
            assert (await ThreadClient(system).result(thread_id, every=0.01)).status == "completed"


async def test_whoever_created_a_thread_is_told_of_its_end_without_looking() -> None:
    """CH-46: the time between two looks is longer than anybody waits."""
    model = Model()
    model.held = Gate()
    async with system_of(model) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi")
        await client.start(thread_id)
        waiting = asyncio.ensure_future(client.result(thread_id, every=3600))
        await model.held.reached()
        model.held.open()
        assert (await asyncio.wait_for(waiting, 10)).status == "completed"


async def test_a_result_says_why_a_thread_failed() -> None:
    """CH-49."""
    async with system_of(Model()) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi", metadata={"conversation_history": 5})
        await client.start(thread_id)
        result = await client.result(thread_id)
    assert (result.status, result.error_code, result.output) == ("failed", "FAILED", None)
    assert result.error_message is not None


async def test_the_result_of_a_terminated_thread_is_given() -> None:
    """CH-18: of one that never ran, too."""
    async with system_of(Model()) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi")
        await client.terminate(thread_id)
        assert (await asyncio.wait_for(client.result(thread_id, every=3600), 10)).status == "terminated"


async def test_nobody_waits_for_a_thread_that_is_not_there() -> None:
    """CH-20."""
    async with system_of(Model()) as system:
        with pytest.raises(ActorError) as caught:
            await ThreadClient(system).result("nobody")
        assert caught.value.code is ErrorCode.UNKNOWN_THREAD


async def test_what_is_refused_is_raised() -> None:
    """CH-20."""
    async with system_of(Model()) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi")
        with pytest.raises(ActorError, match="is created; it becomes paused only from processing") as caught:
            await client.pause(thread_id)
        assert caught.value.code is ErrorCode.INVALID_STATE


async def test_a_watch_ends_with_the_thread() -> None:
    """CH-19: each state once."""
    async with system_of(Model()) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi")
        await client.start(thread_id)
        seen = [status async for status in client.watch(thread_id, every=0)]
    assert [each.status for each in seen][-1] == "completed"
    assert seen[-1].phases_completed == list(AEIOUY) and len({each.model_dump_json() for each in seen}) == len(seen)


async def test_a_client_holds_no_results(tmp_path: Path) -> None:
    """A client that lives for long is as large as at its beginning."""
    with SQLiteStore(tmp_path / "t.db") as store:
        async with system_of(Model(), store) as system:
            client = ThreadClient(system)
            for _ in range(3):
                thread_id = await client.create("u", "hi")
                await client.start(thread_id)
                await client.result(thread_id)
            gc.collect()
            assert [each for each in gc.get_objects() if isinstance(each, ThreadResult)] == []
