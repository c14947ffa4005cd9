"""The context is the registry: its attributes are the policies that can be called and chosen.

    class Assistant(BaseContext):
        llm: BoundPolicy
        search: BoundPolicy

        def __init__(self, runner):
            super().__init__(runner)
            self.llm = self._bind(llm_policy("provider:model"))
            self.search = self._bind(search_web)              # the option "search", whatever the function is called

    await ctx.llm(observations, options) ──▶ BoundCall ──▶ runner.perform ──▶ batch, its calls answered
    option call ──arguments, validated──▶ bound(observations=[call], …) ──batch──▶ its text, or its messages as JSON

Only bound policies can be reached from a context; other contexts bind other sets. A chosen policy sees only the call as
its observation. Runners decide how a bound call is performed; policies are the same under all runners.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, ClassVar

from sabir import RUNTIME, Message, Option, OptionFailed, ToolContext, answer
from sabir.authoring import AsyncClosing, CallDepth, StoredNames, as_messages
from sabir.errors import CallsTooDeep

from sabir_runtime.failures import PolicyFailed, PolicyInvalid, RuntimeFault, UnknownOption, is_cancelled
from sabir_runtime.policies import AnyPolicy, Batch, Named, answer_batch, check_batch
from sabir_runtime.signatures import PolicySignature, read_policy

_CHOSEN: ContextVar[Message] = ContextVar("sabir_runtime.chosen")
"""The option call that is being answered."""
MOST_KEPT = 16
"""How many options of one bound policy are cached, by the names offered beside it."""


class BaseRunner:
    """The base of every runner: it binds policies to contexts."""

    def create_bind_function(self, ctx: "BaseContext") -> "Callable[..., BoundPolicy]":
        """The function that a context binds its policies with."""
        raise NotImplementedError(f"{type(self).__name__} defines no create_bind_function; derive from Runner instead")


class Runner(BaseRunner):
    """A runner of bound calls: a subclass defines only `perform`."""

    def create_bind_function(self, ctx: "BaseContext") -> "Callable[..., BoundPolicy]":
        """The function that binds a policy to the context and to this runner."""
        return partial(BoundPolicy, context=ctx, runner=self)

    def perform(self, call: "BoundCall") -> Awaitable[Batch]:
        """The batch that a call's policy chose, its option calls answered.

        Called when the program calls, before anything is awaited.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no perform(call)")


class _Wrapping(Runner):
    """Performs the calls of one policy through the function that a runner's own bind function made of it."""

    def __init__(self, function: AnyPolicy) -> None:
        self._function = function

    async def perform(self, call: "BoundCall") -> Batch:
        """The batch that the function gave, its option calls answered."""
        return await answer_batch(await call.decide(self._function), call.answer)


class InMemoryRunner(Runner):
    """Performs calls in this process, and keeps nothing.

    `trace=True` opens a span for each call, by sabir-otel; raises RuntimeFault if that is not installed.
    """

    def __init__(self, trace: bool = False) -> None:
        self.trace = trace
        self._span: Callable[..., Any] | None = _policy_span() if trace else None

    async def perform(self, call: "BoundCall") -> Batch:
        """The batch of a call's policy, its option calls answered."""
        if self._span is None:
            return await answer_batch(await call.decide(), call.answer)
        asked = call.observations[-1].call if call.is_option else None
        with self._span(call.bound.signature.function_name, invocation_id=asked.invocation_id if asked else ""):
            return await answer_batch(await call.decide(), call.answer)


def _policy_span() -> Callable[..., Any]:
    try:
        spans = import_module("sabir_otel.policies")
    except ModuleNotFoundError:
        remedy = "install sabir-otel, or sabir-runtime[trace]"
        raise RuntimeFault(f"InMemoryRunner(trace=True) needs the package sabir-otel; {remedy}") from None
    span: Callable[..., Any] = spans.policy_span
    return span


