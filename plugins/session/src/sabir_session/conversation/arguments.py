"""The optional arguments of a conversation, and the types that its signatures name."""

from pathlib import Path
from typing import Generic, TypedDict, TypeVar

from sabir import Settings
from sabir.authoring import KnownPart
from typing_extensions import TypeAliasType

from sabir_session.evaluation.approval import Approve
from sabir_session.evaluation.budgets import Budget
from sabir_session.evaluation.events import Watch
from sabir_session.evaluation.prompts import Options, Strict, Validator
from sabir_session.stores.store import Store

Wanted = TypeVar("Wanted")

Instructions = TypeAliasType("Instructions", str | tuple[str | KnownPart, ...])
"""The system message of a conversation: a text, or a tuple of texts and parts. "" means no system message."""
NAME = "conversation"
"""The default name of a conversation in its store."""


class ConversationArguments(TypedDict, Generic[Wanted], total=False):
    """The optional arguments of Conversation, which its docstring explains, except `output`."""

    instructions: Instructions
    options: Options
    output_validator: Validator[Wanted] | None
    retries: int
    settings: Settings | None
    strict: Strict | None
    budget: Budget | None
    approve: Approve | None
    watch: Watch | None
    keep: str | Path | Store | None
    name: str
