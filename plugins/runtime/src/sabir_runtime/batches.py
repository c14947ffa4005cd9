"""Answering a batch: the platform runs what a policy chose.

    batch ──unanswered calls──▶ answered at once, each by itself ──▶ batch + results, in the order of the calls

Calls that already have a result are left alone; one failure loses no other result.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import TypeAlias

from sabir import Message, unanswered

from sabir_runtime import paths
from sabir_runtime.policies import Batch

Answer: TypeAlias = Callable[[Message], Awaitable[Message]]
"""An option call → its result."""


async def answer_batch(batch: Batch, answer_one: Answer) -> Batch:
    """The batch with the results of its unanswered calls, which run at once."""
    calls = unanswered(batch)
    if not calls:
        return batch
    if len(calls) == 1:
        return [*batch, await _in_lane(lanes_of(calls)[0], calls[0], answer_one)]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_in_lane(lane, call, answer_one))
                for lane, call in zip(lanes_of(calls), calls, strict=True)
            ]
    except BaseExceptionGroup as failed:  # not from an option: its failures become results
        raise failed.exceptions[0] from None
    return [*batch, *(task.result() for task in tasks)]


def lanes_of(calls: Sequence[Message]) -> list[str]:
    """The names of the lanes in which calls of one batch are answered: their ids, made unique if they are equal."""
    lanes: list[str] = []
    for message in calls:
        lane = name = message.call.invocation_id if message.call else ""
        count = 1
        while lane in lanes:
            count += 1
            lane = f"{name} {count}"
        lanes.append(lane)
    return lanes


async def _in_lane(lane: str, call: Message, answer_one: Answer) -> Message:
    with paths.branch(lane) if paths.is_entered() else nullcontext():
        return await answer_one(call)
