"""An evaluation's messages as records, and records as messages.

    instructions · what others say, of one message or more · one reply, its calls included · one result
       system    ·                 user                    ·            assistant          ·    tool

A record's `messages` are authoritative; its text and its calls are for reading, and are used if it has no messages.
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

    def following(self, *messages: Message, instructions: InstructionsMark | None = None) -> InnerMessage:
        """Make the one record of the next messages, so that no crash divides them.

        `instructions` says whether the first of them replaces the instructions.
        """
        role = SYSTEM if all(message.policy == SYSTEM for message in messages) else USER
        return self._write(role, messages, instructions=instructions)

    def dropped(self, replies: tuple[SpentReply, ...]) -> InnerMessage:
        """Make the record of replies whose turns were dropped."""
        return self._write(SYSTEM, (), dropped=replies)

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

    def result(self, message: Message, sequence: int | None = None, *, gives_output: bool = False) -> InnerMessage:
        """The record of one result, at the place that is kept for it, or at the next place."""
        assert message.result is not None
        names = {"tool_call_id": message.result.invocation_id, "tool_name": message.result.option_name}
        return self._write("tool", [message], sequence=sequence, gives_output=gives_output, **names)

    def _write(
        self, role: str, messages: Iterable[Message], *, sequence: int | None = None, **fields: Any
    ) -> InnerMessage:
        held = tuple(messages)
        if sequence is None:
            sequence, self._sequence = self._sequence, self._sequence + 1
        content = ("\n\n" if role == USER else "").join(map(_text_of, held))
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


def spent_in(records: Iterable[InnerMessage]) -> tuple[SpentReply, ...]:
    """Return what a budget counts of records that are dropped: their replies, and those dropped before them."""
    spent: list[SpentReply] = []
    for record in records:
        spent += record.dropped
        if record.is_reply:
            reply = reply_of(record)
            spent.append(SpentReply(usage=reply.usage, origin=reply.origin, finish_reason=reply.finish_reason))
    return tuple(spent)


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
            arguments=call.unreadable_arguments or call.arguments_json,
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
