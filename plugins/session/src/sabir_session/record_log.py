"""The records of a session: their slice, with its reducer and its queries.

Evaluations are ordered by the time of their first record, then by arrival. The records of an evaluation are ordered by
sequence, whatever the order in which they arrive. A result sets the status of its call in the same step. A result
answers the nearest earlier unanswered call with the same id, because providers use an id again in a later turn. Of one
reply's calls with the same id, the result answers the first unanswered call.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import TypeAlias, TypeVar

from sabir.authoring import StoredModel

from sabir_session.errors import RecordConflict, SliceNotRegistered
from sabir_session.records import CallStatus, InnerMessage, ToolCallRecord
from sabir_session.state.session import Session
from sabir_session.state.slices import ReducerContext, SliceFold, uses_fold

Record = TypeVar("Record", bound=StoredModel)


def with_field(record: Record, field: str, value: object) -> Record:
    """Return a copy of a record with one field changed, without validation. The other values are shared."""
    if record.__pydantic_extra__:  # a newer writer's fields are copied too
        copy = record.model_copy()
        vars(copy)[field] = value
        return copy
    return type(record).construct_unchecked({**vars(record), field: value}, record.__pydantic_fields_set__)


CallPosition: TypeAlias = tuple[int, int]
"""The place of a call: the sequence number of its record, and the index of the call in the record."""
ResultRecords: TypeAlias = dict[CallPosition, InnerMessage]


def find_results(records: Iterable[InnerMessage]) -> ResultRecords:
    """Return the places of the answered calls in one evaluation's records, each with the record of its result."""
    open_calls: dict[str, list[CallPosition]] = {}
    answers: ResultRecords = {}
    for record in records:
        if record.role == "assistant":
            for index, call in reversed(list(enumerate(record.tool_calls))):
                open_calls.setdefault(call.call_id, []).append((record.sequence, index))
        elif record.role == "tool" and record.tool_call_id:
            stack = open_calls.get(record.tool_call_id)
            if stack:
                answers[stack.pop()] = record
    return answers


def with_statuses(records: Sequence[InnerMessage]) -> list[InnerMessage]:
    """Return the records of one evaluation, with "completed" or "failed" as the status of each answered call.

    An unanswered call keeps its recorded status.
    """
    answers = find_results(records).items()
    return _with_statuses(records, {place: "failed" if result.is_error else "completed" for place, result in answers})


def without_statuses(records: Sequence[InnerMessage]) -> list[InnerMessage]:
    """Return the records of one evaluation with "pending" as the status of the answered calls, as in the journal."""
    return _with_statuses(records, dict.fromkeys(find_results(records), "pending"))


def _with_statuses(records: Iterable[InnerMessage], statuses: Mapping[CallPosition, CallStatus]) -> list[InnerMessage]:
    changed_sequences = {sequence for sequence, _ in statuses}
    return [_with_call_statuses(each, statuses) if each.sequence in changed_sequences else each for each in records]


def _with_call_statuses(record: InnerMessage, statuses: Mapping[CallPosition, CallStatus]) -> InnerMessage:
    calls = []
    for index, call in enumerate(record.tool_calls):
        status = statuses.get((record.sequence, index), call.status)
        calls.append(call if status == call.status else with_field(call, "status", status))
    return record if tuple(calls) == record.tool_calls else with_field(record, "tool_calls", tuple(calls))


def is_earlier_version(record: InnerMessage, current: InnerMessage) -> bool:
    """Return whether `record` equals `current`, or equals `current` as it was before its calls were answered."""
    if len(record.tool_calls) != len(current.tool_calls):
        return False
    pairs = zip(record.tool_calls, current.tool_calls, strict=True)
    calls = tuple(with_field(old, "status", new.status) if old.status == "pending" else old for old, new in pairs)
    return with_field(record, "tool_calls", calls) == current


