"""The evaluations of a session: begin, find and continue them.

    begin_evaluation(prompt)               a new evaluation ─────────────────┐
    restore_evaluation(session, prompt)    a recorded evaluation ────────────┴▶ Evaluation ── add_reply ───▶ records
    follow_up(session, message)       adds the next messages                        └── add_result ──▶ records
    unfinished_evaluations(session)   the ids of unfinished evaluations

`begin` and `restore` both build the Evaluation from records, so a new evaluation continues in the same way as an
interrupted evaluation.

The records have every version of the instructions. A request has only the current instructions, first:

    recorded   I1 · question · reply · I2 · question        sent   I2 · question · reply · question

Law: the messages that are sent before a given message change only when the instructions change.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple, cast
from uuid import uuid4

from sabir import RUNTIME, Message, Reply
from sabir.authoring import OptionCall, as_messages

from sabir_session.evaluation.budgets import Budget, UsageLedger
from sabir_session.evaluation.prompts import ConversationNotFound, Output, Prompt, PromptMismatch
from sabir_session.record_log import (
    enable_inner_message_recording,
    get_inner_messages,
    get_last_records,
    get_latest_evaluation_id,
)
from sabir_session.records import (
    SYSTEM,
    USER,
    Heading,
    InnerMessage,
    InstructionsMark,
    RecordWriter,
    find_spent_replies,
    messages_of,
    reply_of,
)
from sabir_session.state.session import Session

logger = logging.getLogger("sabir")


class OpenCall(NamedTuple):
    """An option call without a result.

    `position` is the index of the call in its reply, and `sequence` the sequence number for the record of its result.
    `is_resume` is True if the call may have run before. `key` identifies the call permanently by the record of its
    reply. Two forks share a key only if the record existed before the fork.
    """

    position: int
    message: OptionCall
    sequence: int
    key: str
    is_resume: bool


class TurnStart(NamedTuple):
    """The start of a turn: how many messages and how many replies precede the turn."""

    messages: int
    replies: int


class TurnContent(NamedTuple):
    """The messages and replies of one turn, beginning with the question."""

    messages: tuple[Message, ...]
    replies: tuple[Reply, ...]


def turn_position(records: Sequence[InnerMessage]) -> int:
    """Return the position of the first record of the last turn.

    Records of removed turns do not begin a turn.
    """
    start = len(records)
    while start and (records[start - 1].dropped or not _is_question(records[start - 1])):
        start -= 1
    while start and _is_question(records[start - 1]):
        start -= 1
    return start


def _is_question(record: InnerMessage) -> bool:
    """Return whether a record is part of a question, not a reply, a result or a message of the runtime."""
    return record.role in (SYSTEM, USER) and all(message.policy != RUNTIME for message in record.messages)


def _find_mark(record: InnerMessage) -> InstructionsMark:
    """Return the effect of a record on the instructions.

    Records without a mark are the start of a prompt, or questions of earlier versions, which recorded changed
    instructions as a system message before the other messages of the question.
    """
    if record.instructions is not None:
        return record.instructions
    messages = record.messages
    if record.role not in (SYSTEM, USER) or not messages or messages[0].policy != SYSTEM:
        return "same"
    return "new" if record.sequence == 0 or len(messages) > 1 else "same"


def current_messages(records: Sequence[InnerMessage]) -> tuple[Message, ...]:
    """Return the messages that the next request of an evaluation sends.

    The current instructions come first; earlier versions of the instructions are left out. `records` are the records of
    one evaluation, as `get_inner_messages(session, evaluation_id)` returns them.
    """
    sent = _SentMessages()
    for record in records:
        sent.add(messages_of(record), _find_mark(record))
    return tuple(sent.messages)


class _SentMessages:
    """The messages of a request of an evaluation: the current instructions, then all other messages."""

    def __init__(self) -> None:
        self.instructions: Message | None = None
        self.messages: list[Message] = []

    def add(self, messages: Sequence[Message], mark: InstructionsMark = "same") -> None:
        """Append messages. With the mark "new", the first message replaces the instructions; "none" removes them."""
        if mark != "same":
            del self.messages[: self.instructions is not None]
            self.instructions, messages = (messages[0], messages[1:]) if mark == "new" else (None, messages)
            self.messages[:0] = () if self.instructions is None else (self.instructions,)
        self.messages += messages


def _find_turn_start(records: Sequence[InnerMessage]) -> TurnStart:
    earlier = records[: turn_position(records)]
    return TurnStart(sum(len(messages_of(record)) for record in earlier), sum(record.is_reply for record in earlier))


class Evaluation:
    """One evaluation, built from its records. `unrecorded` are the records that are not in the session yet."""

    def __init__(
        self, heading: Heading, records: Sequence[InnerMessage], unrecorded: Sequence[InnerMessage], *, is_resume: bool
    ) -> None:
        self.heading = heading
        self.unrecorded = tuple(unrecorded)
        next_sequence = 1 + max(record.sequence for record in records)
        turn, first = max(record.turn for record in records), records[0]
        self.dropped = find_spent_replies(record for record in records if record.dropped)
        """The replies of removed turns, which a budget still counts."""
        self.ledger: UsageLedger | None = None
        """The used amounts of all replies; None until `update_ledger` is called."""
        records = [record for record in records if not record.dropped]
        self.replies = [reply_of(record) for record in records if record.is_reply]
        end = len(records)
        while end and records[end - 1].role == "tool":
            end -= 1
        self._messages: list[Message] = []
        self._sent = _SentMessages()
        for record in records[:end]:
            self._append_messages(messages_of(record), _find_mark(record))
        self._results_by_position, unanswered = _match_results(records[end - 1], records[end:]) if end else ({}, {})
        self.open_calls: list[OpenCall] = []
        for position, (call, sequence) in unanswered.items():
            self.open_calls.append(OpenCall(position, call, sequence, _call_key(records[end - 1], position), is_resume))
            next_sequence = max(next_sequence, sequence + 1)
        self.writer = RecordWriter(heading, next_sequence, turn)
        self._last = records[-1] if records else first
        self._turn_start = _find_turn_start(records)
        self.needs_approval = bool(end) and records[end - 1].needs_approval

    @property
    def messages(self) -> list[Message]:
        """All messages so far, with every version of the instructions, and results in the order of their calls."""
        return [*self._messages, *self._last_results()]

    @property
    def messages_to_send(self) -> list[Message]:
        """The messages of the next request: the current instructions first, without earlier instructions."""
        return [*self._sent.messages, *self._last_results()]

    @property
    def instructions(self) -> Message | None:
        """The current instructions, or None."""
        return self._sent.instructions

    @property
    def length(self) -> int:
        """The number of all messages so far."""
        return len(self._messages) + len(self._results_by_position)

    def messages_with(self, messages: Sequence[Message], instructions: InstructionsMark) -> list[Message]:
        """Return the messages of the request after `add_messages` with these messages, without adding them."""
        next_sent = _SentMessages()
        next_sent.instructions, next_sent.messages = self.instructions, self.messages_to_send
        next_sent.add(messages, instructions)
        return next_sent.messages

    @contextmanager
    def lend_messages(self, messages: Sequence[Message], instructions: InstructionsMark) -> Iterator[list[Message]]:
        """Yield the list of `messages_with` for the `with` block. The caller must copy what it needs.

        To avoid a copy of all messages, the evaluation's own list is extended and restored if possible.
        """
        if instructions != "same" or self._results_by_position:
            yield self.messages_with(messages, instructions)
            return
        sent = self._sent.messages
        length = len(sent)
        sent += messages
        try:
            yield sent
        finally:
            del sent[length:]

    def _append_messages(self, messages: Sequence[Message], mark: InstructionsMark = "same") -> None:
        self._messages += messages
        self._sent.add(messages, mark)

    def _last_results(self) -> list[Message]:
        """Return the results of the last reply's calls, in the order of the calls."""
        return [message for _, message in sorted(self._results_by_position.items())]

    def _close_reply(self) -> None:
        """Append the results of the last reply to the messages. No more results can be added to that reply."""
        if self._results_by_position:
            self._append_messages(self._last_results())
            self._results_by_position = {}

    @property
    def turn(self) -> int:
        """The number of replies so far."""
        return self.writer.turn

    @property
    def last_turn(self) -> TurnContent:
        """The messages and replies of the last turn, beginning with the question."""
        messages = (*self._messages[self._turn_start.messages :], *self._last_results())
        return TurnContent(messages, tuple(self.replies[self._turn_start.replies :]))

    @property
    def question(self) -> str:
        """The id of the first message of the last question, without the instructions; "" if nothing was asked."""
        messages = self._messages[self._turn_start.messages :]
        return next((message.id for message in messages if message is not self.instructions), "")

    @property
    def is_over(self) -> bool:
        """Whether the last message is a reply without option calls, or the result of the call that gave the output."""
        return bool(self.replies) and self._last.is_end

    @property
    def output_call(self) -> str | None:
        """The invocation id of the call that gave the output; None if the last reply's text gives it."""
        return self._last.tool_call_id if self._last.gives_output else None

    def update_ledger(self, budget: Budget) -> UsageLedger:
        """Return the ledger with the used amounts of all replies, including the replies of removed turns.

        The same ledger is returned again while the budget's `price` is the same, and counts each reply once. Raises
        SettingsInvalid if `price` does not return None or a number of at least 0.
        """
        price = budget.price if budget.cost is not None else None
        if self.ledger is None or self.ledger.price != price:
            self.ledger = UsageLedger(price)
            for each in self.dropped:
                self.ledger.add(Reply(messages=(), **dict(each)))
        for reply in self.replies[self.ledger.turns - len(self.dropped) :]:
            self.ledger.add(reply)
        return self.ledger

    def add_messages(self, *messages: Message, instructions: InstructionsMark | None = None) -> InnerMessage:
        """Add the messages of a question or of the runtime, and return their record. Open calls never get results.

        Messages of the runtime continue the turn. Any other message begins a turn. `instructions` is "new" if the first
        message replaces the instructions, "none" if the instructions are removed, and "same" or None otherwise.
        """
        self._close_reply()
        if any(message.policy != RUNTIME for message in messages):
            self._turn_start = TurnStart(len(self._messages), len(self.replies))
        self._last = self.writer.question_record(*messages, instructions=instructions)
        self._append_messages(messages, _find_mark(self._last))
        self.open_calls, self.needs_approval = [], False
        return self._last

    def add_reply(self, reply: Reply, options_to_approve: Collection[str] = ()) -> InnerMessage:
        """Add a reply. Return its record, which must be stored before a call of the reply runs.

        `options_to_approve` are the options whose calls need approval. The record stores whether calls need approval,
        so that no resume runs them without approval.
        """
        calls = reply.option_calls
        self.needs_approval = any(call.call.option_name in options_to_approve for call in calls)
        record = self.writer.reply_record(reply, needs_approval=self.needs_approval)
        self.replies.append(reply)
        self._close_reply()
        self._append_messages(reply.messages)
        self.open_calls = [
            OpenCall(position, call, record.sequence + 1 + position, _call_key(record, position), is_resume=False)
            for position, call in enumerate(calls)
        ]
        self._last = record
        return record

    def add_result(self, call: OpenCall, result: Message, *, gives_output: bool = False) -> InnerMessage:
        """Add the result of a call. Return its record, which must be stored at once.

        With `gives_output`, the call's arguments are the output, and the result is the last result of its reply.
        """
        self.open_calls.remove(call)
        self._results_by_position[call.position] = result
        sequence = None if gives_output else call.sequence
        self._last = self.writer.result_record(result, sequence, gives_output=gives_output)
        return self._last


