"""The input of an evaluation, a prompt, and how it ends: with a response, or with one of these errors.

Prompt(ns="shop", key="refund", system="Be brief.", messages=(sabir.user("Where is my parcel?"),), output=Answer)

SabirError
├── ConversationNotFound    resume, but nothing was recorded (ValueError)
├── PromptMismatch          resume with another prompt than the recorded one (ValueError)
├── ApprovalPending         calls wait for a person; carries them
└── BudgetExhausted         a limit is reached; carries the response so far

A prompt has a namespace and a key, by which a resume recognises it. After the last two errors, and after any error of a
call, a session holds what was done: `resume=True` goes on from there.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic

import sabir
from sabir import Message, Reply, SabirError, Usage
from sabir.authoring import KnownPart, Messages, OptionCall, OptionLike, as_messages
from sabir.authoring import Strict as LossKinds
from typing_extensions import TypeAliasType, TypeForm, TypeVar

Output = TypeVar("Output", default=None)
Validator = TypeAliasType(
    "Validator", Callable[[Output], Output | None] | Callable[[Output], Awaitable[Output | None]], type_params=(Output,)
)
"""A function, or coroutine function, that checks an output. It returns the output, a corrected output, or None for an
unchanged output. It raises ValueError with the reason to have the model answer again."""
Options = TypeAliasType("Options", Iterable[OptionLike])
"""The options that a model may call: functions, pydantic models and `sabir.Option` objects."""
Strict = TypeAliasType("Strict", LossKinds)
"""Which losses raise RenderingRefused before a request is sent: True for all, False for none, or a set of kinds such as
{"dropped"}."""

_FIGURES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


_NO_OUTPUT: Any = None  # as a type it is that of no output


@dataclass(frozen=True)
class Prompt(Generic[Output]):
    """A prompt: `system` instructions, the `messages` that follow them, and the answer's type.

    `ns` and `key` identify it over versions of its text: a conversation resumes only under the same two. One without
    them resumes with the same content, or with no messages. `output` is a pydantic model or any type that pydantic
    validates, or a function that is called with what the model gives. Raises WrongWord for values that are not
    messages.
    """

    ns: str = ""
    key: str = ""
    system: str | tuple[str | KnownPart, ...] = ""
    messages: Sequence[Message] = ()
    output: TypeForm[Output] = _NO_OUTPUT

    def __post_init__(self) -> None:
        """Store the messages as a tuple, so that they cannot change."""
        object.__setattr__(self, "messages", tuple(as_messages(self.messages)))

    def opening(self) -> list[Message]:
        """The messages that a conversation begins with, the instructions first."""
        content = (self.system,) if isinstance(self.system, str) else self.system
        return [*([sabir.system(*content)] if any(content) else []), *self.messages]


PromptLike = TypeAliasType("PromptLike", Prompt[Output] | Messages, type_params=(Output,))
"""The input of an evaluation: a Prompt, a text, a message or a list of messages. All but a Prompt are used as a prompt
without a name."""


def as_prompt(given: PromptLike[Output]) -> Prompt[Output]:
    """The prompt itself, or one made from a text or messages; raises WrongWord for anything else."""
    return given if isinstance(given, Prompt) else Prompt(messages=as_messages(given))


@dataclass(frozen=True)
class PromptResponse(Generic[Output]):
    """The response to a prompt.

    `reply` is the last reply; made from its record if the evaluation was resumed after its end. `messages` are those of
    the whole evaluation, the instructions first. `output` is the reply as the prompt's type, None if the prompt has no
    type. `usage` is the sum over all turns, including those of earlier processes; a figure that a provider did not
    report is None.
    """

    prompt_ns: str
    prompt_key: str
    evaluation_id: str
    reply: Reply
    messages: tuple[Message, ...]
    output: Output
    usage: Usage

    @property
    def text(self) -> str:
        """The last reply's text."""
        return self.reply.text


def total(usages: Iterable[Usage]) -> Usage:
    """The sum of each figure, None if one of its values is not known; the providers' own details are left out."""
    columns = {name: [getattr(usage, name) for usage in usages] for usages in [tuple(usages)] for name in _FIGURES}
    return Usage(**{name: None if None in figures else sum(figures) for name, figures in columns.items()})


class ConversationNotFound(SabirError, ValueError):
    """There is nothing to resume."""


class PromptMismatch(SabirError, ValueError):
    """The prompt differs from the recorded conversation's: in namespace and key, or without these in content."""


class ApprovalPending(SabirError):
    """Calls wait for a person's approval; all others have run and are recorded.

    `calls` are the waiting calls. Resume the evaluation to call `approve` for them again.
    """

    def __init__(self, message: str, *, calls: tuple[OptionCall, ...], evaluation_id: str) -> None:
        super().__init__(message)
        self.calls = calls
        self.evaluation_id = evaluation_id


class BudgetExhausted(SabirError):
    """A limit of a budget is reached, or what was spent of it is not known; the next provider call was not made.

    `limit` names it ("turns", "tokens", "seconds", "cost"), `allowed` and `spent` are its figures, `spent` is None if
    a provider did not report it. `response` is the evaluation so far, None if no reply has come and for an adapter of
    `with_budget`. `running` are the calls that were given up when the time was over, and whose options still run.
    """

    def __init__(
        self,
        limit: str,
        allowed: float | Decimal,
        spent: float | Decimal | None,
        *,
        running: tuple[OptionCall, ...] = (),
    ) -> None:
        figures = "what was spent is not known" if spent is None else f"{spent} spent"
        names = ", ".join(call.call.option_name for call in running)
        figures += f", and nobody waits any more for {names}, still running" if running else ""
        remedy = f"raise it with Budget({limit}=…), and resume"
        super().__init__(f"the budget of {allowed} {limit} is exhausted: {figures}; {remedy}")
        self.limit = limit
        self.allowed = allowed
        self.spent = spent
        self.running = running
        self.response: PromptResponse[Any] | None = None
