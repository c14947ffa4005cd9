"""The policy: a function that looks at observations and chooses a batch of actions.

    selected = await policy(ctx, observations, options, **parameters)

A model, a person and a rule are all policies; the caller cannot tell which one it calls.

The platform runs what a policy chose:

    batch ──unanswered calls──▶ answered at once, each by itself ──▶ batch + results, in the order of the calls

Calls that already have a result are left alone; one failure loses no other result.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, TypeAlias, runtime_checkable

from sabir import Message, unanswered

from sabir_runtime import paths
from sabir_runtime.failures import PolicyInvalid

Batch: TypeAlias = list[Message]
"""A policy's choice: texts and media are one message each, an option's call and its result are two."""


class Policy(Protocol):
    """A function, or an object that is called like one.

    It sees only its `observations`. `options` are the names that it may choose, each an attribute of its context. Its
    own parameters are keyword parameters; they form its argument schema.
    """

    # The context is the user's own class, and each policy has parameters of its own: hence Any.
    def __call__(
        self, ctx: Any, observations: list[Message], options: list[str] | None = None, /, **parameters: Any
    ) -> Awaitable[Batch]:
        """The batch of actions that it chose."""
        ...


@runtime_checkable
class Named(Protocol):
    """A policy that speaks under the name by which it is bound."""

    def bound_as(self, name: str) -> "AnyPolicy":
        """The same policy, speaking as that name."""
        ...


AnyPolicy: TypeAlias = Callable[..., Awaitable[Batch]]
"""A policy as it is bound: its own keyword parameters are read from its signature."""


def check_batch(name: str, returned: object) -> Batch:
    """The policy's return value if it is a batch; raises PolicyInvalid, which says what it is instead."""
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
