"""The reducer of records: duplicates, order, and calls that are advanced by their results."""

import pytest
from sabir_session import (
    InnerMessage,
    RecordConflict,
    ReducerContext,
    get_pending_tool_calls,
    inner_message_append,
)

from tests.session.journals import recording
from tests.session.support import asked, minutes, record_all, system, told

CONTEXT = ReducerContext()


def fold(*records: InnerMessage) -> tuple[InnerMessage, ...]:
    """What the pure reducer makes of them, and a session alike."""
    items: tuple[InnerMessage, ...] = ()
    for record in records:
        items = inner_message_append(items, record, context=CONTEXT)
    session = recording()
    record_all(session, records)
    assert session.select_all(InnerMessage) == items
    return items


def places(items: tuple[InnerMessage, ...]) -> list[tuple[str, int]]:
    return [(item.evaluation_id, item.sequence) for item in items]


def test_a_record_with_the_id_of_another_one_is_an_error() -> None:
    """D-12: same id, other content."""
    first = system()

    with pytest.raises(RecordConflict, match="message_id"):
        fold(first, first.model_copy(update={"content": "Be long."}))


def test_a_record_on_the_place_of_another_one_is_an_error() -> None:
    """WI-10, WI-16: a sequence number is given once in an evaluation."""
    with pytest.raises(RecordConflict, match="record 1 of evaluation 'e' is there already"):
        fold(system(), asked(1, "c1"), asked(1, "c1"))


def test_evaluations_stand_by_when_their_first_record_was_made() -> None:
    """WI-17, D-13: not by their ids, and not by when they arrived."""
    arrived = fold(system("a", created_at=minutes(5)), system("z", created_at=minutes(1)))

    assert places(arrived) == [("z", 0), ("a", 0)]


def test_of_evaluations_that_began_at_one_moment_the_first_to_arrive_stands_first() -> None:
    """D-13."""
    assert places(fold(system("z"), system("a"), system("m"))) == [("z", 0), ("a", 0), ("m", 0)]


def test_an_evaluation_whose_first_record_arrives_last_stands_where_that_belongs() -> None:
    """D-13, WI-16: order does not depend on what arrived first."""
    late = asked(1, evaluation="b", created_at=minutes(9))
    arrived = fold(late, system("a", created_at=minutes(5)), system("b", created_at=minutes(1)))

    assert places(arrived) == [("b", 0), ("b", 1), ("a", 0)]


def test_a_result_completes_its_call_in_the_same_transition() -> None:
    """WI-27, WI-28, D-12."""
    (_, before), (_, after, _) = (
        fold(system(), asked(1, "c1", "c2")),
        fold(system(), asked(1, "c1", "c2"), told(2, "c1")),
    )

    assert [each.status for each in before.tool_calls] == ["pending", "pending"]
    assert [each.status for each in after.tool_calls] == ["completed", "pending"]


def test_an_id_that_comes_again_in_a_later_turn_belongs_to_the_nearest_call() -> None:
    """UP-13: some providers number their calls anew in every turn."""
    session = recording()
    record_all(session, [system(), asked(1, "call-1"), told(2, "call-1"), asked(3, "call-1")])

    assert [each.status for each in session.select_all(InnerMessage)[1].tool_calls] == ["completed"]
    assert [each.status for each in session.select_all(InnerMessage)[3].tool_calls] == ["pending"]
    assert [each.call_id for each in get_pending_tool_calls(session, "e")] == ["call-1"]

    record_all(session, [told(4, "call-1", fails=True)])

    assert [record.tool_calls[0].status for record in session.select_all(InnerMessage)[1:4:2]] == [
        "completed",
        "failed",
    ]


def test_a_call_that_arrives_after_its_result_is_answered_all_the_same() -> None:
    """WI-16, D-12: what is answered does not depend on the order of arrival."""
    arrived = fold(system(), told(2, "c1"), asked(1, "c1"))

    assert [each.status for each in arrived[1].tool_calls] == ["completed"]


def test_a_call_that_lands_between_takes_its_result_from_the_one_before() -> None:
    """UP-13, WI-16: the nearest call is found by position, and the other one is open again."""
    first, later = asked(1, "x"), asked(3, "x")
    arrived = fold(system(), first, told(4, "x"), later)

    assert [each.status for each in arrived[1].tool_calls] == ["pending"]
    assert [each.status for each in arrived[2].tool_calls] == ["completed"]
