"""Models, people and rules are policies alike, and their keyword parameters are their schema."""

from collections.abc import Awaitable
from datetime import date
from functools import partial, wraps
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir import Message
from sabir_runtime import (
    BaseContext,
    Batch,
    InMemoryRunner,
    LoopLimit,
    PolicyInvalid,
    Question,
    human_policy,
    llm_policy,
    loop_policy,
)
from sabir_runtime.signatures import read_policy
from sabir_testing.scripted import ScriptedAdapter, calls

from tests.runtime.support import Context, Names, call, results, search_web

HISTORY = [sabir.user("Umbrella today?")]


async def test_functions_methods_partials_and_objects_are_policies() -> None:
    """RN-01: whatever is called like one; what gives something to await says so, or wraps a policy."""

    class Rule:
        async def __call__(self, ctx: Any, observations: Any, options: Any = None, **others: Any) -> Batch:
            return [sabir.assistant(f"object {sorted(others)}")]

        async def method(self, ctx: Any, observations: Any, options: Any = None) -> Batch:
            return [sabir.assistant("method")]

    def later(ctx: "Unknown", observations: Any, options: Any = None) -> Awaitable[list[Message]]:  # type: ignore[name-defined]  # noqa: F821
        return search_web(ctx, observations, options, query="rain")

    @wraps(search_web)
    def wrapped(*given: Any, **named: Any) -> Any:
        return search_web(*given, **named)

    ctx = Context(call("open", deep=1, wide="x"))
    ctx.open, ctx.method, ctx.partial = map(ctx._bind, (Rule(), Rule().method, partial(search_web, query="rain")))
    ctx.later, ctx.wrapped = ctx._bind(later), ctx._bind(wrapped)

    assert results(await ctx.chooser(HISTORY, ["open"])) == ["object ['deep', 'wide']"]
    said = [(await bound(HISTORY))[0].text for bound in (ctx.method, ctx.partial, ctx.later)]
    assert [*said, (await ctx.wrapped(HISTORY, query="sun"))[0].text] == ["method", "3 × rain", "3 × rain", "3 × sun"]


