"""The answer as it arrives: what happens is shown as it happens, and a stream that is left stops."""

import asyncio

import pytest
import sabir
from sabir_session import (
    Conversation,
    Event,
    Watch,
)
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
    """Texts as they come, a call before its result; a watcher of the conversation hears the same."""
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
def test_a_stream_that_is_left_stops(is_awaited: bool) -> None:
    """The question stays unfinished, and the next asking finishes it."""
    chat = Conversation(ScriptedAdapter("One two three.", "One two three four."))

    async def leave() -> None:
        async with chat.stream("Count.") as stream:
            async for _ in stream.text:
                break
        with pytest.raises(sabir.SettingsInvalid, match="left before its answer"):
            await stream.answer()

    if is_awaited:
        asyncio.run(leave())
    else:
        with chat.stream_sync("Count.") as stream:
            assert next(iter(stream.text)) == "One "
        with pytest.raises(sabir.SettingsInvalid, match="left before its answer"):
            stream.answer()
    assert (chat.unfinished, texts_of(chat)) == (True, ["Count."])
    assert chat.ask_sync().text == "One two three four."
