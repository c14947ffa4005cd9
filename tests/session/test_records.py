"""Records: what they hold, what they refuse, and what of a newer version they keep."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
import sabir
from pydantic import ValidationError
from sabir_session import InnerMessage, ToolCallRecord

from tests.session.support import result_message, told


def test_a_call_record_has_its_fields_and_begins_pending() -> None:
    """WI-06."""
    record = ToolCallRecord(call_id="c1", name="weather", arguments='{"city": "Bern"}')

    assert record.model_dump() == {
        "call_id": "c1", "name": "weather", "arguments": '{"city": "Bern"}', "status": "pending",
    }  # fmt: skip


@pytest.mark.parametrize("status", ["running", "", None])
def test_a_call_is_pending_completed_or_failed(status: object) -> None:
    """WI-06: no fourth status."""
    with pytest.raises(ValidationError):
        ToolCallRecord(call_id="c1", name="weather", arguments="{}", status=status)  # type: ignore[arg-type]


def test_a_record_has_the_defaults_of_its_specification() -> None:
    """WI-07: role, content, evaluation and sequence are asked for; everything else has a default."""
    record = InnerMessage(role="user", content="Hello", evaluation_id="e", sequence=3)

    assert (record.tool_calls, record.tool_call_id, record.tool_name) == ((), None, None)
    assert (record.turn, record.prompt_ns, record.prompt_key) == (0, "", "")
    assert (record.messages, record.finish_reason, record.raw_finish_reason, record.usage) == ((), None, None, None)


@pytest.mark.parametrize("field", ["role", "content", "evaluation_id", "sequence"])
def test_a_record_needs_its_four_required_fields(field: str) -> None:
    """WI-07."""
    fields = {"role": "user", "content": "Hello", "evaluation_id": "e", "sequence": 0}

    with pytest.raises(ValidationError, match=field):
        InnerMessage(**{name: value for name, value in fields.items() if name != field})  # type: ignore[arg-type]


@pytest.mark.parametrize("role", ["function", "developer", ""])
def test_a_record_has_one_of_four_roles(role: str) -> None:
    """WI-07."""
    with pytest.raises(ValidationError):
        InnerMessage(role=role, content="", evaluation_id="e", sequence=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "record",
    [
        ToolCallRecord(call_id="c1", name="n", arguments="{}"),
        InnerMessage(role="user", content="", evaluation_id="e", sequence=0),
    ],
    ids=["call", "record"],
)
def test_records_are_frozen(record: ToolCallRecord | InnerMessage) -> None:
    """WI-06, WI-07."""
    for name in type(record).model_fields:
        with pytest.raises(ValidationError):
            setattr(record, name, None)


def test_a_record_is_made_now_in_utc_with_a_fresh_id() -> None:
    """WI-08."""
    before = datetime.now(UTC)
    first, second = (InnerMessage(role="user", content="", evaluation_id="e", sequence=0) for _ in range(2))

    assert before <= first.created_at <= datetime.now(UTC)
    assert first.created_at.utcoffset() == timedelta(0)
    assert isinstance(first.message_id, UUID)
    assert first.message_id.version == 4
    assert first.message_id != second.message_id


def test_a_moment_in_another_zone_is_held_in_utc_and_one_without_a_zone_is_refused() -> None:
    """WI-08: two records can always be compared."""
    there = datetime(2026, 5, 4, 14, tzinfo=timezone(timedelta(hours=2)))
    record = InnerMessage(role="user", content="", evaluation_id="e", sequence=0, created_at=there)

    assert record.created_at.isoformat() == "2026-05-04T12:00:00+00:00"
    with pytest.raises(ValidationError):
        InnerMessage(role="user", content="", evaluation_id="e", sequence=0, created_at=there.replace(tzinfo=None))


def test_a_tool_record_names_the_call_that_it_answers() -> None:
    """WI-13."""
    assert told(2, "c1").tool_call_id == "c1"


def test_a_record_is_an_error_where_its_core_result_is_one() -> None:
    """D-12: failed is what core says, not what the text says."""
    assert told(2, "c1", fails=True).is_error
    assert not told(2, "c1").is_error
    assert not InnerMessage(role="tool", content="error!", evaluation_id="e", sequence=2, tool_call_id="c1").is_error


def test_a_record_holds_all_messages_of_one_response() -> None:
    """D-45: text and calls of a reply are one record, so that no crash parts them."""
    calls = [
        sabir.Message(policy="llm", payload=sabir.OptionCallPayload(invocation_id=each, option_name="weather"))
        for each in ("c1", "c2")
    ]
    messages = (sabir.assistant("I look."), *calls)
    record = InnerMessage(
        role="assistant", content="I look.", evaluation_id="e", sequence=1, messages=messages,
        finish_reason="option_calls", raw_finish_reason="tool_use", usage=sabir.Usage(input_tokens=7, output_tokens=2),
    )  # fmt: skip

    assert InnerMessage.model_validate_json(record.model_dump_json()) == record
    assert record.messages == messages


def test_an_unknown_field_of_a_constructed_record_is_an_error() -> None:
    """WI-07: construction is strict, as in core."""
    with pytest.raises(ValidationError, match="InnerMessage has no field 'mood'"):
        InnerMessage(role="user", content="", evaluation_id="e", sequence=0, mood="good")  # type: ignore[call-arg]


def test_a_half_character_is_refused_where_a_text_is_made() -> None:
    """UP-30: what no journal could take is refused before it is recorded."""
    with pytest.raises(ValidationError):
        InnerMessage(role="user", content="\ud83d", evaluation_id="e", sequence=0)


def test_results_are_found_among_several_messages() -> None:
    """D-12: one error among the messages of a record makes it one."""
    messages = (result_message("c1"), result_message("c1", fails=True))

    assert InnerMessage(role="tool", content="", evaluation_id="e", sequence=2, messages=messages).is_error
