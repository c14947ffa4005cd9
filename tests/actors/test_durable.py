"""DurableQueue: threads that the durable engine gives to workers; the journal says what came of them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sabir.errors import SettingsInvalid
from sabir_actors import AEIOUY, ActorSystem, Chain, Phase, ThreadClient
from sabir_actors.durable import APPLICATION, DurableQueue
from sabir_runtime.durable import Runs
from sabir_session import SQLiteStore

from tests.actors.support import Model, begun, system_of

OWN = Chain("own", [Phase("only", "You are the only phase.")])


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.db'}"


def queue(url: str, **how: Any) -> DurableQueue:
    return DurableQueue(url, beat=0.05, poll=0.02, **how)


async def test_a_program_asks_and_a_worker_performs(store: SQLiteStore, url: str) -> None:
    model = Model()
    async with ActorSystem(store=store, queue=queue(url, at_once=0)) as asking:
        client = ThreadClient(asking)
        ids = [await client.create("user1", f"Shall I repot fern {number}?") for number in range(3)]
        for thread_id in ids:
            await client.start(thread_id)
        assert not model.asked
        async with system_of(model, store, queue=queue(url)):
            for thread_id in ids:
                assert (await client.result(thread_id, every=0.02)).status == "completed"
            with Runs(url) as runs:
                while [each.state for each in runs.list()] != ["done"] * 3:
                    await asyncio.sleep(0.02)
                assert {(each.run, each.application) for each in runs.list()} == {
                    (f"{thread_id}.1", APPLICATION) for thread_id in ids
                }
    assert sorted(model.asked) == sorted(AEIOUY * 3)


async def test_a_run_that_lacks_its_chain_is_paused_and_carried_on(store: SQLiteStore, url: str) -> None:
    """Its reason is among the runs; once a worker has the chain, resuming the run is enough."""
    async with ActorSystem(store=store, chains=[OWN], queue=queue(url, at_once=0)) as asking:
        client, thread_id = await begun(asking, chain="own")
        async with system_of(Model(), store, queue=queue(url)):
            with Runs(url) as runs:
                while not runs.list() or runs.list()[0].state != "paused":
                    await asyncio.sleep(0.02)
                assert "no chain is named 'own'" in (runs.list()[0].fault or "")
                assert (await client.status(thread_id)).status == "processing"
        async with system_of(Model(), store, chains=[OWN], queue=queue(url)):
            with Runs(url) as runs:
                runs.resume(f"{thread_id}.1")
            assert (await client.result(thread_id, every=0.02)).status == "completed"


def test_a_number_of_threads_is_no_less_than_none(url: str) -> None:
    with pytest.raises(SettingsInvalid, match="at_once=-1 is not a valid limit; pass 1 or more, or 0"):
        DurableQueue(url, at_once=-1)
