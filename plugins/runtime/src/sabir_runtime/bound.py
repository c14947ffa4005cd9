"""A policy in a context: what a program calls, and what a runner performs.

await ctx.llm(observations, options) ──▶ BoundCall ──▶ runner.perform ──▶ batch, calls answered (RN-05)
           │
           └ the attribute's name is the option's name, whatever the function is called (RN-13, D-09)
"""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sabir import RUNTIME, Message, Option, answer
from sabir.options.signatures import values_of
from sabir.vocabulary.constructors import as_messages
from sabir.vocabulary.messages import RESERVED

from sabir_runtime.depth import checked, deeper, heard
from sabir_runtime.errors import CallsTooDeep, PolicyInvalid
from sabir_runtime.failures import PolicyFailed, is_cancelled
from sabir_runtime.options import CHOSEN, option_of
from sabir_runtime.policies import AnyPolicy, Batch, Named, check_batch
from sabir_runtime.signatures import PolicySignature, read_policy
from sabir_runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from sabir_runtime.contexts import BaseContext
    from sabir_runtime.runners import Runner


class BoundPolicy:
    """A policy bound to its context and runner; called without the context.

    `options`, where given, are what it may choose when it is itself chosen as an option; else those that were
    offered to whoever chose it. `description` is what a model is told of it, instead of its docstring.
    """

    def __init__(
        self,
        policy: AnyPolicy,
        context: "BaseContext",
        runner: "Runner",
        *,
        options: Sequence[str] | None = None,
        description: str | None = None,
    ) -> None:
        signature = read_policy(policy)
        self.signature: PolicySignature = signature if description is None else signature.described(description)
        self.policy = policy
        self.context = context
        self.runner = runner
        self.options = None if options is None else list(options)
        self.made_options: dict[tuple[str, ...], Option] = {}
        self._name = ""

    @property
    def name(self) -> str:
        """The attribute that it was assigned to; PolicyInvalid before that."""
        if not self._name:
            remedy = f"assign it to an attribute: self.{self.signature.function_name} = self._bind(…)"
            raise PolicyInvalid(f"bound policy {self.signature.function_name!r} has no name yet; {remedy}")
        return self._name

    @property
    def called(self) -> str:
        """The attribute that it was assigned to, or else its function's name: for errors."""
        return self._name or self.signature.function_name

    def take_name(self, name: str) -> None:
        """Learn the attribute's name; PolicyInvalid where it has another already, and for a reserved one (PJ-06)."""
        if name == RUNTIME:
            raise PolicyInvalid(f"{RESERVED}; give the attribute of {self.signature.function_name!r} another")
        if self._name not in ("", name):
            remedy = "bind the function once more for a second name"
            raise PolicyInvalid(f"bound policy {self._name!r} cannot be {name!r} too; {remedy}")
        speaker: object = self.policy
        if not self._name and isinstance(speaker, Named):
            self.policy = speaker.bound_as(name)
        self._name = name
        self.made_options.clear()

    # Each policy has keyword parameters of its own, hence Any; `signature` says which.
    def __call__(
        self, observations: str | Message | Sequence[Message], options: Sequence[str] | None = None, **arguments: Any
    ) -> Awaitable[Batch]:
        """What the policy chose, the calls among it answered: each call with its result.

        Raises UnknownOption for a name that the context does not bind, PolicyInvalid for arguments that do not fit
        the policy's parameters, and PolicyFailed for what the policy raises.
        """
        return self.perform(observations, options, self.signature.check(arguments))

    def perform(
        self, observations: str | Message | Sequence[Message], options: Sequence[str] | None, arguments: dict[str, Any]
    ) -> Awaitable[Batch]:
        """As a call of it, with arguments that are of their parameters' types already: validated once, not twice."""
        return heard(self.runner.perform(BoundCall(self, observations, options, arguments)))

    def __repr__(self) -> str:
        """By its name, and that of its function."""
        return f"<bound policy {self._name!r} of {self.signature.function_name}>"


class BoundCall:
    """One call of a bound policy, ready to be performed: messages, names of options, and the policy's own arguments.

    The lists are its own, and the arguments are of their parameters' types (`PolicySignature.check`). Raises
    UnknownOption for a name that the context does not bind, and Misnamed for observations that are no messages.
    """

    __slots__ = ("__weakref__", "arguments", "bound", "observations", "options")

    def __init__(
        self,
        bound: BoundPolicy,
        observations: str | Message | Sequence[Message],
        options: Sequence[str] | None,
        arguments: dict[str, Any],
    ) -> None:
        self.bound = bound
        self.observations: list[Message] = as_messages(observations)
        self.options = bound.context.checked_options(options) if options else None
        self.arguments = arguments

    @property
    def name(self) -> str:
        """The bound policy's name."""
        return self.bound.name

    @property
    def is_option(self) -> bool:
        """Whether it answers an option call, which is all that it observes then."""
        message = CHOSEN.get(None)
        return message is not None and len(self.observations) == 1 and self.observations[0] is message

    async def decide(self, by: AnyPolicy | None = None) -> Batch:
        """The batch that the policy itself chose, its calls not answered yet; PolicyFailed for what it raises.

        `by` is called in its place, without the context: what a runner made of it. CallsTooDeep where it is within
        `depth.MOST_DEPTH` other calls.
        """
        bound = self.bound
        policy = by or partial(bound.policy, bound.context)
        options = None if self.options is None else list(self.options)
        try:
            own = {**self.arguments, **values_of(bound.signature.provided)}
            with deeper(self.bound.called):
                return check_batch(bound, await policy(list(self.observations), options, **own))
        except PolicyFailed:
            raise
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            failure = PolicyFailed.of(error)
            raise failure.with_traceback(error.__traceback__) from failure.__cause__

    async def answer(self, message: Message, context: ToolContext | None = None) -> Message:
        """The result of one option call of the batch; whatever fails is an error result (UP-05, D-08).

        Except for CallsTooDeep, which is a PolicyFailed as well, as is all that a policy's caller gets.

        `context` is what the option may know of its run; runners that keep records say there whether it may have run
        before.
        """
        if context is None:
            call_id = message.call.invocation_id if message.call else ""
            context = ToolContext(call_id, idempotency_key=f"{message.id}/{call_id}")
        token = CHOSEN.set(message)
        try:
            with context.entered(), deeper(self.bound.called) as met:
                (result,) = await answer([message], self.offered())
            return checked(result, met)
        except asyncio.CancelledError:
            context.cancelled.set()
            raise
        except CallsTooDeep as fault:
            raise PolicyFailed.of(fault) from None
        finally:
            CHOSEN.reset(token)

    def offered(self) -> tuple[Option, ...]:
        """The options of this call, as a model is told of them and as core runs them."""
        bound = self.bound.context.bound_policies()
        return tuple(option_of(bound[name], self.options) for name in self.options or ())