class BaseContext(AsyncClosing):
    """What a user's contexts derive from; `_bind(policy)` makes a bound policy of a function or a callable object.

    Runners that store calls name the context by `stored_as`, by default the name of its class. A class that is renamed
    keeps its stored runs if it assigns the earlier name to `stored_as`, or a new one there and the earlier one to
    `stored_before`.
    """

    stored_as: ClassVar[str]
    stored_before: ClassVar[tuple[str, ...]]

    def __init__(self, runner: BaseRunner) -> None:
        self._runner = runner
        self._bind: Callable[..., BoundPolicy] = partial(_bound_by, runner.create_bind_function(self), self)

    def __setattr__(self, name: str, value: object) -> None:
        """Assign; a bound policy learns its name."""
        if isinstance(value, BoundPolicy):
            value.set_name(name)
        object.__setattr__(self, name, value)

    def bound_policies(self) -> "dict[str, BoundPolicy]":
        """Name → bound policy, for all that can be options; names that begin with an underscore cannot."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, BoundPolicy) and not name.startswith("_")
        }

    def checked_options(self, names: Iterable[str]) -> list[str]:
        """The names, if each is bound here; UnknownOption lists those that are."""
        if isinstance(names, str):
            raise UnknownOption(f"options must be a list of names, not the string {names!r}; write options=[{names!r}]")
        given = list(names)
        attributes = self.__dict__
        for name in given:
            if not isinstance(attributes.get(name), BoundPolicy) or name[0] == "_":
                known = f"bound are: {', '.join(self.bound_policies()) or 'none'}"
                raise UnknownOption(f"{type(self).__name__} binds no policy {name!r}; {known}")
        return given

    def offer(self, names: Sequence[str] | None) -> list[Option]:
        """The options of these names, as a model sees them; raises UnknownOption for a name that is not bound."""
        offered = tuple(self.checked_options(names or ()))
        bound = self.bound_policies()
        return [bound[name].as_option(offered) for name in offered]

    async def aclose(self) -> None:
        """Close the policies that hold a connection, and the runner."""
        held: list[Any] = [*(bound.policy for bound in self.bound_policies().values()), self._runner]
        for each in held:  # a policy is any callable
            if (close := getattr(each, "aclose", None)) is not None:
                await close()


def context_names(context_type: type[BaseContext]) -> StoredNames:
    """Return the names under which runners store a context; its `__qualname__` if the class assigns no `stored_as`."""
    return StoredNames.of(context_type, context_type.__qualname__)


class BoundPolicy:
    """A policy bound to its context and runner; called without the context.

    `options`, if given, are the options that it may choose when it is itself chosen as an option; else those that were
    offered to the policy that chose it. `description` replaces its docstring for a model.
    """

    def __init__(
        self,
        policy: AnyPolicy,
        context: BaseContext,
        runner: Runner,
        *,
        options: Sequence[str] | None = None,
        description: str | None = None,
    ) -> None:
        signature = read_policy(policy)
        self.signature: PolicySignature = (
            signature if description is None else replace(signature, description=description)
        )
        self.policy = policy
        self.context = context
        self.runner = runner
        self.options = None if options is None else list(options)
        self.as_option = lru_cache(MOST_KEPT)(self._as_option)
        self._name = ""

    @property
    def name(self) -> str:
        """The attribute that it was assigned to; PolicyInvalid before that."""
        if not self._name:
            remedy = f"assign it to an attribute: self.{self.signature.function_name} = self._bind(…)"
            raise PolicyInvalid(f"bound policy {self.signature.function_name!r} has no name yet; {remedy}")
        return self._name

    @property
    def display_name(self) -> str:
        """Its name in errors: the attribute that it was assigned to, or else its function's name."""
        return self._name or self.signature.function_name

    def set_name(self, name: str) -> None:
        """Set the name to the attribute's; raises PolicyInvalid for a second name or a reserved one."""
        if name == RUNTIME:
            reason = f"the name {RUNTIME!r} is reserved for results that no policy made"
            raise PolicyInvalid(f"{reason}; give the attribute of {self.signature.function_name!r} another")
        if self._name not in ("", name):
            remedy = "bind the function once more for a second name"
            raise PolicyInvalid(f"bound policy {self._name!r} cannot be {name!r} too; {remedy}")
        speaker: object = self.policy
        if not self._name and isinstance(speaker, Named):
            self.policy = speaker.bound_as(name)
        self._name = name

    # Each policy has keyword parameters of its own, hence Any; `signature` says which.
    def __call__(
        self, observations: str | Message | Sequence[Message], options: Sequence[str] | None = None, **arguments: Any
    ) -> Awaitable[Batch]:
        """The batch that the policy chose, each option call followed by its result.

        Raises UnknownOption for a name that the context does not bind, PolicyInvalid for arguments that do not fit
        the policy's parameters, and PolicyFailed if the policy raises.
        """
        return self.perform(observations, options, self.signature.check(arguments))

    def perform(
        self, observations: str | Message | Sequence[Message], options: Sequence[str] | None, arguments: dict[str, Any]
    ) -> Awaitable[Batch]:
        """As a call, with arguments that already have their parameters' types, so that they are not validated twice."""
        return self.runner.perform(BoundCall(self, observations, options, arguments))

    def _as_option(self, offered: tuple[str, ...]) -> Option:
        """The option for this policy; `offered` are the names that its chooser could choose. Cached by `offered`."""

        async def perform(**arguments: Any) -> Any:  # whatever a result holds
            options = offered if self.options is None else self.options
            return _value_of(await self.perform([_CHOSEN.get()], options, arguments))

        return self.signature.as_option(self.name, perform)

    def __repr__(self) -> str:
        """Its name and its function's name."""
        return f"<bound policy {self._name!r} of {self.signature.function_name}>"


