"""The records of a conversation in a session: one for each message, reply or result; their reducer and queries.

    system      sequence 0, turn 0
    user        sequence 1, turn 0
    assistant   sequence 2, turn 1     tool_calls: c1, c2
    tool        sequence 3, turn 1     tool_call_id: c1
    tool        sequence 4, turn 1     tool_call_id: c2
    assistant   sequence 5, turn 2

A record's `content` is for reading; its `messages` are authoritative: its core messages, all messages of a response
in one record, so that a crash cannot separate the calls of one reply.

Evaluations are ordered by the time of their first record, then by arrival; within one, records are ordered by their
sequence, whatever the order in which they arrive. A result advances its call in the same transition: it answers the
nearest earlier call of its id that no result before it has answered, because providers use an id again in a later
turn; of one reply's calls with the same id, the first such.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import ClassVar, Literal, TypeAlias, TypeVar
from uuid import UUID, uuid4

from pydantic import Field
from sabir import Message, Origin, Usage
from sabir.authoring import FinishReason, NonEmpty, StoredModel, Text

from sabir_session.errors import RecordConflict, SliceNotRegistered
from sabir_session.state.codec import UTCDatetime, now
from sabir_session.state.session import Session
from sabir_session.state.slices import Fold, ReducerContext, kept_by

Role: TypeAlias = Literal["system", "assistant", "user", "tool"]
InstructionsMark: TypeAlias = Literal["new", "none", "same"]
CallStatus: TypeAlias = Literal["pending", "completed", "failed"]


class ToolCallRecord(StoredModel):
    """One option call of an assistant record.

    `arguments` is JSON text. Only the reducer sets `status`: it advances it when the result is recorded. Its name was
    specified so: vendors call an option a tool.
    """

    call_id: NonEmpty
    name: NonEmpty
    arguments: Text
    status: CallStatus = "pending"


class SpentReply(StoredModel):
    """What is kept of a reply whose turn was dropped: the figures that a budget counts."""

    usage: Usage
    origin: Origin
    finish_reason: FinishReason = "stop"


class InnerMessage(StoredModel):
    """One record of a conversation, an item of its session's slice.

    `evaluation_id` names its evaluation, `sequence` its place there (from 0), `turn` the number of responses so far.
    `tool_call_id` and `tool_name` link a result to its call. `messages` are its core messages; `finish_reason`,
    `raw_finish_reason` and `usage` are those of an assistant's reply, whose calls wait for a person's approval if it
    `needs_approval`. A result `gives_output` if its call was the answer; it is the last of its reply's results.
    `instructions` says what a conversation's question does to its instructions: the first message is the "new" ones,
    it removes them ("none"), or they stay the "same". It is None in other records, and in those of earlier versions.
    A record with `dropped` has no messages: it stands for the replies of the turns that were dropped there.
    """

    stored_as: ClassVar[str] = "sabir.message"
    stored_before: ClassVar[tuple[str, ...]] = ("sabir_session:InnerMessage",)  # store layout 1, snapshot schema 1

    role: Role
    content: Text
    evaluation_id: NonEmpty
    sequence: int = Field(ge=0)
    tool_calls: tuple[ToolCallRecord, ...] = ()
    tool_call_id: Text | None = None
    tool_name: Text | None = None
    turn: int = Field(default=0, ge=0)
    prompt_ns: Text = ""
    prompt_key: Text = ""
    created_at: UTCDatetime = Field(default_factory=now)
    message_id: UUID = Field(default_factory=uuid4)
    messages: tuple[Message, ...] = ()
    finish_reason: FinishReason | None = None
    raw_finish_reason: Text | None = None
    usage: Usage | None = None
    needs_approval: bool = False
    gives_output: bool = False
    instructions: InstructionsMark | None = None
    dropped: tuple[SpentReply, ...] = ()

    @property
    def is_error(self) -> bool:
        """Whether a result that it holds is an error."""
        return any(message.result is not None and message.result.is_error for message in self.messages)

    @property
    def is_reply(self) -> bool:
        """Whether it is a provider's answer in this evaluation, not an assistant message from its prompt."""
        return self.role == "assistant" and self.turn > 0

    @property
    def is_end(self) -> bool:
        """Whether an evaluation with this last record is over: it is a reply without calls, or gave the output."""
        return (
            self.gives_output
            or bool(self.dropped)
            or (self.is_reply and not self.tool_calls and self.finish_reason != "paused")
        )


