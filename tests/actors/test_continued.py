"""A model string that a thread recorded means the dialect of its replies, whatever it means in this version."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
import sabir
from sabir.authoring import Access, Dialect, InProcessConnection, InProcessResponse, WireRequest
from sabir_actors import ActorSystem, Chain, Phase, ThreadClient
from sabir_echo.plugin import Echo, serve

from tests.actors.support import tell


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
