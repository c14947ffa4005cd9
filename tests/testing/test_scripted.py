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
    ScriptMismatch,
    Sent,
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


def umbrella(llm: sabir.Adapter, question: str = "Umbrella today?") -> str:
    """A program: it asks, answers what the model chooses, and gives its last words."""
    chat = [sabir.system("Be brief."), sabir.user(question)]
    while True:
        answered = llm.complete_sync(chat, options=[weather])
        chat += answered.messages
        if not answered.option_calls:
            return answered.text
        chat += sabir.answer_sync(answered, [weather])


async def umbrella_later(llm: sabir.Adapter) -> str:
    """The same program for an event loop, which streams."""
    chat = [sabir.user("Umbrella today?")]
    while True:
        async with llm.stream(chat, options=[weather]) as stream:
            answered = await stream.reply()
        chat += answered.messages
        if not answered.option_calls:
            return answered.text
        chat += await sabir.answer(answered, [weather])


def test_an_agent_loop_runs_through_its_script() -> None:
    """Calls, results and the last words, and what was asked on the way."""
    llm = ScriptedAdapter(calls(weather=[PARIS, {"city": "Rome"}]), "Take one.")

    assert umbrella(llm) == "Take one."
    assert [result.result for result in llm.last.results] == ["rain in Paris", "rain in Rome"]
    assert llm.sent[0].results == ()
    assert [len(sent.messages) for sent in llm.sent] == [2, 6]
    llm.assert_asked("Umbrella today?", "Umbrella today?")
    llm.assert_offered("weather")
    llm.assert_finished()


async def test_the_same_script_serves_an_event_loop_and_streams() -> None:
    """Nothing of a script depends on how it is asked."""
    llm = ScriptedAdapter(calls(weather=PARIS), "Take one.")

    assert await umbrella_later(llm) == "Take one."
    assert [sent.streaming for sent in llm.sent] == [True, True]
    assert [result.result for result in llm.last.results] == ["rain in Paris"]


@pytest.mark.parametrize(
    "answer",
    [
        "It rains in Paris.",
        reply("Let me look. ", calls(weather=[PARIS, {"city": "Rome"}]), sabir.ReasoningPart(text="hm hm")),
        reply(sabir.ReasoningPart(text="", state={"signed": "§"}), sabir.TextPart(text="é\n\n“x”")),
        reply(sabir.image(b"\x89PNG\r\n\x1a\n"), sabir.RefusalPart(text="I will not.")),
        reply(sabir.OpaquePart(dialect="scripted.plain", block={"b": [1, None]})),
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
    """State, media and blocks of a maker's own included."""
    parts = (
        sabir.ReasoningPart(text="hm", state={"signed": "§"}),
        sabir.TextPart(text="yes", citations=(sabir.Citation(kind="page", source={"p": 1}),)),
        sabir.image("https://example.org/a.png"),
        sabir.OpaquePart(dialect="scripted.plain", block={"b": [1]}),
    )

    (message,) = ScriptedAdapter(reply(*parts)).complete_sync("Hi").messages

    assert message.parts == parts


def test_text_streams_word_by_word_or_in_the_pieces_given() -> None:
    """What is shown as it comes can be tried on any cut."""
    llm = ScriptedAdapter("It rains  in\nParis.", pieces("It ra", "ins"))

    with llm.stream_sync("Hi") as stream:
        assert list(stream.text) == ["It ", "rains  ", "in\n", "Paris."]
    with llm.stream_sync("Hi") as stream:
        assert list(stream.text) == ["It ra", "ins"]


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
        ("one two", "stop", 2),
        (calls(weather=PARIS), "option_calls", 2),
        (reply("one", finish_reason="length"), "length", 1),
        (reply("one", usage=sabir.Usage(output_tokens=7)), "stop", 7),
    ],
)
def test_finish_reason_and_usage_follow_from_the_answer_or_are_given(answer: Any, reason: str, tokens: int) -> None:
    """A program that counts tokens, or looks for a limit, has something to look at."""
    found = ScriptedAdapter(answer).complete_sync([sabir.system("Be brief."), sabir.user("a b c")])

    assert (found.finish_reason, found.usage.output_tokens) == (reason, tokens)
    assert found.usage.input_tokens == (None if tokens == 7 else 5)


def test_a_pydantic_model_is_its_json_text() -> None:
    """Structured output reads in the script as it reads in the program."""

    class Invoice(BaseModel):
        total: int

    assert ScriptedAdapter(Invoice(total=3)).complete_sync("Hi").parse(Invoice) == Invoice(total=3)


def test_a_function_sees_the_request_and_gives_the_answer() -> None:
    """A text, an error, or anything else that a script may hold; always(…) asks it again and again."""

    def answer(sent: Sent) -> Any:
        return sabir.errors.InvalidRequest("no") if sent.user_text == "bad" else f"{sent.number}: {sent.user_text}"

    llm = ScriptedAdapter("first", always(answer))

    assert [llm.complete_sync(text).text for text in ("a", "b", "c")] == ["first", "2: b", "3: c"]
    with pytest.raises(sabir.errors.InvalidRequest, match=r"\Ano\Z"):
        llm.complete_sync("bad")
    llm.assert_finished()