Record = TypeVar("Record", bound=StoredModel)


def changed(record: Record, field: str, value: object) -> Record:
    """A copy with one field changed to a value that is known to be valid; the other fields are shared."""
    if record.__pydantic_extra__:  # a newer writer's fields are copied too
        copy = record.model_copy()
        vars(copy)[field] = value
        return copy
    return type(record).construct_unchecked({**vars(record), field: value}, record.__pydantic_fields_set__)


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


class Evaluation:
    """The records of one evaluation. Statuses are advanced when the records are read."""

    def __init__(self) -> None:
        self.sequences: list[int] = []
        self.recorded: list[InnerMessage] = []
        self._advanced: list[InnerMessage] | None = None

    @property
    def records(self) -> list[InnerMessage]:
        """The records in their order."""
        if self._advanced is None:
            self._advanced = advanced(self.recorded)
        return self._advanced

    def at(self, sequence: int) -> InnerMessage | None:
        """The record with that number."""
        position = bisect_left(self.sequences, sequence)
        is_here = position < len(self.sequences) and self.sequences[position] == sequence
        return self.records[position] if is_here else None

    def take(self, record: InnerMessage) -> bool:
        """Add a record; return whether it comes before the previous first one."""
        position = bisect_left(self.sequences, record.sequence)
        self.sequences.insert(position, record.sequence)
        self.recorded.insert(position, record)
        self._advanced = None
        return not position


class RecordFold(Fold[InnerMessage]):
    """The fold of `inner_message_append`: an append costs the same after ten thousand records as after one."""

    def __init__(self) -> None:
        super().__init__({})
        self._evaluations: dict[str, Evaluation] = {}
        """In the order in which their first records arrived."""
        self._order: list[Evaluation] = []
        """In the order of their first records' times."""
        self._taken: dict[int, InnerMessage] = {}
        """Message id → record: duplicates are found at once."""
        self._stale = False

    def plan(self, event: InnerMessage, context: ReducerContext) -> InnerMessage | None:
        """The record, or None if it is already here; raises RecordConflict if another one has its id or its place."""
        evaluation = self._evaluations.get(event.evaluation_id)
        is_next = evaluation is None or event.sequence > evaluation.sequences[-1]
        if is_next and event.message_id.int not in self._taken:  # as for nearly all records
            return event
        same_id = self._same_id(event)
        if same_id is not None and is_earlier(event, same_id):
            return None
        shown = f"record {event.sequence} of evaluation {event.evaluation_id!r}"
        if same_id is not None:
            remedy = "a record never changes"
            raise RecordConflict(f"{shown} has the message_id {event.message_id} of another record; {remedy}")
        if evaluation is not None and evaluation.at(event.sequence) is not None:
            remedy = "give the next sequence number"
            raise RecordConflict(f"{shown} is there already, with another message_id; {remedy}")
        return event

    def _same_id(self, record: InnerMessage) -> InnerMessage | None:
        taken = self._taken.get(record.message_id.int)
        return None if taken is None else self._evaluations[taken.evaluation_id].at(taken.sequence)

    def commit(self, plan: InnerMessage) -> None:
        """Put the record into its place."""
        evaluation = self._evaluations.get(plan.evaluation_id) or Evaluation()
        is_known = bool(evaluation.recorded)
        if evaluation.take(plan):
            self._evaluations.pop(plan.evaluation_id, None)
            self._evaluations[plan.evaluation_id] = evaluation
            if is_known:
                self._order.remove(evaluation)
            start = bisect_right(self._order, plan.created_at, key=lambda each: each.recorded[0].created_at)
            self._order.insert(start, evaluation)
        self._taken[plan.message_id.int] = plan
        self._stale = True

    def items(self) -> tuple[InnerMessage, ...]:
        """The records, as a tuple that is cached until the next one is added."""
        if self._stale:
            self._items = tuple(chain.from_iterable(evaluation.records for evaluation in self._order))
            self._stale = False
        return self._items

    def arrived(self) -> tuple[InnerMessage, ...]:
        """The records, evaluations in the order in which their first records arrived."""
        return tuple(chain.from_iterable(evaluation.records for evaluation in self._evaluations.values()))

    def last(self) -> InnerMessage | None:
        """Return the record that arrived last."""
        return next(reversed(self._taken.values()), None)

    def covers(self, items: tuple[InnerMessage, ...]) -> bool:
        """Whether all of these records are here; their calls may have been answered since."""
        found = ((item, self._same_id(item)) for item in items)
        return all(held is not None and is_earlier(item, held) for item, held in found)

    def missing(self, items: tuple[InnerMessage, ...]) -> tuple[InnerMessage, ...]:
        """The records that are not here, as they were before their calls were answered."""
        groups = (list(group) for _, group in groupby(items, key=lambda item: item.evaluation_id))
        recorded = chain.from_iterable(map(as_recorded, groups))
        return tuple(record for record in recorded if record.message_id.int not in self._taken)


