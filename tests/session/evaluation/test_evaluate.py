"""An evaluation records what happens the moment that it happens, and does nothing else that a loop would not do."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sabir
from sabir_session import (
    Budget,
    BudgetExhausted,
    ConversationNotFound,
    InnerMessage,
    MainLoop,
    Prompt,
    RecordingFailed,
    Session,
    evaluate,
    evaluate_sync,
    get_inner_messages,
)
from sabir_testing.scripted import ScriptedAdapter, calls, reply

from tests.session.support import PARIS, PROMPT, ROME, ListJournal, numbers_of, recording, records_of, tide, weather


def both_calls() -> ScriptedAdapter:
    """Two calls of one reply, then the last words."""
    return ScriptedAdapter(reply("Let me look.", calls(weather=[PARIS, ROME])), "Take one.")


def test_records_are_numbered_as_in_the_diagram() -> None:
    """WI-10, WI-11, WI-12, WI-13, WI-23: system, assistant with two calls, their results, the final response.

    The prompt's user message has its own place behind the system's (WI-29).
    """
    session = Session()
    prompt = Prompt[None](system="Be brief.")
    evaluate_sync(both_calls(), prompt, session=session, options=[weather])

    assert numbers_of(session) == [
        ("system", 0, 0), ("assistant", 1, 1), ("tool", 2, 1), ("tool", 3, 1), ("assistant", 4, 2),
    ]  # fmt: skip
    told = get_inner_messages(session)
    assert [call.call_id for call in told[1].tool_calls] == [told[2].tool_call_id, told[3].tool_call_id]

    asked = Session()
    evaluate_sync(both_calls(), PROMPT, session=asked, options=[weather])
    assert numbers_of(asked)[:3] == [("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1)]
    assert {(each.prompt_ns, each.prompt_key) for each in get_inner_messages(asked)} == {("trips", "umbrella")}


def test_each_thing_is_recorded_before_anything_is_done_with_it() -> None:
    """WI-03, WI-24, WI-25, WI-26, WI-29: the opening before the first request, a reply before its options run, a result
    before the next option runs; and all calls of a reply are recorded pending."""
    happened: list[str] = []

    def before(record: InnerMessage) -> None:
        happened.append(f"{record.role} {[call.status for call in record.tool_calls] or ''}".strip())

    def answer(*content: Any) -> Callable[[object], Any]:
        def asked(_: object) -> Any:
            happened.append("request")
            return reply(*content)

        return asked

    def look(city: str) -> str:
        happened.append(f"look {city}")
        return city

    llm = ScriptedAdapter(answer(calls(look=[PARIS, ROME])), answer("Done."))
    evaluate_sync(llm, PROMPT, session=Session(journal=ListJournal(before=before)), options=[look])

    assert happened == [
        "system", "user", "request", "assistant ['pending', 'pending']",
        "look Paris", "tool", "look Rome", "tool", "request", "assistant",
    ]  # fmt: skip


async def test_the_messages_of_a_prompt_are_one_write_of_the_recorder() -> None:
    """Each call of the recorder may cost a change of the thread. They are in the session before anything is sent."""
    session = Session()
    writes: list[list[str]] = []

    async def recorder(write: Callable[[], None]) -> None:
        before = len(get_inner_messages(session))
        write()
        writes.append([each.role for each in get_inner_messages(session)[before:]])

    prompt = Prompt[None](system="Be brief.", messages=[sabir.user("Hello!"), sabir.assistant("Hi."), sabir.user("?")])
    await evaluate(ScriptedAdapter("Yes."), prompt, session=session, recorder=recorder)

    assert writes == [["system", "user", "assistant", "user"], ["assistant"]]


async def test_calls_of_one_reply_run_at_once_and_keep_their_order() -> None:
    """Each waits for the other, and the last ends first; sequences and the next request follow the calls' order, so
    that the records of all runs are equal (WI-10, WI-44)."""
    session, ended, llm = Session(), asyncio.Event(), ScriptedAdapter(calls(slow={}, quick={}), "Done.")

    async def slow() -> str:
        await ended.wait()
        return "slow"

    async def quick() -> str:
        ended.set()
        return "quick"

    arrived: list[int] = []
    session.observe(InnerMessage, lambda old, new: arrived.append(len(new)))
    await evaluate(llm, PROMPT, session=session, options=[slow, quick])

    assert [(record.sequence, record.content) for record in get_inner_messages(session)[3:5]] == [
        (3, "slow"), (4, "quick"),
    ]  # fmt: skip
    assert [result.result for result in llm.last.results] == ["slow", "quick"]


async def test_failures_of_options_are_results_and_the_conversation_goes_on() -> None:
    """UP-29: an unknown option, an extra argument, broken JSON and an exception end in error results that the model
    sees; their calls read failed, and the others completed."""
    session, ran = Session(), []

    def strictly(count: int) -> int:
        ran.append(count)
        return count

    def fails() -> None:
        raise ValueError("no such thing")

    chosen = calls(nothing={}, strictly=[{"count": 1, "more": 2}, "{count", {"count": 3}], fails={})
    llm = ScriptedAdapter(chosen, "I see.")
    response = await evaluate(llm, PROMPT, session=session, options=[strictly, fails])
    asked = get_inner_messages(session)[2]

    assert response.text == "I see."
    assert ran == [3]
    assert [result.error_type for result in llm.last.results] == [
        "option_not_offered", "invalid_arguments", "invalid_arguments", None, "ValueError",
    ]  # fmt: skip
    assert [call.status for call in asked.tool_calls] == ["failed", "failed", "failed", "completed", "failed"]
    assert asked.tool_calls[2].arguments == "{count"  # as the model wrote it
    assert get_inner_messages(session)[-2].content == "no such thing"


def test_what_cannot_be_recorded_stops_the_evaluation() -> None:
    """UP-30: a full disk is met before the provider is asked, and no option runs whose call is not recorded."""

    def refuse(record: InnerMessage) -> None:
        if record.role == "assistant":
            raise OSError("no space left")

    ran: list[str] = []
    look = sabir.option(name="look")(lambda: ran.append("look"))
    with pytest.raises(RecordingFailed):
        session = Session(journal=ListJournal(before=refuse))
        evaluate_sync(ScriptedAdapter(calls(look={})), PROMPT, session=session, options=[look])

    assert ran == []


def test_what_cannot_run_is_refused_before_anything_is_asked_or_recorded() -> None:
    session, llm = Session(), ScriptedAdapter()
    with pytest.raises(sabir.errors.OptionInvalid, match="asynchronous"):
        evaluate_sync(llm, PROMPT, session=session, options=[tide])
    with pytest.raises(sabir.errors.OptionInvalid, match="no function"):
        evaluate_sync(llm, PROMPT, session=session, options=[sabir.Option.from_schema("look", "", {})])
    with pytest.raises(sabir.errors.WrongWord, match=r"pass options=\[…\]"):
        evaluate_sync(llm, PROMPT, session=session, tools=[weather])  # type: ignore[call-arg]
    with pytest.raises(sabir.errors.WrongWord, match="role dictionary"):
        evaluate_sync(llm, [{"role": "user", "content": "Hi"}], session=session)  # type: ignore[list-item]

    assert (llm.sent, records_of(session)) == ((), [])


def test_a_prompt_may_be_a_text_a_message_or_a_conversation() -> None:
    """Instructions that stand in a conversation are recorded first; those who quote a model keep turn 0 (WI-11)."""
    session = Session()
    llm = ScriptedAdapter("One.", "Two.", "Three.")
    evaluate_sync(llm, "Hi", session=session)
    evaluate_sync(llm, sabir.user("Hi"), session=session)
    quoted = ScriptedAdapter(reply("Before.", calls(weather=PARIS)))
    said = quoted.complete_sync("Hi").messages
    answered = sabir.answer_sync(said, [weather])
    history = [sabir.system("Be brief."), sabir.user("Hi"), *said, *answered, sabir.user("So?")]
    evaluate_sync(llm, history, session=session, options=[weather])

    assert numbers_of(session)[:6] == [("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1)] * 2
    assert numbers_of(session)[6:] == [
        ("system", 0, 0), ("user", 1, 0), ("assistant", 2, 0), ("tool", 3, 0), ("user", 4, 0), ("assistant", 5, 1),
    ]  # fmt: skip
    assert [record.content for record in get_inner_messages(session)[6:]] == [
        "Be brief.", "Hi", "Before.", "rain in Paris", "So?", "Three.",
    ]  # fmt: skip
    assert llm.last.messages == tuple(history)


def test_a_paused_reply_is_sent_back_until_the_model_has_ended() -> None:
    """A pause asks for nothing but to go on; it is no end (D-17)."""
    llm = ScriptedAdapter(reply("I am at", finish_reason="paused"), " it.")
    response = evaluate_sync(llm, PROMPT)

    assert response.text == " it."
    assert [message.text for message in llm.last.messages] == ["Be brief.", "Umbrella today?", "I am at"]


def test_a_reply_that_waits_for_the_providers_own_calls_ends_the_evaluation_and_says_so() -> None:
    """No runner can answer them: whoever asked finds the block in the reply, and is not asked again."""
    llm = ScriptedAdapter(reply("Let me look.", finish_reason="native_calls"), "Never asked.")
    response = evaluate_sync(llm, PROMPT)

    assert (response.text, response.reply.finish_reason) == ("Let me look.", "native_calls")


def test_the_response_tells_the_whole_evaluation() -> None:
    first = sabir.Usage(input_tokens=10, output_tokens=2, reasoning_tokens=1)
    second = sabir.Usage(input_tokens=20, output_tokens=3)
    llm = ScriptedAdapter(reply(calls(weather=PARIS), usage=first), reply("Yes.", usage=second))
    response = evaluate_sync(llm, PROMPT, options=[weather])

    assert (response.prompt_ns, response.prompt_key, response.text) == ("trips", "umbrella", "Yes.")
    assert [message.kind for message in response.messages] == ["parts"] * 2 + ["option_call", "option_result", "parts"]
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.reasoning_tokens) == (30, 5, None)


@pytest.mark.parametrize(
    ("adapter", "more", "remedy"),
    [
        ("openai:gpt-5", {}, r"write sabir.adapter\('openai:gpt-5'\)"),
        (ScriptedAdapter(), {"session": ListJournal()}, r"write session=Session\(journal=store.journal\(name\)\)"),
        (ScriptedAdapter(), {"budget": 5}, r"budget is of type int; write Budget\(turns=…\)"),
    ],
    ids=["a name", "a journal", "a number"],
)
def test_what_is_most_often_given_by_mistake_is_named(adapter: Any, more: dict[str, Any], remedy: str) -> None:
    with pytest.raises(sabir.SettingsInvalid, match=remedy):
        evaluate_sync(adapter, "Hello", **more)


class Trips(MainLoop[str, list[int]]):
    """Counts umbrellas in a city."""

    def __init__(self, adapter: sabir.Adapter, **how: Any) -> None:
        super().__init__(adapter, **how)
        self.sessions: list[Session] = []

    def create_prompt(self, request: str) -> Prompt[list[int]]:
        return Prompt(ns="trips", key="count", system="Count.", messages=[sabir.user(request)], output=list[int])

    def create_session(self) -> Session:
        self.sessions.append(super().create_session())
        return self.sessions[-1]


def look(city: str) -> int:
    """How many umbrellas there are."""
    return 2


async def test_a_request_becomes_a_response_and_is_recorded() -> None:
    """WI-52: `execute` makes session and prompt, enables recording, and evaluates; awaited or waiting."""
    llm = ScriptedAdapter(calls(look={"city": "Paris"}), "[2]", "[3]")
    loop = Trips(llm, options=[look])
    first, second = await loop.execute("Paris"), loop.execute_sync("Rome")

    assert (first.output, second.output) == ([2], [3])
    assert [len(get_inner_messages(session)) for session in loop.sessions] == [5, 3]
    assert numbers_of(loop.sessions[1]) == [("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1)]
    llm.assert_asked("Paris", "Paris", "Rome")


async def test_a_session_given_by_the_caller_is_resumed() -> None:
    """WI-53, D-18: the loop makes no session of its own then; without anything to resume it says so."""
    journal = ListJournal()
    with pytest.raises(sabir.errors.ServerFailed):
        down = [sabir.errors.ServerFailed("down")] * 3
        await Trips(ScriptedAdapter(calls(look={"city": "Paris"}), *down), options=[look]).execute(
            "Paris", session=recording(journal)
        )
    loop, session = Trips(ScriptedAdapter("[2]"), options=[look]), recording(journal)
    response = await loop.execute("Paris", session=session, resume=True)

    assert (response.output, loop.sessions) == ([2], [])
    assert numbers_of(session)[-2:] == [("tool", 3, 1), ("assistant", 4, 2)]
    with pytest.raises(ConversationNotFound):
        loop.execute_sync("Paris", resume=True)


def test_the_manner_is_that_of_evaluate() -> None:
    """Budget, approval and the rest hold for each request; another library's word is refused when the loop is made."""
    loop = Trips(ScriptedAdapter(calls(look={"city": "Paris"})), options=[look], budget=Budget(turns=1))
    with pytest.raises(BudgetExhausted):
        loop.execute_sync("Paris")
    roles = [record.role for record in loop.sessions[0].select_all(InnerMessage)]
    assert roles == ["system", "user", "assistant", "tool"]
    with pytest.raises(sabir.errors.WrongWord):
        Trips(ScriptedAdapter(), tools=[look])
