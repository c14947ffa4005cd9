"""The evaluations of a session: the latest, the one that is named, those without an end, and what is said next."""

import pytest
import sabir
from sabir import ToolContext
from sabir_session import (
    Session,
    get_inner_messages,
)
from sabir_session.evaluation.errors import ConversationNotFound, PromptMismatch
from sabir_session.evaluation.evaluate import evaluate_sync
from sabir_session.evaluation.evaluations import follow_up, unfinished_evaluations
from sabir_testing.scripted import ScriptedAdapter, calls

from tests.laws.rules import check_pairing
from tests.session.journals import ListJournal, numbers_of, recording
from tests.session.towns import PARIS, PROMPT, ROME, Stopped, Town, interrupted


def test_the_one_that_is_named_is_resumed_and_the_latest_is_left_alone() -> None:
    """WI-37 said otherwise: an evaluation that another one came after can be finished too."""
    journal = ListJournal()
    interrupted(journal, calls(weather=PARIS), stops="Paris")
    interrupted(journal, calls(weather=ROME), stops="Rome")
    session, town = recording(journal), Town()
    first, latest = unfinished_evaluations(session)
    response = town.run(ScriptedAdapter("Done."), session, resume=True, evaluation_id=first)

    assert response.evaluation_id == first
    assert [record.content for record in get_inner_messages(session, first)][-2:] == ["rain in Paris", "Done."]
    assert unfinished_evaluations(session) == (latest,)


def test_an_evaluation_within_an_option_hides_nothing() -> None:
    """The inner one began later and ended; the outer one, whose process died, is found and finished."""
    journal = ListJournal()
    session = recording(journal)

    def ask_another(city: str) -> str:
        "Ask somebody else."
        inner = evaluate_sync(ScriptedAdapter("Rain."), "Weather?", session=session)
        if not ToolContext.current().is_resume:
            raise Stopped
        return inner.text

    with pytest.raises(Stopped):
        evaluate_sync(ScriptedAdapter(calls(ask_another=PARIS)), PROMPT, session=session, options=[ask_another])
    (outer,) = unfinished_evaluations(session)
    llm = ScriptedAdapter("Take one.")
    response = evaluate_sync(llm, PROMPT, session=session, options=[ask_another], resume=True)

    assert response.evaluation_id == outer
    assert [result.result for result in llm.last.results] == ["Rain."]
    assert unfinished_evaluations(session) == ()
    with pytest.raises(PromptMismatch, match=f"resume with evaluation_id='{outer}'"):
        evaluate_sync(ScriptedAdapter(), PROMPT, session=session, options=[ask_another], resume=True)


def test_a_name_that_nothing_was_recorded_under_is_nothing_to_resume() -> None:
    """WI-40: one line, with what to give instead; and a name without `resume` would begin anew under another one."""
    session = recording(ListJournal())
    Town().run(ScriptedAdapter("One."), session)
    with pytest.raises(ConversationNotFound, match=r"holds no evaluation 'x'; give one of unfinished_evaluations"):
        evaluate_sync(ScriptedAdapter(), PROMPT, session=session, resume=True, evaluation_id="x")
    with pytest.raises(sabir.SettingsInvalid, match="add resume=True"):
        evaluate_sync(ScriptedAdapter(), PROMPT, session=session, evaluation_id="x")


def test_a_chat_goes_on_by_one_record_a_message() -> None:
    """Each turn in a new process, under another provider; what was said is recorded once, and all of it is sent."""
    journal, texts = ListJournal(), list[str]()
    Town().run(ScriptedAdapter("It rains."), recording(journal))
    for number, model in enumerate(("anthropic:claude-sonnet-5", "google:gemini-3-pro", "openai.chat:gpt-5"), 1):
        session = recording(journal)
        follow_up(session, sabir.user(f"And then {number}?"))
        llm = ScriptedAdapter(f"Sun {number}.", model=model)
        texts.append(Town().run(llm, session, resume=True).text)
        assert len(llm.last.messages) == 2 + 2 * number

    assert texts == ["Sun 1.", "Sun 2.", "Sun 3."]
    assert numbers_of(recording(journal))[2:] == [
        ("assistant", 2, 1), ("user", 3, 1), ("assistant", 4, 2), ("user", 5, 2), ("assistant", 6, 3),
        ("user", 7, 3), ("assistant", 8, 4),
    ]  # fmt: skip
    assert len(journal.lines) == 9
    with pytest.raises(ConversationNotFound):
        follow_up(Session(), sabir.user("Hi"))


def test_calls_that_the_user_did_not_wait_for_are_abandoned() -> None:
    """UP-14: the next word of the user comes behind the places of their results; they never run, and are not sent."""
    journal = ListJournal()
    interrupted(journal, calls(weather=[PARIS, ROME]))
    session, town, llm = recording(journal), Town(), ScriptedAdapter("Sun.", model="anthropic:claude-sonnet-5")
    follow_up(session, sabir.user("Never mind."))
    town.run(llm, session, resume=True)

    check_pairing("anthropic.messages", llm.last.rendering.body_bytes)
    assert town.ran == []
    assert numbers_of(session)[3:] == [("tool", 3, 1), ("user", 5, 1), ("assistant", 6, 2)]
