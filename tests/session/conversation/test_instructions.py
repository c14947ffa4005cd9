"""Only the current instructions are sent, as the system message; the record keeps every version."""

from pathlib import Path
from typing import Any

import pytest
import sabir
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir_session import (
    Conversation,
    InnerMessage,
    Prompt,
    Session,
    SQLiteStore,
    current_messages,
    enable_inner_message_recording,
    evaluate_sync,
    get_inner_messages,
)
from sabir_session.evaluation.evaluations import begin_evaluation
from sabir_testing.scripted import ScriptedAdapter, always

from tests.session.support import texts_of

MODELS = {
    "anthropic:claude-sonnet-4-5": lambda body: body["system"],
    "google:gemini-2.5-flash": lambda body: body["systemInstruction"],
    "openai.chat:gpt-4.1": lambda body: body["messages"][0]["content"],
    "openai.responses:gpt-5": lambda body: body["input"][0]["content"],
}
"""Model → the system prompt of a request body."""


def scripted(model: str = "scripted:model") -> ScriptedAdapter:
    return ScriptedAdapter(always("Certainly."), model=model)


def sent_texts(llm: ScriptedAdapter) -> list[str]:
    return [message.text for message in llm.last.messages]


@pytest.mark.parametrize("model", MODELS)
def test_changed_instructions_replace_the_system_prompt(model: str) -> None:
    llm = scripted(model)
    chat = Conversation(llm, instructions="Be brief.")
    chat.ask_sync("Name a river.")
    for instructions in ("Be loud.", ("Be", "polite.")):
        chat.instructions = instructions
        chat.ask_sync("Another.")
        text = str(llm.last.rendering.body)
        prompt = str(MODELS[model](llm.last.rendering.body))
        shown = instructions if isinstance(instructions, str) else instructions[-1]
        assert shown in prompt and text.count(shown) == 1 and "brief" not in text

    chat.instructions = ""
    chat.ask_sync("A third.")
    assert not any(word in str(llm.last.rendering.body) for word in ("brief", "loud", "polite"))
    assert texts_of(chat) == [
        "Be brief.", "Name a river.", "Certainly.", "Be loud.", "Another.", "Certainly.", "Bepolite.", "Another.",
        "Certainly.", "A third.", "Certainly.",
    ]  # fmt: skip


def test_a_reopened_conversation_sends_its_recorded_or_its_new_instructions(tmp_path: Path) -> None:
    """Instructions that were removed stay removed, and those of an earlier process are not sent beside new ones."""
    llm, keep = scripted(), tmp_path / "c.db"
    steps: list[tuple[dict[str, Any], str]] = [
        ({"instructions": "Be brief."}, "Be brief."), ({}, "Be brief."), ({"instructions": "Be loud."}, "Be loud."),
        ({}, "Be loud."), ({"instructions": ""}, ""), ({}, ""), ({"instructions": "Be brief."}, "Be brief."),
    ]  # fmt: skip
    for how, expected in steps:
        with Conversation(llm, keep=keep, **how) as chat:
            assert chat.instructions == expected
            assert [loss.kind for loss in chat.preview("Hi").losses] == []
            chat.ask_sync("Hi")
            assert [m.text for m in llm.last.messages if m.policy == "system"] == [expected] * bool(expected)
            assert llm.last.messages[0].text == (expected or "Hi")
            assert chat.sent_messages[:-1] == llm.last.messages


def test_system_messages_of_a_question_stay_where_they_are(tmp_path: Path) -> None:
    llm, keep = scripted(), tmp_path / "c.db"
    with Conversation(llm, instructions="Be brief.", keep=keep) as chat:
        chat.ask_sync("One.")
        chat.ask_sync(sabir.system("The user is in Rome."), "Two.")
        chat.instructions = "Be loud."
        chat.ask_sync(sabir.system("It rains."), "Three.")
    expected = ["Be loud.", "One.", "Certainly.", "The user is in Rome.", "Two.", "Certainly.", "It rains.", "Three."]
    assert sent_texts(llm) == expected
    with Conversation(llm, keep=keep) as chat:
        chat.ask_sync("Four.")
    assert sent_texts(llm)[:-2] == expected


