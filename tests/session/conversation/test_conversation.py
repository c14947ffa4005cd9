"""One object holds a conversation: it asks, finishes what was left, and goes on under any model."""

import asyncio
import logging
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir import ToolContext
from sabir.authoring import installed_hooks
from sabir.rendering.renderer import Renderer
from sabir_session import (
    ApprovalPending,
    Budget,
    Conversation,
    ConversationBusy,
    ConversationNotFound,
    StoreError,
    with_budget,
)
from sabir_testing.scripted import Gate, ScriptedAdapter, always, calls, delayed, reply

from tests.session.support import ROME, Ask, Stopped, texts_of, weather


def test_a_question_is_answered_with_its_calls_made(ask: Ask) -> None:
    usage = sabir.Usage(input_tokens=5, output_tokens=2)
    llm = ScriptedAdapter(reply(calls(weather=ROME), usage=usage), reply("It rains.", usage=usage), "Yes.")
    chat = Conversation(llm, instructions="Be brief.", options=[weather])
    first = ask(chat, "Umbrella?")
    second = ask(chat, "Sure?")

    assert (first.text, second.text) == ("It rains.", "Yes.")
    assert [message.kind for message in first.messages] == ["parts", "parts", "option_call", "option_result", "parts"]
    assert [message.text for message in second.messages] == ["Sure?", "Yes."]
    assert (first.usage.total_tokens, len(first.replies), len(second.replies)) == (14, 2, 1)
    assert llm.last.messages == chat.messages[:-1]
    assert first.cost is None
    assert not chat.unfinished


def test_a_question_may_hold_parts_and_whole_messages() -> None:
    """Texts and parts that stand together are one message of the user; a message stands as it is."""
    chat = Conversation(ScriptedAdapter("Blue."))
    from_alice = sabir.Message(policy="alice", payload=sabir.user("I see blue.").payload)
    chat.ask_sync(from_alice, "What is this?", sabir.image(b"\x89PNG\r\n\x1a\n"))

    assert chat.messages[0] == from_alice
    assert [part.kind for part in chat.messages[1].parts] == ["text", "media"]


def test_extra_fields_stay_with_the_model_that_they_were_set_with() -> None:
    """Another model gets them as a loss, a fork of the conversation too; the first one gets them again."""
    chat = Conversation("echo:a", settings=sabir.Settings(extra_body={"trace": 1}, extra_headers={"x-team": "sky"}))
    seen = [chat.preview("Hi")]
    chat.model = "openai.chat:gpt-4.1"
    seen += [chat.preview("Hi"), chat.fork("other").preview("Hi")]
    chat.model = "echo:a"
    seen.append(chat.preview("Hi"))

    assert ["trace" in each.body for each in seen] == ["x-team" in each.headers for each in seen] == [
        True, False, False, True,
    ]  # fmt: skip
    assert [[loss.path for loss in each.losses] for each in seen[1:3]] == 2 * [
        ["extra_body.trace", "extra_headers.x-team"]
    ]


def test_another_model_goes_on_with_the_same_conversation() -> None:
    """The model is an attribute; the answer has the losses of the hand-over, each once."""
    first, second = ScriptedAdapter(calls(weather=ROME), "Rain."), ScriptedAdapter("Still rain.", model="anthropic:c")
    chat = Conversation(first, options=[weather], settings=sabir.Settings(seed=1, max_output_tokens=9))
    chat.ask_sync("Umbrella?")
    chat.model = second
    answer = chat.ask_sync("And now?")

    assert [message.policy for message in second.last.messages] == ["user", "llm", "weather", "llm", "user"]
    assert [(loss.kind, loss.path) for loss in answer.losses] == [("dropped", "settings.seed")]
    with pytest.raises(sabir.ProviderMissing):
        chat.model = "nobody:m"
    assert chat.model is second


def test_what_a_preview_shows_is_what_is_sent() -> None:
    """Nothing is sent or recorded by it."""
    llm = ScriptedAdapter("Hello.", model="anthropic:c")
    chat = Conversation(llm, instructions="Be brief.", settings=sabir.Settings(seed=1, max_output_tokens=9))
    shown = chat.preview("Hi")

    assert (llm.sent, chat.messages) == ((), ())
    assert [loss.path for loss in shown.losses] == ["settings.seed"]
    chat.ask_sync("Hi")
    assert llm.last.rendering.body == shown.body


def test_a_refused_rendering_leaves_the_conversation_as_it_was(ask: Ask) -> None:
    """Nothing is recorded, so the next question is not stopped by it."""
    llm = ScriptedAdapter("Hello.", model="anthropic:c")
    chat = Conversation(llm, strict=True, settings=sabir.Settings(max_output_tokens=9))
    for refused in (True, False):  # in an empty conversation, and after a turn
        with pytest.raises(sabir.RenderingRefused):
            ask(chat, "Listen.", sabir.audio(b"RIFF\x24\x00\x00\x00WAVEfmt "))
        assert (len(chat.messages), chat.unfinished) == (0 if refused else 2, False)
        if refused:
            assert ask(chat, "Hi").text == "Hello."


