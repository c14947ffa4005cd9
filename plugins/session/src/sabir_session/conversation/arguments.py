"""The arguments of conversations and questions: their types and checks, and the names for other libraries' arguments.

chat.retries = -1 ──▶ SettingsInvalid: what was expected        Conversation(…, system_prompt=…) ──▶ WrongWord: the word
chat.tools = […]  ──▶ AttributeError: what can be changed
"""

import sys
from abc import ABCMeta
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeAlias, TypedDict, TypeVar

from sabir import Message, Settings, SettingsInvalid
from sabir.authoring import KnownPart, one_line
from sabir.errors import WrongWord
from typing_extensions import TypeAliasType

from sabir_session.evaluation.approval import Approve
from sabir_session.evaluation.budgets import Budget
from sabir_session.evaluation.events import Watch
from sabir_session.evaluation.outputs import Outputs
from sabir_session.evaluation.prompts import OUTPUT_MODES, Options, OutputMode, Strict, Validator
from sabir_session.stores.store import Store

Wanted = TypeVar("Wanted")

Content = TypeAliasType("Content", str | KnownPart | Message)
"""One item of a question: a text, a part such as `sabir.image(…)`, or a message. Neighbouring texts and parts become
one message of the user."""


AsyncFunction: TypeAlias = Callable[..., Coroutine[Any, Any, Wanted]]


Instructions = TypeAliasType("Instructions", str | tuple[str | KnownPart, ...])
"""The system message of a conversation: a text, or a tuple of texts and parts. "" means no system message."""
DEFAULT_NAME = "conversation"
"""The default name of a conversation in its store."""


class HelpPage(ABCMeta):
    """The metaclass of classes whose help() lists public names only. `dir()` of such a class lists all names.

    It is an ABCMeta, so that a user's class can have a Conversation and an ABC as its bases.
    """

    def __dir__(cls) -> list[str]:
        """Return the names of the class. `inspect.classify_class_attrs`, which help() calls, gets the public names."""
        names = list(super().__dir__())
        if sys._getframe(1).f_code.co_name != "classify_class_attrs":
            return names
        return [name for name in names if not name.startswith("_")]  # the class's own signature is shown above them


class ConversationArguments(TypedDict, Generic[Wanted], total=False):
    """The optional arguments of Conversation except `output`. The docstring of Conversation explains each argument."""

    instructions: Instructions
    options: Options
    output_validator: Validator[Wanted] | None
    output_mode: OutputMode | None
    retries: int
    settings: Settings | None
    strict: Strict | None
    budget: Budget | None
    approve: Approve | None
    watch: Watch | None
    keep: str | Path | Store | None
    name: str


class QuestionArguments(TypedDict, Generic[Wanted], total=False):
    """The optional arguments of one question except `output`. `settings` override the conversation's settings field by
    field, and `output_validator` and `output_mode` replace the conversation's.
    """

    output_validator: Validator[Wanted] | None
    output_mode: OutputMode | None
    settings: Settings | None


UNSET: Any = type("_Unset", (), {"__repr__": lambda self: "…"})()
"""The default of `output` in `ask`: the conversation's own output. The default of `instructions` in Conversation: the
recorded instructions. None is not the default, because `output=None` means text."""


class QuestionOptions(NamedTuple):
    """The output and the settings with which one question is answered."""

    outputs: Outputs[Any] | None
    settings: Settings | None
    is_own: bool
    """Whether both are the conversation's own: the question passed no output, validator, mode and settings."""


Check = tuple[Callable[[object], bool], str]
_FUNCTION_OR_NONE: Check = (lambda value: value is None or callable(value), "a function, or None")
_ANY: Check = (lambda value: True, "")
ATTRIBUTES: Mapping[str, Check] = {
    "model": (lambda value: isinstance(value, str) or hasattr(value, "render"), "'provider:model', or an adapter"),
    "instructions": (lambda value: isinstance(value, str | tuple), "a text, or a tuple of texts and parts"),
    "options": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, str),
        "a list or other iterable of functions, pydantic models or Options",
    ),
    "output": _ANY,
    "output_validator": _FUNCTION_OR_NONE,
    "output_mode": (lambda value: value in OUTPUT_MODES, "'native', 'call', 'text', or None"),
    "retries": (lambda value: type(value) is int and value >= 0, "a whole number of at least 0"),
    "settings": (lambda value: value is None or isinstance(value, Settings), "sabir.Settings(…), or None"),
    "strict": (lambda value: not isinstance(value, str), "True, False, None, or kinds of loss, such as {'dropped'}"),
    "budget": (lambda value: value is None or isinstance(value, Budget), "Budget(…), or None"),
    "approve": _FUNCTION_OR_NONE,
    "watch": _FUNCTION_OR_NONE,
}
"""Attribute → the check of a value, and the description of the expected values."""
_REMEDIES: Mapping[str, str] = {
    "system system_prompt prompt developer": "instructions=… of Conversation",
    "output_type result_type response_format response_model output_schema schema": "output=…, a type or a function",
    "max_retries output_retries": "retries=… of Conversation, how often the model may correct its answer",
    "message_history history messages": "ask(*messages, …), which also accepts messages",
    "api_key base_url client": "an adapter as the model: sabir.adapter('provider:model', …)",
    "session session_id conversation_id thread_id": "keep=… and name=… of Conversation",
    "db database store path memory checkpointer": "keep=… and name=… of Conversation",
    "deps context": "a bound method as an option, or a parameter of the type sabir.ToolContext in an option",
}
REMEDIES = {word: remedy for words, remedy in _REMEDIES.items() for word in words.split()}
"""Another library's argument → the argument to use."""


def refuse_unknown_arguments(function: str, misnamed: Iterable[str], known: tuple[str, ...]) -> None:
    """Raise WrongWord for the first of `misnamed`, which are arguments that the function does not have.

    Does nothing if `misnamed` is empty. The error names the argument to use. `known` are the arguments that the
    function has.
    """
    for word in misnamed:
        if word in ATTRIBUTES:
            raise WrongWord(f"{function}() has no argument `{word}`; set it on the conversation: chat.{word} = …")
        if word in REMEDIES:
            raise WrongWord(f"{function}() has no argument `{word}`; use {REMEDIES[word]}")
        Settings.refuse_misnamed(function, {word: None}, known)


def check_value(name: str, value: object) -> None:
    """Raise AttributeError if a conversation has no attribute `name`, and SettingsInvalid for a wrong value."""
    if name not in ATTRIBUTES:
        raise AttributeError(f"a conversation has no attribute {name!r} to set; you can set {', '.join(ATTRIBUTES)}")
    fits, expected = ATTRIBUTES[name]
    if not fits(value):
        raise SettingsInvalid(f"Conversation: {name} is {one_line(repr(value), 60)}; expected {expected}")
