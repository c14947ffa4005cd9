"""The last turn is asked again: the old answer is given up only when the new one is complete."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir_session import (
    Budget,
    BudgetExhausted,
    Conversation,
    ConversationNotFound,
    Session,
    SQLiteStore,
    StoreError,
    enable_inner_message_recording,
    get_inner_messages,
)
from sabir_session.errors import PositionTaken
from sabir_session.stores.engines import open_store
from sabir_testing.scripted import ScriptedAdapter, calls

from tests.session.support import ROME, texts_of, weather


@pytest.fixture
def chat(place: dict[str, Any]) -> Any:  # an iterator of one conversation
    """A conversation of two turns."""
    answers = ("Po.", calls(weather=ROME), "Rain.", "Sun.", "Elbe.")
    with Conversation(ScriptedAdapter(*answers), options=[weather], **place) as chat:
        chat.ask_sync("Name a river.")
        chat.ask_sync("Umbrella?")
        yield chat


def texts_elsewhere(place: dict[str, Any], chat: Conversation[Any]) -> list[str]:
    """Return the texts that the store holds, or those of the conversation if it is in memory."""
    if not place:
        return texts_of(chat)
    with open_store(place["keep"]) as store:
        session = Session(journal=store.journal("conversation"))
        enable_inner_message_recording(session)
        messages = [message for record in get_inner_messages(session) for message in record.messages]
        return [message.text for message in messages if message.text]


def test_a_complete_answer_replaces_the_last_turn(chat: Conversation[Any], place: dict[str, Any]) -> None:
    """The replacement continues the conversation, in this process and in the next one. Whoever reads the store
    meanwhile, or after this process died, sees the old turn."""
    before = texts_of(chat)
    with chat.replacing_last() as turn:
        assert turn[0].text == "Umbrella?"
        assert texts_of(chat) == ["Name a river.", "Po."]
        chat.ask_sync("Umbrella?")
        assert not place or texts_elsewhere(place, chat) == before
    chat.ask_sync("Another.")

    expected = ["Name a river.", "Po.", "Umbrella?", "Sun.", "Another.", "Elbe."]
    assert texts_of(chat) == expected == texts_elsewhere(place, chat)


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, RuntimeError])
def test_an_error_brings_the_old_turn_back(
    chat: Conversation[Any], place: dict[str, Any], error: type[BaseException]
) -> None:
    before = texts_of(chat)
    with suppress(error), chat.replacing_last():
        raise error
    assert texts_of(chat) == before
    with suppress(error), chat.replacing_last():
        chat.ask_sync("Umbrella?")
        raise error

    assert texts_of(chat) == before == texts_elsewhere(place, chat)
    assert not chat.unfinished
    assert chat.ask_sync("Another.").text == "Elbe."


def test_a_block_that_asks_nothing_changes_nothing(chat: Conversation[Any], place: dict[str, Any]) -> None:
    """The first turn, too, which leaves nothing before it; where nothing was asked, nothing can be replaced."""
    before = texts_of(chat)
    with chat.replacing_last():
        pass
    assert texts_of(chat) == before == texts_elsewhere(place, chat)
    chat.drop_last()
    with chat.replacing_last():
        assert chat.messages == ()

    assert texts_of(chat) == ["Name a river.", "Po."] == texts_elsewhere(place, chat)
    chat.drop_last()
    with pytest.raises(ConversationNotFound), chat.replacing_last():
        raise AssertionError("the block is not entered")


def test_a_refused_rendering_and_an_exhausted_budget_leave_the_old_turn(place: dict[str, Any]) -> None:
    with Conversation("echo:m", **place) as chat:
        chat.ask_sync("Name a river.")
        before = texts_of(chat)
        chat.strict = {"downgraded", "dropped"}
        with pytest.raises(sabir.RenderingRefused), chat.replacing_last():
            chat.ask_sync(sabir.image("https://example.com/a.png"))
        chat.strict, chat.budget = None, Budget(seconds=0)
        with pytest.raises(BudgetExhausted), chat.replacing_last():
            chat.ask_sync("Name a river.")

        assert texts_of(chat) == before == texts_elsewhere(place, chat)


def test_a_conversation_continued_elsewhere_is_not_replaced(tmp_path: Path) -> None:
    place: dict[str, Any] = {"keep": tmp_path / "c.db"}
    with Conversation(ScriptedAdapter("Po.", "Rhine."), **place) as chat:
        chat.ask_sync("Name a river.")
        with Conversation("echo:m", **place) as other, pytest.raises(PositionTaken), chat.replacing_last():
            chat.ask_sync("Name a river.")
            other.ask_sync("Meanwhile.")

        assert texts_of(chat) == ["Name a river.", "Po.", "Meanwhile.", "Meanwhile."]


def test_a_store_that_cannot_be_written_keeps_the_old_turn(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db") as store, Conversation("echo:m", keep=store) as chat:
        chat.ask_sync("Name a river.")
        before = [*store.journal("conversation").read()]
        with pytest.raises(StoreError):
            store.rewind("conversation", 0, len(before), [("a", "1"), ("b", None)])  # type: ignore[list-item]

        assert [*store.journal("conversation").read()] == before
