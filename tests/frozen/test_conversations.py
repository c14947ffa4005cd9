"""Conversations and evaluations of older versions: read as they were written, and continued."""

from collections.abc import Iterator

import pytest
import sabir
from sabir_session import ApprovalPending, Conversation, Store, evaluate_sync, unfinished_evaluations
from sabir_testing import ScriptedAdapter, always, reply

from tests.frozen import readable
from tests.frozen.conftest import Frozen
from tests.frozen.programs import TRIP, WEATHER, Note, Plan, Town, Trip
from tests.frozen.writing.conversations import ANTHROPIC, CHAT, GOOGLE, OPENAI, open_store

MODELS = (OPENAI, CHAT, ANTHROPIC, GOOGLE, "echo:small", "scripted:model")
UNFINISHED = {
    "exhausted": [],
    "in-option": ["book_room Rome"],
    "interrupted": [],
    "waiting": ["book_room Rome"],
}
"""Conversation whose last question has no answer → the options that finishing it runs."""


@pytest.fixture
def store(frozen: Frozen) -> Iterator[Store]:
    with open_store(frozen.address("conversations")) as opened:
        yield opened


def test_conversations_and_evaluations_read_as_they_were_written(store: Store, frozen: Frozen) -> None:
    written = frozen.expected("conversations")

    readable.check(written, readable.of_store(store))

    unfinished = {name for name, each in written["conversations"].items() if each["unfinished"]}
    assert unfinished == UNFINISHED.keys()


@pytest.mark.parametrize("model", MODELS)
def test_every_conversation_is_asked_another_question(store: Store, model: str) -> None:
    """By each dialect; what is unfinished is finished first, and nothing that was written changes."""
    names = readable.conversations(store)
    for name in names:
        llm = ScriptedAdapter(always("Certainly."), model=model)
        options = Town().options
        with Conversation(llm, options=options, approve=lambda call: "allow", keep=store, name=name) as chat:
            before = chat.messages
            answer = chat.ask_sync("One more question?", sabir.image("https://example.org/sky.jpg"))
            assert answer.text == "Certainly."
            after = chat.messages
        assert after[: len(before)] == before
        assert [message.text for message in after[-2:]] == ["One more question?", "Certainly."]
        reopened = Conversation(llm, keep=store, name=name)
        assert reopened.messages == after and not reopened.unfinished
    assert len(names) >= 10


def test_unfinished_questions_are_finished_without_repeating_an_option(store: Store) -> None:
    for name, ran in UNFINISHED.items():
        town, llm = Town(), ScriptedAdapter("Done.", model=ANTHROPIC)
        with Conversation(llm, options=town.options, approve=lambda call: "allow", keep=store, name=name) as chat:
            assert chat.ask_sync().text == "Done."
            assert not chat.unfinished and not sabir.unanswered(chat.messages)
        assert town.ran == ran, name
        llm.assert_finished()


def test_a_question_that_waits_for_a_person_may_be_denied(store: Store) -> None:
    town, llm = Town(), ScriptedAdapter("As you like.", model=GOOGLE)
    with Conversation(llm, options=town.options, approve=lambda call: "deny", keep=store, name="waiting") as chat:
        answer = chat.ask_sync()
    denied = [message.result for message in answer.messages if message.result and message.result.is_error]

    assert not town.ran
    assert [(each.option_name, each.error_type) for each in denied] == [("book_room", "denied")]


def test_the_output_of_a_finished_question_is_read_again(store: Store) -> None:
    llm = ScriptedAdapter(Trip(city="Oslo", days=1), model=ANTHROPIC)
    with Conversation(llm, output=Trip, keep=store, name="outputs") as chat:
        assert chat.ask_sync().output == Trip(city="Rome", days=3)
        assert not llm.sent
        assert chat.ask_sync("And then?").output == Trip(city="Oslo", days=1)


def test_conversations_are_forked_and_taken_back(store: Store) -> None:
    """Of a conversation with an older fork, which stays as it is."""
    llm = ScriptedAdapter(always("Certainly."), model=OPENAI)
    with Conversation(llm, keep=store, name="fork") as other:
        untouched = other.messages
    with Conversation(llm, keep=store, name="trip") as chat:
        messages = chat.messages
        dropped = chat.drop_last()
        assert chat.messages + dropped == messages
        with chat.fork("another") as another:
            another.ask_sync("Again?")
            assert another.messages[: len(chat.messages)] == chat.messages
        chat.ask_sync("And now?")

    assert Conversation(llm, keep=store, name="fork").messages == untouched
    assert set(store.names()) >= {"another", "fork", "trip"}
    store.delete("trip")
    assert Conversation(llm, keep=store, name="fork").messages == untouched


def test_running_evaluations_are_resumed(store: Store) -> None:
    for name, ran in (("evaluation-running", ["book_room Rome"]), ("evaluation-waiting", ["book_room Rome"])):
        session, town, llm = readable.recorded(store, name), Town(), ScriptedAdapter("Done.", model=ANTHROPIC)
        (unfinished,) = unfinished_evaluations(session)
        response = evaluate_sync(
            llm, WEATHER, session=session, options=town.options, approve=lambda call: "allow", resume=True
        )
        assert (response.text, response.evaluation_id, town.ran) == ("Done.", unfinished, ran)
        assert not unfinished_evaluations(readable.recorded(store, name))


def test_an_evaluation_that_waits_for_a_person_runs_nothing_unasked(store: Store) -> None:
    session, town = readable.recorded(store, "evaluation-waiting"), Town()
    with pytest.raises(ApprovalPending):
        evaluate_sync(ScriptedAdapter(), WEATHER, session=session, options=town.options, resume=True)
    assert not town.ran


def test_an_output_is_asked_for_again_after_the_crash(store: Store) -> None:
    session = readable.recorded(store, "output-running")
    llm = ScriptedAdapter(reply(Trip(city="Rome", days=2)), model=OPENAI)

    assert evaluate_sync(llm, TRIP, session=session, resume=True).output == Trip(city="Rome", days=2)


def test_finished_evaluations_answer_from_their_records(store: Store) -> None:
    """Two in one journal: the latest has an output, the earlier one had a follow-up."""
    session = readable.recorded(store, "evaluation")
    ids = list(dict.fromkeys(record.evaluation_id for record in readable.get_inner_messages(session)))
    silent = ScriptedAdapter()
    planned = evaluate_sync(silent, TRIP, session=session, resume=True)
    told = evaluate_sync(silent, WEATHER, session=session, resume=True, evaluation_id=ids[0])

    assert planned.output == Trip(city="Rome", days=3)
    assert (told.text, len(ids)) == ("Tomorrow too.", 2)


def test_slices_of_a_program_go_on(store: Store) -> None:
    """A log is read from its journal; a state is not stored there."""
    session = readable.recorded(store, "notes")
    session.mutate(Note).append(Note("home again"))
    session.mutate(Plan).append(Plan("Oslo"))
    reopened = readable.recorded(store, "notes")

    assert [note.text for note in reopened.select_all(Note)] == ["before the trip", "after the trip", "home again"]
    assert not reopened.select_all(Plan)


def test_a_new_journal_stands_beside_the_frozen_ones(store: Store) -> None:
    with Conversation(ScriptedAdapter("Yes."), keep=store, name="new") as chat:
        chat.ask_sync("Are you there?")

    reopened = Conversation(ScriptedAdapter(), keep=store, name="new")
    assert [message.text for message in reopened.messages] == ["Are you there?", "Yes."]
