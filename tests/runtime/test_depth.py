"""What would call itself for ever ends at a depth, with an error that says so; what is not so deep is not touched."""

import asyncio
from typing import Any

import pytest
import sabir
from sabir.errors import CallsTooDeep
from sabir.options.execution import MOST_DEPTH
from sabir_runtime import BaseContext, Batch, InMemoryRunner, loop_policy
from sabir_session import evaluate, evaluate_sync
from sabir_testing.scripted import ScriptedAdapter, always, calls

from tests.runtime.support import Names, call

DEEP = f"is nested in {MOST_DEPTH} other calls"


class Endless(BaseContext):
    """Policies that call each other, one that is offered to itself, and a descent of as many levels as it is told."""

    def __init__(self, offered: str = "chooser") -> None:
        super().__init__(InMemoryRunner())
        self.offered = offered
        self.begun = 0
        self.ping, self.pong = self._bind(self.to_pong), self._bind(self.to_ping)
        self.chooser = self._bind(self.choose)
        self.agent = self._bind(loop_policy("chooser"))
        self.down = self._bind(self.descend)

    async def to_pong(self, ctx: Any, observations: Batch, options: Names = None) -> Batch:
        self.begun += 1
        return await self.pong(observations)

    async def to_ping(self, ctx: Any, observations: Batch, options: Names = None) -> Batch:
        self.begun += 1
        return (await asyncio.gather(self.ping(observations)))[0]

    async def choose(self, ctx: Any, observations: Batch, options: Names = None) -> Batch:
        self.begun += 1
        return [call(self.offered, f"c{self.begun}")]

    async def descend(self, ctx: Any, observations: Batch, options: Names = None, *, levels: int) -> Batch:
        return await self.down(observations, levels=levels - 1) if levels > 1 else [sabir.assistant("There.")]


@pytest.mark.parametrize("offered", ["chooser", "agent"])
async def test_an_option_that_offers_itself_ends_at_a_depth(offered: str) -> None:
    """The error ends all of them: as a result, it would only be chosen again, at each depth."""
    context = Endless(offered)
    with pytest.raises(CallsTooDeep, match=DEEP):
        await context.agent("Hi.", [offered])

    assert context.begun == {"chooser": MOST_DEPTH - 1, "agent": MOST_DEPTH // 2}[offered]


async def test_calls_up_to_that_depth_are_performed() -> None:
    context = Endless()
    for _ in range(3):
        assert (await context.down("Hi.", levels=MOST_DEPTH))[0].text == "There."
    with pytest.raises(CallsTooDeep, match=DEEP):
        await context.down("Hi.", levels=MOST_DEPTH + 1)


@pytest.mark.parametrize("way", ["waiting", "awaited", "in threads"])
async def test_an_evaluation_in_an_option_that_offers_itself_ends_at_a_depth(way: str) -> None:
    llm = ScriptedAdapter(always(calls(ask={})))

    def ask() -> str:
        return evaluate_sync(llm, "Again?", options=[ask]).text

    async def ask_awaited() -> str:
        return (await evaluate(llm, "Again?", options=[sabir.option(ask_awaited, name="ask")])).text

    with pytest.raises(CallsTooDeep, match=DEEP):
        if way == "waiting":
            ask()
        elif way == "awaited":
            await ask_awaited()
        else:
            await evaluate(llm, "Again?", options=[ask])

    assert len(llm.sent) == MOST_DEPTH + 1
