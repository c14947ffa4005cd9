"""The platform runs what a policy chose: offered options only, at once, failures as results."""

import asyncio

import pytest
import sabir
from sabir import RUNTIME, Message, OptionFailed, ToolContext
from sabir.vocabulary.messages import OptionResultPayload
from sabir_runtime import BaseContext, UnknownOption

from tests.runtime.support import Context, call, results, search_web

HISTORY = [sabir.user("Umbrella today?")]


async def test_the_caller_gets_calls_and_results_together() -> None:
    """RN-04, RN-05: a text is one message, an option's call and its result are two."""
    said, asked = sabir.assistant("Let me see.", policy="chooser"), call("search", query="rain")
    batch = await Context(said, asked).chooser(observations=HISTORY, options=["search"])

    assert batch[:2] == [said, asked]
    assert [message.kind for message in batch] == ["parts", "option_call", "option_result"]
    assert results(batch) == ["3 × rain"]


async def test_caller_and_option_are_named_as_who_decided_and_who_ran() -> None:
    """PJ-04, PJ-05, UP-04: the call is its decider's, the result the option's, at the step of its call."""
    batch = await Context(call("search", step_num=4, query="rain")).chooser(HISTORY, ["search"])

    assert [(message.policy, message.step_num) for message in batch] == [("chooser", 4), ("search", 4)]