class EvaluationRecords:
    """The records of one evaluation. The statuses of calls are set when the records are read."""

    def __init__(self) -> None:
        self.sequences: list[int] = []
        self.recorded: list[InnerMessage] = []
        self._records: list[InnerMessage] | None = None

    @property
    def records(self) -> list[InnerMessage]:
        """The records, ordered by sequence number."""
        if self._records is None:
            self._records = with_statuses(self.recorded)
        return self._records

    def at(self, sequence: int) -> InnerMessage | None:
        """Return the record with that sequence number, or None."""
        position = bisect_left(self.sequences, sequence)
        is_here = position < len(self.sequences) and self.sequences[position] == sequence
        return self.records[position] if is_here else None

    def add(self, record: InnerMessage) -> bool:
        """Add a record. Return whether its sequence number precedes all others."""
        position = bisect_left(self.sequences, record.sequence)
        self.sequences.insert(position, record.sequence)
        self.recorded.insert(position, record)
        self._records = None
        return not position


class RecordFold(SliceFold[InnerMessage]):
    """The fold of `inner_message_append`. The cost of an append does not depend on the number of records."""

    def __init__(self) -> None:
        super().__init__({})
        self._evaluations: dict[str, EvaluationRecords] = {}
        """Evaluations by id, in the order in which their first records arrived."""
        self._order: list[EvaluationRecords] = []
        """Evaluations in the order of the times of their first records."""
        self._by_message_id: dict[int, InnerMessage] = {}
        """Message id → record, to find duplicates."""
        self._stale = False

    def plan(self, event: InnerMessage, context: ReducerContext) -> InnerMessage | None:
        """Return the record, or None if it is already here, even if its calls were answered since.

        Raises RecordConflict if another record has its `message_id`, or its sequence number in the same evaluation.
        """
        evaluation = self._evaluations.get(event.evaluation_id)
        is_next = evaluation is None or event.sequence > evaluation.sequences[-1]
        if is_next and event.message_id.int not in self._by_message_id:  # as for nearly all records
            return event
        same_id = self._find_same_id(event)
        if same_id is not None and is_earlier_version(event, same_id):
            return None
        position = f"record {event.sequence} of evaluation {event.evaluation_id!r}"
        if same_id is not None:
            remedy = "give each record its own message_id, and never change a record"
            raise RecordConflict(f"{position} has the message_id {event.message_id} of another record; {remedy}")
        if evaluation is not None and evaluation.at(event.sequence) is not None:
            remedy = "use the next sequence number"
            raise RecordConflict(f"{position} already exists with another message_id; {remedy}")
        return event

    def _find_same_id(self, record: InnerMessage) -> InnerMessage | None:
        first = self._by_message_id.get(record.message_id.int)
        return None if first is None else self._evaluations[first.evaluation_id].at(first.sequence)

    def commit(self, plan: InnerMessage) -> None:
        """Insert the record at its place."""
        evaluation = self._evaluations.get(plan.evaluation_id) or EvaluationRecords()
        is_known = bool(evaluation.recorded)
        if evaluation.add(plan):
            self._evaluations.pop(plan.evaluation_id, None)
            self._evaluations[plan.evaluation_id] = evaluation
            if is_known:
                self._order.remove(evaluation)
            start = bisect_right(self._order, plan.created_at, key=lambda each: each.recorded[0].created_at)
            self._order.insert(start, evaluation)
        self._by_message_id[plan.message_id.int] = plan
        self._stale = True

    def items(self) -> tuple[InnerMessage, ...]:
        """Return the records as a tuple, which is cached until a record is added."""
        if self._stale:
            self._items = tuple(chain.from_iterable(evaluation.records for evaluation in self._order))
            self._stale = False
        return self._items

    def arrived(self) -> tuple[InnerMessage, ...]:
        """Return the records. Evaluations are in the order in which their first records arrived."""
        return tuple(chain.from_iterable(evaluation.records for evaluation in self._evaluations.values()))

    def last(self) -> InnerMessage | None:
        """Return the record that arrived last, or None."""
        return next(reversed(self._by_message_id.values()), None)

    def covers(self, items: tuple[InnerMessage, ...]) -> bool:
        """Return whether all of these records are here, even if their calls have been answered since."""
        pairs = ((item, self._find_same_id(item)) for item in items)
        return all(current is not None and is_earlier_version(item, current) for item, current in pairs)

    def missing(self, items: tuple[InnerMessage, ...]) -> tuple[InnerMessage, ...]:
        """Return the records that are not here, as they were before their calls were answered."""
        groups = (list(group) for _, group in groupby(items, key=lambda item: item.evaluation_id))
        recorded = chain.from_iterable(map(without_statuses, groups))
        return tuple(record for record in recorded if record.message_id.int not in self._by_message_id)


