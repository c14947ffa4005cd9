"""What an evaluation is asked to do, and who it is: a namespace and a key, by which a resume knows its prompt again.

Prompt(ns="shop", key="refund", system="Be brief.", messages=(sabir.user("Where is my parcel?"),), output=Answer)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias

import sabir
from pydantic import TypeAdapter
from sabir import Message, ResponseFormat, Settings
from sabir.calling.calls import Messages
from sabir.vocabulary.constructors import Content, as_messages

if TYPE_CHECKING:  # at run time, a default of a type variable is Python 3.13's
    from typing_extensions import TypeVar

    Output = TypeVar("Output", default=None)
else:
    from typing import TypeVar

    Output = TypeVar("Output")


@dataclass(frozen=True)
class Prompt(Generic[Output]):
    """A prompt: `system` instructions, the `messages` that follow them, and the type that the answer shall have.

    `ns` and `key` identify it over versions of its text: a conversation resumes only under the same two. One without
    them resumes with the same content, or with none. `output` is a pydantic model or any type that pydantic validates;
    the provider is asked for JSON of its schema. Raises Misnamed for messages that are none.
    """

    ns: str = ""
    key: str = ""
    system: str | tuple[Content, ...] = ""
    messages: Sequence[Message] = ()
    output: type[Output] | None = None

    def __post_init__(self) -> None:
        """Hold the messages as a tuple, so that nobody changes them."""
        object.__setattr__(self, "messages", tuple(as_messages(self.messages)))

    def opening(self) -> list[Message]:
        """The messages that a conversation begins with, the instructions first."""
        content = (self.system,) if isinstance(self.system, str) else self.system
        return [*([sabir.system(*content)] if any(content) else []), *self.messages]

    def laid_under(self, settings: Settings | None) -> Settings | None:
        """Settings that ask for the output's schema, unless they ask for another."""
        if self.output is None:
            return settings
        asked = Settings(response_format=_format_of(self.output))
        return asked if settings is None else settings.laid_over(asked)


PromptLike: TypeAlias = Prompt[Output] | Messages
"""What an evaluation takes: a prompt, or what any call takes, which is a prompt without a name."""


def as_prompt(given: PromptLike[Output]) -> Prompt[Output]:
    """The prompt itself, or one of a text or of messages; Misnamed for what is neither."""
    return given if isinstance(given, Prompt) else Prompt(messages=as_messages(given))


def _format_of(output: type[Output]) -> ResponseFormat:
    schema = TypeAdapter(output).json_schema()
    name = getattr(output, "__name__", "output")
    return ResponseFormat(name=name, schema=schema, description=schema.get("description"))