def test_an_error_is_raised_as_a_providers_own() -> None:
    """Where it comes from is said, as the real one says it."""
    with pytest.raises(sabir.errors.AuthenticationFailed, match="wrong key") as caught:
        ScriptedAdapter(sabir.errors.AuthenticationFailed("wrong key"), model="openai:gpt-5").complete_sync("Hi")

    assert caught.value.provider == "openai"


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
    """Too many attempts, a retry-after that is too long, and errors that waiting does not mend."""
    too_long = sabir.RateLimited("slow", retry_after=1000)
    for errors in ([sabir.errors.Overloaded("busy")] * 3, [too_long], [sabir.errors.QuotaExceeded("no credit")]):
        llm = ScriptedAdapter(*errors, "never")

        with pytest.raises(sabir.CallError):
            llm.complete_sync("Hi")
        assert len(llm.sent) == len(errors)


def test_a_stream_that_breaks_leaves_what_came() -> None:
    """Words and an unfinished call; nothing of it is repeated."""
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


def test_fallbacks_take_scripted_adapters() -> None:
    """Who did not answer, and why, is as with real ones; a stream moves on before its first event."""
    first = ScriptedAdapter(
        *[sabir.errors.Unavailable("down")] * 2, model="scripted:first", settings=sabir.Settings(retries=0)
    )
    second = ScriptedAdapter("Here.", "Word by word", model="scripted:second")
    llm = sabir.fallback(first, second)

    found = llm.complete_sync("Anybody?")
    with llm.stream_sync("Anybody?") as stream:
        assert list(stream.text) == ["Word ", "by ", "word"]

    assert (found.text, [str(passed.target) for passed in found.passed]) == ("Here.", ["scripted:first"])
    for member in (first, second):
        member.assert_asked("Anybody?", "Anybody?")
        member.assert_finished()


def one_short(llm: ScriptedAdapter) -> None:
    umbrella(llm, "Umbrella today, or on the day after?")


MISMATCHES: dict[str, tuple[Callable[[ScriptedAdapter], object], str]] = {
    "one answer short": (
        lambda llm: umbrella(llm) + umbrella(llm, "And tomorrow?"),
        "2 answers scripted, and request 3: 'And tomorrow?' (2 messages, options weather) came in addition; add an "
        "answer, or end the script with always(…)",
    ),
    "one answer too many": (
        lambda llm: llm.complete_sync("Hi") and llm.assert_finished(),
        "1 of 2 scripted answers not asked for: 'Take one.'; sent: request 1: 'Hi' (1 message)",
    ),
    "nothing asked": (
        lambda llm: llm.assert_finished(),
        "2 of 2 scripted answers not asked for: a call of weather, 'Take one.'; sent: none",
    ),
    "nothing sent": (lambda llm: llm.last, "nothing was sent to this adapter; check that the program was given it"),
    "another text": (
        lambda llm: llm.complete_sync("Hi") and llm.assert_asked("Hello"),
        "request 1 asks 'Hi' in place of 'Hello'; sent: request 1: 'Hi' (1 message)",
    ),
    "fewer requests": (
        lambda llm: llm.complete_sync("Hi") and llm.assert_asked("Hi", "Bye"),
        "2 requests expected and 1 sent: request 1: 'Hi' (1 message)",
    ),
    "other options": (
        lambda llm: llm.complete_sync("Hi", options=[weather]) and llm.assert_offered("weather", "time"),
        "options weather, time expected in every request; another is request 1: 'Hi' (1 message, options weather)",
    ),
    "options where none": (
        lambda llm: umbrella(llm) and llm.assert_offered(),
        "no options expected in every request; another is request 1: 'Umbrella today?' (2 messages, options weather)",
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


def test_a_request_too_many_is_told_although_the_program_hid_it() -> None:
    """A program that catches everything passes its own test no more."""
    llm = ScriptedAdapter("one")
    llm.complete_sync("Hi")
    with pytest.raises(ScriptMismatch):
        llm.complete_sync("And?")

    with pytest.raises(ScriptMismatch, match="request 2: 'And\\?'"):
        llm.assert_finished()


async def test_no_way_of_asking_hides_a_request_too_many() -> None:
    """Streams and event loops raise it, and neither a retry nor a fallback takes it for a provider that is down."""
    llm, other = ScriptedAdapter(), ScriptedAdapter("never")

    for ask in (
        lambda: llm.complete("Hi"),
        lambda: llm.stream("Hi").reply(),
        lambda: sabir.fallback(llm, other).complete("Hi"),
    ):
        with pytest.raises(ScriptMismatch, match="0 answers scripted"):
            await ask()
    with pytest.raises(ScriptMismatch, match="0 answers scripted"):
        llm.stream_sync("Hi").reply()

    assert (len(llm.sent), len(other.sent)) == (4, 0)


async def no_answer(sent: Sent) -> str:
    return "late"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"role": "assistant"}, "answer 2 of the script is of type dict; give a str, a part, calls(…), reply(…), "),
        (sabir.RateLimited, "answer 2 of the script is the class RateLimited; give an error of it: RateLimited('why')"),
        (weather, "answer 2 of the script is of type Option; give a str"),
        (no_answer, "answer 2 of the script is a coroutine function; give a plain one"),
        (always("x"), "answer 2 of the script is always(…), which only the last can be; put it there"),
    ],
)
def test_what_is_no_answer_is_refused_where_it_stands(answer: Any, message: str) -> None:
    """When the script is made, not when its turn comes."""
    with pytest.raises(sabir.SettingsInvalid) as caught:
        ScriptedAdapter("one", answer, "three")

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: reply("a", 3), "content[1] is of type int; give a str"),
        (lambda: delayed(lambda sent: "x", 3), "a function cannot be delayed; let it return delayed(…)"),
        (lambda: ScriptedAdapter(lambda sent: None).complete_sync("Hi"), "what the function of answer 1 returned is"),
        (lambda: ScriptedAdapter(lambda sent: one_short).complete_sync("Hi"), "the function of answer 1 returned a "),
        (lambda: ScriptedAdapter("a", strict=["lost"]), "strict names lost"),
        (lambda: ScriptedAdapter("a", model="gpt-5"), "'gpt-5' names no model"),
    ],
)
def test_other_mistakes_in_a_script_are_named(make: Callable[[], object], message: str) -> None:
    """Each in one line that says what to write."""
    with pytest.raises(sabir.SettingsInvalid) as caught:
        make()

    assert str(caught.value).startswith(message)


