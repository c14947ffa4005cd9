"""Options of durable runs: what they know of their run, and calls that share an id."""

from typing import Any

import sabir
from sabir import ToolContext
from sabir_runtime import Batch

from tests.durable.assistant import Names
from tests.durable.support import Gate, Program, carried_on, choosing, left_at, working


async def test_an_option_that_may_have_begun_before_knows_it(store: str) -> None:
    """WI-48: under the same id and key, and only where it began; the one beside it that did not knows that too."""
    seen: list[ToolContext] = []
    gate = Gate()

    async def act(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        seen.append(ToolContext.current())
        return await ctx.gate(observations)

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        return await ctx.choose(observations, ["act"])

    choose = choosing(("act", "c1", {}))
    await left_at(gate, store, main=main, choose=choose, act=act, gate=gate)
    gate.opened.set()
    await carried_on(store, main=main, choose=choose, act=act, gate=gate)

    assert [(each.call_id, each.is_resume) for each in seen] == [("c1", False), ("c1", True)]
    assert len({each.idempotency_key for each in seen}) == 1


async def test_calls_of_one_batch_that_share_an_id_are_told_apart(store: str) -> None:
    """UP-13, D-11: each runs, each has its own result, and a replay gives both again."""
    heard: list[int] = []

    async def double(ctx: Program, observations: Batch, options: Names = None, *, number: int) -> Batch:
        heard.append(number)
        return [sabir.assistant(str(2 * number))]

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        return await ctx.choose(observations, ["double"])

    choose = choosing(("double", "same", {"number": 1}), ("double", "same", {"number": 2}))
    policies: dict[str, Any] = {"main": main, "double": double, "choose": choose}
    async with working(store, **policies) as (runner, program):
        first = await runner.run(program.main, "Hi.", run_id="r")
    async with working(store, **policies) as (runner, program):
        again = await runner.run(program.main, "Hi.", run_id="r")

    assert [message.result.result for message in first if message.result] == ["2", "4"]
    assert again == first
    assert sorted(heard) == [1, 2]
