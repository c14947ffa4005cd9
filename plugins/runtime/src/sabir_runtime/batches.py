"""Answering a batch: the platform runs what a policy chose (RN-05).

    batch ──unanswered calls──▶ answered at once, each by itself ──▶ batch + results, in the order of the calls

Calls that have their result already are left alone (RN-08); one failure loses none of the others (UP-05).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from sabir import Message
from sabir.answers import unanswered

from sabir_runtime import paths
from sabir_runtime.policies import Batch

Answer: TypeAlias = Callable[[Message], Awaitable[Message]]
"""An option call → its result."""


async def answer_batch(batch: Batch, answer_one: Answer) -> Batch:
    """The batch with the results of its unanswered calls, which run at once (RN-07)."""
    calls = unanswered(batch) if any(message.kind == "option_call" for message in batch) else []
    if not calls:
        return batch
    if len(calls) == 1:
        return [*batch, await _in_its_lane(calls[0], answer_one)]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_in_its_lane(call, answer_one)) for call in calls]
    except BaseExceptionGroup as failed:  # not of an option: those end in results
        raise failed.exceptions[0] from None
    return [*batch, *(task.result() for task in tasks)]


async def _in_its_lane(call: Message, answer_one: Answer) -> Message:
    if not paths.is_entered():
        return await answer_one(call)
    assert call.call is not None
    with paths.branch(call.call.invocation_id):
        return await answer_one(call)
