"""The reducer of records, and the fold that keeps it up at constant cost.

Evaluations stand one after another, by when their first record was made, then by which came first; within
one, records stand by their sequence, whatever the order in which they arrive. A result advances its call in the
same transition.

    RecordFold ─ evaluation ─ records      sorted by sequence; behind them what has arrived since they were looked at
                 │            ├ mentions     call id → sequences of the records that make or answer it
                 │            └ answered     places of the calls that have a result
                 └ taken      message id → record: duplicates are found at once
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from datetime import datetime
from itertools import chain, groupby

from sabir_session.errors import RecordConflict
from sabir_session.records.inner_messages import InnerMessage
from sabir_session.records.matching import Place, answers_in, is_earlier, outcome, settled, with_status
from sabir_session.state.folds import ReducerContext, kept_by


class Evaluation:
    """The records of one evaluation. What comes in order is put into its place when the records are looked at; so are
    the statuses that it advances.
    """

    def __init__(self) -> None:
        self.last = -1
        """The highest sequence number here."""
        self._arrived: list[InnerMessage] = []
        self._records: list[InnerMessage] = []
        self._sequences: list[int] = []
        self._mentions: dict[str, list[int]] = {}
        self._answered: set[Place] = set()
        self._advanced: list[tuple[Place, InnerMessage]] = []

    @property
    def start(self) -> datetime:
        """When its first record was made."""
        return (self._records or self._arrived)[0].created_at

    @property
    def records(self) -> list[InnerMessage]:
        """The records in their order."""
        self._place_arrived()
        self._advance()
        return self._records

    def at(self, sequence: int) -> InnerMessage | None:
        """The record with that number."""
        if sequence > self.last:
            return None
        records = self.records
        position = bisect_left(self._sequences, sequence)
        return records[position] if self._sequences[position] == sequence else None

    def take(self, record: InnerMessage) -> bool:
        """Take a record; whether it stands before the one that was the first until now."""
        sequence = record.sequence
        if sequence > self.last:  # as nearly all are; it is put into its place when somebody looks
            self.last = sequence
            self._arrived.append(record)
            return False
        self._place_arrived()
        position = bisect_left(self._sequences, sequence)
        self._place(record, position)
        return not position

    def _place_arrived(self) -> None:
        for record in self._arrived:
            self._place(record, len(self._sequences))
        self._arrived.clear()

    def _advance(self) -> None:
        for (sequence, index), result in self._advanced:
            position = bisect_left(self._sequences, sequence)
            self._records[position] = with_status(self._records[position], index, outcome(result))
        self._advanced.clear()

    def _place(self, record: InnerMessage, position: int) -> None:
        """Put a record into its place, and advance what it answers."""
        self._sequences.insert(position, record.sequence)
        self._records.insert(position, record)
        if record.tool_calls and record.role == "assistant":
            for call in record.tool_calls:
                self._note_call(record.sequence, call.call_id)
        elif record.tool_call_id and record.role == "tool":
            self._note_result(record, record.tool_call_id)

    def _note_call(self, sequence: int, call_id: str) -> None:
        mentions = self._mentions.setdefault(call_id, [])
        if not mentions or mentions[-1] < sequence:
            mentions.append(sequence)
        elif sequence not in mentions:
            insort(mentions, sequence)
            self._match_again(call_id)

    def _note_result(self, result: InnerMessage, call_id: str) -> None:
        mentions = self._mentions.setdefault(call_id, [])
        place = bisect_left(mentions, result.sequence)
        mentions.insert(place, result.sequence)
        if not place:
            return
        nearest = mentions[place - 1]
        calls = self._records[bisect_left(self._sequences, nearest)].tool_calls
        found = [(nearest, index) for index, call in enumerate(calls) if call.call_id == call_id]
        if found and self._answered.isdisjoint(found):  # not even by a later result: no other match changes
            self._answered.add(found[0])
            self._advanced.append((found[0], result))
        else:
            self._match_again(call_id)

    def _match_again(self, call_id: str) -> None:
        """Match all calls and results of one id: one of them arrived among others."""
        self._advance()
        positions = [bisect_left(self._sequences, sequence) for sequence in self._mentions[call_id]]
        mentioned = [self._records[position] for position in positions]
        calls = {
            (record.sequence, index)
            for record in mentioned
            for index, call in enumerate(record.tool_calls)
            if call.call_id == call_id
        }
        before, after = self._answered & calls, answers_in(mentioned, call_id)
        for position, record in zip(positions, mentioned, strict=True):
            self._records[position] = settled(record, before, after)
        self._answered = self._answered - before | after.keys()


class RecordFold:
    """The fold of `inner_message_append`: an append costs the same after ten thousand records as after one."""

    def __init__(self) -> None:
        self._evaluations: dict[str, Evaluation] = {}
        self._order: list[Evaluation] = []
        self._taken: dict[int, InnerMessage] = {}
        self._items: tuple[InnerMessage, ...] | None = ()

    def plan(self, event: InnerMessage, context: ReducerContext) -> InnerMessage | None:
        """The record, or None where it is here already; RecordConflict where another one has its id or its place."""
        evaluation = self._evaluations.get(event.evaluation_id)
        is_next = evaluation is None or event.sequence > evaluation.last
        if is_next and event.message_id.int not in self._taken:  # as nearly all are
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
        """The records, as a tuple that is kept until the next one comes."""
        if self._items is None:
            self._items = tuple(chain.from_iterable(evaluation.records for evaluation in self._order))
        return self._items

    def arrived(self) -> tuple[InnerMessage, ...]:
        """The records, the evaluation first whose first record came first."""
        return tuple(chain.from_iterable(evaluation.records for evaluation in self._evaluations.values()))

    def covers(self, items: tuple[InnerMessage, ...]) -> bool:
        """Whether all of these records are here, calls answered since then aside."""
        found = ((item, self._same_id(item)) for item in items)
        return all(held is not None and is_earlier(item, held) for item, held in found)

    def missing(self, items: tuple[InnerMessage, ...]) -> tuple[InnerMessage, ...]:
        """Those that are not here, as they were before their calls were answered."""
        groups = [list(group) for _, group in groupby(items, key=lambda item: item.evaluation_id)]
        answered = [(group, answers_in(group)) for group in groups]
        recorded = (settled(record, answers, {}) for group, answers in answered for record in group)
        return tuple(record for record in recorded if record.message_id.int not in self._taken)


def admitted(event: InnerMessage, same_id: InnerMessage | None, same_place: InnerMessage | None) -> InnerMessage | None:
    """The record if it is new, None if it is there already; RecordConflict if it is neither."""
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

    A record that is there already gives the very same tuple back; RecordConflict where its id or its place is taken by
    another one. Pure: this is the law; a session keeps the same up at constant cost.
    """
    same_id = next((item for item in items if item.message_id == event.message_id), None)
    groups = [list(group) for _, group in groupby(items, key=lambda item: item.evaluation_id)]
    own = next((group for group in groups if group[0].evaluation_id == event.evaluation_id), [])
    same_place = next((item for item in own if item.sequence == event.sequence), None)
    if admitted(event, same_id, same_place) is None:
        return items
    before = answers_in(own)
    grown = sorted([*own, event], key=lambda item: item.sequence)
    after = answers_in(grown)
    grown = [settled(record, before, after) for record in grown]
    if own and own[0].sequence == grown[0].sequence:
        return _chained(grown if group is own else group for group in groups)
    others = [group for group in groups if group is not own]
    place = bisect_right(others, grown[0].created_at, key=lambda group: group[0].created_at)
    return _chained([*others[:place], grown, *others[place:]])


def _chained(groups: Iterable[list[InnerMessage]]) -> tuple[InnerMessage, ...]:
    return tuple(chain.from_iterable(groups))