def test_a_function_that_cannot_run_leaves_the_conversation_as_it_was() -> None:
    async def look() -> str:
        return "grey"

    chat = Conversation(ScriptedAdapter("Hi."), options=[look])
    with pytest.raises(sabir.errors.OptionInvalid, match="look"):
        chat.ask_sync("Hi")
    assert (chat.messages, chat.unfinished) == ((), False)


def test_changed_instructions_are_recorded_with_the_next_question(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The record keeps the earlier ones, and a change is logged. What did not change is not recorded again."""
    caplog.set_level(logging.WARNING, "sabir")
    texts: list[str] = []
    for question, river, instructions in [
        ("Name a river.", "Po.", "Be brief."), ("Another.", "Rhine.", "Be brief."), ("A third.", "Elbe.", "Be loud."),
    ]:  # fmt: skip
        assert caplog.text == ""
        with Conversation(ScriptedAdapter(river), instructions=instructions, keep=tmp_path / "c.db") as chat:
            chat.ask_sync(question)
            texts = texts_of(chat)

    assert "instructions of the conversation 'conversation' differ" in caplog.text
    assert texts == [
        "Be brief.", "Name a river.", "Po.", "Another.", "Rhine.", "Be loud.", "A third.", "Elbe.",
    ]  # fmt: skip


def test_what_a_crash_left_is_finished_first_and_no_finished_call_runs_again(tmp_path: Path, ask: Ask) -> None:
    """The next question finds the earlier answer in the messages; the call that ended keeps its result."""
    ran: list[tuple[int, bool]] = []
    crashes = [True]

    def pay(amount: int, context: ToolContext) -> str:
        if amount == 2 and crashes:
            raise Stopped
        ran.append((amount, context.is_resume))
        return "paid" if crashes else "paid late"

    llm = ScriptedAdapter(calls(pay=[{"amount": 1}, {"amount": 2}]))
    with Conversation(llm, options=[pay], keep=tmp_path / "c.db") as chat, pytest.raises(Stopped):
        chat.ask_sync("Pay both.")
    crashes.clear()
    llm = ScriptedAdapter("Both are paid.", "You are welcome.")
    with Conversation(llm, options=[pay], keep=tmp_path / "c.db") as chat:
        assert chat.unfinished
        assert ask(chat, "Thanks.").text == "You are welcome."
        assert texts_of(chat) == ["Pay both.", "Both are paid.", "Thanks.", "You are welcome."]
    assert ran == [(1, False), (2, True)]
    assert [result.result for result in llm.sent[0].results] == ["paid", "paid late"]


def test_asking_nothing_finishes_or_tells_the_last_answer() -> None:
    overloaded = sabir.errors.Overloaded("busy")
    chat = Conversation(ScriptedAdapter(overloaded, "The Po."), settings=sabir.Settings(retries=0))
    with pytest.raises(ConversationNotFound, match="has no question yet"):
        chat.ask_sync()
    with pytest.raises(sabir.errors.Overloaded) as met:
        chat.ask_sync("Name a river.")

    assert chat.unfinished
    assert "ask() tries again, drop_last() removes the question" in met.value.__notes__[0]
    assert chat.ask_sync().text == chat.ask_sync().text == "The Po."
    assert texts_of(chat) == ["Name a river.", "The Po."]


def test_a_question_whose_results_are_refused_is_stored_without_an_answer(ask: Ask) -> None:
    @sabir.option
    def photo() -> sabir.MediaPart:
        """A photo."""
        return sabir.image(b"\x89PNG\r\n\x1a\n")

    llm = ScriptedAdapter(calls(photo={}), "A tree.", model="echo:m", strict=True)
    chat = Conversation(llm, options=[photo])
    with pytest.raises(sabir.RenderingRefused) as met:
        ask(chat, "What is there?")

    assert chat.unfinished
    assert "ask() tries again, drop_last() removes the question" in met.value.__notes__[0]
    chat.drop_last()
    assert not chat.messages


def test_a_call_that_waits_for_a_person_stops_the_next_question(ask: Ask) -> None:
    """Nothing is sent and the question is not recorded; with the person's word, it goes on."""
    llm = ScriptedAdapter(calls(weather=ROME), "Rain.", "Bye.")
    chat = Conversation(llm, options=[weather], approve=lambda call: "wait")
    for content in ("Umbrella?", "Well?"):
        with pytest.raises(ApprovalPending) as met:
            ask(chat, content)
        assert [call.call.option_name for call in met.value.calls] == ["weather"]
    assert (len(llm.sent), texts_of(chat)) == (1, ["Umbrella?"])

    chat.approve = lambda call: "allow"
    assert ask(chat, "Bye.").text == "Bye."
    assert texts_of(chat) == ["Umbrella?", "Rain.", "Bye.", "Bye."]


def test_a_question_of_several_messages_is_one_turn(tmp_path: Path) -> None:
    llm = ScriptedAdapter("Rhine.", "Elbe.", "Oder.")
    chat = Conversation(llm, instructions="Be brief.", keep=tmp_path / "c.db")
    chat.ask_sync(sabir.user("Name one."), sabir.assistant("Po."), "Name another.")
    chat.instructions = "Be loud."
    assert len(chat.ask_sync("And one more.").messages) == 3
    assert [message.text for message in llm.last.messages][-3:] == ["Name another.", "Rhine.", "And one more."]
    assert llm.last.messages[0].text == "Be loud."

    assert len(chat.drop_last()) == 3
    assert [message.text for message in chat.drop_last()][1:] == ["Name one.", "Po.", "Name another.", "Rhine."]
    chat.ask_sync("Begin anew.")
    assert texts_of(chat) == ["Be loud.", "Begin anew.", "Oder."]
    with pytest.raises(sabir.SettingsInvalid, match="the policy 'runtime', which is reserved"):
        chat.ask_sync(sabir.Message(policy="runtime", payload=sabir.user("Hi").payload))
    chat.close()


def test_what_was_asked_for_is_remembered_until_it_is_answered() -> None:
    """A question that failed is finished in the type that it wanted, and the new one says why it was not asked."""
    busy = sabir.errors.Overloaded("busy")
    chat = Conversation(ScriptedAdapter(busy, busy, '{"value": 7}'), settings=sabir.Settings(retries=0))
    with pytest.raises(sabir.errors.Overloaded):
        chat.ask_sync("How many?", output=int)
    with pytest.raises(sabir.errors.Overloaded) as met:
        chat.ask_sync("And why?")
    assert "the new question was not sent" in met.value.__notes__[-1]
    assert chat.ask_sync().output == 7


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"retries": -1}, sabir.SettingsInvalid, "retries is -1; expected a whole number"),
    ({"budget": 3}, sabir.SettingsInvalid, "budget is 3; expected Budget"),
    ({"approve": "allow"}, sabir.SettingsInvalid, "approve is 'allow'; expected a function"),
    ({"instructions": None}, sabir.SettingsInvalid, "expected a text"),
    ({"name": ""}, StoreError, "expected a text of at least one character"),
    ({"output": [int, str]}, sabir.SettingsInvalid, "is not a type; pass a type"),
    ({"system_prompt": "Hi"}, sabir.errors.WrongWord, "use instructions=…"),
    ({"output_type": int}, sabir.errors.WrongWord, "use output=…"),
    ({"message_history": []}, sabir.errors.WrongWord, "ask\\(\\*messages"),
]


