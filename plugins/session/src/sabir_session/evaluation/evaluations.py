"""The evaluations of a session: begun, found again, continued; their messages as records, and records as messages.

    begin(prompt)                     a new one ─────────────────────┐
    restore(session, prompt)          the latest, or the named one ──┴▶ Evaluation ── take(reply) ──▶ records
    follow_up(session, message)       the same, with the next messages              └── settle(call, result) ──▶ records
    unfinished_evaluations(session)   the names of unfinished ones

    instructions · others' messages · one reply, its calls included · one result
         system  ·       user       ·          assistant            ·    tool

Both begin with records, so a new evaluation continues in the same way as an interrupted one. A record's `messages`
are authoritative; its text and its calls are for reading, and are used if a record has no messages.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count, groupby
from typing import Any, NamedTuple, cast
from uuid import uuid4

from sabir import (
    RUNTIME,
    Message,
    OptionCallPayload,
    OptionResultPayload,
    Origin,
    PartsPayload,
    Reply,
    Target,
    TextPart,
    Usage,
)
from sabir.authoring import DecodeScope, OptionCall, as_messages

from sabir_session.evaluation.prompts import ConversationNotFound, Output, Prompt, PromptMismatch
from sabir_session.records import (
    InnerMessage,
    ToolCallRecord,
    enable_inner_message_recording,
    get_inner_messages,
    get_last_records,
    get_latest_evaluation_id,
    is_output,
)
from sabir_session.state.session import Session

logger = logging.getLogger("sabir")

SYSTEM = "system"
USER = "user"


class Heading(NamedTuple):
    """The fields that all records of one evaluation share."""

    evaluation_id: str
    prompt_ns: str
    prompt_key: str

    @property
    def prompt(self) -> str:
        """The prompt's namespace and key, in words."""
        return repr(f"{self.prompt_ns}:{self.prompt_key}") if self.prompt_ns or self.prompt_key else "without a name"


class RecordWriter:
    """Writes the records of one evaluation: sequences rise by one, turns with each reply.

    A reply's results have places in the order of its calls, in whatever order they arrive; later records come after
    the last of them.
    """

    def __init__(self, heading: Heading, sequence: int = 0, turn: int = 0) -> None:
        self._heading = heading
        self._sequence = sequence
        self.turn = turn

    def opening(self, messages: Iterable[Message], speaks_as: str) -> Iterator[InnerMessage]:
        """The records of a prompt's messages: the instructions first, even if they are empty."""
        groups = list(_grouped(messages, speaks_as))
        if not groups or groups[0][0] != SYSTEM:
            groups.insert(0, (SYSTEM, []))
        for role, group in groups:
            yield self._write(role, group, tool_calls=_calls_of(group)) if role != "tool" else self.result(group[0])

    def following(self, messages: Iterable[Message]) -> Iterator[InnerMessage]:
        """The records of others' later messages, one for each message."""
        return (self._write(SYSTEM if message.policy == SYSTEM else USER, [message]) for message in messages)

    def reply(self, reply: Reply, *, needs_approval: bool = False) -> InnerMessage:
        """The record of a whole reply, all its calls pending; places for their results are kept free.

        `needs_approval` says that its calls wait for a person's approval.
        """
        self.turn += 1
        calls = _calls_of(reply.messages)
        taken = {name: getattr(reply, name) for name in ("finish_reason", "raw_finish_reason", "usage")}
        record = self._write("assistant", reply.messages, tool_calls=calls, needs_approval=needs_approval, **taken)
        self._sequence += len(calls)
        return record

    def result(self, message: Message, sequence: int | None = None) -> InnerMessage:
        """The record of one result, at the place that is kept for it, or at the next place."""
        assert message.result is not None
        names = {"tool_call_id": message.result.invocation_id, "tool_name": message.result.option_name}
        return self._write("tool", [message], sequence=sequence, **names)

    def _write(
        self, role: str, messages: Iterable[Message], *, sequence: int | None = None, **fields: Any
    ) -> InnerMessage:
        held = tuple(messages)
        if sequence is None:
            sequence, self._sequence = self._sequence, self._sequence + 1
        content = "".join(map(_text_of, held))
        known = {"role": role, "content": content, "messages": held, "sequence": sequence, "turn": self.turn}
        return InnerMessage.model_validate({**self._heading._asdict(), **known, **fields})


def messages_of(record: InnerMessage) -> tuple[Message, ...]:
    """The messages of a record; made from its text and its calls if it holds none."""
    if record.messages:
        return record.messages
    if record.role == "tool":
        names = {"invocation_id": record.tool_call_id or "?", "option_name": record.tool_name or "?"}
        result = OptionResultPayload.model_validate({**names, "result": record.content})
        return (Message(policy=result.option_name, payload=result),)
    policy = "llm" if record.role == "assistant" else record.role
    payloads: list[PartsPayload | OptionCallPayload] = []
    if record.content:
        payloads.append(PartsPayload(parts=(TextPart(text=record.content),)))
    nowhere = DecodeScope(Target(provider="unknown", dialect="unknown"))
    payloads += [nowhere.read_call(call.call_id, call.name, call.arguments) for call in record.tool_calls]
    return tuple(Message(policy=policy, payload=payload) for payload in payloads)


def reply_of(record: InnerMessage) -> Reply:
    """The reply of an assistant's record, with the fields needed to continue from it or to return it again."""
    messages = messages_of(record)
    origins = [message.origin for message in messages if message.origin is not None]
    return Reply(
        messages=messages,
        finish_reason=record.finish_reason or ("option_calls" if record.tool_calls else "stop"),
        raw_finish_reason=record.raw_finish_reason,
        usage=record.usage or Usage(),
        origin=origins[0] if origins else Origin(provider="unknown", dialect="unknown"),
    )


