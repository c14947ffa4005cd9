"""The platform runs what a policy chose: offered options only, at once, failures as results."""

import asyncio
import json

import pytest
import sabir
from sabir import RUNTIME, Message, ReasoningPart, TextPart, ToolContext
from sabir.vocabulary.messages import OptionResultPayload
from sabir_runtime import BaseContext, Batch, UnknownOption

from tests.runtime.support import Context, Names, call, choosing, results, rule, search_web

HISTORY = [sabir.user("Umbrella today?")]


async def test_a_call_of_what_was_not_offered_is_refused_and_never_run() -> None:
    """RN-06, D-08, PJ-06: bound, but not among the options of this call."""
    ran: list[list[Message]] = []
    ctx = Context(call("spy"))
    ctx.spy = ctx._bind(rule(ran.append))
    batch = await ctx.chooser(HISTORY, ["search"])

    assert results(batch) == ["option_not_offered"]
    assert batch[-1].policy == RUNTIME
    assert ran == []


async def test_options_of_one_batch_run_at_once_and_come_back_in_the_order_of_their_calls() -> None:
    """RN-07: the first waits for the second, which would never end if they ran one after the other."""
    second_ran = asyncio.Event()

    async def first(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        await second_ran.wait()
        return [sabir.assistant("first")]

    async def second(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        second_ran.set()
        return [sabir.assistant("second")]

    ctx = Context(call("first", "a"), call("second", "b"))
    ctx.first, ctx.second = ctx._bind(first), ctx._bind(second)

    async with asyncio.timeout(10):
        assert results(await ctx.chooser(HISTORY, ["first", "second"])) == ["first", "second"]


async def test_calls_that_have_their_result_are_not_run_again() -> None:
    """RN-08: a policy that answers its calls itself is left alone."""
    asked = call("broken", "a")
    payload = OptionResultPayload(invocation_id="a", option_name="broken", result="mended")
    answered = Message(policy="broken", payload=payload)
    batch = await Context(asked, answered, call("search", "b", query="rain")).chooser(HISTORY, ["search", "broken"])

    assert results(batch) == ["mended", "3 × rain"]
    assert len(batch) == 4


async def test_calls_that_an_option_chose_are_answered_too() -> None:
    """UP-06, RN-15: it may choose what its chooser could, or what `options=` says where it is bound."""

    async def delegate(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        assert options == ["delegate", "bound", "search"]
        return [call("search", "inner", query="rain")]

    ctx = Context(call("delegate", "a"), call("bound", "b"))
    ctx.delegate = ctx._bind(delegate)
    ctx.bound = ctx._bind(choosing(call("search", "inner", query="rain")), options=[])

    batch = await ctx.chooser(HISTORY, ["delegate", "bound", "search"])
    (dumps, error_type) = results(batch)
    assert results(sabir.loads(json.dumps(dumps))) == ["3 × rain"]
    assert error_type == "option_not_offered"


async def test_an_option_sees_the_call_that_chose_it_and_nothing_else() -> None:
    """RN-09: no history that nobody passed."""
    seen: list[Message] = []
    asked = call("spy")
    ctx = Context(asked)
    ctx.spy = ctx._bind(rule(seen.extend))
    batch = await ctx.chooser(HISTORY, ["spy"])

    assert seen == [asked]
    assert results(batch) == [None]


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        ([sabir.assistant("Rain.")], "Rain."),
        ([sabir.assistant("Rain in ", "Oslo. "), sabir.user("Sun in Rome.")], "Rain in Oslo. Sun in Rome."),
        ([sabir.assistant(ReasoningPart(text="It is June."), "Sun.")], "Sun."),
        ([sabir.assistant("")], ""),
    ],
)
async def test_d_44_a_batch_of_text_alone_becomes_its_text(batch: list[Message], text: str) -> None:
    """D-44: joined as a reply's text is; reasoning is no part of the answer."""
    ctx = Context(call("say"))
    ctx.say = ctx._bind(choosing(*batch))

    (result,) = [message.result for message in await ctx.chooser(HISTORY, ["say"]) if message.result]
    assert (result.result, result.parts) == (text, ())


async def test_d_44_another_batch_becomes_the_dumps_of_its_messages() -> None:
    """D-44: calls and results beside text, a failure among them; `Message` reads each dump."""
    asked = [call("number", "a"), call("number", "b")]
    failure = {"is_error": True, "error_type": "Busy", "error_message": "later"}
    answers = [
        OptionResultPayload(invocation_id="a", option_name="number", result={"one": [1, None]}),
        OptionResultPayload(invocation_id="b", option_name="number", **failure),
    ]
    batch = [sabir.assistant("Two."), *asked, *(Message(policy="number", payload=answer) for answer in answers)]
    ctx = Context(call("both"))
    ctx.both = ctx._bind(choosing(*batch))

    (dumps,) = results(await ctx.chooser(HISTORY, ["both"]))
    assert dumps == [message.model_dump(mode="json", exclude={"id"}) for message in batch]
    assert all(Message.model_validate(dump).same_content(each) for dump, each in zip(dumps, batch, strict=True))


async def test_d_44_a_medium_in_a_batch_still_reaches_the_model() -> None:
    """D-44, UP-08: the dumps hold references to the media, which follow the JSON; also those of a batch's results."""
    photo, map_ = sabir.image("https://example.com/sky.png"), sabir.image("https://example.com/map.png")
    shown = OptionResultPayload(invocation_id="a", option_name="show", parts=(TextPart(text="here"), map_))
    batch = [sabir.assistant("The sky:", photo), call("show", "a"), Message(policy="show", payload=shown)]
    ctx = Context(call("look"))
    ctx.look = ctx._bind(choosing(*batch))

    (result,) = [message for message in await ctx.chooser(HISTORY, ["look"]) if message.result]
    assert result.parts[1:] == (photo, map_)
    dumps = json.loads(result.text)
    assert [dump["payload"]["parts"][1] for dump in (dumps[0], dumps[2])] == ["attached image 1", "attached image 2"]
    assert dumps[1] == batch[1].model_dump(mode="json", exclude={"id"})


async def test_an_option_in_a_thread_is_told_that_nobody_waits_any_more() -> None:
    """UP-29: a cancelled caller cannot stop a thread; the thread can look."""
    begun = asyncio.Event()
    told: list[ToolContext] = []

    async def slow(ctx: Context, observations: Batch, options: Names = None) -> Batch:
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


async def test_an_unknown_name_in_options_fails_early_and_says_what_is_bound() -> None:
    """RN-19, RN-16: before the policy runs; methods, the runner and private names are no options."""
    ctx = Context(call("search"))
    ctx._private = ctx._bind(search_web)
    for name in ("serch", "_runner", "_private", "bound_policies", "aclose"):
        with pytest.raises(
            UnknownOption, match=f"Context binds no policy '{name}'; bound are: chooser, search, broken"
        ):
            await ctx.chooser(HISTORY, [name])
    with pytest.raises(UnknownOption, match=r"write options=\['search'\]"):  # would be taken for its letters
        await ctx.chooser(HISTORY, "search")