def test_the_record_marks_what_a_question_does_to_the_instructions(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db") as store:
        with Conversation(scripted(), instructions="Be brief.", keep=store) as chat:
            chat.ask_sync("One.")
            chat.ask_sync("Two.")
            chat.instructions = ""
            chat.ask_sync("Three.")
        session = Session(journal=store.journal("conversation"))
        enable_inner_message_recording(session)
        records = get_inner_messages(session)
    marks = [record.instructions for record in records if record.role == "user"]
    assert marks == ["new", "same", "none"]
    assert [message.text for message in current_messages(records)][:2] == ["One.", "Certainly."]


def test_unmarked_records_send_the_newest_of_several_instructions() -> None:
    """As earlier versions recorded them: a system message before the question's own messages."""
    session = Session()
    enable_inner_message_recording(session)
    evaluation = begin_evaluation(Prompt(), "llm")
    records = [*evaluation.unrecorded]
    for instructions in ("Be brief.", "Be loud."):
        records.append(evaluation.add_messages(sabir.system(instructions), sabir.user("Hi")))
        records.append(evaluation.add_reply(ScriptedAdapter("Yes.").complete_sync("Hi")))
    for record in records:
        session.mutate(InnerMessage).append(record)
    llm = scripted()
    evaluate_sync(llm, [], session=session, resume=True)
    evaluation.add_messages(sabir.user("Again"))
    texts = [message.text for message in evaluation.messages_to_send]
    assert texts == ["Be loud.", "Hi", "Yes.", "Hi", "Yes.", "Again"]


def test_a_dropped_question_takes_its_instructions_with_it(tmp_path: Path) -> None:
    """They come with the next question again; a reopened conversation has the earlier ones."""
    llm = scripted()
    with Conversation(llm, instructions="Be brief.", keep=tmp_path / "c.db") as chat:
        chat.ask_sync("One.")
        chat.instructions = "Be loud."
        chat.ask_sync("Two.")
        chat.drop_last()
        with chat.fork("other") as fork:
            fork.ask_sync("Two again.")
            assert sent_texts(llm) == ["Be loud.", "One.", "Certainly.", "Two again."]
    with Conversation(llm, keep=tmp_path / "c.db") as chat:
        assert chat.instructions == "Be brief."
        chat.ask_sync("Two.")
        assert sent_texts(llm) == ["Be brief.", "One.", "Certainly.", "Two."]


def test_evaluate_resumes_a_conversation_with_its_current_instructions(tmp_path: Path) -> None:
    busy = sabir.errors.Overloaded("busy")
    model = ScriptedAdapter("Certainly.", busy, settings=sabir.Settings(retries=0))
    with SQLiteStore(tmp_path / "c.db") as store:
        with Conversation(model, instructions="Be brief.", keep=store) as chat:
            chat.ask_sync("One.")
            chat.instructions = "Be loud."
            with pytest.raises(sabir.errors.Overloaded):
                chat.ask_sync("Two.")
        llm = scripted()
        evaluate_sync(llm, [], session=Session(journal=store.journal("conversation")), resume=True)
    assert sent_texts(llm) == ["Be loud.", "One.", "Certainly.", "Two."]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["Be brief.", "Be loud.", ""]), min_size=1, max_size=6))
def test_a_rendered_prefix_changes_only_with_the_instructions(versions: list[str]) -> None:
    """Each request begins with the messages of the one before, unless the instructions differ; then all but them."""
    llm = scripted("openai.chat:gpt-4.1")
    chat, earlier, before = Conversation(llm), None, ""
    for number, instructions in enumerate(versions):
        chat.instructions = instructions
        chat.ask_sync(f"Question {number}.")
        messages: list[Any] = llm.last.rendering.body["messages"]
        assert [each["content"] for each in messages if each["role"] == "system"] == [instructions] * bool(instructions)
        if earlier is not None:
            assert messages[bool(instructions) :][: len(earlier) - bool(before)] == earlier[bool(before) :]
            assert instructions != before or messages[: len(earlier)] == earlier
        earlier, before = messages, instructions
