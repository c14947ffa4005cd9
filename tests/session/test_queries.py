"""Queries: whose records, which evaluation came last, which calls have no result."""

import pytest
from sabir_session import (
    Session,
    SliceNotRegistered,
    get_inner_messages,
    get_latest_evaluation_id,
    get_pending_tool_calls,
)

from tests.session.journals import ListJournal, recording
from tests.session.support import asked, minutes, record_all, system, told


def test_a_session_that_was_not_told_to_record_does_not_say_that_its_journal_is_empty() -> None:
    """WI-36 … WI-38, UP-30: the records are loaded when recording is enabled; without a journal there are none."""
    journal = ListJournal()
    record_all(recording(journal), [system()])
    session = Session(journal=journal)

    for query in (get_inner_messages, get_latest_evaluation_id, lambda asked: get_pending_tool_calls(asked, "e")):
        with pytest.raises(SliceNotRegistered, match=r"call enable_inner_message_recording\(session\) first"):
            query(session)
    assert get_latest_evaluation_id(Session()) is None
    assert get_pending_tool_calls(Session(), "e") == ()


def test_an_evaluation_without_an_end_goes_before_all_that_ended() -> None:
    """D-14: a clock may be set back. A reply that asks for nothing is an end; what is said next is none."""
    ended = {"turn": 1, "finish_reason": "stop"}
    for end, is_over in [
        ([], False),
        ([asked(1, "x", **ended)], False),
        ([asked(1, "x", **ended), told(2, "x")], False),
        ([asked(1, **{**ended, "finish_reason": "paused"})], False),
        ([asked(1, **ended)], True),
        ([asked(1, **{**ended, "finish_reason": "native_calls"})], True),
        ([asked(1, **ended), system(sequence=2)], False),
    ]:
        session = recording()
        record_all(session, [system(), *end])
        record_all(session, [system("b", created_at=minutes(9)), asked(1, evaluation="b", **ended)])
        assert get_latest_evaluation_id(session) == ("b" if is_over else "e")
