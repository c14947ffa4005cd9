"""Which result answers which call: by position, because providers use an id again in a later turn.

    assistant calls x ·  result x  ·  assistant calls x  ·  result x
              ▲────────────┘                    ▲─────────────┘

A result answers the nearest earlier call of its id that no result before it has answered; of one reply's calls with the
same id, the first such.
"""

from collections.abc import Container, Iterable
from typing import TypeAlias

from sabir_session.records.inner_messages import CallStatus, InnerMessage, ToolCallRecord, changed

Place: TypeAlias = tuple[int, int]
"""Where a call stands: the sequence number of its record, and its index there."""
Answers: TypeAlias = dict[Place, InnerMessage]


def answers_in(records: Iterable[InnerMessage], call_id: str | None = None) -> Answers:
    """The answered calls of one evaluation's records, in order, each with its result; of one id alone, if given."""
    open_calls: dict[str, list[Place]] = {}
    answers: Answers = {}
    for record in records:
        if record.role == "assistant":
            for index, call in reversed(list(enumerate(record.tool_calls))):
                if call_id in (None, call.call_id):
                    open_calls.setdefault(call.call_id, []).append((record.sequence, index))
        elif record.role == "tool" and record.tool_call_id and call_id in (None, record.tool_call_id):
            stack = open_calls.get(record.tool_call_id)
            if stack:
                answers[stack.pop()] = record
    return answers


def unanswered(records: Iterable[InnerMessage]) -> list[ToolCallRecord]:
    """The calls of one evaluation's records that no result answers, in call order."""
    records = list(records)
    answered = answers_in(records)
    return [
        call
        for record in records
        if record.role == "assistant"
        for index, call in enumerate(record.tool_calls)
        if (record.sequence, index) not in answered
    ]


def outcome(result: InnerMessage) -> CallStatus:
    """The status of a call that this result answers."""
    return "failed" if result.is_error else "completed"


def with_status(record: InnerMessage, index: int, status: CallStatus) -> InnerMessage:
    """The record with one of its calls in another status."""
    calls = record.tool_calls
    if calls[index].status == status:
        return record
    return changed(record, "tool_calls", (*calls[:index], changed(calls[index], "status", status), *calls[index + 1 :]))


def settled(record: InnerMessage, before: Container[Place], after: Answers) -> InnerMessage:
    """The record with its calls' statuses as its results have them; one that was answered and no longer is is pending.

    A call that was never answered keeps the status that it was recorded with.
    """
    for index in range(len(record.tool_calls)):
        place = (record.sequence, index)
        if place in after:
            record = with_status(record, index, outcome(after[place]))
        elif place in before:
            record = with_status(record, index, "pending")
    return record


def is_earlier(record: InnerMessage, held: InnerMessage) -> bool:
    """Whether a record is what is held, or was before calls of it were answered."""
    if len(record.tool_calls) != len(held.tool_calls):
        return False
    pairs = zip(record.tool_calls, held.tool_calls, strict=True)
    calls = tuple(changed(call, "status", kept.status) if call.status == "pending" else call for call, kept in pairs)
    return changed(record, "tool_calls", calls) == held
