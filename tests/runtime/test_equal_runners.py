"""One set of policies, four runners, equal messages (RN-21).

    in memory · durable on SQLite · durable on Postgres · distributed over NATS

What differs is who runs a policy and what is kept of it; never what a caller gets.
"""

import asyncio
import json
from datetime import date

import pytest
import sabir
from sabir import Message, OptionFailed
from sabir.authoring import CallDepth
from sabir.errors import CallsTooDeep
from sabir.options.execution import MOST_DEPTH
from sabir_runtime import BaseContext, BaseRunner, Batch, BoundPolicy, InMemoryRunner, PolicyFailed, loop_policy

from tests.runtime.every_runner import RUNNERS
from tests.runtime.support import Names, call
from tests.servers.postgres import postgres
from tests.servers.shared_nats import nats

__all__ = ["nats", "postgres"]
PIXEL = "data:image/png;base64,iVBORw0KGgo="
HISTORY = [sabir.system("Be brief."), sabir.user("Umbrella today?", sabir.image("https://example.com/sky.png"))]
OPTIONS = ["search", "show", "count", "limited", "broken", "planner"]


async def model(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    turn = len({message.step_num for message in observations if message.kind == "option_result"})
    calls = [
        [call("search", "a-1", step_num=1, query="rain", day="2026-11-21"), call("broken", "a-2", step_num=1)],
        [
            call("show", "b-1", step_num=2), call("count", "b-2", step_num=2), call("limited", "b-3", step_num=2),
            call("search", "b-4", step_num=2, query=3), call("steal", "b-5", step_num=2),
            call("planner", "b-6", step_num=2, request="Plan it."),
        ],
    ]  # fmt: skip
    return [sabir.assistant("Let me see."), *calls[turn]] if turn < len(calls) else [sabir.assistant("Take one.")]


async def search(ctx: BaseContext, observations: Batch, options: Names = None, *, query: str, day: date) -> Batch:
    return [sabir.assistant(f"{query} on {day:%d %B}", policy="search")]


async def show(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    return [sabir.assistant("The sky:", sabir.image(PIXEL))]


async def count(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    both = await asyncio.gather(*(ctx.search([], query=each, day=date(2026, 1, 1)) for each in "ab"))  # type: ignore[attr-defined]
    return [sabir.assistant(" + ".join(batch[0].text for batch in both))]


async def limited(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    raise OptionFailed("quota", "try tomorrow", retryable=True)


async def broken(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    raise LookupError("no disk")


async def planner(ctx: BaseContext, observations: Batch, options: Names = None, *, request: str) -> Batch:
    return [call("search", "inner", query=request, day="2026-02-03")]


async def again(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    return [call("again", "same")]


class Assistant(BaseContext):
    agent: BoundPolicy
    broken: BoundPolicy
    again: BoundPolicy

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.model = self._bind(model)
        self.agent = self._bind(loop_policy("model"))
        self.again = self._bind(again)
        self.search, self.show, self.count = self._bind(search), self._bind(show), self._bind(count)
        self.limited, self.broken, self.planner = self._bind(limited), self._bind(broken), self._bind(planner)


def contents(batch: list[Message]) -> list[object]:
    """What messages say, without their ids."""
    return [message._compared_fields() for message in batch]


@pytest.mark.parametrize("runner", RUNNERS)
async def test_the_same_policies_give_the_same_messages(runner: str, request: pytest.FixtureRequest) -> None:
    """RN-21, RN-29, RN-32: texts, media, values, refusals, errors in their own words, nested calls, two at once.

    D-44: a batch of text alone becomes a result with that text; another batch becomes dumps, with its media beside.
    """
    expected = await Assistant(InMemoryRunner()).agent(HISTORY, OPTIONS)
    async with RUNNERS[runner](request, Assistant) as made:
        found = await Assistant(made).agent(HISTORY, OPTIONS)

    assert contents(found) == contents(expected)
    errors = [message.result.error_type for message in found if message.result and message.result.is_error]
    assert errors == ["LookupError", "quota", "invalid_arguments", "option_not_offered"]
    assert found[-1].text == "Take one."
    results = [message for message in found if message.result and not message.result.is_error]
    values = [message.result.plain_result() for message in results if message.result]
    texts = [value for value in values if isinstance(value, str)]
    assert texts == ["rain on 21 November", "a on 01 January + b on 01 January"]
    assert [part.url for message in results for part in message.parts if part.kind == "media"] == [PIXEL]
    (planned,) = [sabir.loads(json.dumps(value)) for value in values if isinstance(value, list)]
    assert [message.kind for message in planned] == ["option_call", "option_result"]


@pytest.mark.parametrize("runner", RUNNERS)
async def test_an_option_that_offers_itself_is_its_callers_error(runner: str, request: pytest.FixtureRequest) -> None:
    """At a depth, before Python's own limit; the depth goes along to a worker. It is a PolicyFailed, as all are."""
    deep = pytest.raises(CallsTooDeep, match=f"'again' is nested in {MOST_DEPTH} other calls")
    async with RUNNERS[runner](request, Assistant) as made:
        assistant = Assistant(made)
        with deep as met:
            await assistant.again(HISTORY, ["again"])
        assert isinstance(met.value, PolicyFailed)
        if runner in ("memory", "NATS"):
            with CallDepth(MOST_DEPTH).set(), deep:
                await assistant.again(HISTORY)
