"""Programs that use sabir are tried on scripted answers: what they are told, what they asked, and where both differ."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir_testing.scripted import (
    ScriptedAdapter,
    ScriptedRequest,
    ScriptMismatch,
    always,
    call,
    calls,
    cut_off,
    delayed,
    pieces,
    reply,
)

PARIS = {"city": "Paris"}


@sabir.option
def weather(city: str) -> str:
    "Current weather in a city."
    return f"rain in {city}"


async def umbrella(llm: sabir.Adapter, question: str = "Umbrella today?", *, later: bool = False) -> str:
    """A program: it asks, answers what the model chooses, and gives its last words; or streams in an event loop."""
    chat = [sabir.system("Be brief."), sabir.user(question)]
    while True:
        stream = llm.stream(chat, options=[weather]) if later else None
        answered = await stream.reply() if stream else llm.complete_sync(chat, options=[weather])
        chat += answered.messages
        if not answered.option_calls:
            return answered.text
        chat += sabir.answer_sync(answered, [weather])


@pytest.mark.parametrize("later", [False, True])
async def test_an_agent_loop_runs_through_its_script(later: bool) -> None:
    llm = ScriptedAdapter(calls(weather=[PARIS, {"city": "Rome"}]), "Take one.")

    assert await umbrella(llm, later=later) == "Take one."
    assert [result.result for result in llm.last.results] == ["rain in Paris", "rain in Rome"]
    assert llm.sent[0].results == ()
    assert [len(sent.messages) for sent in llm.sent] == [2, 6]
    assert [sent.streaming for sent in llm.sent] == [later, later]
    llm.assert_asked("Umbrella today?", "Umbrella today?")
    llm.assert_offered("weather")
    llm.assert_finished()


PARTS = (
    sabir.ReasoningPart(text="hm", state={"signed": "§"}),
    sabir.TextPart(text="yes", citations=(sabir.Citation(kind="page", source={"p": 1}),)),
    sabir.image("https://example.org/a.png"),
    sabir.OpaquePart(dialect="scripted.plain", block={"b": [1, None]}),
    sabir.RefusalPart(text="I will not."),
)


@pytest.mark.parametrize(
    "answer",
    [
        "It rains in Paris.",
        reply("Let me look. ", calls(weather=[PARIS, {"city": "Rome"}]), sabir.ReasoningPart(text="hm hm")),
        reply(sabir.ReasoningPart(text="", state={"signed": "§"}), sabir.TextPart(text="é\n\n“x”")),
        reply(*PARTS),
        call("weather", "no JSON"),
        reply("cut", finish_reason="length", usage=sabir.Usage(input_tokens=3, output_tokens=4, reasoning_tokens=1)),
        reply(),
    ],
    ids=repr,
)
async def test_an_answer_is_the_same_whole_and_streamed(answer: Any) -> None:
    """Law 8, fold = whole: in a loop and waiting, at once and piece by piece."""
    llm = ScriptedAdapter(*[answer] * 4)
    with llm.stream_sync("Hi") as stream:
        streamed = stream.reply()
    replies = [llm.complete_sync("Hi"), await llm.complete("Hi"), streamed, await llm.stream("Hi").reply()]

    def content(each: sabir.Reply) -> Any:
        said = [message.model_dump(exclude={"id": True, "payload": {"invocation_id"}}) for message in each.messages]
        return said, each.finish_reason, each.usage

    assert all(content(each) == content(replies[0]) for each in replies)
    assert {each.origin.provider for each in replies} == {"scripted"}


def test_parts_come_as_they_were_given() -> None:
    class Invoice(BaseModel):
        total: int

    llm = ScriptedAdapter(reply(*PARTS), Invoice(total=3))

    assert llm.complete_sync("Hi").messages[0].parts == PARTS
    assert llm.complete_sync("Hi").parse(Invoice) == Invoice(total=3)


def test_text_streams_word_by_word_or_in_the_pieces_given() -> None:
    """What is shown as it comes can be tried on any cut."""
    llm = ScriptedAdapter("It rains  in\nParis.", pieces("It ra", "ins"))

    assert [list(llm.stream_sync("Hi").text) for _ in range(2)] == [
        ["It ", "rains  ", "in\n", "Paris."], ["It ra", "ins"],
    ]  # fmt: skip


def test_calls_have_counted_ids_and_say_their_arguments_as_a_model_would() -> None:
    """No id is made by chance, so that a test may name it; one may be given."""
    llm = ScriptedAdapter(
        calls(weather=[PARIS, {"city": "Rome"}], time={}), call("a.b", PARIS, id="mine"), call("weather", "no JSON")
    )
    found = [message.call for _ in range(3) for message in llm.complete_sync("Hi").option_calls if message.call]

    assert [(each.option_name, each.invocation_id) for each in found] == [
        ("weather", "call-1"), ("weather", "call-2"), ("time", "call-3"), ("a.b", "mine"), ("weather", "call-4"),
    ]  # fmt: skip
    assert [dict(each.arguments) for each in found] == [PARIS, {"city": "Rome"}, {}, PARIS, {}]
    assert [each.invalid_arguments for each in found] == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("answer", "reason", "tokens"),
    [
        ("one two", "stop", (5, 2)),
        (calls(weather=PARIS), "option_calls", (5, 2)),
        (reply("one", finish_reason="length"), "length", (5, 1)),
        (reply("one", usage=sabir.Usage(output_tokens=7)), "stop", (None, 7)),
    ],
)
def test_finish_reason_and_usage_follow_from_the_answer_or_are_given(
    answer: Any, reason: str, tokens: tuple[int | None, int]
) -> None:
    """A program that counts tokens, or looks for a limit, has something to look at."""
    found = ScriptedAdapter(answer).complete_sync([sabir.system("Be brief."), sabir.user("a b c")])

    assert (found.finish_reason, found.usage.input_tokens, found.usage.output_tokens) == (reason, *tokens)


def test_a_function_sees_the_request_and_gives_the_answer() -> None:
    """A text, an error, or anything else that a script may hold; always(…) asks it again and again."""

    def answer(sent: ScriptedRequest) -> Any:
        return sabir.errors.InvalidRequest("no") if sent.user_text == "bad" else f"{sent.number}: {sent.user_text}"

    llm = ScriptedAdapter("first", always(answer))

    assert [llm.complete_sync(text).text for text in ("a", "b", "c")] == ["first", "2: b", "3: c"]
    with pytest.raises(sabir.errors.InvalidRequest, match=r"\Ano\Z"):
        llm.complete_sync("bad")
    llm.assert_finished()


RETRYING = sabir.Settings(retries=sabir.RetryPolicy(attempts=3, first_delay=60))


@pytest.mark.parametrize("settings", [None, RETRYING], ids=["adapter's", "call's"])
def test_retries_take_one_answer_each_and_wait_for_nothing(
    settings: sabir.Settings | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UP-28: the policy decides as it does elsewhere, by whichever settings it comes; only the waiting is left out."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    llm = ScriptedAdapter(sabir.errors.Overloaded("busy"), sabir.RateLimited("slow", retry_after=90), "At last.")

    found = llm.complete_sync("Hi", settings=settings)

    assert (found.text, found.attempts, sum(slept)) == ("At last.", 3, 0)
    assert [sent.user_text for sent in llm.sent] == ["Hi"] * 3
    assert llm.sent[0].settings == (settings or sabir.Settings())


def test_a_policy_gives_up_as_it_does_elsewhere() -> None:
    too_long = sabir.RateLimited("slow", retry_after=1000)
    for errors in ([sabir.errors.Overloaded("busy")] * 3, [too_long], [sabir.errors.QuotaExceeded("no credit")]):
        llm = ScriptedAdapter(*errors, "never")

        with pytest.raises(sabir.CallError):
            llm.complete_sync("Hi")
        assert len(llm.sent) == len(errors)


def test_a_stream_that_breaks_leaves_what_came() -> None:
    llm = ScriptedAdapter(cut_off("half a sen"), cut_off("Let me look.", calls(weather=PARIS)), "never")

    words: list[str] = []
    with pytest.raises(sabir.StreamBroken, match="broke off its stream") as caught, llm.stream_sync("Hi") as stream:
        words.extend(stream.text)
    assert words == ["half ", "a ", "sen"]
    assert caught.value.partial.text == "half a sen"

    with pytest.raises(sabir.StreamBroken) as caught:
        llm.stream_sync("Hi").reply()
    assert caught.value.partial.text == "Let me look."
    assert caught.value.partial.details["unfinished_calls"][0]["option_name"] == "weather"
    assert len(llm.sent) == 2


async def test_a_call_that_breaks_is_tried_again() -> None:
    """It is no stream, so that nobody saw its half; a stream that broke before its first event is tried again too."""
    llm = ScriptedAdapter(cut_off("half a sen"), "Whole.", cut_off(), "Whole again.")

    assert (await llm.complete("Hi")).text == "Whole."
    assert (await llm.stream("Hi").reply()).text == "Whole again."


MISMATCHES: dict[str, tuple[Callable[[ScriptedAdapter], object], str]] = {
    "one answer short": (
        lambda llm: [llm.complete_sync(text) for text in "abc"],
        "the script has 2 answers, but the program sent request 3: 'c' (1 message); add an answer, or end the script "
        "with always(…)",
    ),
    "nothing asked": (
        lambda llm: llm.assert_finished(),
        "the program did not request 2 of 2 scripted answers: a call of weather, 'Take one.'. All requests: none",
    ),
    "nothing sent": (
        lambda llm: llm.last,
        "this adapter received no request; check that the program uses this adapter",
    ),
    "another text": (
        lambda llm: llm.complete_sync("Hi") and llm.assert_asked("Hello"),
        "request 1 has the user text 'Hi'; expected 'Hello'. All requests: request 1: 'Hi' (1 message)",
    ),
    "fewer requests": (
        lambda llm: llm.complete_sync("Hi") and llm.assert_asked("Hi", "Bye"),
        "the program sent 1 request; expected 2. All requests: request 1: 'Hi' (1 message)",
    ),
    "other options": (
        lambda llm: llm.complete_sync("Hi", options=[weather]) and llm.assert_offered("weather", "time"),
        "every request must offer the options weather, time, unlike request 1: 'Hi' (1 message, options weather)",
    ),
    "options where none": (
        lambda llm: llm.complete_sync("Hi", options=[weather]) and llm.assert_offered(),
        "every request must offer no options, unlike request 1: 'Hi' (1 message, options weather)",
    ),
}


@pytest.mark.parametrize(("program", "message"), MISMATCHES.values(), ids=MISMATCHES)
def test_a_mismatch_says_in_one_line_what_was_expected_and_what_was_sent(
    program: Callable[[ScriptedAdapter], object], message: str
) -> None:
    """It is an AssertionError, and no error that a program handles as a call's."""
    with pytest.raises(ScriptMismatch) as caught:
        program(ScriptedAdapter(calls(weather=PARIS), "Take one."))

    assert str(caught.value) == message
    assert isinstance(caught.value, AssertionError)
    assert not isinstance(caught.value, sabir.SabirError)


