"""The reducer of records, and the fold that updates its result at constant cost.

Evaluations are ordered by the time of their first record, then by arrival; within one, records are ordered by their
sequence, whatever the order in which they arrive. A result advances its call in the same transition.

    RecordFold ─ evaluation ─ records as they came, by their sequence ─▶ with the statuses that results give them
                 └ taken      message id → record: duplicates are found at once
"""

from bisect import bisect_left, bisect_right
from datetime import datetime
from itertools import chain, groupby

from sabir_session.errors import RecordConflict
from sabir_session.records.inner_messages import InnerMessage
from sabir_session.records.matching import advanced, as_recorded, is_earlier
from sabir_session.state.folds import ReducerContext, extend, kept_by


class Evaluation:
    """The records of one evaluation. Statuses are advanced when the records are read."""

    def __init__(self) -> None:
        self._sequences: list[int] = []
        self._recorded: list[InnerMessage] = []
        self._advanced: list[InnerMessage] | None = None

    @property
    def start(self) -> datetime:
        """The time of its first record."""
        return self._recorded[0].created_at

    @property
    def last(self) -> int:
        """The highest sequence number here."""
        return self._sequences[-1]

    @property
    def records(self) -> list[InnerMessage]:
        """The records in their order."""
        if self._advanced is None:
            self._advanced = advanced(self._recorded)
        return self._advanced

    def at(self, sequence: int) -> InnerMessage | None:
        """The record with that number."""
        position = bisect_left(self._sequences, sequence)
        is_here = position < len(self._sequences) and self._sequences[position] == sequence
        return self.records[position] if is_here else None

    def take(self, record: InnerMessage) -> bool:
        """Add a record; return whether it comes before the previous first one."""
        position = bisect_left(self._sequences, record.sequence)
        self._sequences.insert(position, record.sequence)
        self._recorded.insert(position, record)
        self._advanced = None
        return not position


class RecordFold:
    """The fold of `inner_message_append`: an append costs the same after ten thousand records as after one."""

    def __init__(self) -> None:
        self._evaluations: dict[str, Evaluation] = {}
        self._order: list[Evaluation] = []
        self._taken: dict[int, InnerMessage] = {}
        self._items: tuple[InnerMessage, ...] | None = ()

    def plan(self, event: InnerMessage, context: ReducerContext) -> InnerMessage | None:
        """The record, or None if it is already here; raises RecordConflict if another one has its id or its place."""
        evaluation = self._evaluations.get(event.evaluation_id)
        is_next = evaluation is None or event.sequence > evaluation.last
        if is_next and event.message_id.int not in self._taken:  # as for nearly all records
            return event
        same_place = None if evaluation is None else evaluation.at(event.sequence)
        return admitted(event, self._same_id(event), same_place)

    def _same_id(self, record: InnerMessage) -> InnerMessage | None:
        taken = self._taken.get(record.message_id.int)
        return None if taken is None else self._evaluations[taken.evaluation_id].at(taken.sequence)

    def commit(self, plan: InnerMessage) -> None:
        """Put the record into its place."""
        evaluation = self._evaluations.get(plan.evaluation_id)
        if evaluation is None:
            evaluation = self._evaluations[plan.evaluation_id] = Evaluation()
            evaluation.take(plan)
            self._put(evaluation)
        elif evaluation.take(plan):
            self._evaluations[plan.evaluation_id] = self._evaluations.pop(plan.evaluation_id)
            self._order.remove(evaluation)
            self._put(evaluation)
        self._taken[plan.message_id.int] = plan
        self._items = None

    def _put(self, evaluation: Evaluation) -> None:
        self._order.insert(bisect_right(self._order, evaluation.start, key=lambda each: each.start), evaluation)

    def items(self) -> tuple[InnerMessage, ...]:
        """The records, as a tuple that is cached until the next one is added."""
        if self._items is None:
            self._items = tuple(chain.from_iterable(evaluation.records for evaluation in self._order))
        return self._items

    def arrived(self) -> tuple[InnerMessage, ...]:
        """The records, evaluations in the order in which their first records arrived."""
        return tuple(chain.from_iterable(evaluation.records for evaluation in self._evaluations.values()))

    def covers(self, items: tuple[InnerMessage, ...]) -> bool:
        """Whether all of these records are here; their calls may have been answered since."""
        found = ((item, self._same_id(item)) for item in items)
        return all(held is not None and is_earlier(item, held) for item, held in found)

    def missing(self, items: tuple[InnerMessage, ...]) -> tuple[InnerMessage, ...]:
        """The records that are not here, as they were before their calls were answered."""
        groups = (list(group) for _, group in groupby(items, key=lambda item: item.evaluation_id))
        recorded = chain.from_iterable(map(as_recorded, groups))
        return tuple(record for record in recorded if record.message_id.int not in self._taken)


def admitted(event: InnerMessage, same_id: InnerMessage | None, same_place: InnerMessage | None) -> InnerMessage | None:
    """The record if it is new, None if it is already there; raises RecordConflict for a conflict."""
    if same_id is None and same_place is None:
        return event
    if same_id is not None and is_earlier(event, same_id):
        return None
    shown = f"record {event.sequence} of evaluation {event.evaluation_id!r}"
    if same_id is not None:
        raise RecordConflict(f"{shown} has the message_id {event.message_id} of another record; a record never changes")
    raise RecordConflict(f"{shown} is there already, with another message_id; give the next sequence number")


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
    extend(fold, items)
    plan = fold.plan(event, context)
    if plan is None:
        return items
    fold.commit(plan)
    return fold.items()