@pytest.mark.parametrize(("given", "kind", "said"), WRONG)
def test_a_wrong_argument_is_told_at_once(given: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        Conversation("echo:m", **given)


def test_a_wrong_attribute_and_a_wrong_word_are_told_at_once() -> None:
    chat = Conversation("echo:m")
    with pytest.raises(AttributeError, match="no attribute 'tools' to set; you can set model, instructions, options"):
        chat.tools = []  # type: ignore[attr-defined]
    with pytest.raises(sabir.errors.WrongWord, match=r"chat\.retries = …"):
        chat.ask_sync("Hi", retries=3)  # type: ignore[call-overload]


async def test_one_question_at_a_time() -> None:
    gate = Gate()
    chat = Conversation(ScriptedAdapter(delayed("Po.", gate), "Rhine."))
    first = asyncio.ensure_future(chat.ask("Name a river."))
    await gate.reached()
    with pytest.raises(ConversationBusy, match="already answering a question"):
        await chat.ask("Another.")
    gate.open()
    assert (await first).text == "Po."
    assert (await chat.ask("Another.")).text == "Rhine."


def test_options_get_what_they_need_without_globals() -> None:
    """A bound method has its object, and a parameter of the type ToolContext is filled in and not shown."""

    class Desk:
        def __init__(self) -> None:
            self.keys: list[str] = []

        def note(self, text: str, context: ToolContext) -> str:
            context.report(1, 1, text)
            self.keys.append(context.idempotency_key)
            return "noted"

    desk, llm = Desk(), ScriptedAdapter(calls(note={"text": "milk"}), "Noted.")
    with Conversation(llm, options=[desk.note]).stream_sync("Milk!") as stream:
        progress = [event for event in stream if type(event).__name__ == "CallProgress"]

    assert (len(desk.keys), len(progress)) == (1, 1)
    assert list(llm.sent[0].options[0].parameters["properties"]) == ["text"]


COSTS = [(Decimal("0.01"), Decimal("0.02")), (None, None), (Decimal("NaN"), None), (7, None)]


@pytest.mark.parametrize(("cost", "total"), COSTS)
def test_the_cost_of_an_answer_is_the_sum_of_its_replies(cost: Any, total: Decimal | None) -> None:
    class Tariff:
        @sabir.hookimpl
        def sabir_reply_cost(self, reply: sabir.Reply) -> Any:
            return cost

    tariff = Tariff()
    installed_hooks().register(tariff)
    try:
        chat = Conversation(ScriptedAdapter(calls(weather=ROME), "Rain."), options=[weather])
        assert (chat.ask_sync("Umbrella?").cost, chat.cost) == (total, total)
    finally:
        installed_hooks().unregister(tariff)


def test_it_reads_in_a_line_or_two() -> None:
    chat = Conversation(ScriptedAdapter("It rains. " * 1000), name="trip")
    answer = chat.ask_sync("Umbrella? " * 1000)

    assert repr(chat) == "Conversation('scripted:model', name='trip', messages=2)"
    assert len(repr(answer)) < 240
    assert "It rains." in repr(answer)


REFUSAL = sabir.RefusalPart(text="I may not.")
ENDINGS = [
    (reply("It rai", finish_reason="length"), "length", None, "finish_reason='length'"),
    (reply("It", finish_reason="content_filter"), "content_filter", None, "finish_reason='content_filter'"),
    (reply(REFUSAL, finish_reason="content_filter"), "content_filter", "I may not.", "refusal='I may not.', finish_"),
    (reply("No:", REFUSAL), "stop", "I may not.", "text='No:', refusal='I may not.', usage"),
    (reply("Rain."), "stop", None, "text='Rain.', usage"),
]


@pytest.mark.parametrize(("answered", "reason", "refusal", "shown"), ENDINGS)
def test_an_answer_shows_a_refusal_and_a_cut(
    ask: Ask, answered: Any, reason: str, refusal: str | None, shown: str
) -> None:
    answer = ask(Conversation(ScriptedAdapter(answered)), "Umbrella?")

    assert (answer.finish_reason, answer.refusal) == (reason, refusal)
    assert shown in repr(answer)


@pytest.mark.parametrize("is_watched", [False, True])
def test_the_rendering_that_was_checked_is_sent(ask: Ask, monkeypatch: pytest.MonkeyPatch, is_watched: bool) -> None:
    """Each request is rendered once, also under a budget of `within`; the second request has the call's result."""
    rendered: list[int] = []

    def render(self: Renderer, messages: Any, *rest: Any) -> sabir.Rendering:
        rendered.append(len(messages))
        return unchanged(self, messages, *rest)

    llm = with_budget(ScriptedAdapter("Hm.", calls(weather=ROME), "Bye."), Budget())
    chat = Conversation(llm, options=[weather], watch=(lambda event: None) if is_watched else None)
    ask(chat, "Before.")
    unchanged = Renderer.render
    monkeypatch.setattr(Renderer, "render", render)
    assert ask(chat, "Umbrella?").text == "Bye."
    assert rendered == [3, 5]


def test_what_a_wrapper_does_with_messages_is_not_passed_over() -> None:
    """A fallback, or a wrapper that redacts, does more with messages than its rendering shows."""
    down, up = ScriptedAdapter(sabir.errors.Overloaded("busy")), ScriptedAdapter("Hello.")
    chat = Conversation(sabir.fallback(down, up), settings=sabir.Settings(retries=0))
    assert chat.ask_sync("Hi").text == "Hello."


def test_a_question_costs_the_same_in_a_long_conversation() -> None:
    """The library makes as many calls of its own for question 200 as for question 20, and asks each price once."""
    priced: list[int] = []

    def price(reply: sabir.Reply) -> Decimal:
        priced.append(1)
        return Decimal("0.01")

    budget = Budget(cost=1000, price=price)
    chat = Conversation(ScriptedAdapter(always("Yes.")), instructions="Be brief.", options=[weather], budget=budget)
    counts: dict[int, int] = {}
    for number in range(201):
        called = 0

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal called
            called += event == "call" and "sabir_session" in frame.f_code.co_filename

        sys.setprofile(count if number in (20, 200) else None)
        try:
            chat.ask_sync("Sure?")
            chat.usage, chat.cost  # noqa: B018 - only their cost counts
        finally:
            sys.setprofile(None)
        counts[number] = called
    assert counts[20] == counts[200] > 0
    assert len(priced) == 201
