"""Records: what they hold, what they refuse, and what of a newer version they keep."""

from datetime import datetime, timedelta, timezone

import pytest
from pydantic import ValidationError
from sabir_session import (
    InnerMessage,
    RecordConflict,
    ReducerContext,
    Session,
    SliceNotRegistered,
    ToolCallRecord,
    get_inner_messages,
    get_latest_evaluation_id,
    get_pending_tool_calls,
    inner_message_append,
)

from tests.session.support import ListJournal, asked, minutes, record_all, recording, system, told


def test_a_record_has_the_fields_and_defaults_of_its_specification() -> None:
    """WI-06, WI-07: a call begins pending; of a record role, content, evaluation and sequence are asked for."""
    call = ToolCallRecord(call_id="c1", name="weather", arguments="{}")
    record = InnerMessage(role="user", content="Hello", evaluation_id="e", sequence=3)

    assert call.model_dump() == {"call_id": "c1", "name": "weather", "arguments": "{}", "status": "pending"}
    fields = (record.tool_calls, record.tool_call_id, record.turn, record.prompt_ns, record.usage)
    assert fields == ((), None, 0, "", None)
    with pytest.raises(ValidationError, match="InnerMessage has no field 'mood'"):
        InnerMessage(role="user", content="", evaluation_id="e", sequence=0, mood="good")  # type: ignore[call-arg]


def test_a_moment_in_another_zone_is_held_in_utc_and_one_without_a_zone_is_refused() -> None:
    """WI-08: two records can always be compared."""
    there = datetime(2026, 5, 4, 14, tzinfo=timezone(timedelta(hours=2)))
    record = InnerMessage(role="user", content="", evaluation_id="e", sequence=0, created_at=there)

    assert record.created_at.isoformat() == "2026-05-04T12:00:00+00:00"
    with pytest.raises(ValidationError):
        InnerMessage(role="user", content="", evaluation_id="e", sequence=0, created_at=there.replace(tzinfo=None))


def test_a_record_is_an_error_where_its_core_result_is_one() -> None:
    """D-12: failed is what core says, not what the text says."""
    assert told(2, "c1", fails=True).is_error
    assert not told(2, "c1").is_error
    assert not InnerMessage(role="tool", content="error!", evaluation_id="e", sequence=2, tool_call_id="c1").is_error


def fold(*records: InnerMessage) -> tuple[InnerMessage, ...]:
    """What the pure reducer makes of them, and a session alike."""
    items: tuple[InnerMessage, ...] = ()
    for record in records:
        items = inner_message_append(items, record, context=ReducerContext())
    session = recording()
    record_all(session, records)
    assert session.select_all(InnerMessage) == items
    return items


def test_an_id_that_comes_again_in_a_later_turn_belongs_to_the_nearest_call() -> None:
    """UP-13: some providers number their calls anew in every turn."""
    session = recording()
    record_all(session, [system(), asked(1, "call-1"), told(2, "call-1"), asked(3, "call-1")])

    assert [each.status for each in session.select_all(InnerMessage)[1].tool_calls] == ["completed"]
    assert [each.status for each in session.select_all(InnerMessage)[3].tool_calls] == ["pending"]
    assert [each.call_id for each in get_pending_tool_calls(session, "e")] == ["call-1"]

    record_all(session, [told(4, "call-1", fails=True)])

    calls = [record.tool_calls[0] for record in session.select_all(InnerMessage)[1:4:2]]
    assert [each.status for each in calls] == ["completed", "failed"]


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


@pytest.mark.parametrize(
    ("arrived", "places"),
    [
        ([system("a", created_at=minutes(5)), system("z", created_at=minutes(1))], "z0 a0"),
        ([system("z"), system("a"), system("m")], "z0 a0 m0"),
        (
            [
                asked(1, evaluation="b", created_at=minutes(9)),
                system("a", created_at=minutes(5)),
                system("b", created_at=minutes(1)),
            ],
            "b0 b1 a0",
        ),
    ],
    ids=["by their first record", "at one moment", "first record last"],
)
def test_evaluations_stand_by_when_their_first_record_was_made(arrived: list[InnerMessage], places: str) -> None:
    """WI-16, WI-17, D-13: not by their ids, and not by when they arrived, but for those of one moment."""
    assert " ".join(f"{item.evaluation_id}{item.sequence}" for item in fold(*arrived)) == places


def test_a_record_with_the_id_or_on_the_place_of_another_one_is_an_error() -> None:
    """D-12, WI-10, WI-16: neither is given twice."""
    first = system()
    with pytest.raises(RecordConflict, match="message_id"):
        fold(first, first.model_copy(update={"content": "Be long."}))
    with pytest.raises(RecordConflict, match="record 1 of evaluation 'e' already exists"):
        fold(first, asked(1, "c1"), asked(1, "c1"))
