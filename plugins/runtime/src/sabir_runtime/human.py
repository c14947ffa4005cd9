"""A person as a policy, with the signature of any other.

    self.llm = self._bind(human_policy(ask))        # evolve: a person, then a rule, then a model

`ask` is told what the policy sees and may choose, and says what the person decided.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import sabir
from sabir import Message, Option
from sabir.authoring import called, one_line

from sabir_runtime.contexts import BaseContext
from sabir_runtime.policies import AnyPolicy


@dataclass(frozen=True)
class Question:
    """What a person is asked: the observations, what may be chosen, and what is requested where anything is."""

    observations: tuple[Message, ...]
    options: tuple[Option, ...] = ()
    request: str = ""

    @property
    def text(self) -> str:
        """What to show: the request, or else the last thing that was said."""
        said = [message.text for message in self.observations if message.text]
        return self.request or (said[-1] if said else "")


Decided: TypeAlias = str | Message | Sequence[Message]
"""A text, or messages: option calls among them are answered as a model's are."""
Ask: TypeAlias = Callable[[Question], Decided | Awaitable[Decided]]


def console(question: Question) -> str:
    """Show the question on the terminal, and read one line."""
    names = ", ".join(option.name for option in question.options)
    print(f"{one_line(question.text, 2000)}" + (f"\noptions: {names}" if names else ""))
    return input("you> ")


def human_policy(ask: Ask = console, *, speaks_as: str = "human") -> AnyPolicy:
    """A policy that a person decides; a plain function runs in a thread, so that waiting for a person blocks nothing.

    512 plain functions, options included, may wait at once in an event loop; those beyond wait for one to end. As
    many as you like wait where `ask` is a coroutine function.
    A text becomes a message of the policy `speaks_as`. As an option it takes `request`, what is asked of the person.
    """

    async def human(
        ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, request: str = ""
    ) -> list[Message]:
        """Ask a person.

        Args:
            request: What is asked of the person.
        """
        question = Question(tuple(observations), tuple(ctx.offer(options)), request)
        decided: Decided = await called(ask, question)
        if isinstance(decided, str):
            return [sabir.assistant(decided, policy=speaks_as)]
        return [decided] if isinstance(decided, Message) else list(decided)

    return human
