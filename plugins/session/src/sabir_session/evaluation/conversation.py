"""How far an evaluation is: what was said, which calls have no result yet, and whether it is over.

    records of a session ──restore──┐
                                    ├──▶ Conversation ── take(reply), settle(call, result) ──▶ records
    opening of a prompt ────begin───┘

Both begin with records, so that there is one way to go on: that of an evaluation which was interrupted.
"""

from collections.abc import Collection, Sequence
from itertools import count
from typing import NamedTuple, cast

from sabir import Message, Reply
from sabir.authoring import OptionCall

from sabir_session.evaluation.writing import Heading, RecordWriter, messages_of, reply_of
from sabir_session.records.inner_messages import InnerMessage


class OpenCall(NamedTuple):
    """A call without a result: its position among its reply's, the place of its result, whether it may have run.

    `key` names it for good: by its reply's record, which two forks share only if it was there before they parted.
    """

    position: int
    message: OptionCall
    sequence: int
    key: str
    is_resume: bool


class Conversation:
    """One evaluation, as its records tell it. `unrecorded` are those of them that the session does not hold yet."""

    def __init__(
        self, heading: Heading, records: Sequence[InnerMessage], unrecorded: Sequence[InnerMessage], *, is_resume: bool
    ) -> None:
        self.heading = heading
        self.unrecorded = tuple(unrecorded)
        self.replies = [reply_of(record) for record in records if record.is_reply]
        end = len(records)
        while end and records[end - 1].role == "tool":
            end -= 1
        self._said = [message for record in records[:end] for message in messages_of(record)]
        self._settled, waiting = _matched(records[end - 1], records[end:]) if end else ({}, {})
        following = 1 + max(record.sequence for record in records)
        self.open: list[OpenCall] = []
        for position, (call, sequence) in waiting.items():
            self.open.append(OpenCall(position, call, sequence, _key(records[end - 1], position), is_resume))
            following = max(following, sequence + 1)
        self.writer = RecordWriter(heading, following, max(record.turn for record in records))
        self._last = records[-1]
        self.needs_approval = bool(end) and records[end - 1].needs_approval
        self._settle_all()

    @property
    def messages(self) -> list[Message]:
        """All messages so far, results in the order of their calls."""
        return [*self._said, *(message for _, message in sorted(self._settled.items()))]

    @property
    def turn(self) -> int:
        """How many replies have come."""
        return self.writer.turn

    @property
    def is_over(self) -> bool:
        """Whether the last thing that happened is a reply that asks for nothing."""
        return self._last.is_end

    def take(self, reply: Reply, asked_about: Collection[str] = ()) -> InnerMessage:
        """A reply has come: its record, which is to be kept before any of its calls runs.

        It says whether its calls wait for a person, so that no resume runs them unasked.
        """
        self.needs_approval = any(call.call.option_name in asked_about for call in reply.option_calls)
        record = self.writer.reply(reply, needs_approval=self.needs_approval)
        self.replies.append(reply)
        self._said += reply.messages
        self.open = [
            OpenCall(position, call, record.sequence + 1 + position, _key(record, position), is_resume=False)
            for position, call in enumerate(reply.option_calls)
        ]
        self._last = record
        return record

    def settle(self, call: OpenCall, result: Message) -> InnerMessage:
        """A call has its result: the record of that, which is to be kept at once."""
        self.open.remove(call)
        self._settled[call.position] = result
        self._settle_all()
        self._last = self.writer.result(result, call.sequence)
        return self._last

    def _settle_all(self) -> None:
        """Once all calls have their results, these follow them in the calls' order."""
        if self._settled and not self.open:
            self._said += [message for _, message in sorted(self._settled.items())]
            self._settled = {}


def _key(asked: InnerMessage, position: int) -> str:
    return f"{asked.message_id}/{position}"


def _matched(
    asked: InnerMessage, results: Sequence[InnerMessage]
) -> tuple[dict[int, Message], dict[int, tuple[OptionCall, int]]]:
    """Results by the position of their calls, and the calls without one with the places of theirs.

    A result answers the call whose place it has; in records that were written elsewhere, the first of its id.
    What answers none stays behind all others.
    """
    calls = [cast(OptionCall, message) for message in messages_of(asked) if message.kind == "option_call"]
    waiting = {position: (call, asked.sequence + 1 + position) for position, call in enumerate(calls)}
    settled: dict[int, Message] = {}
    for record in results:
        same = [position for position, (call, _) in waiting.items() if call.call.invocation_id == record.tool_call_id]
        placed = [position for position in same if waiting[position][1] == record.sequence]
        position = next(iter(placed or same), len(calls) + len(settled))
        waiting.pop(position, None)
        settled[position] = messages_of(record)[0]
    taken = {record.sequence for record in results}
    behind = count(max(taken, default=0) + 1)
    free = {place: (call, next(behind) if at in taken else at) for place, (call, at) in waiting.items()}
    return settled, free
