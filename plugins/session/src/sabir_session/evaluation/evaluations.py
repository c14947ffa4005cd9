"""The evaluations of a session: begun, found again, continued.

    begin(prompt)                     a new one ─────────────────────┐
    restore(session, prompt)          the latest, or the named one ──┴▶ Evaluation ── take(reply) ──▶ records
    follow_up(session, message)       the same, with the next messages              └── settle(call, result) ──▶ records
    unfinished_evaluations(session)   the names of unfinished ones

Both begin with records, so a new evaluation continues in the same way as an interrupted one.

The record has every version of the instructions; what is sent has the current one alone, and first:

    recorded   I1 · question · reply · I2 · question        sent   I2 · question · reply · question

Law: what is sent before a message changes only when the instructions change.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple, cast
from uuid import uuid4

from sabir import (
    RUNTIME,
    Message,
    Reply,
)
from sabir.authoring import OptionCall, as_messages

from sabir_session.evaluation.budgets import Budget, Ledger
from sabir_session.evaluation.prompts import ConversationNotFound, Output, Prompt, PromptMismatch
from sabir_session.evaluation.writing import SYSTEM, USER, Heading, RecordWriter, messages_of, reply_of, spent_in
from sabir_session.records import (
    InnerMessage,
    InstructionsMark,
    enable_inner_message_recording,
    get_inner_messages,
    get_last_records,
    get_latest_evaluation_id,
)
from sabir_session.state.session import Session

logger = logging.getLogger("sabir")


class OpenCall(NamedTuple):
    """A call without a result: its position among its reply's, the place of its result, whether it may have run.

    `key` names the call permanently by its reply's record, which two forks share only if it existed before the fork.
    """

    position: int
    message: OptionCall
    sequence: int
    key: str
    is_resume: bool


class Begun(NamedTuple):
    """Where a turn begins: how many messages and replies come before it."""

    messages: int
    replies: int


class Turn(NamedTuple):
    """Messages and replies of one turn: from what somebody said on."""

    messages: tuple[Message, ...]
    replies: tuple[Reply, ...]


def turn_start(records: Sequence[InnerMessage]) -> int:
    """Return the position of the first record of the last turn.

    Records of dropped turns belong to the turn before which or after which they stand.
    """
    start = len(records)
    while start and (records[start - 1].dropped or not _asks(records[start - 1])):
        start -= 1
    while start and _asks(records[start - 1]):
        start -= 1
    return start


def _asks(record: InnerMessage) -> bool:
    """Whether a record is part of a question, and not a reply, a result or a complaint."""
    return record.role in (SYSTEM, USER) and all(message.policy != RUNTIME for message in record.messages)


def _mark_of(record: InnerMessage) -> InstructionsMark:
    """What a record does to the instructions.

    Unmarked ones are the opening of a prompt, and questions of earlier versions: these recorded changed instructions as
    a system message before the question's own messages.
    """
    if record.instructions is not None:
        return record.instructions
    messages = record.messages
    if record.role not in (SYSTEM, USER) or not messages or messages[0].policy != SYSTEM:
        return "same"
    return "new" if record.sequence == 0 or len(messages) > 1 else "same"


def current_messages(records: Sequence[InnerMessage]) -> tuple[Message, ...]:
    """Return the messages of one evaluation's records as they are sent, without earlier versions of the instructions.

    The current instructions come first, if there are any. `get_inner_messages` gives the records.
    """
    sent = _Sent()
    for record in records:
        sent.add(messages_of(record), _mark_of(record))
    return tuple(sent.messages)


class _Sent:
    """The messages of an evaluation as they are sent: the current instructions, then everything else."""

    def __init__(self) -> None:
        self.instructions: Message | None = None
        self.messages: list[Message] = []

    def add(self, messages: Sequence[Message], mark: InstructionsMark = "same") -> None:
        """Append messages; with the mark "new", the first of them replaces the instructions."""
        if mark != "same":
            del self.messages[: self.instructions is not None]
            self.instructions, messages = (messages[0], messages[1:]) if mark == "new" else (None, messages)
            self.messages[:0] = () if self.instructions is None else (self.instructions,)
        self.messages += messages


def _last_turn(records: Sequence[InnerMessage]) -> Begun:
    earlier = records[: turn_start(records)]
    return Begun(sum(len(messages_of(record)) for record in earlier), sum(record.is_reply for record in earlier))


class Evaluation:
    """One evaluation, made from its records. `unrecorded` are the records that the session does not hold yet."""

    def __init__(
        self, heading: Heading, records: Sequence[InnerMessage], unrecorded: Sequence[InnerMessage], *, is_resume: bool
    ) -> None:
        self.heading = heading
        self.unrecorded = tuple(unrecorded)
        following = 1 + max(record.sequence for record in records)
        turn, first = max(record.turn for record in records), records[0]
        self.dropped = spent_in(record for record in records if record.dropped)
        """The replies of dropped turns, which budgets count."""
        self.ledger: Ledger | None = None
        """The sum of what the replies spent; None until it is needed."""
        records = [record for record in records if not record.dropped]
        self.replies = [reply_of(record) for record in records if record.is_reply]
        end = len(records)
        while end and records[end - 1].role == "tool":
            end -= 1
        self._messages: list[Message] = []
        self._sent = _Sent()
        for record in records[:end]:
            self._add(messages_of(record), _mark_of(record))
        self._settled, waiting = _matched(records[end - 1], records[end:]) if end else ({}, {})
        self.open: list[OpenCall] = []
        for position, (call, sequence) in waiting.items():
            self.open.append(OpenCall(position, call, sequence, _key(records[end - 1], position), is_resume))
            following = max(following, sequence + 1)
        self.writer = RecordWriter(heading, following, turn)
        self._last = records[-1] if records else first
        self._begun = _last_turn(records)
        self.needs_approval = bool(end) and records[end - 1].needs_approval

    @property
    def messages(self) -> list[Message]:
        """All messages so far with every version of the instructions, results in the order of their calls."""
        return [*self._messages, *self._results()]

    @property
    def sent(self) -> list[Message]:
        """The messages of the next request: the current instructions first, and no earlier ones."""
        return [*self._sent.messages, *self._results()]

    @property
    def instructions(self) -> Message | None:
        """The current instructions, None without any."""
        return self._sent.instructions

    @property
    def length(self) -> int:
        """The number of all messages so far."""
        return len(self._messages) + len(self._settled)

    def sent_with(self, messages: Sequence[Message], instructions: InstructionsMark) -> list[Message]:
        """Return the messages of the next request if `follow` added these."""
        next_sent = _Sent()
        next_sent.instructions, next_sent.messages = self.instructions, self.sent
        next_sent.add(messages, instructions)
        return next_sent.messages

    @contextmanager
    def lent_with(self, messages: Sequence[Message], instructions: InstructionsMark) -> Iterator[list[Message]]:
        """Give the list of `sent_with` for the `with` block, for a reader that copies it.

        A copy costs as much as there are messages, so the own list is lent where it only gets longer.
        """
        if instructions != "same" or self._settled:
            yield self.sent_with(messages, instructions)
            return
        sent = self._sent.messages
        length = len(sent)
        sent += messages
        try:
            yield sent
        finally:
            del sent[length:]

    def _add(self, messages: Sequence[Message], mark: InstructionsMark = "same") -> None:
        self._messages += messages
        self._sent.add(messages, mark)

    def _results(self) -> list[Message]:
        """The results of the last reply's calls, in the order of the calls."""
        return [message for _, message in sorted(self._settled.items())]

    def _close_reply(self) -> None:
        """Append the results of the last reply: no more of them can come."""
        if self._settled:
            self._add(self._results())
            self._settled = {}

    @property
    def turn(self) -> int:
        """The number of replies so far."""
        return self.writer.turn

    @property
    def last_turn(self) -> Turn:
        """The messages and replies of the last turn, beginning with the question."""
        messages = (*self._messages[self._begun.messages :], *self._results())
        return Turn(messages, tuple(self.replies[self._begun.replies :]))

    @property
    def question(self) -> str:
        """The id of the first message of the last question, instructions apart; "" if nothing was asked."""
        asked = self._messages[self._begun.messages :]
        return next((message.id for message in asked if message is not self.instructions), "")

    @property
    def is_over(self) -> bool:
        """Whether the last message is a reply without option calls, or the result of the call that gave the output."""
        return bool(self.replies) and self._last.is_end

    @property
    def output_call(self) -> str | None:
        """The invocation id of the call that gave the output; None if the last reply's text gives it."""
        return self._last.tool_call_id if self._last.gives_output else None

    def spent(self, budget: Budget) -> Ledger:
        """Return the sum of what all replies spent, those of dropped turns too; it grows with `Ledger.add`.

        Replies that it has counted are not counted again. Raises SettingsInvalid for a price that is not a number.
        """
        price = budget.price if budget.cost is not None else None
        if self.ledger is None or self.ledger.price != price:
            self.ledger = Ledger(price)
            for each in self.dropped:
                self.ledger.add(Reply(messages=(), **dict(each)))
        for reply in self.replies[self.ledger.turns - len(self.dropped) :]:
            self.ledger.add(reply)
        return self.ledger

    def follow(self, *messages: Message, instructions: InstructionsMark | None = None) -> InnerMessage:
        """Add the next messages of others; return their one record. Calls without a result are abandoned.

        A message of the runtime belongs to the turn; any other begins one. `instructions` says whether the first
        message replaces the instructions.
        """
        self._close_reply()
        if any(message.policy != RUNTIME for message in messages):
            self._begun = Begun(len(self._messages), len(self.replies))
        self._last = self.writer.following(*messages, instructions=instructions)
        self._add(messages, _mark_of(self._last))
        self.open, self.needs_approval = [], False
        return self._last

    def take(self, reply: Reply, asked_about: Collection[str] = ()) -> InnerMessage:
        """Add a reply; return its record, which must be stored before any of its calls runs.

        The record says whether its calls wait for a person, so that no resume runs them without approval.
        """
        self.needs_approval = any(call.call.option_name in asked_about for call in reply.option_calls)
        record = self.writer.reply(reply, needs_approval=self.needs_approval)
        self.replies.append(reply)
        self._close_reply()
        self._add(reply.messages)
        self.open = [
            OpenCall(position, call, record.sequence + 1 + position, _key(record, position), is_resume=False)
            for position, call in enumerate(reply.option_calls)
        ]
        self._last = record
        return record

    def settle(self, call: OpenCall, result: Message, *, gives_output: bool = False) -> InnerMessage:
        """Add the result of a call; return its record, which must be stored at once.

        That of the call that gives the output is the last one of its reply, and takes the next place.
        """
        self.open.remove(call)
        self._settled[call.position] = result
        self._last = self.writer.result(result, None if gives_output else call.sequence, gives_output=gives_output)
        return self._last