async def test_a_model_a_person_and_a_rule_are_interchangeable() -> None:
    """RN-02: the caller is the same, whichever is bound."""

    class Assistant(BaseContext):
        def __init__(self, decider: Any) -> None:
            super().__init__(InMemoryRunner())
            self.decider = self._bind(decider)
            self.search = self._bind(search_web)

    async def converse(ctx: Assistant) -> list[Any]:
        history = list(HISTORY)
        history += await ctx.decider(history, options=["search"])
        history += await ctx.decider(history, options=["search"])
        return [*results(history), history[-1].text]

    def person(question: Question) -> str | Message:
        return "Take one." if any(each.result for each in question.observations) else call("search", query="rain")

    async def rule(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        answered = any(each.result for each in observations)
        return [sabir.assistant("Take one.") if answered else call("search", query="rain")]

    model = ScriptedAdapter(calls(search={"query": "rain"}), "Take one.")
    deciders = (llm_policy(model), human_policy(person), rule)

    assert [await converse(Assistant(each)) for each in deciders] == [["3 × rain", "Take one."]] * 3


class Place(BaseModel):
    city: str


async def typed(
    ctx: BaseContext,
    observations: Batch,
    options: Names = None,
    *,
    day: date,
    place: Place,
    seen: tuple[Message, ...] = (),
) -> Batch:
    return []


class Rule:
    async def __call__(self, ctx: BaseContext, observations: Batch, options: Names = None) -> Any:
        "Follow a rule."


class OtherRule(Rule):
    """Another one, under its own name."""


def test_what_a_policy_takes_is_read_once() -> None:
    """A context made for each request costs no schemas; functions, classes and partials are told apart."""
    assert read_policy(typed) is read_policy(typed)
    assert read_policy(Rule()) is read_policy(Rule())
    assert (read_policy(Rule()).function_name, read_policy(OtherRule()).function_name) == ("Rule", "OtherRule")
    assert "day" not in read_policy(partial(typed, day=date(2026, 11, 22))).schema["required"]
    assert "day" in read_policy(typed).schema["required"]


def test_an_option_is_made_once_for_what_is_offered_beside_it() -> None:
    """A model that is asked turn after turn is told of the same options; what a chosen policy may choose differs."""
    ctx = Context()
    (alone,), (first, second) = ctx.offer(["search"]), ctx.offer(["search", "chooser"])

    assert ctx.offer(["search"]) == [alone]
    assert ctx.offer(["search"])[0] is alone
    assert first is not alone
    assert ctx.offer(["search", "chooser"])[1] is second


def test_a_plain_function_is_refused_when_it_is_bound() -> None:
    """RN-01, RN-10: its batch could not be awaited, whoever calls it; nor is one what takes no observations."""

    def rule(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        return []

    class Rules:
        def __call__(self, ctx: BaseContext, observations: Any, options: Any = None) -> Batch:
            return []

    for what in (lambda: None, lambda ctx, observations: None, 3):
        with pytest.raises(PolicyInvalid):
            Context()._bind(what)
    for wrong in (rule, partial(rule), lambda ctx, observations, options=None: [], Rules()):
        with pytest.raises(PolicyInvalid, match="is not an async function; write async def"):
            Context()._bind(wrong)


class Noted(Message):
    """A message that would come back without its class."""


NOTED = Noted(policy="user", payload=sabir.user("x").payload)


@pytest.mark.parametrize("returned", [None, "a text", sabir.user("x"), ["a text"], [None], [NOTED]])
async def test_what_is_no_batch_is_named(returned: Any) -> None:
    """RN-04: a policy returns a list of messages."""

    async def wrong(ctx: BaseContext, observations: Batch, options: Names = None) -> Any:
        return returned

    ctx = Context()
    ctx.wrong = ctx._bind(wrong)

    with pytest.raises(PolicyInvalid, match="policy 'wrong' returned a"):
        await ctx.wrong(HISTORY)


async def test_a_model_or_a_person_is_asked_what_the_call_says() -> None:
    """RN-03: `request` is its parameter, the call no part of what it sees. RN-02: a person's answer may be awaited."""

    async def ask(question: Question) -> Batch:
        assert [option.name for option in question.options] == ["search"]
        assert question.text == "Umbrella today?"
        return [call("search", query="rain")]

    model = ScriptedAdapter("It rains.")
    ctx = Context(call("expert", request="Does it rain?"))
    ctx.expert, ctx.human = ctx._bind(llm_policy(model)), ctx._bind(human_policy(ask))

    assert results(await ctx.chooser(HISTORY, ["expert"])) == ["It rains."]
    assert [message.text for message in model.last.messages] == ["Does it rain?"]
    assert results(await ctx.human(HISTORY, ["search"])) == ["3 × rain"]


async def test_a_model_speaks_under_the_name_by_which_it_is_bound() -> None:
    """PJ-02: two models in one context are two policies."""
    ctx = Context()
    ctx.planner, ctx.critic = ctx._bind(llm_policy("echo:any")), ctx._bind(llm_policy("echo:any", speaks_as="judge"))

    assert [message.policy for message in await ctx.planner("Hello")] == ["planner"]
    assert [message.policy for message in await ctx.critic("Hello")] == ["judge"]
    await ctx.aclose()


async def test_a_loop_asks_until_nothing_more_is_chosen() -> None:
    """RN-18: its batch is all that came, each call with its result; one that only chooses options is stopped."""
    model = ScriptedAdapter(calls(search={"query": "rain"}), calls(search={"query": "sun"}), "Take one.")
    ctx = Context()
    ctx.llm = ctx._bind(llm_policy(model))
    ctx.agent = ctx._bind(loop_policy("llm"))
    batch = await ctx.agent(HISTORY, ["search"])

    assert results(batch) == ["3 × rain", "3 × sun"]
    assert batch[-1].text == "Take one."
    model.assert_finished()
    ctx = Context(call("search", query="rain"))
    ctx.agent = ctx._bind(loop_policy("chooser", turns=3))
    with pytest.raises(LoopLimit, match="'chooser' called options in 3 turns in a row"):
        await ctx.agent(HISTORY, ["search"])
