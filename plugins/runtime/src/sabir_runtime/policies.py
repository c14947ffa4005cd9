"""Policies: functions that receive observations and return a batch of messages.

    selected = await policy(ctx, observations, options, **parameters)

A model, a person and a rule can all be policies, and a caller calls all of them in the same way.

The runner answers the option calls in a batch:

    batch ──unanswered calls──▶ answered concurrently ──▶ batch + results, in the order of the calls

Calls that already have a result are not answered again. If one call fails, the results of the others are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, TypeAlias, runtime_checkable

from sabir import Message, unanswered

from sabir_runtime import paths
from sabir_runtime.failures import PolicyInvalid

Batch: TypeAlias = list[Message]
"""The messages that a policy returns. A text, a medium, an option call and an option result are one message each."""


class Policy(Protocol):
    """The signature of a policy: an async function, or an object with an async `__call__`.

    `ctx` is the context that binds the policy, and `observations` are the messages that the policy sees. `options`
    are the names of the bound policies that the policy may choose. Further keyword parameters are the policy's
    arguments: their annotations and the docstring describe the policy to a model.

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
        """Return the policy's messages. Option calls without a result are answered by the runner."""
        ...


@runtime_checkable
class Named(Protocol):
    """A policy object whose replies carry the name under which a context binds the policy."""

    def bound_as(self, name: str) -> "AnyPolicy":
        """Return a copy of the policy whose replies have the policy name `name`."""
        ...


AnyPolicy: TypeAlias = Callable[..., Awaitable[Batch]]
"""Any policy that a context can bind. The policy's keyword parameters are read from its signature."""


def check_batch(name: str, returned: object) -> Batch:
    """Return a policy's return value as a list. Raises PolicyInvalid if the value is not a list of messages."""
    if not isinstance(returned, list | tuple):
        remedy = "return a list of messages; a reply's are reply.messages"
        raise PolicyInvalid(f"policy {name!r} returned a {type(returned).__name__}, not a batch; {remedy}")
    for index, message in enumerate(returned):
        if type(message) is not Message:  # a subclass's instance would change when it is recorded or sent
            remedy = "return messages, for example sabir.assistant(…)"
            place = f"a {type(message).__name__} at [{index}] of its batch"
            raise PolicyInvalid(f"policy {name!r} returned {place}; {remedy}")
    return list(returned)


Answer: TypeAlias = Callable[[Message], Awaitable[Message]]
"""A function that answers one option call: call message → result message."""


async def answer_batch(batch: Batch, answer_one: Answer) -> Batch:
    """Answer the calls of a batch that have no result, concurrently, and return the batch followed by the results."""
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
    """Return one lane name for each call of a batch: the call's id, with a number if two calls have one id."""
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
