"""ThreadClient: threads without writing messages; their ends are told whoever ran them (CH-14 … CH-20, CH-46)."""

import asyncio

import pytest
from sabir_actors import ActorError, ErrorCode, ThreadClient
from sabir_session import SQLiteStore

from tests.actors.scripts import begun
from tests.actors.surviving import Model, system_of


async def test_the_result_of_a_thread_that_ended_before_this_process_is_given(store: SQLiteStore) -> None:
    """CH-46: at once, from the state, to any client; as it was given first."""
    async with system_of(Model(), store) as system:
        client, thread_id = await begun(system)
        first = await client.result(thread_id, every=0.01)
    async with system_of(Model(), store) as system:
        again = await asyncio.wait_for(ThreadClient(system).result(thread_id, every=3600), 10)
    assert again == first
    assert first.output is not None and first.output["response"] == "yield is done"


async def test_whoever_created_a_thread_is_told_of_its_end_without_looking() -> None:
    """CH-46: the time between two looks is longer than anybody waits."""
    model = Model(held=True)
    async with system_of(model) as system:
        client, thread_id = await begun(system)
        waiting = asyncio.ensure_future(client.result(thread_id, every=3600))
        await model.gate.reached()
        model.gate.open()
        assert (await asyncio.wait_for(waiting, 10)).status == "completed"


async def test_what_is_refused_is_raised() -> None:
    """CH-20: of a thread that is not there, and of one whose state does not allow it."""
    async with system_of(Model()) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi")
        for wrong, code, words in (
            (client.result("nobody", every=0.01), ErrorCode.UNKNOWN_THREAD, "no thread 'nobody' is here"),
            (client.pause(thread_id), ErrorCode.INVALID_STATE, "is created; it becomes paused only from processing"),
        ):
            with pytest.raises(ActorError, match=words) as caught:
                await wrong
            assert caught.value.code is code