async def test_no_way_of_asking_hides_a_request_too_many() -> None:
    """Streams and event loops raise it, and neither a retry nor a fallback takes it for a provider that is down.

    A program that catches everything passes its own test no more.
    """
    llm, other = ScriptedAdapter(), ScriptedAdapter("never")

    for ask in (
        lambda: llm.complete("Hi"),
        lambda: llm.stream("Hi").reply(),
        lambda: sabir.fallback(llm, other).complete("Hi"),
    ):
        with pytest.raises(ScriptMismatch, match="the script has 0 answers"):
            await ask()
    with pytest.raises(ScriptMismatch, match="the script has 0 answers"):
        llm.stream_sync("Hi").reply()

    assert (len(llm.sent), len(other.sent)) == (4, 0)
    with pytest.raises(ScriptMismatch, match="the script has 0 answers, but the program sent request 1: 'Hi'"):
        llm.assert_finished()


async def no_answer(sent: ScriptedRequest) -> str:
    return "late"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ScriptedAdapter("a", {"b": "c"}),
            "answer 2 of the script has the type dict; use a str, a part, calls",
        ),
        (lambda: ScriptedAdapter(sabir.RateLimited), "answer 1 of the script is the error class RateLimited; use an"),
        (lambda: ScriptedAdapter("a", weather), "answer 2 of the script has the type Option; use a str"),
        (lambda: ScriptedAdapter(no_answer), "answer 1 of the script is an async function; use a plain function"),
        (lambda: ScriptedAdapter(always("x"), "a"), "answer 1 of the script is always(…), which must be the last"),
        (lambda: reply("a", 3), "content[1] has the type int; use a str"),
        (lambda: delayed(lambda sent: "x", 3), "delayed(…) cannot delay a function; return delayed(…)"),
        (
            lambda: ScriptedAdapter(lambda sent: None).complete_sync("Hi"),
            "the value that the function of answer 1 returned has the type",
        ),
        (lambda: ScriptedAdapter(lambda sent: len).complete_sync("Hi"), "the function of answer 1 returned a "),
        (lambda: ScriptedAdapter("a", strict=["lost"]), "strict= contains lost"),
        (lambda: ScriptedAdapter("a", model="gpt-5"), "'gpt-5' is not a model string"),
    ],
)
def test_mistakes_in_a_script_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(sabir.SettingsInvalid) as caught:
        make()

    assert str(caught.value).startswith(message)