def _key(asked: InnerMessage, position: int) -> str:
    return f"{asked.message_id}/{position}"


def _matched(
    asked: InnerMessage, results: Sequence[InnerMessage]
) -> tuple[dict[int, Message], dict[int, tuple[OptionCall, int]]]:
    """Results by the position of their calls, and the calls without a result with the places of theirs.

    A result answers the call whose place it has; in records from elsewhere, the first call of its id. Results that
    answer no call come last.
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


def begin(prompt: Prompt[Output], speaks_as: str) -> Evaluation:
    """A new evaluation; nothing of it is recorded yet."""
    heading = Heading(str(uuid4()), prompt.ns, prompt.key)
    records = tuple(RecordWriter(heading).opening(prompt.opening(), speaks_as))
    return Evaluation(heading, records, records, is_resume=False)


def restore(
    session: Session | None, prompt: Prompt[Output], speaks_as: str, evaluation_id: str | None = None
) -> Evaluation:
    """The latest evaluation of a session, or the one named, as far as it came.

    A prompt with a name is recognised by it: the recorded conversation goes on, and a changed text is logged. A prompt
    without a name must have the recorded messages, or none. Opening messages that were not recorded are taken from the
    prompt. Raises ConversationNotFound if there is no evaluation, PromptMismatch if it belongs to another prompt.
    """
    if session is None:
        remedy = "give session=, or evaluate without resume=True to begin one"
        raise ConversationNotFound(f"no conversation to resume: there is no session; {remedy}")
    records = _records_of(session, evaluation_id, "evaluate without resume=True to begin one")
    heading = heading_of(records[0])
    given = heading._replace(prompt_ns=prompt.ns, prompt_key=prompt.key)
    if heading != given:
        remedy = _other_of(session, given) or "resume with the recorded one, or begin anew"
        raise PromptMismatch(f"the recorded prompt is {heading.prompt}, this one is {given.prompt}; {remedy}")
    messages = prompt.opening()
    if not messages:
        return resumed(records)
    opening = tuple(RecordWriter(heading).opening(messages, speaks_as))
    if not _begin_alike(records, opening):
        shown = f"evaluation {heading.evaluation_id} answers a prompt of another text"
        if not (prompt.ns or prompt.key):
            remedy = "resume with that prompt or an empty one, begin anew, or say more with follow_up()"
            raise PromptMismatch(f"{shown}; {remedy}")
        logger.warning("%s than %s has now; what was recorded goes on", shown, given.prompt)
    missing: tuple[InnerMessage, ...] = ()
    if not any(record.is_reply for record in records) and len(_contents(records)) < len(_contents(opening)):
        missing = opening[len(records) :]
    return Evaluation(heading, (*records, *missing), missing, is_resume=True)


def follow_up(session: Session, *messages: Message, evaluation_id: str | None = None) -> None:
    """Add the next messages to the latest evaluation of a session, or the one named: a resume answers them.

        follow_up(session, sabir.user("And tomorrow?"))
        response = await evaluate(llm, prompt, session=session, resume=True)

    So a chat costs one record a message, however long it is. Calls without a result are abandoned, as in any
    conversation that the user continues. Raises ConversationNotFound if nothing was recorded, RecordingFailed if the
    session cannot record.
    """
    enable_inner_message_recording(session)
    records = _records_of(session, evaluation_id, "evaluate a prompt to begin a conversation")
    evaluation = resumed(records)
    for message in as_messages(messages):
        session.mutate(InnerMessage).append(evaluation.follow(message))


def unfinished_evaluations(session: Session) -> tuple[str, ...]:
    """The ids of unfinished evaluations of a session, in the order in which they began.

    for evaluation_id in unfinished_evaluations(session):
        await evaluate(llm, prompt, session=session, resume=True, evaluation_id=evaluation_id)
    """
    enable_inner_message_recording(session)
    return tuple(last.evaluation_id for last in get_last_records(session) if not last.is_end)


def _records_of(session: Session, evaluation_id: str | None, remedy: str) -> tuple[InnerMessage, ...]:
    name = get_latest_evaluation_id(session) if evaluation_id is None else evaluation_id
    if name is None:
        raise ConversationNotFound(f"no conversation to resume: the session holds no messages; {remedy}")
    records = get_inner_messages(session, name)
    if not records:
        remedy = "give one of unfinished_evaluations(session), or none for the latest"
        raise ConversationNotFound(f"no conversation to resume: the session holds no evaluation {name!r}; {remedy}")
    return records


def heading_of(record: InnerMessage) -> Heading:
    """The fields of a record that all records of its evaluation share."""
    return Heading(record.evaluation_id, record.prompt_ns, record.prompt_key)


def resumed(records: Sequence[InnerMessage]) -> Evaluation:
    """The evaluation of these records, as far as it came."""
    return Evaluation(heading_of(records[0]), records, (), is_resume=True)


def _begin_alike(records: Sequence[InnerMessage], opening: Sequence[InnerMessage]) -> bool:
    """Whether an evaluation's recorded beginning has the contents of an opening; role hints and steps do not count."""
    recorded = _contents(record for record in records if record.turn == 0)
    wanted = _contents(opening)
    if len(recorded) != len(wanted) and any(record.is_reply for record in records):
        return False
    return all(one == other for one, other in zip(recorded, wanted, strict=False))


def _contents(records: Iterable[InnerMessage]) -> list[tuple[str, object]]:
    return [(message.policy, message.payload) for record in records for message in messages_of(record)]


def _other_of(session: Session, given: Heading) -> str:
    """A hint how to resume an earlier evaluation of this prompt; empty if there is none."""
    lasts = map(heading_of, get_last_records(session))
    of_prompt = [last.evaluation_id for last in lasts if last[1:] == given[1:]]
    return f"an earlier evaluation is this prompt's: resume with evaluation_id={of_prompt[-1]!r}" if of_prompt else ""
