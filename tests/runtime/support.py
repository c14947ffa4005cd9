"""Policies that choose as a test says, and the contexts that bind them."""

from collections.abc import Callable, Sequence
from typing import Any

import sabir
from sabir import Message
from sabir.vocabulary.messages import OptionCallPayload
from sabir_runtime import BaseContext, BaseRunner, Batch, BoundPolicy, InMemoryRunner

Names = list[str] | None
"""Options, as policies are given them."""


def call(name: str, invocation_id: str = "call-1", *, step_num: int | None = None, **arguments: Any) -> Message:
    """An option call of the policy "chooser"."""
    payload = OptionCallPayload(invocation_id=invocation_id, option_name=name, arguments=arguments)
    return Message(policy="chooser", step_num=step_num, payload=payload)


def choosing(*batch: Message) -> Any:
    """A policy that always chooses that batch."""

    async def chooser(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        return list(batch)

    return chooser


def rule(choose: Callable[[list[Message]], list[Message] | None]) -> Any:
    """A policy that chooses what a function makes of its observations; nothing where that gives None."""

    async def ruled(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        return choose(observations) or []

    return ruled


async def search_web(
    ctx: BaseContext, observations: Batch, options: Names = None, *, query: str, most: int = 3
) -> Batch:
    """Search the web.

    Args:
        query: What to look for.
    """
    return [sabir.assistant(f"{most} × {query}", policy="search")]


async def broken(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    """Fail."""
    raise RuntimeError("no disk")


class Context(BaseContext):
    """A chooser, and what it may choose."""

    chooser: BoundPolicy
    search: BoundPolicy
    broken: BoundPolicy

    def __init__(self, *batch: Message, runner: BaseRunner | None = None) -> None:
        super().__init__(runner or InMemoryRunner())
        self.chooser = self._bind(choosing(*batch))
        self.search = self._bind(search_web)
        self.broken = self._bind(broken)


def results(messages: Sequence[Message]) -> list[Any]:
    """What the results among messages say: text, value, or type of error."""
    found = [message for message in messages if message.result is not None]
    return [
        message.result.error_type if message.result.is_error else message.text or message.result.result
        for message in found
        if message.result is not None
    ]
