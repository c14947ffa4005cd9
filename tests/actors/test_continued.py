"""Threads that an earlier version recorded: they are continued, and a model string means what it meant then."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
import sabir
from sabir.authoring import Access, Dialect, InProcessConnection, InProcessResponse, WireRequest
from sabir_actors import AEIOUY, ActorSystem, Chain, Phase, ThreadClient
from sabir_echo.plugin import Echo, serve

from tests.actors.support import Model, events_of, system_of, tell
from tests.session.conftest import address, database, open_store, postgres
from tests.session.layouts import THREAD, write_old_store
from tests.session.support import Opener


class Maker(Echo):
    """A gateway that speaks echo's dialect; after its first answer, a later version of it is installed."""

    name = "maker"

    def connect(self, access: Access) -> InProcessConnection:
        return InProcessConnection(self.answered)

    def answered(self, request: WireRequest) -> InProcessResponse:
        if sabir.provider("maker") is self:
            sabir.unregister("maker")
            sabir.register("maker", Later())
        return serve(request)


class Later(Maker):
    """The later version: `maker:m` means another dialect."""

    dialects = ("wave", "plain")

    def dialect(self, short_name: str) -> Dialect:
        plain = super().dialect("plain")
        return plain if short_name == "plain" else replace(plain, name="maker.wave")


@pytest.fixture(autouse=True)
def maker() -> Iterator[None]:
    sabir.register("maker", Maker())
    yield
    sabir.unregister("maker")


async def test_a_recorded_change_of_the_model_keeps_the_dialect_of_the_replies() -> None:
    """The first phase was answered by the earlier version; the change for the second one names no dialect."""
    opened: list[str] = []

    def adapter(name: str) -> sabir.ModelAdapter:
        opened.append(name)
        return sabir.adapter(name)

    chain = Chain("two", (Phase("one", "First."), Phase("two", "Second.")))
    async with ActorSystem("maker:m", adapters=adapter, chains=(chain,)) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi", chain="two")
        change = {"agent_id": f"{thread_id}/two", "config": {"model": "maker:m"}}
        assert (await tell(system, "UPDATE_AGENT_CONFIG", **change)).type == "AGENT_CONFIG_UPDATED"
        await client.start(thread_id)
        result = await asyncio.wait_for(client.result(thread_id, every=0.01), 30)

    assert result.status == "completed"
    assert opened == ["maker:m", "maker.plain:m"]


__all__ = ["address", "database", "open_store", "postgres"]


async def test_a_thread_of_an_older_store_is_continued(address: str, open_store: Opener) -> None:
    """It goes on at the phase at which it was paused, and a duplicate of an old message has its old answer."""
    write_old_store(address)
    model = Model()
    with open_store() as store:
        before = events_of(store, THREAD)
        async with system_of(model, store) as system:
            assert (await tell(system, "PAUSE_THREAD", "pause", thread_id=THREAD)).type == "THREAD_PAUSED"
            assert events_of(store, THREAD) == before
            await tell(system, "RESUME_THREAD", "resume", thread_id=THREAD)
            while (await tell(system, "GET_THREAD_STATUS", thread_id=THREAD)).data["status"] != "completed":
                await asyncio.sleep(0.01)
        kinds = [kind for kind, _ in store.journal(f"thread:{THREAD}").read(len(before))]
        phases = [event for event in events_of(store, THREAD) if event in AEIOUY]
    assert phases == list(AEIOUY)
    assert model.asked == [phase for phase in AEIOUY if phase not in before]
    assert "sabir.thread_event" in kinds
