"""The progress events of an evaluation, for watchers and streams.

    RequestStarted ─ TextArrived … ─ ReplyArrived ─ CallStarted ─ CallProgress … ─ CallEnded ─ RequestStarted ─ …

Replies are streamed only if there is a watcher or a stream. Each event has `question`, the id of the first message of
its question, because an unfinished question is finished before the next question is sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from sabir import BlockDelta, BlockEnd, BlockStart, Message, OptionCallPayload, Reply, StreamEvent, TextPart
from sabir.authoring import OptionCall
from typing_extensions import TypeAliasType


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """The progress event before a request to the provider.

    `turn` is the number of the reply that is requested, from 1, counted over the evaluation or the conversation.
    `question` is the id of the question's first message.
    """

    turn: int
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class TextArrived:
    """The progress event for a piece of text of the reply.

    `text` is the new characters. `question` is the id of the question's first message.
    """

    text: str
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class ReplyArrived:
    """The progress event for a complete reply, after it was recorded if there is a session.

    `question` is the id of the question's first message.
    """

    reply: Reply
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The progress event before an option call is answered, usually by running the option.

    An unknown option, or an option that is called with wrong arguments, does not run.

    `call` is the option call of the model, with the model's arguments. `is_resume` is True if the call was still open
    when the evaluation was resumed, so that the option may already have run, completely or in part. `question` is the
    id of the question's first message.
    """

    call: OptionCall
    is_resume: bool
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallProgress:
    """The progress event for a call of `ToolContext.report` by a running option.

    `call` is the option call of the model. `done` is the finished amount, in a unit of the option's choice, and `total`
    the complete amount in this unit, or None if unknown. `text` describes the progress. `question` is the id of the
    question's first message.
    """

    call: OptionCall
    done: float
    total: float | None = None
    text: str = ""
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The progress event for the result of an option call, after it was recorded if there is a session.

    A denied call has this event, too, but no CallStarted. The call that gives the output has neither. `call` is the
    option call of the model, and `result` the message with the result. `question` is the id of the question's first
    message.
    """

    call: OptionCall
    result: Message
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class OutputArrived:
    """The progress event for a piece of an output that the model sends as arguments of an option call, not as text.

    Sent if the output mode is "call", and without a mode for models whose API accepts no schema of the answer.

    `text` is the new characters of the JSON. `question` is the id of the question's first message.
    """

    text: str
    question: str = field(default="", kw_only=True)


Event: TypeAlias = RequestStarted | TextArrived | OutputArrived | ReplyArrived | CallStarted | CallProgress | CallEnded
"""An event of the progress of an evaluation. Its field `question` is the id of the first message of the question."""
Watch = TypeAliasType("Watch", Callable[[Event], None])
"""A function that is called with each progress event of an evaluation. If the function raises an Exception, the error
is logged and the evaluation continues."""


class Reader(Protocol):
    """A reader of the events of an evaluation. The evaluation pauses until the reader has read all events."""

    def emit(self, event: Event) -> None:
        """Add an event to the unread events."""

    async def wait_until_read(self) -> None:
        """Wait until all added events are read."""


class EventConverter:
    """Converts the events of one reply's stream to progress events.

    `output_option` is the name of the option whose arguments are the output, or None. `question` is the id for the
    progress events.
    """

    def __init__(self, output_option: str | None, question: str) -> None:
        self._output_option = output_option
        self._question = question
        self._of_output: set[int] = set()
        self._with_deltas: set[int] = set()

    def __call__(self, event: StreamEvent) -> TextArrived | OutputArrived | None:
        """Return the progress event for an event of the stream, or None for an event without new text."""
        if isinstance(event, BlockStart) and event.option_name == self._output_option:
            self._of_output.add(event.index)
        if isinstance(event, BlockDelta) and event.text:
            self._with_deltas.add(event.index)
            return self._arrived(event.index, event.kind, event.text)
        if isinstance(event, BlockEnd) and event.index not in self._with_deltas:  # the block arrived as a whole
            block = event.block
            text = block.text if isinstance(block, TextPart) else ""
            text = block.raw_arguments or block.arguments_json if isinstance(block, OptionCallPayload) else text
            return self._arrived(event.index, block.kind, text)
        return None

    def _arrived(self, index: int, kind: str, text: str) -> TextArrived | OutputArrived | None:
        if kind == "text":
            return TextArrived(text, question=self._question)
        if index in self._of_output:
            return OutputArrived(text, question=self._question)
        return None
