"""The reducer of records: duplicates, order, and calls that are advanced by their results."""

import copy

import pytest
from sabir_session import (
    InnerMessage,
    RecordConflict,
    ReducerContext,
    ToolCallRecord,
    get_pending_tool_calls,
    inner_message_append,
)

from tests.session.journals import ListJournal, recording
from tests.session.support import asked, minutes, record_all, statuses, system, told

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


def test_the_reducer_is_pure() -> None:
    """WI-14: a tuple comes back; what went in is as it was."""
    items = fold(system(), asked(1, "c1"))
    given, before = items, copy.deepcopy(items)

    after = inner_message_append(items, told(2, "c1"), context=CONTEXT)

    assert type(after) is tuple
    assert items is given
    assert items == before
    assert after != items


def test_a_record_that_is_there_already_gives_the_same_tuple_back() -> None:
    """WI-15, D-12: also one whose calls were answered since."""
    first = asked(1, "c1")
    items = fold(system(), first, told(2, "c1"))

    assert inner_message_append(items, first, context=CONTEXT) is items
    assert inner_message_append(items, items[1], context=CONTEXT) is items


def test_a_record_with_the_id_of_another_one_is_an_error() -> None:
    """D-12: same id, other content."""
    first = system()

    with pytest.raises(RecordConflict, match="message_id"):
        fold(first, first.model_copy(update={"content": "Be long."}))


def test_a_status_that_is_set_by_hand_is_an_error() -> None:
    """D-12: nobody sets a status; the result does."""
    first = asked(1, "c1")
    done = first.model_copy(update={"tool_calls": (first.tool_calls[0].model_copy(update={"status": "completed"}),)})

    with pytest.raises(RecordConflict, match="never changes"):
        fold(first, done)


def test_a_record_on_the_place_of_another_one_is_an_error() -> None:
    """WI-10, WI-16: a sequence number is given once in an evaluation."""
    with pytest.raises(RecordConflict, match="record 1 of evaluation 'e' is there already"):
        fold(system(), asked(1, "c1"), asked(1, "c1"))


def test_records_land_by_their_sequence_whatever_the_order_of_arrival() -> None:
    """WI-16: results of parallel calls come as they are ready."""
    arrived = fold(system(), asked(1, "c1", "c2", "c3"), told(4, "c3"), told(2, "c1"), told(3, "c2"))

    assert places(arrived) == [("e", number) for number in range(5)]


def test_evaluations_never_interleave() -> None:
    """WI-17."""
    arrived = fold(system("a"), system("b", created_at=minutes(1)), asked(1, "c1", evaluation="a"))

    assert places(arrived) == [("a", 0), ("a", 1), ("b", 0)]


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


def test_an_error_result_fails_its_call() -> None:
    """WI-27."""
    session = recording()
    record_all(session, [system(), asked(1, "c1", "c2"), told(2, "c1", fails=True), told(3, "c2")])

    assert statuses(session) == {"c1": "failed", "c2": "completed"}


def test_nothing_but_the_status_of_the_call_changes() -> None:
    """WI-28, D-12."""
    first = asked(1, "c1", content="I look.", turn=1, prompt_ns="n", prompt_key="k")
    advanced = fold(system(), first, told(2, "c1"))[1]

    assert advanced.model_copy(update={"tool_calls": first.tool_calls}) == first


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


def test_two_calls_of_one_reply_with_the_same_id_are_answered_in_their_order() -> None:
    """UP-13."""
    answered = fold(system(), asked(1, "x", "x"), told(2, "x", fails=True))

    assert [each.status for each in answered[1].tool_calls] == ["failed", "pending"]


def test_results_of_two_calls_with_the_same_id_may_come_in_any_order() -> None:
    """UP-13, WI-16: the earlier result is the first call's, whenever it arrives."""
    answered = fold(system(), asked(1, "x", "x"), told(3, "x"), told(2, "x", fails=True))

    assert [each.status for each in answered[1].tool_calls] == ["failed", "completed"]


def test_a_result_of_another_evaluation_advances_nothing() -> None:
    """UP-13, WI-17."""
    session = recording()
    record_all(session, [system("a"), asked(1, "c1", evaluation="a"), system("b"), told(1, "c1", evaluation="b")])

    assert statuses(session) == {"c1": "pending"}


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


def test_a_status_that_a_record_came_with_stays_where_nothing_answers_it() -> None:
    """WI-06: a record is stored as it was given."""
    given = ToolCallRecord(call_id="c1", name="weather", arguments="{}", status="failed")

    assert fold(asked(1).model_copy(update={"tool_calls": (given,)}))[0].tool_calls == (given,)


def test_a_refused_record_is_not_in_the_journal_either() -> None:
    """D-12, UP-30."""
    journal = ListJournal()
    session = recording(journal)
    record_all(session, [system()])

    with pytest.raises(RecordConflict):
        record_all(session, [system()])

    assert len(journal.lines) == 1
