"""Branches that run at once keep their results apart, whatever order their calls start and end in."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import sabir
from sabir import Message
from sabir_runtime import Batch

from tests.durable.assistant import Names
from tests.durable.children import perform
from tests.durable.support import Gate, Program, carried_on, left_at

BRANCHES = [f"{name}{index}" for name in "abc" for index in range(4)]


@pytest.mark.parametrize("point", [9, 15, 21, 27, 33, 39, 45])
def test_branches_of_several_calls_each_are_killed_and_go_on(store: str, tmp_path: Path, point: int) -> None:
    """RN-32, D-11: no branch is given another's results; an engine that numbers steps as they start would do so."""
    killed = perform(store, tmp_path, until=point, program="branches")
    resumed = perform(store, tmp_path, program="branches")

    assert killed.was_killed
    assert [message.text for message in resumed.messages] == BRANCHES


Bound = Callable[..., Awaitable[list[Message]]]


async def gathered(first: Bound, second: Bound, observations: list[Message]) -> list[list[Message]]:
    return await asyncio.gather(first(observations, name="x"), second(observations, name="y"))


async def in_a_group(first: Bound, second: Bound, observations: list[Message]) -> list[list[Message]]:
    async def call(bound: Bound, name: str) -> list[Message]:
        return await bound(observations, name=name)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call(first, "x")), group.create_task(call(second, "y"))]
    return [task.result() for task in tasks]


@pytest.mark.parametrize("together", [gathered, in_a_group])
async def test_concurrent_calls_of_one_policy_replay_to_the_same_results(
    store: str, together: Callable[..., Awaitable[list[list[Message]]]]
) -> None:
    """RN-32: also where the second began after the first, and ended before it."""
    ran: list[str] = []

    async def step(ctx: Program, observations: Batch, options: Names = None, *, name: str) -> Batch:
        for _ in range(20 if name == "x" else 1):
            await asyncio.sleep(0)
        ran.append(name)
        return [sabir.assistant(name, policy="step")]

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        batches = await together(ctx.step, ctx.step, observations)
        await ctx.gate(observations)
        return [message for batch in batches for message in batch]

    gate = Gate()
    await left_at(gate, store, main=main, step=step, gate=gate)
    gate.opened.set()
    messages = await carried_on(store, main=main, step=step, gate=gate)

    assert [message.text for message in messages] == ["x", "y"]
    assert sorted(ran) == ["x", "y"]