@uses_fold(RecordFold, kind="log")
def inner_message_append(
    items: tuple[InnerMessage, ...],
    event: InnerMessage,
    *,
    context: ReducerContext,
) -> tuple[InnerMessage, ...]:
    """Return `items` with the record `event` inserted at its place, and with the status of the call that it answers.

    This is the reducer of the slice of InnerMessage. Returns `items` itself if the record is already there, even if its
    calls were answered since. Raises RecordConflict if another record has the same `message_id`, or the same sequence
    number in the same evaluation.
    """
    fold = RecordFold()
    fold.extend(items)
    plan = fold.plan(event, context)
    if plan is None:
        return items
    fold.commit(plan)
    return fold.items()


def enable_inner_message_recording(session: Session) -> None:
    """Register the slice of InnerMessage records in a session, and load the records of the session's journal.

    `evaluate` calls this function. A second call has no effect. Raises SliceConflict if the slice has another reducer,
    JournalInvalid if the journal is damaged, and StoreError if the journal cannot be read.
    """
    session.mutate(InnerMessage).register(InnerMessage, inner_message_append)


def get_inner_messages(session: Session, evaluation_id: str | None = None) -> tuple[InnerMessage, ...]:
    """Return the records of a session, or of one of its evaluations, in order; () if there are none.

    Raises SliceNotRegistered if the session has a journal whose records are not loaded: call
    `enable_inner_message_recording` first.
    """
    _check_records(session)
    records = session.select_all(InnerMessage)
    if evaluation_id is None:
        return records
    return tuple(record for record in records if record.evaluation_id == evaluation_id)


def get_latest_evaluation_id(session: Session) -> str | None:
    """Return the id of the evaluation that a resume continues: the last unfinished evaluation, or else the last of all.

    The last evaluation is the evaluation whose first record arrived last, whatever its time. Returns None if nothing is
    recorded. Raises SliceNotRegistered if the session has a journal whose records are not loaded.
    """
    _check_records(session)
    lasts = get_last_records(session)
    unfinished = [last for last in lasts if not last.is_end]
    return (unfinished or lasts)[-1].evaluation_id if lasts else None


def get_last_records(session: Session) -> list[InnerMessage]:
    """Return the last record of each evaluation, in the order in which the evaluations began.

    Records of removed turns are used only if an evaluation has no other records.
    """
    lasts: dict[str, InnerMessage] = {}
    for record in session.select_arrived(InnerMessage):
        if not record.dropped or record.evaluation_id not in lasts:
            lasts[record.evaluation_id] = record
    return [*lasts.values()]


def _check_records(session: Session) -> None:
    if session.has_journal and not session.is_registered(InnerMessage):
        fault = "the records of the session's journal are not loaded"
        raise SliceNotRegistered(f"{fault}; call enable_inner_message_recording(session) first")


def get_pending_tool_calls(session: Session, evaluation_id: str) -> tuple[ToolCallRecord, ...]:
    """Return the option calls of an evaluation that have no result, in order; () if there are none.

    Calls that a later question abandoned, so that they never get a result, are included. Raises SliceNotRegistered if
    the session has a journal whose records are not loaded.
    """
    records = get_inner_messages(session, evaluation_id)
    answered = find_results(records)
    return tuple(
        call
        for record in records
        if record.role == "assistant"
        for index, call in enumerate(record.tool_calls)
        if (record.sequence, index) not in answered
    )
