"""Ready-made policies: ask a model, ask a person, or call another policy until its batch has no option call.

    self.llm = self._bind(llm_policy("provider:model"))     replies have the policy name "llm"
    self.human = self._bind(human_policy(ask))
    self.agent = self._bind(loop_policy("llm"))             llm ─▶ calls with results ─▶ llm ─▶ … ─▶ text

When another policy calls one of these policies as an option, the option has one optional argument, `request`: a text.
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
"""The default of `turns` in `loop_policy`."""


@dataclass(repr=False, eq=False)
class LLMPolicy(AsyncClosing):
    """A policy that sends the observations to a model, and returns the messages of one reply.

    `model` is a string `provider:model`, or any adapter. `settings` and `strict` are passed with every request.
    `speaks_as` is the policy name of the replies; None means the name under which a context binds the policy, or "llm"
    without a context. If `model` is an adapter, the adapter's own `speaks_as` is used. For a string, raises
    SettingsInvalid if its form is wrong, and ProviderMissing if the provider is unknown.

    As an option, the policy has the argument `request`. If it is not empty, the model receives it as a user message in
    place of the option call.

    >>> import asyncio, sabir
    >>> from sabir_runtime import BaseContext, InMemoryRunner, llm_policy
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.llm = self._bind(llm_policy("echo:m", settings=sabir.Settings(timeout=30)))
    >>> asyncio.run(Desk(InMemoryRunner()).llm("Hello!"))[0].policy
    'llm'
    """

    model: str | Adapter
    _: KW_ONLY
    speaks_as: str | None = None
    settings: Settings | None = None
    strict: Strict | None = None

    def __post_init__(self) -> None:
        """Raise SettingsInvalid if `model` is a string of a wrong form, ProviderMissing for an unknown provider."""
        if isinstance(self.model, str):
            split_model(self.model)

    def bound_as(self, name: str) -> "LLMPolicy":
        """Return a copy of the policy, whose `speaks_as` is `name` if the policy has no `speaks_as` of its own.

        If `model` is an adapter, return the policy itself. Called when the bound policy is assigned to an attribute.
        """
        return replace(self, speaks_as=self.speaks_as or name) if isinstance(self.model, str) else self

    @cached_property
    def adapter(self) -> Adapter:
        """The adapter that sends the requests: the adapter that you passed, or one created at the first use.

        After `aclose`, a policy with a string as `model` creates a new adapter at the next use.
        """
        if isinstance(self.model, str):
            return sabir.adapter(self.model, speaks_as=self.speaks_as or "llm")
        return self.model

    async def __call__(
        self, ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, request: str = ""
    ) -> list[Message]:
        """Ask a language model.

        Args:
            request: The question or task for the model.
        """
        messages = observations
        if request:
            open_calls = {message.id for message in unanswered(observations)}
            messages = [message for message in observations if message.id not in open_calls] + [sabir.user(request)]
        reply = await self.adapter.complete(
            messages, options=ctx.offer(options), settings=self.settings, strict=self.strict
        )
        return list(reply.messages)

    async def aclose(self) -> None:
        """Close the adapter that this policy created, if any. An adapter that you passed stays open."""
        adapter: Adapter | None = vars(self).pop("adapter", None)
        if adapter is not None and adapter is not self.model:
            await adapter.aclose()

    def __repr__(self) -> str:
        """Return `llm_policy(model)`."""
        return f"llm_policy({self.model!r})"


llm_policy = LLMPolicy
"""Return a policy that asks a model. This is another name of the class `LLMPolicy`, with the same arguments."""


@dataclass(frozen=True)
class Question:
    """A question for a person, which `human_policy` passes to its function `ask`.

    `observations` are the messages that the policy received, and `options` the options that the person may call.
    `request` is the policy's argument `request`, for example from a model's option call; "" without this argument.
    """

    observations: tuple[Message, ...]
    options: tuple[Option, ...] = ()
    request: str = ""

    @property
    def text(self) -> str:
        """The text to show: `request`, or else the text of the last observation with text, or else ""."""
        texts = [message.text for message in self.observations if message.text]
        return self.request or (texts[-1] if texts else "")


Decision: TypeAlias = str | Message | Sequence[Message]
"""A person's answer: a text, a message, or messages. Option calls in the messages are answered like a model's calls."""
Ask: TypeAlias = Callable[[Question], Decision | Awaitable[Decision]]


def console(question: Question) -> str:
    """Print the question's text and the names of its options, and return the line that the person types.

    The text is printed as one line, cut at 2,000 characters.
    """
    names = ", ".join(option.name for option in question.options)
    print(f"{one_line(question.text, 2000)}" + (f"\noptions: {names}" if names else ""))
    return input("you> ")


def human_policy(ask: Ask = console, *, speaks_as: str = "human") -> AnyPolicy:
    """Return a policy that asks a person.

    `ask` is called with a `Question`, and returns a text, a message or messages. The default asks on the terminal. A
    text becomes a message of the policy `speaks_as`. `ask` may be async. Otherwise it runs in a thread: at most 512
    functions, options included, run at the same time in threads of an event loop, and further functions wait.

    As an option, the policy has the argument `request`, the question for the person.

    >>> import asyncio
    >>> from sabir_runtime import BaseContext, InMemoryRunner, human_policy
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.approve = self._bind(human_policy(lambda question: f"Yes: {question.text}"))
    >>> asyncio.run(Desk(InMemoryRunner()).approve("Ship it?"))[0].text
    'Yes: Ship it?'
    """

    async def human(
        ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, request: str = ""
    ) -> list[Message]:
        """Ask a person.

        Args:
            request: The question for the person.
        """
        question = Question(tuple(observations), tuple(ctx.offer(options)), request)
        decision: Decision = await call_function(ask, question)
        if isinstance(decision, str):
            return [sabir.assistant(decision, policy=speaks_as)]
        return [decision] if isinstance(decision, Message) else list(decision)

    return human


def loop_policy(of: str, *, turns: int = TURNS) -> AnyPolicy:
    """Return a policy that calls the policy bound as `of` repeatedly, until a batch contains no option call.

    Each call receives the messages so far with the results of the option calls. The returned batch contains the
    messages of all calls, without the observations. `turns` is the largest number of calls. When called, the policy
    raises LoopLimit if `turns` batches in a row contain option calls, and UnknownOption if the context does not bind
    `of`. The caller of the loop receives these errors as a PolicyFailed that is also a LoopLimit or UnknownOption.

    As an option, the policy has the argument `request`. If it is not empty, the loop begins with it as a user
    message, and the observations are not used.

    >>> import asyncio
    >>> from sabir_runtime import BaseContext, InMemoryRunner, llm_policy, loop_policy
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.llm = self._bind(llm_policy("echo:m"))
    ...         self.agent = self._bind(loop_policy("llm", turns=4))
    >>> [message.text for message in asyncio.run(Desk(InMemoryRunner()).agent("Hello!"))]
    ['Hello!']
    """

    async def loop(
        ctx: BaseContext, observations: list[Message], options: list[str] | None = None, *, request: str = ""
    ) -> list[Message]:
        """Work on a request until it is done.

        Args:
            request: The question or task.
        """
        ctx.checked_options([of])
        bound = ctx.bound_policies()[of]
        history = [sabir.user(request)] if request else list(observations)
        start = len(history)
        for _ in range(turns):
            batch = await bound(history, options)
            history = [*history, *batch]
            if not any(message.kind == "option_call" for message in batch):
                return history[start:]
        raise LoopLimit(f"{of!r} called options in {turns} turns in a row; give loop_policy(turns=…) a higher number")

    return loop
