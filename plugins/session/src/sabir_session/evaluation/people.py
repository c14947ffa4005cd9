"""What people decide and see of an evaluation: approval before an option runs, and progress events for a watcher.

    call ──approve──▶ "allow" ──▶ it runs
                  ├─▶ "deny" ───▶ an error result of type "denied", by the policy "human"
                  └─▶ "wait" ───▶ ApprovalPending, once everything else has run; a resume asks again

A call that waits stays pending in the session, marked as needing approval: both survive a restart, and a resume
without `approve` runs no such call. Keeping a person's decisions is up to the program.

    RequestStarted ─ TextArrived … ─ ReplyArrived ─ CallStarted ─ CallProgress … ─ CallEnded ─ RequestStarted ─ …

Replies are streamed if there is a watcher, else requested whole. Each event has `question`, the id of the first message
of the question that it belongs to: an unfinished question is finished before the next one is asked.
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
"""The error type of a call that a person denied."""
HUMAN = "human"
"""The policy of the results of such calls."""


@dataclass(frozen=True)
class Decision:
    """A person's decision about one call.

    `reason` tells the model why a call was denied. `arguments` of an allowed call replace the model's when it runs;
    the conversation still shows the model's own.
    """

    kind: Word
    reason: str = ""
    arguments: Mapping[str, JSONValue] | None = None

    def __post_init__(self) -> None:
        """Refuse an invalid decision."""
        if self.kind not in ("allow", "deny", "wait"):
            raise SettingsInvalid(f"{self.kind!r} is no decision; approve gives 'allow', 'deny', 'wait' or a Decision")
        if self.arguments is not None and self.kind != "allow":
            raise SettingsInvalid(f"a decision to {self.kind} takes no arguments; only an allowed call runs")


Decided: TypeAlias = Decision | Word
Approve = TypeAliasType("Approve", Callable[[OptionCall], Decided | Awaitable[Decided]])
"""A function that decides about one option call before the call runs. It gets the call and returns "allow", "deny",
"wait" or a Decision. In async evaluations it may be a coroutine function."""


def as_decision(decided: object) -> Decision:
    """The decision that `approve` returned, as a word or a Decision; raises SettingsInvalid for anything else."""
    if isinstance(decided, Decision):
        return decided
    if isinstance(decided, str):
        return Decision(decided)  # type: ignore[arg-type]  # it checks the word itself
    given = type(decided).__name__
    raise SettingsInvalid(f"approve gave a value of type {given}; it gives 'allow', 'deny', 'wait' or a Decision")


def with_arguments(call: OptionCall, decision: Decision | None) -> OptionCall:
    """Return the call to run: with the person's arguments if there are any, else unchanged."""
    if decision is None or decision.arguments is None:
        return call
    fields = {"arguments": encode_json(dict(decision.arguments)), "raw_arguments": None}
    payload = call.call.model_copy(update={**fields, "invalid_arguments": False, "cut_off": False})
    return call.model_copy(update={"payload": payload})


def denial(call: Message, decision: Decision) -> Message:
    """The result of a call that was denied; the conversation goes on."""
    reason = one_line(decision.reason) or "a person denied this call"
    return OptionResultBuilder.response_to(call, policy=HUMAN).error(DENIED, reason)


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A provider is about to be asked; `turn` counts from 1."""

    turn: int
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class TextArrived:
    """Some characters of the reply that is coming."""

    text: str
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class ReplyArrived:
    """A reply is whole, and recorded."""

    reply: Reply
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallStarted:
    """An option is about to run; `is_resume` if it may have begun in an earlier process."""

    call: OptionCall
    is_resume: bool
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallProgress:
    """The progress that an option reports: `done` of `total`, None if it is not known."""

    call: OptionCall
    done: float
    total: float | None = None
    text: str = ""
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has its result, and the result is recorded."""

    call: OptionCall
    result: Message
    question: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class OutputArrived:
    """Some characters of the JSON of an output that comes by a call; one that comes as text is a TextArrived."""

    text: str
    question: str = field(default="", kw_only=True)


Event: TypeAlias = RequestStarted | TextArrived | OutputArrived | ReplyArrived | CallStarted | CallProgress | CallEnded
"""An event of the progress of an evaluation. Its field `question` is the id of the first message of the question."""
Recorder = TypeAliasType("Recorder", Callable[[Callable[[], None]], Awaitable[None]])
"""A coroutine function that is awaited for each write to a session. It must call the function that it gets, for example
in a thread."""
Watch = TypeAliasType("Watch", Callable[[Event], None])
"""A function that is called with each progress event of an evaluation. Its errors are logged and stop nothing."""


class Reader(Protocol):
    """Reads the events of an evaluation, which goes no further than it reads."""

    def tell(self, event: Event) -> None:
        """Take an event."""

    async def taken(self) -> None:
        """Wait until all events that were told are read."""


class Arriving:
    """Reads the events of one reply's stream: what a watcher hears of each, None if nothing.

    `output_option` is the option by whose call the output comes, if it does. `question` is the events' question.
    """

    def __init__(self, output_option: str | None, question: str) -> None:
        self._output_option = output_option
        self._question = question
        self._outputs: set[int] = set()
        self._grown: set[int] = set()

    def __call__(self, event: StreamEvent) -> TextArrived | OutputArrived | None:
        """The watcher's event for an event of the stream."""
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
