"""Prompts, which are the input of evaluations, and the results of evaluations: a response, or one of these errors.

Prompt(ns="shop", key="refund", system="Be brief.", messages=(sabir.user("Where is my parcel?"),), output=Answer)

SabirError
├── ConversationNotFound    nothing was recorded that could be resumed (ValueError)
├── PromptMismatch          resumed with another prompt than the recorded prompt (ValueError)
├── ApprovalPending         `calls`: the option calls that wait for a person's approval
└── BudgetExhausted         `response`: the result so far, when a limit was reached

The namespace and the key of a prompt identify it when an evaluation is resumed. After the last two errors, and after a
CallError, the session contains everything that was done: evaluate again with `resume=True` to continue.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, Literal

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
unchanged output. It raises ValueError with the reason to have the model answer again. Other errors, and every
SabirError, end the evaluation."""
Options = TypeAliasType("Options", Iterable[OptionLike])
"""The options that a model may call: functions, pydantic models and `sabir.Option` objects."""
Strict = TypeAliasType("Strict", LossKinds)
"""The kinds of loss that raise RenderingRefused before a request is sent, for example {"dropped"}. True means dropped
and downgraded, False means no kind. A loss is something that the model's API cannot represent."""

OutputMode = TypeAliasType("OutputMode", Literal["native", "call", "text"])
"""How an output is requested. "native": by the vendor's response format, and a loss reports a model that has none.
"call": as the arguments of the option `final_answer`, which the model must call. "text": by a message with the JSON
schema; the JSON is then found in the reply's text."""
OUTPUT_MODES = (None, "native", "call", "text")

_FIGURES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


_NO_OUTPUT: Any = None  # the default type argument: no output


@dataclass(frozen=True)
class Prompt(Generic[Output]):
    """A prompt for `evaluate`: a system message, the messages after it, and the type of the answer.

    `ns` (a namespace) and `key` identify the prompt when an evaluation is resumed, even if the texts have changed. A
    prompt without both must have the recorded content, or no content, to be resumed. `system` is the system message, a
    text or a tuple of texts and parts; "" means no system message. `messages` are stored as a tuple. `output` is the
    type of the answer, any type that pydantic validates, or a function to call with the model's values. `str` and None
    mean text.

    Raises WrongWord if `messages` has values that are not messages.

    >>> import sabir, sabir_session
    >>> prompt = sabir_session.Prompt(system="Be brief.", messages=(sabir.user("41"),), output=int)
    >>> sabir_session.evaluate_sync(sabir.adapter("echo:m"), prompt).output
    41
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
        """Return all messages of the prompt: the system message, if there is one, then `messages`."""
        content = (self.system,) if isinstance(self.system, str) else self.system
        return [*([sabir.system(*content)] if any(content) else []), *self.messages]


PromptLike = TypeAliasType("PromptLike", Prompt[Output] | Messages, type_params=(Output,))
"""The input of an evaluation: a Prompt, a text, a message or a list of messages. A text or messages are used as a
Prompt without `ns`, `key`, `system` and `output`."""


def as_prompt(prompt: PromptLike[Output]) -> Prompt[Output]:
    """Return the prompt itself, or a prompt of the text or messages. Raises WrongWord for anything else."""
    return prompt if isinstance(prompt, Prompt) else Prompt(messages=as_messages(prompt))


@dataclass(frozen=True)
class PromptResponse(Generic[Output]):
    """The result of an evaluation. `evaluate` returns it.

    `prompt_ns` and `prompt_key` are the namespace and key of the prompt. `evaluation_id` identifies the evaluation in
    its session. `reply` is the last reply; if a finished evaluation was resumed, the reply is built from its record.
    `messages` are all messages of the evaluation in order: of the prompt, replies, results, follow-ups, and requests to
    correct an answer. `output` is the answer as a value of the prompt's output type, or the return value of the output
    function, as the validator returned it. `output` is None without type and function, and in
    `BudgetExhausted.response`. `usage` is the sum of the tokens of all replies, including replies in earlier processes.
    A number is None if a provider did not report it.
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
        """The text of the last reply."""
        return self.reply.text


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Return the sums of the numbers of several usages. A sum is None if a number is None. `raw` is not summed."""
    columns = {name: [getattr(usage, name) for usage in usages] for usages in [tuple(usages)] for name in _FIGURES}
    return Usage(**{name: None if None in figures else sum(figures) for name, figures in columns.items()})


class ConversationNotFound(SabirError, ValueError):
    """Raised if there is no recorded question or evaluation to continue, resume or remove."""


class PromptMismatch(SabirError, ValueError):
    """Raised on resume if the prompt is not the recorded prompt. Pass the recorded prompt, or start a new evaluation.

    Prompts with a namespace or key are compared by namespace and key, other prompts by their contents.
    """


class ApprovalPending(SabirError):
    """Raised when option calls wait for a person's approval, after the reply's other calls have run.

    A resume without `approve` raises it before any call runs. `calls` are the calls without a result, and
    `evaluation_id` is the evaluation to resume. Resume the evaluation, or call `Conversation.ask()` without content, to
    have `approve` decide again.
    """

    def __init__(self, message: str, *, calls: tuple[OptionCall, ...], evaluation_id: str) -> None:
        super().__init__(message)
        self.calls = calls
        self.evaluation_id = evaluation_id


class BudgetExhausted(SabirError):
    """Raised instead of the next request when a limit of a Budget is reached, or when the used amount is not known.

    Also raised when the seconds are over while options run. `limit` is the name of the limit ("turns", "tokens",
    "seconds" or "cost"), `allowed` its value, and `spent` the used amount, or None if the amount is not known.
    `response` is the result of the evaluation so far, without output, or None without a reply or outside of an
    evaluation. `running` are the calls of options that did not stop when the time was over. Resume with a larger budget
    to continue, or without a limit for the unknown amount.
    """

    def __init__(
        self,
        limit: str,
        allowed: float | Decimal,
        spent: float | Decimal | None,
        *,
        running: tuple[OptionCall, ...] = (),
    ) -> None:
        figures = "the used amount is not known" if spent is None else f"{spent} used"
        names = ", ".join(call.call.option_name for call in running)
        figures += f", and these options still run: {names}" if running else ""
        remedy = f"{'remove' if spent is None else 'raise'} the limit with Budget({limit}=…), and resume"
        super().__init__(f"the budget of {allowed} {limit} is exhausted: {figures}; {remedy}")
        self.limit = limit
        self.allowed = allowed
        self.spent = spent
        self.running = running
        self.response: PromptResponse[Any] | None = None
