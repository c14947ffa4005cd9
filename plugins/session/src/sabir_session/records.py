"""Records: the messages of a conversation as a session stores them. Convert messages to records, and back.

    system      sequence 0, turn 0    instructions
    user        sequence 1, turn 0    one message or more of a question
    assistant   sequence 2, turn 1    one reply; tool_calls: c1, c2
    tool        sequence 3, turn 1    one result; tool_call_id: c1
    tool        sequence 4, turn 1    one result; tool_call_id: c2
    assistant   sequence 5, turn 2

Programs use a record's `messages`, the core messages. `content` is for people; messages are built from `content` and
`tool_calls` only if `messages` is empty. All messages of a reply are in one record, so that a crash cannot separate the
calls of one reply.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias
from uuid import UUID, uuid4

from pydantic import Field
from sabir import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload, Reply, Target, TextPart, Usage
from sabir.authoring import DecodeScope, FinishReason, NonEmpty, StoredModel, Text

from sabir_session.state.codec import UTCDatetime, now

SYSTEM = "system"
USER = "user"

Role: TypeAlias = Literal["system", "assistant", "user", "tool"]
InstructionsMark: TypeAlias = Literal["new", "none", "same"]
CallStatus: TypeAlias = Literal["pending", "completed", "failed"]


class ToolCallRecord(StoredModel):
    """One option call in the record of a reply. Vendors call an option a tool.

    `call_id` is the id that the result repeats, and `name` the name of the option. `arguments` is the text of a JSON
    object, or the model's own text if that is not a JSON object. `status` is "pending" without a result, "completed"
    after a result, or "failed" after an error result. The session sets the status.
    """

    call_id: NonEmpty
    name: NonEmpty
    arguments: Text
    status: CallStatus = "pending"


class SpentReply(StoredModel):
    """The numbers of a removed reply that a budget counts."""

    usage: Usage
    origin: Origin
    finish_reason: FinishReason = "stop"


class InnerMessage(StoredModel):
    """One record of a conversation: a system message, a question, a reply or a result. An item of a session's slice.

    `evaluate` and Conversation create the records, and `get_inner_messages` returns them.

    `role` is "system", "user" for a question or a request to correct an answer, "assistant" for a reply or a prompt's
    message of the model, or "tool" for a result. `content` is the text for people; programs use `messages`.
    `evaluation_id`, `prompt_ns` and `prompt_key` identify the evaluation and its prompt. `sequence` orders the records
    of an evaluation, from 0. `turn` is the number of replies so far in the evaluation, including this record.
    `message_id` is the unique id of the record, and `created_at` its time in UTC.

    A reply has `tool_calls`, `finish_reason`, the vendor's `raw_finish_reason` and `usage`; with `needs_approval`, its
    calls run only after `approve` has allowed them. A result has the `tool_call_id` and the `tool_name` of its call;
    with `gives_output`, the arguments of that call are the output. `instructions` is "new" if the first message of a
    question replaces the instructions, "none" if the question removes the instructions, and "same" or None otherwise,
    also for the first record of a prompt. `dropped` are the replies of turns that were removed at this place; such a
    record has no messages.
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
        """Whether the record contains the error result of an option call."""
        return any(message.result is not None and message.result.is_error for message in self.messages)

    @property
    def is_reply(self) -> bool:
        """Whether the record is a provider's reply in this evaluation, not an assistant message of the prompt."""
        return self.role == "assistant" and self.turn > 0

    @property
    def is_end(self) -> bool:
        """Whether an evaluation is finished if this is its last record.

        True for a reply without option calls that the provider did not pause, for the result of the call that gives
        the output, and for the record of removed turns.
        """
        return (
            self.gives_output
            or bool(self.dropped)
            or (self.is_reply and not self.tool_calls and self.finish_reason != "paused")
        )


class Heading(NamedTuple):
    """The fields that all records of one evaluation share."""

    evaluation_id: str
    prompt_ns: str
    prompt_key: str

    @property
    def prompt(self) -> str:
        """The prompt's namespace and key as a text for errors."""
        return repr(f"{self.prompt_ns}:{self.prompt_key}") if self.prompt_ns or self.prompt_key else "without a name"