def _call_key(reply: InnerMessage, position: int) -> str:
    return f"{reply.message_id}/{position}"


def _match_results(
    reply: InnerMessage, results: Sequence[InnerMessage]
) -> tuple[dict[int, Message], dict[int, tuple[OptionCall, int]]]:
    """Return the results by the positions of their calls, and the open calls with the numbers of their future results.

    A result answers the call for which its sequence number was reserved, else the first call with its id. Results
    without a call come last.
    """
    calls = [cast(OptionCall, message) for message in messages_of(reply) if message.kind == "option_call"]
    unanswered = {position: (call, reply.sequence + 1 + position) for position, call in enumerate(calls)}
    results_by_position: dict[int, Message] = {}
    for record in results:
        with_id = [at for at, (call, _) in unanswered.items() if call.call.invocation_id == record.tool_call_id]
        with_sequence = [at for at in with_id if unanswered[at][1] == record.sequence]
        position = next(iter(with_sequence or with_id), len(calls) + len(results_by_position))
        unanswered.pop(position, None)
        results_by_position[position] = messages_of(record)[0]
    used = {record.sequence for record in results}
    later = count(max(used, default=0) + 1)
    open_calls = {at: (call, next(later) if n in used else n) for at, (call, n) in unanswered.items()}
    return results_by_position, open_calls