def _grouped(messages: Iterable[Message], speaks_as: str) -> Iterator[tuple[str, list[Message]]]:
    """Messages grouped into records: neighbouring messages of the assistant together, every other by itself."""
    for role, group in groupby(messages, key=lambda message: _role_of(message, speaks_as)):
        if role == "assistant":
            yield role, list(group)
        else:
            yield from ((role, [message]) for message in group)


def _role_of(message: Message, speaks_as: str) -> str:
    if message.kind in ("option_call", "option_result"):
        return "assistant" if message.kind == "option_call" else "tool"
    return {speaks_as: "assistant", SYSTEM: SYSTEM}.get(message.policy, USER)


def _calls_of(messages: Iterable[Message]) -> tuple[ToolCallRecord, ...]:
    return tuple(
        ToolCallRecord(
            call_id=call.invocation_id,
            name=call.option_name,
            arguments=(call.raw_arguments or "") if call.invalid_arguments else call.arguments_json,
        )
        for call in (message.call for message in messages)
        if call is not None
    )


def _text_of(message: Message) -> str:
    """The text of a message in its record."""
    result = message.result
    if result is None or result.parts:
        return message.text
    if result.is_error:
        return result.error_message or ""
    return result.result if isinstance(result.result, str) else str(result.result_json)


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
    """The position of the first record of the last turn."""
    start = len(records)
    while start and not _is_said(records[start - 1]):
        start -= 1
    while start and _is_said(records[start - 1]):
        start -= 1
    return start


def _is_said(record: InnerMessage) -> bool:
    return record.role in (SYSTEM, USER) and all(message.policy != RUNTIME for message in record.messages)


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
        self._begun = _last_turn(records)
        self.needs_approval = bool(end) and records[end - 1].needs_approval

    @property
    def messages(self) -> list[Message]:
        """All messages so far, results in the order of their calls."""
        return [*self._said, *(message for _, message in sorted(self._settled.items()))]

    @property
    def turn(self) -> int:
        """The number of replies so far."""
        return self.writer.turn

    @property
    def last_turn(self) -> Turn:
        """What somebody said last, and all that came of it."""
        return Turn(tuple(self.messages[self._begun.messages :]), tuple(self.replies[self._begun.replies :]))

    @property
    def results(self) -> list[Message]:
        """The results of the last reply's calls so far."""
        return [*self._settled.values()]

    @property
    def is_over(self) -> bool:
        """Whether the last message is a reply without option calls, or one of its calls gave the output."""
        return self._last.is_end or (not self.open and any(map(is_output, self._settled.values())))

    def follow(self, *messages: Message) -> list[InnerMessage]:
        """Add others' messages; return their records. Calls without a result are abandoned.

        A message of the runtime belongs to the turn; any other begins one.
        """
        if any(message.policy != RUNTIME for message in messages):
            self._begun = Begun(len(self.messages), len(self.replies))
        records = list(self.writer.following(messages))
        self._said, self._settled, self.open = [*self.messages, *messages], {}, []
        self.needs_approval = False
        self._last = records[-1]
        return records

    def take(self, reply: Reply, asked_about: Collection[str] = ()) -> InnerMessage:
        """Add a reply; return its record, which must be stored before any of its calls runs.

        The record says whether its calls wait for a person, so that no resume runs them without approval.
        """
        self.needs_approval = any(call.call.option_name in asked_about for call in reply.option_calls)
        record = self.writer.reply(reply, needs_approval=self.needs_approval)
        self.replies.append(reply)
        self._said, self._settled = [*self.messages, *reply.messages], {}
        self.open = [
            OpenCall(position, call, record.sequence + 1 + position, _key(record, position), is_resume=False)
            for position, call in enumerate(reply.option_calls)
        ]
        self._last = record
        return record

    def settle(self, call: OpenCall, result: Message) -> InnerMessage:
        """Add the result of a call; return its record, which must be stored at once."""
        self.open.remove(call)
        self._settled[call.position] = result
        self._last = self.writer.result(result, call.sequence)
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
    heading = _heading_of(records[0])
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
    if not any(record.is_reply for record in records):
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
    for record in resumed(records).follow(*as_messages(messages)):
        session.mutate(InnerMessage).append(record)


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


def _heading_of(record: InnerMessage) -> Heading:
    return Heading(record.evaluation_id, record.prompt_ns, record.prompt_key)


def resumed(records: Sequence[InnerMessage]) -> Evaluation:
    """The evaluation of these records, as far as it came."""
    return Evaluation(_heading_of(records[0]), records, (), is_resume=True)


def _begin_alike(records: Sequence[InnerMessage], opening: Sequence[InnerMessage]) -> bool:
    """Whether an evaluation's recorded beginning has the contents of an opening; role hints and steps do not count."""
    recorded = [record for record in records if record.turn == 0]
    if len(recorded) != len(opening) and any(record.is_reply for record in records):
        return False
    return all(_contents(one) == _contents(other) for one, other in zip(recorded, opening, strict=False))


def _contents(record: InnerMessage) -> list[tuple[str, object]]:
    return [(message.policy, message.payload) for message in messages_of(record)]


def _other_of(session: Session, given: Heading) -> str:
    """A hint how to resume an earlier evaluation of this prompt; empty if there is none."""
    lasts = map(_heading_of, get_last_records(session))
    of_prompt = [last.evaluation_id for last in lasts if last[1:] == given[1:]]
    return f"an earlier evaluation is this prompt's: resume with evaluation_id={of_prompt[-1]!r}" if of_prompt else ""