class RecordWriter:
    """Creates the records of one evaluation. Each record gets the next sequence number; each reply adds 1 to `turn`.

    A reply reserves sequence numbers for its results, in the order of its calls. Later records get higher numbers.
    Only the heading is validated, because the values of messages and replies were validated before.
    """

    def __init__(self, heading: Heading, sequence: int = 0, turn: int = 0) -> None:
        first = InnerMessage.model_validate({**heading._asdict(), "role": SYSTEM, "content": "", "sequence": 0})
        self._values = vars(first)
        """The heading, and the defaults of all other fields, in the order in which records are written."""
        self._sequence = sequence
        self.turn = turn

    def prompt_records(self, messages: Iterable[Message], speaks_as: str) -> Iterator[InnerMessage]:
        """Yield the records of a prompt's messages. The first record is the instructions, even if they are empty."""
        groups = list(_group_messages(messages, speaks_as))
        if not groups or groups[0][0] != SYSTEM:
            groups.insert(0, (SYSTEM, []))
        for role, group in groups:
            if role == "tool":
                yield self.result_record(group[0])
            else:
                yield self._new_record(role, group, tool_calls=_calls_of(group))

    def question_record(self, *messages: Message, instructions: InstructionsMark | None = None) -> InnerMessage:
        """Return the record of the messages of a question. It is one record, so that a crash cannot separate them.

        `instructions` is "new" if the first message replaces the instructions, "none" if the question removes them, and
        "same" or None otherwise.
        """
        role = SYSTEM if all(message.policy == SYSTEM for message in messages) else USER
        return self._new_record(role, messages, instructions=instructions)

    def dropped_record(self, replies: tuple[SpentReply, ...]) -> InnerMessage:
        """Return the record of the replies of removed turns."""
        return self._new_record(SYSTEM, (), dropped=replies)

    def reply_record(self, reply: Reply, *, needs_approval: bool = False) -> InnerMessage:
        """Return the record of a reply with pending calls. Sequence numbers are reserved for their results.

        `needs_approval`: whether calls wait for a person's approval.
        """
        self.turn += 1
        calls = _calls_of(reply.messages)
        fields = {name: getattr(reply, name) for name in ("finish_reason", "raw_finish_reason", "usage")}
        record = self._new_record(
            "assistant", reply.messages, tool_calls=calls, needs_approval=needs_approval, **fields
        )
        self._sequence += len(calls)
        return record

    def result_record(
        self, message: Message, sequence: int | None = None, *, gives_output: bool = False
    ) -> InnerMessage:
        """Return the record of a result. `sequence` is the number reserved for it; None means the next free number."""
        assert message.result is not None
        names = {"tool_call_id": message.result.invocation_id, "tool_name": message.result.option_name}
        return self._new_record("tool", [message], sequence=sequence, gives_output=gives_output, **names)

    def _new_record(
        self, role: str, messages: Iterable[Message], *, sequence: int | None = None, **fields: Any
    ) -> InnerMessage:
        messages = tuple(messages)
        if sequence is None:
            sequence, self._sequence = self._sequence, self._sequence + 1
        content = ("\n\n" if role == USER else "").join(map(_text_of, messages))
        fields |= {"role": role, "content": content, "messages": messages, "sequence": sequence, "turn": self.turn}
        values = {**self._values, "created_at": now(), "message_id": uuid4(), **fields}
        return InnerMessage.construct_unchecked(values, {*Heading._fields, *fields})


def messages_of(record: InnerMessage) -> tuple[Message, ...]:
    """Return the messages of a record. Without messages, build them from the text and the calls."""
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
    scope = DecodeScope(Target(provider="unknown", dialect="unknown"))
    payloads += [scope.read_call(call.call_id, call.name, call.arguments) for call in record.tool_calls]
    return tuple(Message(policy=policy, payload=payload) for payload in payloads)


def find_spent_replies(records: Iterable[InnerMessage]) -> tuple[SpentReply, ...]:
    """Return the numbers of the replies in records that are removed, and of replies that were removed earlier."""
    spent: list[SpentReply] = []
    for record in records:
        spent += record.dropped
        if record.is_reply:
            reply = reply_of(record)
            spent.append(SpentReply(usage=reply.usage, origin=reply.origin, finish_reason=reply.finish_reason))
    return tuple(spent)


def reply_of(record: InnerMessage) -> Reply:
    """Build the reply of a record. Fields that are not recorded, such as losses and the request id, have defaults."""
    messages = messages_of(record)
    origins = [message.origin for message in messages if message.origin is not None]
    return Reply(
        messages=messages,
        finish_reason=record.finish_reason or ("option_calls" if record.tool_calls else "stop"),
        raw_finish_reason=record.raw_finish_reason,
        usage=record.usage or Usage(),
        origin=origins[0] if origins else Origin(provider="unknown", dialect="unknown"),
    )


def _group_messages(messages: Iterable[Message], speaks_as: str) -> Iterator[tuple[str, list[Message]]]:
    """Group messages into records: neighbouring messages of the assistant together, each other message alone."""
    for role, group in groupby(messages, key=lambda message: _find_role(message, speaks_as)):
        if role == "assistant":
            yield role, list(group)
        else:
            yield from ((role, [message]) for message in group)


def _find_role(message: Message, speaks_as: str) -> str:
    if message.kind in ("option_call", "option_result"):
        return "assistant" if message.kind == "option_call" else "tool"
    return {speaks_as: "assistant", SYSTEM: SYSTEM}.get(message.policy, USER)


def _calls_of(messages: Iterable[Message]) -> tuple[ToolCallRecord, ...]:
    return tuple(
        ToolCallRecord(
            call_id=call.invocation_id,
            name=call.option_name,
            arguments=call.unreadable_arguments or call.arguments_json,
        )
        for call in (message.call for message in messages)
        if call is not None
    )


def _text_of(message: Message) -> str:
    """Return the text of a message for its record."""
    result = message.result
    if result is None or result.parts:
        return message.text
    if result.is_error:
        return result.error_message or ""
    return result.result if isinstance(result.result, str) else str(result.result_json)
