"""Policies that are ready to be bound: a model, a person, and a loop that asks another until it chooses no option.

    self.llm = self._bind(llm_policy("provider:model"))     it speaks under the name by which it is bound
    self.human = self._bind(human_policy(ask))              evolve: a person, then a rule, then a model
    self.agent = self._bind(loop_policy("llm"))             llm ─▶ calls with results ─▶ llm ─▶ … ─▶ text

As an option, each takes `request`: the text of the request.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TypeAlias

import sabir
from sabir import Adapter, Message, Option, Settings, unanswered
from sabir.authoring import AsyncClosing, Strict, call_function, one_line, split_model

from sabir_runtime.contexts import BaseContext
from sabir_runtime.failures import LoopLimit
from sabir_runtime.policies import AnyPolicy

TURNS = 16
"""The default number of turns of a loop."""


@dataclass(repr=False, eq=False)
class LLMPolicy(AsyncClosing):
    """A policy that asks a model once: `provider:model`, or an adapter, wrapped ones included.

    `settings` and `strict` go with every request. `speaks_as` is by default the name by which it is bound.
    Raises SettingsInvalid for a name of another form. As an option it takes `request`, what is asked of it.
    """

    model: str | Adapter
    _: KW_ONLY
    speaks_as: str | None = None
    settings: Settings | None = None
    strict: Strict | None = None

    def __post_init__(self) -> None:
        """Refuse a name of another form."""
        if isinstance(self.model, str):
            split_model(self.model)

    def bound_as(self, name: str) -> "LLMPolicy":
        """The same policy, speaking as the name by which it is bound; an adapter speaks as it was made."""
        return replace(self, speaks_as=self.speaks_as or name) if isinstance(self.model, str) else self

    @cached_property
    def adapter(self) -> Adapter:
        """The adapter that it asks; made at the first use."""
        if isinstance(self.model, str):
            return sabir.adapter(self.model, speaks_as=self.speaks_as or "llm")
        return self.model

    async def __call__(
        self, ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, request: str = ""
    ) -> list[Message]:
        """Ask a language model.

        Args:
            request: What is asked of it.
        """
        messages = observations
        if request:
            asking = {message.id for message in unanswered(observations)}
            messages = [message for message in observations if message.id not in asking] + [sabir.user(request)]
        reply = await self.adapter.complete(
            messages, options=ctx.offer(options), settings=self.settings, strict=self.strict
        )
        return list(reply.messages)

    async def aclose(self) -> None:
        """Close the adapter if it was made here."""
        made: Adapter | None = vars(self).pop("adapter", None)
        if made is not None and made is not self.model:
            await made.aclose()

    def __repr__(self) -> str:
        """With what it asks."""
        return f"llm_policy({self.model!r})"


llm_policy = LLMPolicy
"""The policy that asks this model: what a context binds."""


@dataclass(frozen=True)
class Question:
    """A question for a person: the observations, the options, and the request, if there is one."""

    observations: tuple[Message, ...]
    options: tuple[Option, ...] = ()
    request: str = ""

    @property
    def text(self) -> str:
        """The text to show: the request, or else the last message."""
        said = [message.text for message in self.observations if message.text]
        return self.request or (said[-1] if said else "")


Decided: TypeAlias = str | Message | Sequence[Message]
"""A text, or messages: option calls among them are answered like a model's."""
Ask: TypeAlias = Callable[[Question], Decided | Awaitable[Decided]]


def console(question: Question) -> str:
    """Show the question on the terminal, and read a line."""
    names = ", ".join(option.name for option in question.options)
    print(f"{one_line(question.text, 2000)}" + (f"\noptions: {names}" if names else ""))
    return input("you> ")


def human_policy(ask: Ask = console, *, speaks_as: str = "human") -> AnyPolicy:
    """A policy that a person decides; a plain function runs in a thread, so that waiting for a person blocks nothing.

    512 plain functions, options included, may wait at once in an event loop; further ones wait for one to end. There is
    no limit if `ask` is a coroutine function.
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
        decided: Decided = await call_function(ask, question)
        if isinstance(decided, str):
            return [sabir.assistant(decided, policy=speaks_as)]
        return [decided] if isinstance(decided, Message) else list(decided)

    return human


def loop_policy(of: str, *, turns: int = TURNS) -> AnyPolicy:
    """A policy that calls the one bound as `of` until it chooses no option; its batch has all messages.

    Raises LoopLimit after that many turns. As an option it takes `request`, what is asked of it.
    """

    async def loop(
        ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, request: str = ""
    ) -> list[Message]:
        """Work on a request until it is done.

        Args:
            request: What is asked.
        """
        ctx.checked_options([of])
        asked = ctx.bound_policies()[of]
        history = [sabir.user(request)] if request else list(observations)
        start = len(history)
        for _ in range(turns):
            batch = await asked(history, options)
            history = [*history, *batch]
            if not any(message.kind == "option_call" for message in batch):
                return history[start:]
        raise LoopLimit(f"{of!r} chose options {turns} times in a row; give loop_policy more turns, or it less to do")

    return loop