async def test_another_librarys_arguments_are_met_as_elsewhere() -> None:
    """The error names the method that was called, and sabir's word."""
    llm = ScriptedAdapter("Hi")
    for name in ("render", "complete_sync", "stream", "stream_sync"):
        with pytest.raises(sabir.errors.WrongWord, match=rf"\A{name}\(\) has no argument `tools`; pass options"):
            getattr(llm, name)("Hi", tools=[weather])
    with pytest.raises(sabir.errors.WrongWord, match=r"\Acomplete\(\) has no argument `tools`"):
        await llm.complete("Hi", tools=[weather])
    with pytest.raises(sabir.errors.WrongWord, match=r"\AScriptedAdapter\(\) has no argument `name`"):
        ScriptedAdapter("Hi", name="x")


async def test_many_tasks_may_share_a_script() -> None:
    """Each request takes one answer, whoever comes first."""
    llm = ScriptedAdapter(*map(str, range(20)))
    found = await asyncio.gather(*(llm.complete("Hi") for _ in range(20)))

    assert {each.text for each in found} == set(map(str, range(20)))


async def test_it_is_an_adapter_in_every_way() -> None:
    """Its repr is short, it closes, counts tokens without an answer, and whoever wraps adapters takes it."""
    async with ScriptedAdapter("one") as closing:
        closing.complete_sync("Hi")
    with ScriptedAdapter("one", "two", always("x"), model="openai:gpt-5") as llm:
        assert llm.count_tokens_sync("Hello").estimated
        llm.complete_sync("Hi")

    assert repr(llm) == "<ScriptedAdapter openai:gpt-5: 2 answers, then always the same answer, 1 request>"