@kept_by(RecordFold, kind="log")
def inner_message_append(
    items: tuple[InnerMessage, ...],
    event: InnerMessage,
    *,
    context: ReducerContext,
) -> tuple[InnerMessage, ...]:
    """The records with one more, in its place, and the status of the call that it answers advanced.

    Returns the same tuple for a record that is already there; raises RecordConflict if another record has its id or
    its place. Pure: each call makes a new fold of all records; a session updates one at constant cost.
    """
    fold = RecordFold()
    fold.extend(items)
    plan = fold.plan(event, context)
    if plan is None:
        return items
    fold.commit(plan)
    return fold.items()


def enable_inner_message_recording(session: Session) -> None:
    """Register the slice of records, and load the records of the session's journal; calling it twice is harmless.

    Raises SliceConflict if records already have another reducer, JournalInvalid for a damaged journal.
    """
    session.mutate(InnerMessage).register(InnerMessage, inner_message_append)


def get_inner_messages(session: Session, evaluation_id: str | None = None) -> tuple[InnerMessage, ...]:
    """The records, all or of one evaluation, in the slice's order.

    () if nothing is recorded. Each of these queries raises SliceNotRegistered for a session that has a journal and does
    not record: the journal's records are not loaded then.
    """
    _check_records(session)
    records = session.select_all(InnerMessage)
    if evaluation_id is None:
        return records
    return tuple(record for record in records if record.evaluation_id == evaluation_id)


def get_latest_evaluation_id(session: Session) -> str | None:
    """The evaluation to continue: the last unfinished one, else the last one.

    The last one is the evaluation whose first record arrived last: clocks may have been set back. None if nothing is
    recorded.
    """
    _check_records(session)
    lasts = get_last_records(session)
    unfinished = [last for last in lasts if not last.is_end]
    return (unfinished or lasts)[-1].evaluation_id if lasts else None


def get_last_records(session: Session) -> list[InnerMessage]:
    """Return the last record of each evaluation, in the order in which the evaluations began.

    Records of dropped turns count only if an evaluation has no others.
    """
    lasts: dict[str, InnerMessage] = {}
    for record in session.select_arrived(InnerMessage):
        if not record.dropped or record.evaluation_id not in lasts:
            lasts[record.evaluation_id] = record
    return [*lasts.values()]


def _check_records(session: Session) -> None:
    if session.has_journal and not session.is_registered(InnerMessage):
        shown = "the session does not record, so nothing of its journal is loaded"
        raise SliceNotRegistered(f"{shown}; call enable_inner_message_recording(session) first")


def get_pending_tool_calls(session: Session, evaluation_id: str) -> tuple[ToolCallRecord, ...]:
    """The calls of an evaluation that no result answers, in call order; () where all are answered."""
    records = get_inner_messages(session, evaluation_id)
    answered = answers_in(records)
    return tuple(
        call
        for record in records
        if record.role == "assistant"
        for index, call in enumerate(record.tool_calls)
        if (record.sequence, index) not in answered
    )