class BoundCall:
    """One call of a bound policy, ready to be performed: messages, names of options, and the policy's own arguments.

    The lists are copies, and the arguments have their parameters' types (`PolicySignature.check`). Raises UnknownOption
    for a name that the context does not bind, and WrongWord for observations that are not messages.
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
        """Whether it answers an option call, which is then its only observation."""
        message = _CHOSEN.get(None)
        return message is not None and len(self.observations) == 1 and self.observations[0] is message

    async def decide(self, by: AnyPolicy | None = None) -> Batch:
        """The batch that the policy itself chose, before its calls are answered.

        Raises PolicyFailed if the policy raises.

        `by`, a runner's version of the policy, is called in its place, without the context. Raises CallsTooDeep if it
        is nested in `MOST_DEPTH` other calls.
        """
        bound = self.bound
        policy = by or partial(bound.policy, bound.context)
        options = None if self.options is None else list(self.options)
        try:
            own = {**self.arguments, **bound.signature.provide()}
            with CallDepth.one_deeper(bound.display_name):
                return check_batch(bound.display_name, await policy(list(self.observations), options, **own))
        except PolicyFailed:
            raise
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            failure = PolicyFailed.from_exception(error)
            raise failure.with_traceback(error.__traceback__) from failure.__cause__

    async def answer(self, message: Message, context: ToolContext | None = None) -> Message:
        """The result of one option call of the batch; a failure becomes an error result.

        Except for CallsTooDeep, which is a PolicyFailed as well, as is all that a policy's caller gets.

        `context` is what the option may know of its run; runners that keep records say there whether it may have run
        before.
        """
        if context is None:
            call_id = message.call.invocation_id if message.call else ""
            context = ToolContext(call_id, idempotency_key=f"{message.id}/{call_id}")
        token = _CHOSEN.set(message)
        try:
            with context.entered(), CallDepth.one_deeper(self.bound.display_name):
                (result,) = await answer([message], self.bound.context.offer(self.options))
            return result
        except asyncio.CancelledError:
            context.cancelled.set()
            raise
        except CallsTooDeep as fault:
            raise PolicyFailed.from_exception(fault) from None
        finally:
            _CHOSEN.reset(token)


# A runner's own function defines its further arguments, hence Any.
def _bound_by(bind: Callable[..., object], ctx: BaseContext, policy: AnyPolicy, **how: Any) -> BoundPolicy:
    """A policy bound by a runner's function; if that returns a plain function, a bound policy that calls it."""
    made = bind(policy, **how)
    if isinstance(made, BoundPolicy):
        return made
    if not callable(made):
        remedy = "give a function, or derive from Runner"
        raise PolicyInvalid(f"the runner bound a {type(made).__name__} in place of a policy; {remedy}")
    return BoundPolicy(policy, ctx, _Wrapping(made), options=how.get("options"), description=how.get("description"))


def _value_of(batch: Batch) -> Any:  # a result contains any JSON value
    """Return the value of the option result for a batch that answers an option call.

    The value is the joined text if the batch contains only text, None if the batch is empty, else the list of its
    messages as JSON without their ids, which differ from run to run. Core sends media in that list beside the JSON.
    Reasoning is left out. Raises OptionFailed if the batch consists of one failed call and its result.
    """
    if not batch:
        return None
    parts = [part for message in batch for part in message.parts if part.kind != "reasoning"]
    if all(message.kind == "parts" for message in batch) and all(part.kind == "text" for part in parts):
        return "".join(message.text for message in batch)
    results = [message.result for message in batch if message.result is not None]
    if len(results) == 1 and results[0].is_error and not any(message.kind == "parts" for message in batch):
        (error,) = results
        raise OptionFailed(str(error.error_type), str(error.error_message), retryable=bool(error.retryable))
    return [_dump_of(message) for message in batch]


def _dump_of(message: Message) -> dict[str, Any]:
    """Return a message as JSON without its id; media stay objects, which core moves out of the JSON text."""
    dump = message.model_dump(mode="json", exclude={"id"})
    for index, part in enumerate(message.parts):
        if part.kind == "media":
            dump["payload"]["parts"][index] = part
    return dump