def begin_evaluation(prompt: Prompt[Output], speaks_as: str) -> Evaluation:
    """Return a new evaluation of a prompt. Its `unrecorded` are the records of the prompt's messages."""
    heading = Heading(str(uuid4()), prompt.ns, prompt.key)
    records = tuple(RecordWriter(heading).prompt_records(prompt.opening(), speaks_as))
    return Evaluation(heading, records, records, is_resume=False)


def restore_evaluation(
    session: Session | None, prompt: Prompt[Output], speaks_as: str, evaluation_id: str | None = None
) -> Evaluation:
    """Return an evaluation of a session, to continue it: the evaluation `evaluation_id`.

    None means the last unfinished evaluation, or else the last evaluation of all.

    A prompt with a namespace or key is compared by namespace and key, and a changed text is only logged. Other prompts
    must have the recorded messages, or none. Messages of the prompt that were not recorded are added. Raises
    ConversationNotFound if there is no evaluation, and PromptMismatch if the evaluation belongs to another prompt.
    """
    if session is None:
        remedy = "pass session=, or evaluate without resume=True to begin a conversation"
        raise ConversationNotFound(f"no conversation to resume: no session was passed; {remedy}")
    records = _records_of(session, evaluation_id, "evaluate without resume=True to begin a conversation")
    heading = heading_of(records[0])
    wanted = heading._replace(prompt_ns=prompt.ns, prompt_key=prompt.key)
    if heading != wanted:
        remedy = _suggest_earlier(session, wanted) or "pass the recorded prompt, or evaluate without resume=True"
        raise PromptMismatch(f"the recorded prompt is {heading.prompt}, but this prompt is {wanted.prompt}; {remedy}")
    messages = prompt.opening()
    if not messages:
        return evaluation_of(records)
    opening = tuple(RecordWriter(heading).prompt_records(messages, speaks_as))
    if not _has_same_start(records, opening):
        difference = f"evaluation {heading.evaluation_id} was recorded with another text of the prompt"
        if not (prompt.ns or prompt.key):
            remedy = "pass the recorded messages or none, evaluate without resume=True, or use follow_up()"
            raise PromptMismatch(f"{difference}; {remedy}")
        logger.warning("%s %s; the recorded text is used", difference, wanted.prompt)
    missing: tuple[InnerMessage, ...] = ()
    is_shorter = len(_message_contents(records)) < len(_message_contents(opening))
    if is_shorter and not any(record.is_reply for record in records):
        missing = opening[len(records) :]
    return Evaluation(heading, (*records, *missing), missing, is_resume=True)