async def test_another_librarys_arguments_are_met_as_elsewhere() -> None:
    """The error names the method that was called, and sabir's word."""
    llm = ScriptedAdapter("Hi")
    for name in ("render", "complete_sync", "stream", "stream_sync"):
        with pytest.raises(sabir.errors.Misnamed, match=rf"\A{name}\(\) takes no `tools`; pass options"):
            getattr(llm, name)("Hi", tools=[weather])
    with pytest.raises(sabir.errors.Misnamed, match=r"\Acomplete\(\) takes no `tools`"):
        await llm.complete("Hi", tools=[weather])
    with pytest.raises(sabir.errors.Misnamed, match=r"\AScriptedAdapter\(\) takes no `name`"):
        ScriptedAdapter("Hi", name="x")


def test_counting_tokens_takes_no_answer() -> None:
    """Core estimates them, whoever is stood for."""
    llm = ScriptedAdapter("Hi", model="anthropic:claude-sonnet-5")

    assert llm.count_tokens_sync("Hello").estimated
    assert llm.sent == ()


async def test_many_tasks_may_share_a_script() -> None:
    """Each request takes one answer, whoever comes first."""
    llm = ScriptedAdapter(*map(str, range(20)))
    found = await asyncio.gather(*(llm.complete("Hi") for _ in range(20)))

    assert {each.text for each in found} == set(map(str, range(20)))


async def test_it_is_an_adapter_in_every_way() -> None:
    """Its repr is short, it closes, and whoever wraps adapters takes it."""
    llm: sabir.Adapter = ScriptedAdapter("one", "two", always("x"), model="openai:gpt-5")
    async with ScriptedAdapter("one") as closing:
        closing.complete_sync("Hi")
    with ScriptedAdapter("one") as closing:
        closing.complete_sync("Hi")
    llm.complete_sync("Hi")

    assert repr(llm) == "<ScriptedAdapter openai:gpt-5: 2 answers, then always one, 1 asked for>"


FIXTURE = """
    import pytest
    import sabir
    from sabir_testing.scripted import always, calls

    def test_used_up(scripted):
        assert scripted("Hi").complete_sync("Hi").text == "Hi"

    def test_left_over(scripted):
        scripted(calls(weather={}), "Bye").complete_sync("What now?")
        scripted("Hi", model="scripted:one").complete_sync("Hi")

    def test_one_too_many(scripted):
        llm = scripted("Hi")
        for _ in range(2):
            try:
                llm.complete_sync("Hi")
            except Exception:
                pass

    def test_failed_anyhow(scripted):
        scripted("Hi")
        assert 1 == 2

    def test_never_ends(scripted):
        scripted(always("Hi"))
"""


def test_the_fixture_fails_a_test_that_does_not_use_up_its_script(pytester: pytest.Pytester) -> None:
    """It fails as a test does, with one line; one that failed by itself says only that."""
    pytester.makepyfile(FIXTURE)

    result = pytester.runpytest("-p", "sabir_testing.scripted_fixture", "-p", "no:asyncio", "-rN")

    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            "1 of 2 scripted answers not asked for: 'Bye'; sent: request 1: 'What now?' (1 message)",
            "1 answer scripted, and request 2: 'Hi' (1 message) came in addition; *",
            "*assert 1 == 2",
        ]
    )
    assert result.stdout.str().count("not asked for") == 1
