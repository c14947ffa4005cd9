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


def test_records_are_given_all_or_of_one_evaluation_in_order() -> None:
    """WI-36, D-13: the slice's order, evaluations by when they began."""
    session = recording()
    first, second = system("z", created_at=minutes(0)), system("a", created_at=minutes(1))
    record_all(session, [second, first, told(2, "c1", evaluation="z"), asked(1, "c1", evaluation="z")])

    assert [(each.evaluation_id, each.sequence) for each in get_inner_messages(session)] == [
        ("z", 0), ("z", 1), ("z", 2), ("a", 0),
    ]  # fmt: skip
    assert [each.sequence for each in get_inner_messages(session, "z")] == [0, 1, 2]
    assert get_inner_messages(session, "nobody's") == ()
    assert get_inner_messages(Session()) == ()


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


def test_the_latest_evaluation_is_the_one_that_began_last() -> None:
    """WI-37, D-14: by when its first record came, whatever was recorded since, whatever the ids and the clocks."""
    session = recording()
    assert get_latest_evaluation_id(session) is None

    record_all(session, [system("b", created_at=minutes(5)), system("a", created_at=minutes(1))])
    record_all(session, [asked(1, evaluation="a", created_at=minutes(9))])

    assert get_latest_evaluation_id(session) == "a"


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


def test_an_evaluation_without_a_system_record_counts_too() -> None:
    """D-14: a conversation need not begin with a system message."""
    session = recording()
    record_all(session, [system("a"), asked(0, evaluation="b", created_at=minutes(1))])

    assert get_latest_evaluation_id(session) == "b"


def test_pending_are_the_calls_without_a_result_in_call_order() -> None:
    """WI-38, WI-13."""
    session = recording()
    record_all(session, [system(), asked(1, "c1", "c2", "c3"), told(3, "c2")])

    assert [each.call_id for each in get_pending_tool_calls(session, "e")] == ["c1", "c3"]

    record_all(session, [told(4, "c3", fails=True), told(2, "c1")])

    assert get_pending_tool_calls(session, "e") == ()
    assert get_pending_tool_calls(session, "nobody's") == ()