async def test_a_call_of_what_was_not_offered_is_refused_and_never_run() -> None:
    """RN-06, D-08, PJ-06: bound, but not among the options of this call."""
    ran = []

    async def spy(ctx: BaseContext, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        ran.append(observations)
        return []

    ctx = Context(call("spy"))
    ctx.spy = ctx._bind(spy)
    batch = await ctx.chooser(HISTORY, ["search"])

    assert results(batch) == ["option_not_offered"]
    assert batch[-1].policy == RUNTIME
    assert ran == []


async def test_without_options_every_call_is_refused() -> None:
    """RN-06: none offered, none run."""
    assert results(await Context(call("search", query="rain")).chooser(HISTORY)) == ["option_not_offered"]


async def test_options_of_one_batch_run_at_once_and_come_back_in_the_order_of_their_calls() -> None:
    """RN-07: the first waits for the second, which would never end if they ran one after the other."""
    second_ran = asyncio.Event()

    async def first(ctx: BaseContext, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        await second_ran.wait()
        return [sabir.assistant("first")]

    async def second(ctx: BaseContext, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        second_ran.set()
        return [sabir.assistant("second")]

    ctx = Context(call("first", "a"), call("second", "b"))
    ctx.first, ctx.second = ctx._bind(first), ctx._bind(second)

    async with asyncio.timeout(10):
        assert results(await ctx.chooser(HISTORY, ["first", "second"])) == ["first", "second"]


async def test_a_failing_option_loses_nothing_of_its_siblings() -> None:
    """UP-05, UP-29: an exception is an error result, named after its class."""
    asked = call("search", "a", query="rain"), call("broken", "b"), call("search", "c", query="sun")
    batch = await Context(*asked).chooser(HISTORY, ["search", "broken"])

    assert results(batch) == ["3 × rain", "RuntimeError", "3 × sun"]


@pytest.mark.parametrize("arguments", [{}, {"query": 3}, {"query": "rain", "deep": True}])
async def test_arguments_that_do_not_fit_never_reach_the_option(arguments: dict[str, object]) -> None:
    """PJ-34, UP-29: missing, of another type, unknown."""
    batch = await Context(call("search", **arguments)).chooser(HISTORY, ["search"])

    assert results(batch) == ["invalid_arguments"]


async def test_calls_that_have_their_result_are_not_run_again() -> None:
    """RN-08: a policy that answers its calls itself is left alone."""
    asked = call("broken", "a")
    payload = OptionResultPayload(invocation_id="a", option_name="broken", result="mended")
    answered = Message(policy="broken", payload=payload)
    batch = await Context(asked, answered, call("search", "b", query="rain")).chooser(HISTORY, ["search", "broken"])

    assert results(batch) == ["mended", "3 × rain"]
    assert len(batch) == 4


async def test_calls_that_an_option_chose_are_answered_too() -> None:
    """UP-06: what an option returns is a batch like any other; it may choose what its chooser could."""

    async def delegate(
        ctx: BaseContext, observations: list[Message], options: list[str] | None = None
    ) -> list[Message]:
        assert options == ["delegate", "search"]
        return [call("search", "inner", query="rain")]

    ctx = Context(call("delegate"))
    ctx.delegate = ctx._bind(delegate)

    assert results(await ctx.chooser(HISTORY, ["delegate", "search"])) == ["3 × rain"]


async def test_what_an_option_may_choose_can_be_said_where_it_is_bound() -> None:
    """UP-06, RN-15: `options=` at the binding counts, whatever its chooser could choose."""

    async def delegate(
        ctx: BaseContext, observations: list[Message], options: list[str] | None = None
    ) -> list[Message]:
        return [call("search", "inner", query="rain")]

    ctx = Context(call("delegate"))
    ctx.delegate = ctx._bind(delegate, options=[])

    assert results(await ctx.chooser(HISTORY, ["delegate", "search"])) == ["option_not_offered"]


async def test_an_option_sees_the_call_that_chose_it_and_nothing_else() -> None:
    """RN-09: no history that nobody passed."""
    seen = []

    async def spy(ctx: BaseContext, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        seen.extend(observations)
        return []

    asked = call("spy")
    ctx = Context(asked)
    ctx.spy = ctx._bind(spy)
    batch = await ctx.chooser(HISTORY, ["spy"])

    assert seen == [asked]
    assert results(batch) == [None]


async def test_several_results_without_words_are_their_values() -> None:
    """An option that only chose says what came of its choices."""

    async def both(ctx: BaseContext, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        asked = [call("number", "a"), call("number", "b")]
        values = [OptionResultPayload(invocation_id=each, option_name="number", result=each) for each in "ab"]
        return [*asked, *(Message(policy="number", payload=value) for value in values)]

    ctx = Context(call("both"))
    ctx.both = ctx._bind(both)

    assert results(await ctx.chooser(HISTORY, ["both"])) == [["a", "b"]]


async def test_an_option_knows_which_call_it_answers() -> None:
    """WI-48: the call's id, and that it is no resume; a nested option has its own."""
    seen = []

    async def outer(ctx: Context, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        seen.append(ToolContext.current())
        return [call("inner", "call-2")]

    async def inner(ctx: Context, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        seen.append(ToolContext.current())
        return []

    ctx = Context(call("outer", "call-1"))
    ctx.outer, ctx.inner = ctx._bind(outer), ctx._bind(inner)
    await ctx.chooser(HISTORY, ["outer", "inner"])

    assert [(each.call_id, each.is_resume) for each in seen] == [("call-1", False), ("call-2", False)]
    assert len({each.idempotency_key for each in seen}) == 2


async def test_an_option_in_a_thread_is_told_that_nobody_waits_any_more() -> None:
    """UP-29: a cancelled caller cannot stop a thread; the thread can look."""
    begun = asyncio.Event()
    told: list[ToolContext] = []

    async def slow(ctx: Context, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        told.append(ToolContext.current())
        begun.set()
        await asyncio.Event().wait()
        return []

    ctx = Context(call("slow"))
    ctx.slow = ctx._bind(slow)
    task = asyncio.ensure_future(ctx.chooser(HISTORY, ["slow"]))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert told[0].cancelled.is_set()


async def test_an_option_says_itself_how_it_failed() -> None:
    """UP-05: `OptionFailed` is the error result's own words."""

    async def limited(ctx: BaseContext, observations: list[Message], options: list[str] | None = None) -> list[Message]:
        raise OptionFailed("quota", "try tomorrow", retryable=True)

    ctx = Context(call("limited"))
    ctx.limited = ctx._bind(limited)
    (*_, result) = await ctx.chooser(HISTORY, ["limited"])

    assert result.result is not None
    assert (result.result.error_type, result.result.retryable) == ("quota", True)


async def test_an_unknown_name_in_options_fails_early_and_says_what_is_bound() -> None:
    """RN-19, RN-16: before the policy runs; methods, the runner and private names are no options."""
    ctx = Context(call("search"))
    ctx._private = ctx._bind(search_web)
    for name in ("serch", "_runner", "_private", "bound_policies", "aclose"):
        with pytest.raises(
            UnknownOption, match=f"Context binds no policy '{name}'; bound are: chooser, search, broken"
        ):
            await ctx.chooser(HISTORY, [name])


async def test_one_name_is_no_list_of_names() -> None:
    """RN-19: a string would be taken for its letters."""
    with pytest.raises(UnknownOption, match=r"write options=\['search'\]"):
        await Context().chooser(HISTORY, "search")
