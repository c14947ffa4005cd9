"""An option, and a policy that is one, may take the context of its run as a parameter (WI-48)."""

import pytest
import sabir
from sabir import Message, ToolContext
from sabir_runtime import BaseContext, BaseRunner, PolicyFailed

from tests.runtime.every_runner import RUNNERS
from tests.runtime.support import call, results
from tests.servers.postgres import postgres
from tests.servers.shared_nats import nats

__all__ = ["nats", "postgres"]


@sabir.option
def write(path: str, *, context: ToolContext) -> str:
    """Write a file."""
    return f"{path} for {context.call_id}, again: {context.is_resume}, same: {context is ToolContext.current()}"


async def save(
    ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, path: str, context: ToolContext
) -> list[Message]:
    """Save a file."""
    return [sabir.assistant(f"{path} for {context.call_id}")]


async def choose(ctx: BaseContext, observations: list[Message], options: list[str] | None = None) -> list[Message]:
    """Choose it."""
    return [call("save", "call-7", path="a.txt"), call("save", "call-8", path="b.txt")]


class Desk(BaseContext):
    """A policy that takes the context of its run, and one that chooses it."""

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.save, self.choose = self._bind(save), self._bind(choose)


@pytest.mark.parametrize("runner", RUNNERS)
async def test_a_policy_that_is_chosen_is_given_it_under_every_runner(
    runner: str, request: pytest.FixtureRequest
) -> None:
    """RN-21: it is no argument, so nothing of it is written down or sent."""
    async with RUNNERS[runner](request, Desk) as made:
        ctx = Desk(made)
        assert results(await ctx.choose([], ["save"])) == ["a.txt for call-7", "b.txt for call-8"]
        with pytest.raises(PolicyFailed, match="'save' takes 'context', a ToolContext, which nobody provides here"):
            await ctx.save([], path="a.txt")
