"""The answer as it arrives: what happens is shown as it happens, and a stream that is left stops."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir_session import CallEnded, Conversation, ConversationBusy, Event, TextArrived, Watch
from sabir_testing.scripted import ScriptedAdapter, calls

from tests.session.support import ROME, texts_of, weather


async def test_a_stream_that_was_left_asks_nothing() -> None:
    """Nor does one that nobody read; two readers share the events."""
    chat = Conversation(ScriptedAdapter("One two.", "Three four."))
    async with chat.stream("Count.") as stream:
        pass
    assert [event async for event in stream] == []
    assert (chat.messages, chat.unfinished) == ((), False)

    stream = chat.stream("Count.")

    async def read() -> list[Event]:
        return [event async for event in stream]

    first, second = await asyncio.gather(read(), read())
    assert len([*first, *second]) == 4


def test_a_stream_shows_what_happens_as_it_happens() -> None:
    heard: list[Event] = []
    watch: Watch = heard.append
    chat = Conversation(ScriptedAdapter(calls(weather=ROME), "It rains."), options=[weather], watch=watch)
    seen: list[Event] = []
    with chat.stream_sync("Umbrella?") as stream:
        for event in stream:
            seen.append(event)
            assert seen == heard  # it runs no further than its reader
        assert stream.answer().text == "It rains."

    assert seen == heard
    assert [type(event).__name__ for event in seen] == [
        "RequestStarted", "ReplyArrived", "CallStarted", "CallEnded", "RequestStarted", "TextArrived", "TextArrived",
        "ReplyArrived",
    ]  # fmt: skip


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_a_stream_that_is_left_stops(is_awaited: bool) -> None:
    chat = Conversation(ScriptedAdapter("One two three.", "One two three four."))
    closed = pytest.raises(sabir.SettingsInvalid, match="closed before the answer was complete")
    if is_awaited:
        async with chat.stream("Count.") as stream:
            async for _ in stream.text:
                break
        with closed:
            await stream.answer()
    else:
        with chat.stream_sync("Count.") as sync_stream:
            assert next(iter(sync_stream.text)) == "One "
        with closed:
            sync_stream.answer()
    assert (chat.unfinished, texts_of(chat)) == (True, ["Count."])
    assert chat.ask_sync().text == "One two three four."


def opened(chat: Conversation[Any], what: str, *, is_awaited: bool) -> Any:
    """Return an iterator over a new stream to which nothing else refers."""
    stream: Any = chat.stream("Count.") if is_awaited else chat.stream_sync("Count.")
    return stream.text if what == "text" else stream


async def read_a_word(chat: Conversation[Any], what: str) -> None:
    """Read a new stream to its first word, and leave it by `break`; nothing else is awaited."""
    async for item in opened(chat, what, is_awaited=True):
        if isinstance(item, str | TextArrived):
            break


@pytest.mark.parametrize("what", ["text", "events"])
@pytest.mark.parametrize("is_kept", [False, True])
async def test_break_frees_a_conversation_at_once(what: str, is_kept: bool, tmp_path: Path) -> None:
    """The question can be dropped for nothing, or is finished first; another object can ask as well."""
    llm = ScriptedAdapter("One two three.", "Four.", "Five six.", "Seven.", "Eight.", "Nine ten.", "Ten.", "Eleven.")
    chat = Conversation(llm, keep=tmp_path / "c.db" if is_kept else None)
    await read_a_word(chat, what)
    assert chat.unfinished
    assert [message.text for message in chat.drop_last()] == ["Count."]
    assert (await chat.ask("Go on.")).text == "Four."
    assert len(llm.sent) == 2

    await read_a_word(chat, what)
    assert chat.ask_sync("And?").text == "Eight."
    assert texts_of(chat) == ["Go on.", "Four.", "Count.", "Seven.", "And?", "Eight."]
    if is_kept:
        await read_a_word(chat, what)
        assert (await Conversation(llm, keep=tmp_path / "c.db").ask("Go on.")).text == "Eleven."
    await asyncio.sleep(0)
    await chat.aclose()


@pytest.mark.parametrize("what", ["text", "events"])
def test_break_frees_a_sync_conversation_at_once(what: str) -> None:
    chat = Conversation(ScriptedAdapter("One two three.", "Four."))
    for item in opened(chat, what, is_awaited=False):
        if isinstance(item, str | TextArrived):
            break
    chat.drop_last()
    assert chat.ask_sync("Go on.").text == "Four."


async def test_a_stream_in_a_variable_is_read_on_or_taken_over() -> None:
    chat = Conversation(ScriptedAdapter("One two three.", "Four five.", "Six.", "Seven."))
    stream = chat.stream("Count.")
    async for _ in stream.text:
        break
    assert (await stream.answer()).text == "One two three."

    stream = chat.stream("Go on.")
    async for _ in stream.text:
        break
    chat.drop_last()
    assert (await chat.ask("Again.")).text == "Six."
    assert [event async for event in stream] == []
    with pytest.raises(sabir.SettingsInvalid, match="closed before the answer was complete"):
        await stream.answer()


async def test_a_stream_that_is_read_keeps_the_conversation_busy() -> None:
    chat = Conversation(ScriptedAdapter("One two three.", "Four five."))
    async for _ in chat.stream("Count.").text:
        with pytest.raises(ConversationBusy):
            await chat.ask("Go on.")
        with pytest.raises(ConversationBusy):
            chat.drop_last()
    async with chat.stream("Count.") as stream:
        async for _ in stream:
            break
        with pytest.raises(ConversationBusy):
            chat.drop_last()
        assert (await stream.answer()).text == "Four five."


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_events_name_their_question_and_text_has_the_new_answer(is_awaited: bool) -> None:
    """The unfinished question is finished first: its events come, its text does not."""
    watched: list[Event] = []
    chat = Conversation(
        ScriptedAdapter("One two.", "One two three.", calls(weather=ROME), "It rains.", "{}"),
        options=[weather],
        watch=watched.append,
    )
    for _ in chat.stream_sync("Count.").text:
        break
    if is_awaited:
        async with chat.stream("Umbrella?") as stream:
            events = [event async for event in stream]
            answer = await stream.answer()
    else:
        with chat.stream_sync("Umbrella?") as sync_stream:
            events = list(sync_stream)
            answer = sync_stream.answer()
    asked = [message.id for message in chat.messages if message.policy == "user"]
    first = [event for event in events if event.question == asked[0]]
    assert events[: len(first)] == first
    assert "".join(event.text for event in first if isinstance(event, TextArrived)) == "One two three."
    assert {event.question for event in events[len(first) :]} == {asked[1]} == {answer.messages[0].id}
    assert watched[-len(events) :] == events

    for _ in chat.stream_sync("Count.").text:
        break
    chat.model = ScriptedAdapter("One two.", "Nine ten.")
    assert "".join(chat.stream_sync("And?").text) == "Nine ten."


async def test_results_of_options_are_recorded_although_the_stream_was_left() -> None:
    """The next question waits until options have ended, so that none runs twice."""
    ran: list[str] = []

    async def pay(to: str) -> str:
        ran.append(to)
        if to == "Ann":
            return "paid"
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "paid late"

    llm = ScriptedAdapter(calls(pay=[{"to": "Ann"}, {"to": "Bob"}]), "Both are paid.", "Bye.")
    chat = Conversation(llm, options=[pay])
    async for event in chat.stream("Pay both."):
        if isinstance(event, CallEnded):
            break
    assert (await chat.ask("Bye.")).text == "Bye."
    assert ran == ["Ann", "Bob"]
    assert [result.result for result in llm.sent[1].results] == ["paid", "paid late"]
