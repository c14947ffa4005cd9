"""Records: what they hold, what they refuse, and what of a newer version they keep."""

from datetime import datetime, timedelta, timezone

import pytest
from pydantic import ValidationError
from sabir_session import InnerMessage, ToolCallRecord

from tests.session.support import told


def test_a_call_record_has_its_fields_and_begins_pending() -> None:
    """WI-06."""
    record = ToolCallRecord(call_id="c1", name="weather", arguments='{"city": "Bern"}')

    assert record.model_dump() == {
        "call_id": "c1", "name": "weather", "arguments": '{"city": "Bern"}', "status": "pending",
    }  # fmt: skip


def test_a_record_has_the_defaults_of_its_specification() -> None:
    """WI-07: role, content, evaluation and sequence are asked for; everything else has a default."""
    record = InnerMessage(role="user", content="Hello", evaluation_id="e", sequence=3)

    assert (record.tool_calls, record.tool_call_id, record.tool_name) == ((), None, None)
    assert (record.turn, record.prompt_ns, record.prompt_key) == (0, "", "")
    assert (record.messages, record.finish_reason, record.raw_finish_reason, record.usage) == ((), None, None, None)


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


def test_an_unknown_field_of_a_constructed_record_is_an_error() -> None:
    """WI-07: construction is strict, as in core."""
    with pytest.raises(ValidationError, match="InnerMessage has no field 'mood'"):
        InnerMessage(role="user", content="", evaluation_id="e", sequence=0, mood="good")  # type: ignore[call-arg]
