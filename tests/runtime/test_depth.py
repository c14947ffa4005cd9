"""What would call itself for ever ends at a depth, with an error that says so; what is not so deep is not touched."""

import asyncio
from typing import Any

import pytest
import sabir
from sabir import Message
from sabir.errors import CallsTooDeep
from sabir.options.context import MOST_DEPTH
from sabir_runtime import BaseContext, BoundCall, BoundPolicy, InMemoryRunner, loop_policy
from sabir_runtime.failures import Failure
from sabir_session import evaluate, evaluate_sync
from sabir_testing.scripted import ScriptedAdapter, always, calls

from tests.runtime.support import call

DEEP = f"is called within {MOST_DEPTH} other calls"


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

    async def to_pong(self, ctx: Any, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        self.begun += 1
        return await self.pong(observations)

    async def to_ping(self, ctx: Any, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        self.begun += 1
        return (await asyncio.gather(self.ping(observations)))[0]

    async def choose(self, ctx: Any, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        self.begun += 1
        return [call(self.offered, f"c{self.begun}")]

    async def descend(
        self, ctx: Any, observations: list[Message], options: list[str] | None = None, *, levels: int
    ) -> list[Message]:
        return await self.down(observations, levels=levels - 1) if levels > 1 else [sabir.assistant("There.")]


async def test_policies_that_call_each_other_end_at_a_depth() -> None:
    """In tasks of their own too."""
    context = Endless()
    with pytest.raises(CallsTooDeep, match=DEEP):
        await context.ping("Hi.")

    assert context.begun == MOST_DEPTH
    context.begun = 0
    with pytest.raises(CallsTooDeep, match=DEEP):
        await context.pong("Hi.")
    assert context.begun == MOST_DEPTH


@pytest.mark.parametrize("offered", ["chooser", "agent"])
async def test_an_option_that_offers_itself_ends_at_a_depth(offered: str) -> None:
    """The error ends all of them: as a result, it would only be chosen again, at each depth."""
    context = Endless(offered)
    with pytest.raises(CallsTooDeep, match=DEEP):
        await context.agent("Hi.", [offered])

    assert context.begun == {"chooser": MOST_DEPTH - 1, "agent": MOST_DEPTH // 2}[offered]


async def test_calls_up_to_that_depth_are_performed() -> None:
    """And calls after each other are not within each other."""
    context = Endless()
    for _ in range(3):
        assert (await context.down("Hi.", levels=MOST_DEPTH))[0].text == "There."
    with pytest.raises(CallsTooDeep, match=DEEP):
        await context.down("Hi.", levels=MOST_DEPTH + 1)


@pytest.mark.parametrize("way", ["waiting", "awaited", "in threads"])
async def test_an_evaluation_in_an_option_that_offers_itself_ends_at_a_depth(way: str) -> None:
    """Each of them asks once."""
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


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_an_options_own_error_of_that_name_is_a_result(is_awaited: bool) -> None:
    """A program may have a class of that name, and may know why it met the runtime's."""

    class QueueFull(Exception):
        """Named below."""

    QueueFull.__name__ = "CallsTooDeep"

    def ring() -> str:
        raise QueueFull("42 calls wait")

    llm = ScriptedAdapter(calls(ring={}), "Busy.")
    asked = {"options": [ring]}
    response = await evaluate(llm, "Hi.", **asked) if is_awaited else evaluate_sync(llm, "Hi.", **asked)

    assert response.text == "Busy."


async def test_a_policys_own_error_of_that_name_is_a_result() -> None:
    """In the words of the policy that was chosen."""

    async def ring(ctx: Any, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        raise sabir.OptionFailed("CallsTooDeep", "42 calls wait")

    context = Endless()
    context.ring = context._bind(ring)  # type: ignore[attr-defined]
    context.offered = "ring"
    _, result = await context.chooser("Hi.", ["ring"])

    assert result.result is not None
    assert result.result.error_message == "42 calls wait"


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_what_was_met_elsewhere_ends_an_evaluation_too(is_awaited: bool) -> None:
    """A policy of another process says that it was called too deep: no result, which would be chosen again."""

    class Afar(InMemoryRunner):
        async def perform(self, call: BoundCall) -> list[Message]:
            raise Failure(type="CallsTooDeep", message="'x' is called …", known_as="CallsTooDeep").error()

    class Desk(BaseContext):
        far: BoundPolicy

    desk = Desk(Afar())
    desk.far = desk._bind(Endless().to_pong)

    async def ask() -> str:
        return (await desk.far("Hi."))[0].text

    def ask_waiting() -> str:
        return asyncio.run(ask())

    option = sabir.option(ask if is_awaited else ask_waiting)
    with pytest.raises(CallsTooDeep, match="'x' is called"):
        await evaluate(ScriptedAdapter(always(calls(**{option.name: {}}))), "Hi.", options=[option])