def follow_up(session: Session, *messages: Message, evaluation_id: str | None = None) -> None:
    """Record the next messages of the user in an evaluation of a session. To have them answered, resume the evaluation.

        follow_up(session, sabir.user("And tomorrow?"))
        response = await evaluate(llm, prompt, session=session, resume=True)

    `evaluation_id` names the evaluation; None means the evaluation that a resume would continue. Option calls without a
    result will not run. Raises ConversationNotFound if nothing was recorded or there is no evaluation of this id,
    WrongWord for values that are not messages, RecordingFailed if the session cannot record, and the errors of
    `enable_inner_message_recording`, which this function calls.
    """
    enable_inner_message_recording(session)
    records = _records_of(session, evaluation_id, "evaluate a prompt to begin a conversation")
    evaluation = evaluation_of(records)
    for message in as_messages(messages):
        session.mutate(InnerMessage).append(evaluation.add_messages(message))


def unfinished_evaluations(session: Session) -> tuple[str, ...]:
    """Return the ids of the unfinished evaluations of a session, in the order in which they began; () without any.

    for evaluation_id in unfinished_evaluations(session):
        await evaluate(llm, prompt, session=session, resume=True, evaluation_id=evaluation_id)

    Raises the errors of `enable_inner_message_recording`, which this function calls.
    """
    enable_inner_message_recording(session)
    return tuple(last.evaluation_id for last in get_last_records(session) if not last.is_end)


def _records_of(session: Session, evaluation_id: str | None, remedy: str) -> tuple[InnerMessage, ...]:
    name = get_latest_evaluation_id(session) if evaluation_id is None else evaluation_id
    if name is None:
        raise ConversationNotFound(f"no conversation to resume: the session has no messages; {remedy}")
    records = get_inner_messages(session, name)
    if not records:
        remedy = "pass an id of unfinished_evaluations(session), or None for the latest"
        raise ConversationNotFound(f"no conversation to resume: the session has no evaluation {name!r}; {remedy}")
    return records


def heading_of(record: InnerMessage) -> Heading:
    """Return the evaluation id, namespace and key of a record. All records of an evaluation have the same."""
    return Heading(record.evaluation_id, record.prompt_ns, record.prompt_key)


def evaluation_of(records: Sequence[InnerMessage]) -> Evaluation:
    """Return the evaluation of these records, to continue it."""
    return Evaluation(heading_of(records[0]), records, (), is_resume=True)


def _has_same_start(records: Sequence[InnerMessage], opening: Sequence[InnerMessage]) -> bool:
    """Return whether the recorded start of an evaluation has the same contents as the prompt's messages."""
    recorded = _message_contents(record for record in records if record.turn == 0)
    wanted = _message_contents(opening)
    if len(recorded) != len(wanted) and any(record.is_reply for record in records):
        return False
    return all(one == other for one, other in zip(recorded, wanted, strict=False))


def _message_contents(records: Iterable[InnerMessage]) -> list[tuple[str, object]]:
    return [(message.policy, message.payload) for record in records for message in messages_of(record)]


def _suggest_earlier(session: Session, wanted: Heading) -> str:
    """Return the remedy that names an earlier evaluation of this prompt; "" if there is none."""
    lasts = map(heading_of, get_last_records(session))
    of_prompt = [last.evaluation_id for last in lasts if last[1:] == wanted[1:]]
    return f"an earlier evaluation has this prompt: resume it with evaluation_id={of_prompt[-1]!r}" if of_prompt else ""
