"""Approval of option calls by a person, and the progress events of an evaluation.

    call ──approve──▶ "allow" ──▶ the option runs
                  ├─▶ "deny" ───▶ an error result of type "denied", by the policy "human"
                  └─▶ "wait" ───▶ ApprovalPending, after everything else has run; a resume asks again

A call that waits is recorded as pending and as needing approval, so it waits after a restart too. A resume without
`approve` does not run such a call. The program stores the decisions of its users itself.

    RequestStarted ─ TextArrived … ─ ReplyArrived ─ CallStarted ─ CallProgress … ─ CallEnded ─ RequestStarted ─ …

Replies are streamed only if there is a watcher or a stream. Each event has `question`, the id of the first message of
its question, because an unfinished question is finished before the next question is sent.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from sabir import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    Message,
    OptionResultBuilder,
    Reply,
    SettingsInvalid,
    StreamEvent,
    TextPart,
)
from sabir.authoring import JSONValue, OptionCall, encode_json, one_line
from typing_extensions import TypeAliasType

Word: TypeAlias = Literal["allow", "deny", "wait"]

DENIED = "denied"
"""The error type of the result of an option call that a person denied."""
HUMAN = "human"
"""The policy of the results of option calls that a person denied."""


@dataclass(frozen=True)
class Decision:
    """A person's decision about one option call, with a reason or other arguments. An `approve` function returns it.

    `kind` is "allow" to run the call, "deny" to send the model an error result instead, or "wait" to leave the call
    open, which raises ApprovalPending. `reason` is the reason of a denial, which is sent to the model. `arguments` are
    the arguments with which an allowed call runs; None means the model's own arguments. The recorded call has the
    model's own arguments in any case.

    Raises SettingsInvalid for an unknown kind, and for arguments of a call that is not allowed.
    """

    kind: Word
    reason: str = ""
    arguments: Mapping[str, JSONValue] | None = None

    def __post_init__(self) -> None:
        """Raise SettingsInvalid for an invalid decision."""
        if self.kind not in ("allow", "deny", "wait"):
            raise SettingsInvalid(f"{self.kind!r} is not a decision; expected 'allow', 'deny', 'wait' or a Decision")
        if self.arguments is not None and self.kind != "allow":
            raise SettingsInvalid(f"Decision({self.kind!r}) cannot have arguments; only an allowed call runs")


Decided: TypeAlias = Decision | Word
Approve = TypeAliasType("Approve", Callable[[OptionCall], Decided | Awaitable[Decided]])
"""A function that gets an option call before the call runs, and returns "allow", "deny", "wait" or a Decision. In async
evaluations, the function may be a coroutine function; any other function is then called in a thread."""


def as_decision(decided: object) -> Decision:
    """Return the result of `approve` as a Decision. Raises SettingsInvalid for an invalid result."""
    if isinstance(decided, Decision):
        return decided
    if isinstance(decided, str):
        return Decision(decided)  # type: ignore[arg-type]  # Decision checks the word
    name = type(decided).__name__
    raise SettingsInvalid(f"approve() returned a value of type {name}; expected 'allow', 'deny', 'wait' or a Decision")


def with_arguments(call: OptionCall, decision: Decision | None) -> OptionCall:
    """Return the call with the arguments of the decision; unchanged if the decision has none."""
    if decision is None or decision.arguments is None:
        return call
    fields = {"arguments": encode_json(dict(decision.arguments)), "raw_arguments": None}
    payload = call.call.model_copy(update={**fields, "invalid_arguments": False, "cut_off": False})
    return call.model_copy(update={"payload": payload})


def denial(call: Message, decision: Decision) -> Message:
    """Return the error result of a denied call, which is recorded and sent to the model."""
    reason = one_line(decision.reason) or "a person denied this call"
    return OptionResultBuilder.response_to(call, policy=HUMAN).error(DENIED, reason)


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
    """The progress event for a complete and recorded reply. `question` is the id of the question's first message."""

    reply: Reply
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The progress event before an option runs.

    `call` is the option call of the model, with the model's arguments. `is_resume` is True if the option may already
    have run in part, before a crash or an error. `question` is the id of the question's first message.
    """

    call: OptionCall
    is_resume: bool
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallProgress:
    """The progress event for a call of `ToolContext.report` by a running option.

    `call` is the option call of the model. `done` is the finished amount and `total` the complete amount, in a unit of
    the option's choice; None if unknown. `text` describes the progress. `question` is the id of the question's first
    message.
    """

    call: OptionCall
    done: float
    total: float | None = None
    text: str = ""
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The progress event for the recorded result of an option call.

    A denied call has this event, too, but no CallStarted. `call` is the option call of the model, and `result` the
    message with the result. `question` is the id of the question's first message.
    """

    call: OptionCall
    result: Message
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class OutputArrived:
    """The progress event for a piece of an output that the model sends as arguments of an option call, not as text.

    Sent for models whose API accepts no schema of the answer.

    `text` is the new characters of the JSON. `question` is the id of the question's first message.
    """

    text: str
    question: str = field(default="", kw_only=True)


Event: TypeAlias = RequestStarted | TextArrived | OutputArrived | ReplyArrived | CallStarted | CallProgress | CallEnded
"""An event of the progress of an evaluation. Its field `question` is the id of the first message of the question."""
Recorder = TypeAliasType("Recorder", Callable[[Callable[[], None]], Awaitable[None]])
"""A coroutine function that is awaited for each write to a session. Its argument is the function that writes, which the
coroutine function must call, for example in a thread."""
Watch = TypeAliasType("Watch", Callable[[Event], None])
"""A function that is called with each progress event of an evaluation. If the function raises, the error is logged and
the evaluation continues."""


class Reader(Protocol):
    """A reader of the events of an evaluation. The evaluation pauses until the reader has read all events."""

    def tell(self, event: Event) -> None:
        """Add an event to the unread events."""

    async def taken(self) -> None:
        """Wait until all added events are read."""


class Arriving:
    """Converts the events of one reply's stream to progress events.

    `output_option` is the name of the option whose arguments are the output, or None. `question` is the id for the
    progress events.
    """

    def __init__(self, output_option: str | None, question: str) -> None:
        self._output_option = output_option
        self._question = question
        self._outputs: set[int] = set()
        self._grown: set[int] = set()

    def __call__(self, event: StreamEvent) -> TextArrived | OutputArrived | None:
        """Return the progress event for an event of the stream, or None for an event without new text."""
        if isinstance(event, BlockStart) and event.option_name == self._output_option:
            self._outputs.add(event.index)
        if isinstance(event, BlockDelta) and event.kind == "text" and event.text:
            self._grown.add(event.index)
            return TextArrived(event.text, question=self._question)
        if isinstance(event, BlockDelta) and event.index in self._outputs:
            return OutputArrived(event.text, question=self._question)
        if isinstance(event, BlockEnd) and isinstance(event.block, TextPart) and event.index not in self._grown:
            return TextArrived(event.block.text, question=self._question)
        return None
