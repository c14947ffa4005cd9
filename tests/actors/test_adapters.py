"""Adapters: one for each model, shared by the agents of all threads, closed when nobody asks by it."""

import asyncio

from sabir_actors import ActorSystem, AgentManagerActor, Response
from sabir_actors.agents import Agent
from sabir_actors.data import AgentConfig
from sabir_testing.scripted import Gate, ScriptedAdapter, always, delayed

from .scripts import MODEL, ask, said


class Closing(ScriptedAdapter):
    """Counts how often it was closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


class Shop:
    """A system with two managers of one agent each, and the adapters that were made for them."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.made: list[Closing] = []
        self.system = ActorSystem(MODEL, adapters=self.adapter)
        for name in ("one", "two"):
            manager = AgentManagerActor(name, self.system)
            manager.add_agent("a1", Agent(AgentConfig(model=MODEL)))
            self.system.add(manager)

    def adapter(self, _: str) -> Closing:
        """One more; the first answers when the gate is open."""
        self.made.append(Closing(always(said()) if self.made else always(delayed(said(), self.gate))))
        return self.made[-1]

    async def answer(self, manager: str) -> Response:
        """What a manager's agent answers."""
        return await self.system.send_message(ask("PROCESS_WITH_AGENT", manager, input="Hello"))

    def closed(self) -> list[int]:
        """How often each adapter was closed."""
        return [each.closed for each in self.made]


class TestAdapters:
    """Agents of all threads ask by one adapter for each model; nobody's is closed while he asks."""

    async def test_a_restart_makes_a_new_one_and_leaves_others_theirs(self) -> None:
        """The old one is closed when the last who used it gives it back."""
        shop = Shop()
        asked = asyncio.ensure_future(shop.answer("two"))
        await shop.gate.reached()
        await shop.system.send_message(ask("RESTART", "one", actor_id="one"))
        assert (await shop.answer("one")).type == "AGENT_RESPONSE" and shop.closed() == [0, 0]
        shop.gate.open()
        assert (await asked).type == "AGENT_RESPONSE" and shop.closed() == [0, 0]
        await shop.system.send_message(ask("RESTART", "two", actor_id="two"))
        assert shop.closed() == [1, 0] and (await shop.answer("two")).type == "AGENT_RESPONSE"
        assert len(shop.made) == 2
        await shop.system.stop()
        assert shop.closed() == [1, 1]

    async def test_agents_that_are_stopped_finish_what_they_are_asked(self) -> None:
        shop = Shop()
        asked = asyncio.ensure_future(shop.answer("one"))
        await shop.gate.reached()
        await shop.system.send_message(ask("STOP", "one", actor_id="one"))
        stopping = asyncio.ensure_future(shop.system.stop())
        await asyncio.sleep(0)
        assert shop.closed() == [0] and not stopping.done()
        shop.gate.open()
        assert (await asked).type == "AGENT_RESPONSE"
        await stopping
        assert shop.closed() == [1]
