"""Which result answers which call: by position, because providers use an id again in a later turn.

    assistant calls x ·  result x  ·  assistant calls x  ·  result x
              ▲────────────┘                    ▲─────────────┘

A result answers the nearest earlier call of its id that no result before it has answered; of one reply's calls with the
same id, the first such.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sabir_session.records.inner_messages import CallStatus, InnerMessage, ToolCallRecord, changed

Place: TypeAlias = tuple[int, int]
"""The place of a call: the sequence number of its record, and its index there."""
Answers: TypeAlias = dict[Place, InnerMessage]


def answers_in(records: Iterable[InnerMessage]) -> Answers:
    """The answered calls of one evaluation's records, in order, each with its result."""
    open_calls: dict[str, list[Place]] = {}
    answers: Answers = {}
    for record in records:
        if record.role == "assistant":
            for index, call in reversed(list(enumerate(record.tool_calls))):
                open_calls.setdefault(call.call_id, []).append((record.sequence, index))
        elif record.role == "tool" and record.tool_call_id:
            stack = open_calls.get(record.tool_call_id)
            if stack:
                answers[stack.pop()] = record
    return answers


def unanswered(records: Iterable[InnerMessage]) -> list[ToolCallRecord]:
    """The calls of one evaluation's records that no result answers, in call order."""
    answered = answers_in(records := list(records))
    return [
        call
        for record in records
        if record.role == "assistant"
        for index, call in enumerate(record.tool_calls)
        if (record.sequence, index) not in answered
    ]


def advanced(records: Sequence[InnerMessage]) -> list[InnerMessage]:
    """The records of one evaluation, each answered call with the status from its result.

    An unanswered call keeps the status with which it was recorded.
    """
    answers = answers_in(records).items()
    return _with_statuses(records, {place: "failed" if result.is_error else "completed" for place, result in answers})


def as_recorded(records: Sequence[InnerMessage]) -> list[InnerMessage]:
    """The records of one evaluation as they were before their calls were answered."""
    return _with_statuses(records, dict.fromkeys(answers_in(records), "pending"))


def _with_statuses(records: Iterable[InnerMessage], statuses: Mapping[Place, CallStatus]) -> list[InnerMessage]:
    asked = {sequence for sequence, _ in statuses}
    return [_with_own(record, statuses) if record.sequence in asked else record for record in records]


def _with_own(record: InnerMessage, statuses: Mapping[Place, CallStatus]) -> InnerMessage:
    calls = []
    for index, call in enumerate(record.tool_calls):
        status = statuses.get((record.sequence, index), call.status)
        calls.append(call if status == call.status else changed(call, "status", status))
    return record if tuple(calls) == record.tool_calls else changed(record, "tool_calls", tuple(calls))


def is_earlier(record: InnerMessage, held: InnerMessage) -> bool:
    """Whether a record is equal to the held one, or to its state before its calls were answered."""
    if len(record.tool_calls) != len(held.tool_calls):
        return False
    pairs = zip(record.tool_calls, held.tool_calls, strict=True)
    calls = tuple(changed(call, "status", kept.status) if call.status == "pending" else call for call, kept in pairs)
    return changed(record, "tool_calls", calls) == held
