"""Convert an evaluation's messages to records, and records to messages.

    instructions · one question, of one message or more    · one reply, with its calls     · one result
       system    ·                 user                    ·            assistant          ·    tool

Programs use a record's `messages`. Its text and its calls are for people, and are used only without `messages`.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from sabir import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload, Reply, Target, TextPart, Usage
from sabir.authoring import DecodeScope

from sabir_session.records import InnerMessage, InstructionsMark, SpentReply, ToolCallRecord

SYSTEM = "system"
USER = "user"


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
    """

    def __init__(self, heading: Heading, sequence: int = 0, turn: int = 0) -> None:
        self._heading = heading
        self._sequence = sequence
        self.turn = turn

    def opening(self, messages: Iterable[Message], speaks_as: str) -> Iterator[InnerMessage]:
        """Yield the records of a prompt's messages. The first record is the instructions, even if they are empty."""
        groups = list(_grouped(messages, speaks_as))
        if not groups or groups[0][0] != SYSTEM:
            groups.insert(0, (SYSTEM, []))
        for role, group in groups:
            yield self._write(role, group, tool_calls=_calls_of(group)) if role != "tool" else self.result(group[0])

    def following(self, *messages: Message, instructions: InstructionsMark | None = None) -> InnerMessage:
        """Return the record of the messages of a question. It is one record, so that a crash cannot separate them.

        `instructions` is "new" if the first message replaces the instructions, "none" if the question removes them, and
        "same" or None otherwise.
        """
        role = SYSTEM if all(message.policy == SYSTEM for message in messages) else USER
        return self._write(role, messages, instructions=instructions)

    def dropped(self, replies: tuple[SpentReply, ...]) -> InnerMessage:
        """Return the record of the replies of removed turns."""
        return self._write(SYSTEM, (), dropped=replies)

    def reply(self, reply: Reply, *, needs_approval: bool = False) -> InnerMessage:
        """Return the record of a reply with pending calls. Sequence numbers are reserved for their results.

        `needs_approval`: whether calls wait for a person's approval.
        """
        self.turn += 1
        calls = _calls_of(reply.messages)
        fields = {name: getattr(reply, name) for name in ("finish_reason", "raw_finish_reason", "usage")}
        record = self._write("assistant", reply.messages, tool_calls=calls, needs_approval=needs_approval, **fields)
        self._sequence += len(calls)
        return record

    def result(self, message: Message, sequence: int | None = None, *, gives_output: bool = False) -> InnerMessage:
        """Return the record of a result. `sequence` is the number reserved for it; None means the next free number."""
        assert message.result is not None
        names = {"tool_call_id": message.result.invocation_id, "tool_name": message.result.option_name}
        return self._write("tool", [message], sequence=sequence, gives_output=gives_output, **names)

    def _write(
        self, role: str, messages: Iterable[Message], *, sequence: int | None = None, **fields: Any
    ) -> InnerMessage:
        messages = tuple(messages)
        if sequence is None:
            sequence, self._sequence = self._sequence, self._sequence + 1
        content = ("\n\n" if role == USER else "").join(map(_text_of, messages))
        common = {"role": role, "content": content, "messages": messages, "sequence": sequence, "turn": self.turn}
        return InnerMessage.model_validate({**self._heading._asdict(), **common, **fields})


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
    nowhere = DecodeScope(Target(provider="unknown", dialect="unknown"))
    payloads += [nowhere.read_call(call.call_id, call.name, call.arguments) for call in record.tool_calls]
    return tuple(Message(policy=policy, payload=payload) for payload in payloads)


def spent_in(records: Iterable[InnerMessage]) -> tuple[SpentReply, ...]:
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


def _grouped(messages: Iterable[Message], speaks_as: str) -> Iterator[tuple[str, list[Message]]]:
    """Group messages into records: neighbouring messages of the assistant together, each other message alone."""
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
