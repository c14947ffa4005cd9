"""Policies: functions that receive observations and return a batch of messages.

    selected = await policy(ctx, observations, options, **parameters)

A model, a person and a rule can all be policies, and a caller calls all of them in the same way.

A batch is the list of messages that a policy returns. The runner answers the option calls in a batch:

    batch ──unanswered calls──▶ answered concurrently ──▶ batch + results, in the order of the calls

Calls that already have a result are not answered again. If an option fails, its call usually gets an error result.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, TypeAlias, runtime_checkable

from sabir import Message, unanswered

from sabir_runtime import paths
from sabir_runtime.failures import PolicyInvalid

Batch: TypeAlias = list[Message]
"""The list of messages that a policy returns. Each option call and each option result is a message of its own."""


class Policy(Protocol):
    """The signature of a policy, usually an async function, or an object with an async `__call__`.

    `ctx` is the context that binds the policy, and `observations` are the messages that the policy sees. `options`
    are the names of the bound policies that the policy may call, or None. Further keyword parameters are the policy's
    arguments: their annotations and the docstring describe the policy to a model. The first three
    parameters are passed by position, so their names do not matter.

    >>> import asyncio, sabir
    >>> async def capital_of(ctx, observations, options=None, *, country: str) -> list[sabir.Message]:
    ...     "Find the capital of a country."
    ...     return [sabir.assistant({"France": "Paris"}[country], policy="capital_of")]
    >>> asyncio.run(capital_of(None, [sabir.user("Where?")], country="France"))[0].text
    'Paris'
    """

    # The context is the user's own class, and each policy has parameters of its own: hence Any.
    def __call__(
        self, ctx: Any, observations: list[Message], options: list[str] | None = None, /, **parameters: Any
    ) -> Awaitable[Batch]:
        """Return the policy's messages. The runner answers the option calls in the messages that have no result."""
        ...


@runtime_checkable
class Named(Protocol):
    """Protocol of a policy object that a context replaces by `bound_as(name)` when it binds the policy under a name."""

    def bound_as(self, name: str) -> "AnyPolicy":
        """Return the policy to call for the name `name`, usually a copy whose replies have this policy name."""
        ...


AnyPolicy: TypeAlias = Callable[..., Awaitable[Batch]]
"""Any policy that a context can bind. The policy's keyword parameters are read from its signature."""


def check_batch(name: str, returned: object) -> Batch:
    """Return a policy's return value as a new list.

    Raises PolicyInvalid unless it is a list or tuple of messages. Instances of subclasses of Message are not accepted.
    """
    if not isinstance(returned, list | tuple):
        remedy = "return a list of messages, for example list(reply.messages)"
        raise PolicyInvalid(f"policy {name!r} returned a {type(returned).__name__}, not a list of messages; {remedy}")
    for index, message in enumerate(returned):
        if type(message) is not Message:  # a subclass's instance would change when it is recorded or sent
            remedy = "return messages, for example sabir.assistant(…)"
            wrong_batch = f"a batch with a {type(message).__name__} at index {index}"
            raise PolicyInvalid(f"policy {name!r} returned {wrong_batch}; {remedy}")
    return list(returned)


Answer: TypeAlias = Callable[[Message], Awaitable[Message]]
"""A function that answers one option call: call message → result message."""


async def answer_batch(batch: Batch, answer_one: Answer) -> Batch:
    """Answer the calls of a batch that have no result, concurrently, and return a list of the batch and the results.

    Returns `batch` itself if no call needs a result. Raises the first error of `answer_one`, and cancels other answers.
    """
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
    except BaseExceptionGroup as failed:  # not an error of an option, because such errors become results
        raise failed.exceptions[0] from None
    return [*batch, *(task.result() for task in tasks)]


def lanes_of(calls: Sequence[Message]) -> list[str]:
    """Return a name for each call of a batch, for its path in a run: the call's id.

    If several calls have the same id, a number follows the id from the second call on.
    """
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
