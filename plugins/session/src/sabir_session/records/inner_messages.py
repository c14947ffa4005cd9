"""The records of a conversation in a session: one for each message, reply or result.

    system      sequence 0, turn 0
    user        sequence 1, turn 0
    assistant   sequence 2, turn 1     tool_calls: c1, c2
    tool        sequence 3, turn 1     tool_call_id: c1
    tool        sequence 4, turn 1     tool_call_id: c2
    assistant   sequence 5, turn 2

A record's `content` is for reading; its `messages` are authoritative: its core messages, all messages of a response
in one record, so that a crash cannot separate the calls of one reply.
"""

from typing import Literal, TypeAlias, TypeVar
from uuid import UUID, uuid4

from pydantic import Field
from sabir import Message, Usage
from sabir.authoring import AtRest, FinishReason, NonEmpty, Text

from sabir_session.state.codec import UTCDatetime, now

Role: TypeAlias = Literal["system", "assistant", "user", "tool"]
CallStatus: TypeAlias = Literal["pending", "completed", "failed"]


class ToolCallRecord(AtRest):
    """One option call of an assistant record.

    `arguments` is JSON text. Only the reducer sets `status`: it advances it when the result is recorded.
    """

    call_id: NonEmpty
    name: NonEmpty
    arguments: Text
    status: CallStatus = "pending"


class InnerMessage(AtRest):
    """One record of a conversation, an item of its session's slice.

    `evaluation_id` names its evaluation, `sequence` its place there (from 0), `turn` the number of responses so far.
    `tool_call_id` and `tool_name` link a result to its call. `messages` are its core messages; `finish_reason`,
    `raw_finish_reason` and `usage` are those of an assistant's reply, whose calls wait for a person's approval if it
    `needs_approval`.
    """

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

    @property
    def is_error(self) -> bool:
        """Whether a result that it holds is an error."""
        return any(message.result is not None and message.result.is_error for message in self.messages)

    @property
    def is_reply(self) -> bool:
        """Whether it is a provider's answer in this evaluation, not an assistant message from its prompt."""
        return self.role == "assistant" and self.turn > 0

    @property
    def is_end(self) -> bool:
        """Whether an evaluation with this last record is over: it is a reply without calls."""
        return self.is_reply and not self.tool_calls and self.finish_reason != "paused"


# Stored data names this class by its public module, which stays when files move.
InnerMessage.__module__ = "sabir_session"

Record = TypeVar("Record", bound=AtRest)


def changed(record: Record, field: str, value: object) -> Record:
    """A copy with one field changed to a value that is known to be valid; the other fields are shared."""
    if record.__pydantic_extra__:  # a newer writer's fields are copied too
        copy = record.model_copy()
        vars(copy)[field] = value
        return copy
    return type(record).assembled({**vars(record), field: value}, record.__pydantic_fields_set__)
