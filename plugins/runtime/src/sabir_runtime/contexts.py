"""Contexts: objects whose attributes are the policies that can be called and chosen.

    class Assistant(BaseContext):
        llm: BoundPolicy
        search: BoundPolicy

        def __init__(self, runner):
            super().__init__(runner)
            self.llm = self._bind(llm_policy("provider:model"))
            self.search = self._bind(search_web)              # the option "search", whatever the function is called

    await ctx.llm(observations, options) ──▶ BoundCall ──▶ runner.perform ──▶ batch with the results of its calls
    option call ──arguments, validated──▶ bound(observations=[call], …) ──batch──▶ its text, or its messages as JSON

A policy can choose only policies that its context binds. A policy that was chosen as an option sees only the option
call as its observation. Runners decide how a bound call is performed; policies are the same under all runners.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any, ClassVar

from sabir import RUNTIME, Message, Option, OptionFailed, ToolContext, answer
from sabir.authoring import AgentWork, AsyncClosing, CallDepth, StoredNames, announce_work, as_messages, set_during
from sabir.errors import CallsTooDeep

from sabir_runtime.failures import PolicyFailed, PolicyInvalid, RuntimeFault, UnknownOption, is_cancelled
from sabir_runtime.policies import AnyPolicy, Batch, Named, answer_batch, check_batch
from sabir_runtime.signatures import PolicySignature, read_policy

_CHOSEN: ContextVar[Message] = ContextVar("sabir_runtime.chosen")
"""The option call that is being answered now; unset outside of option calls."""
MOST_CACHED = 16
"""The maximum number of `Option` objects cached for each bound policy: one for each list of offered names."""


class BaseRunner:
    """The base class of all runners. A runner decides where and how the calls of bound policies are performed.

    For a runner of your own, derive from `Runner`, unless the runner binds policies in its own way.
    """

    def create_bind_function(self, ctx: "BaseContext") -> "Callable[..., BoundPolicy]":
        """Return the function with which the context `ctx` binds a policy. A subclass must define this method.

        `self._bind(policy, …)` of the context calls the function. It accepts the policy, and the keyword arguments
        `options` and `description` of `BoundPolicy`. It returns a BoundPolicy, or a function that is called instead of
        the policy, without the context. Raises NotImplementedError in this base class.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no create_bind_function; derive from Runner instead")


class Runner(BaseRunner):
    """The base class for runners of your own. A subclass needs to define only `perform`.

    >>> import asyncio, sabir
    >>> from sabir_runtime import BaseContext, InMemoryRunner, llm_policy
    >>> class LoggingRunner(InMemoryRunner):
    ...     async def perform(self, call):
    ...         print("called", call.name)
    ...         return await super().perform(call)
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.llm = self._bind(llm_policy("echo:m"))
    >>> batch = asyncio.run(Desk(LoggingRunner()).llm("Hello!"))
    called llm
    """

    def create_bind_function(self, ctx: "BaseContext") -> "Callable[..., BoundPolicy]":
        """Return a function that binds a policy to the context `ctx` and to this runner, as a `BoundPolicy`."""
        return partial(BoundPolicy, context=ctx, runner=self)

    def perform(self, call: "BoundCall") -> Awaitable[Batch]:
        """Perform a bound call: return the policy's batch, followed by a result for each option call without a result.

        A subclass must define this method, usually as a coroutine function. `ctx.name(…)` calls the method at once, and
        the caller awaits the returned awaitable. Use `call.decide()` for the policy's batch and `call.answer` for the
        result of each option call, in a `with call.announced()` block.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define the method perform(call), which it must")


class _FunctionRunner(Runner):
    """Performs the calls of one policy with the function that a runner's own bind function returned for it."""

    def __init__(self, function: AnyPolicy) -> None:
        self._function = function

    async def perform(self, call: "BoundCall") -> Batch:
        """Return the batch of the function, with a result for each option call."""
        with call.announced():
            return await answer_batch(await call.decide(self._function), call.answer)


class InMemoryRunner(Runner):
    """Performs the calls of a context's policies in this process, and stores nothing. Begin with this runner.

    If the package sabir-otel is installed, every runner records an OpenTelemetry span for each call of a policy.
    `trace=True` checks this: it raises RuntimeFault if sabir-otel is not installed.

    >>> import asyncio
    >>> from sabir_runtime import BaseContext, InMemoryRunner, llm_policy
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.llm = self._bind(llm_policy("echo:m"))
    >>> desk = Desk(InMemoryRunner())
    >>> asyncio.run(desk.llm("Hello!"))[0].text
    'Hello!'
    """

    def __init__(self, trace: bool = False) -> None:
        self.trace = trace
        if trace and find_spec("sabir_otel") is None:
            remedy = "install sabir-otel, or sabir-runtime[trace]"
            raise RuntimeFault(f"InMemoryRunner(trace=True) needs the package sabir-otel; {remedy}")

    async def perform(self, call: "BoundCall") -> Batch:
        """Run a call's policy here, and return its batch, followed by a result for each option call without a result.

        These option calls are answered at the same time. Raises PolicyFailed if the policy raises, returns something
        other than a list or tuple of messages, or is nested too deeply in other calls.
        """
        with call.announced():
            return await answer_batch(await call.decide(), call.answer)


class BaseContext(AsyncClosing):
    """The base class of contexts. A context is an object whose attributes are policies bound to a runner.

    In `__init__`, assign `self._bind(policy)` for each policy: the attribute's name becomes the option's name.
    `_bind` accepts the arguments `options` and `description` of `BoundPolicy`.

    Durable runners store the runs of a context under the name in its class attribute `stored_as`, by default its
    `__qualname__`. After renaming a class, set `stored_as` to the earlier name, or `stored_before` to a tuple of
    earlier names, so that stored runs continue. Subclasses do not inherit these names.

    >>> import asyncio, sabir
    >>> from sabir_runtime import BaseContext, InMemoryRunner
    >>> async def capital_of(ctx, observations, options=None, *, country: str):
    ...     "Find the capital of a country."
    ...     return [sabir.assistant({"France": "Paris"}[country], policy="capital_of")]
    >>> class Atlas(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.capital_of = self._bind(capital_of)
    >>> atlas = Atlas(InMemoryRunner())
    >>> asyncio.run(atlas.capital_of("Where is it?", country="France"))[0].text
    'Paris'
    >>> atlas.offer(["capital_of"])[0].description
    'Find the capital of a country.'
    """

    stored_as: ClassVar[str]
    stored_before: ClassVar[tuple[str, ...]]

    def __init__(self, runner: BaseRunner) -> None:
        self._runner = runner
        self._bind: Callable[..., BoundPolicy] = partial(_bind_with, runner.create_bind_function(self), self)

    def __setattr__(self, name: str, value: object) -> None:
        """Assign an attribute. A bound policy gets the attribute's name as its own name.

        Raises PolicyInvalid if the bound policy already has another name, or if the name is reserved.
        """
        if isinstance(value, BoundPolicy):
            value.set_name(name)
        object.__setattr__(self, name, value)

    def bound_policies(self) -> "dict[str, BoundPolicy]":
        """Return the bound policies by name, in the order of first assignment, without names that begin with `_`."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, BoundPolicy) and not name.startswith("_")
        }

    def checked_options(self, names: Iterable[str]) -> list[str]:
        """Return `names` as a list. Raises UnknownOption if a name is not a bound policy, or begins with `_`.

        This error lists the names that can be options. Also raises UnknownOption if `names` is a string.
        """
        if isinstance(names, str):
            raise UnknownOption(f"options must be a list of names, not the string {names!r}; write options=[{names!r}]")
        option_names = list(names)
        attributes = self.__dict__
        for name in option_names:
            if not isinstance(attributes.get(name), BoundPolicy) or name[0] == "_":
                known = f"bound are: {', '.join(self.bound_policies()) or 'none'}"
                raise UnknownOption(f"{type(self).__name__} binds no policy {name!r}; {known}")
        return option_names

    def offer(self, names: Sequence[str] | None) -> list[Option]:
        """Return the bound policies of these names as options, which an adapter can send to a model.

        For None, return an empty list. Raises UnknownOption as `checked_options` does.
        """
        offered = tuple(self.checked_options(names or ()))
        bound = self.bound_policies()
        return [bound[name].as_option(offered) for name in offered]

    async def aclose(self) -> None:
        """Close the policies in `bound_policies()`, and then the runner, by awaiting their methods `aclose`.

        A policy or runner without this method is skipped. The runner is closed for other contexts, too. If a method
        raises, the others are closed first.
        """
        closable: list[Any] = [self._runner, *(bound.policy for bound in reversed(self.bound_policies().values()))]
        async with AsyncExitStack() as closing:  # closes in the opposite order
            for each in closable:  # a policy is any callable, so it may have no `aclose`
                if (close := getattr(each, "aclose", None)) is not None:
                    closing.push_async_callback(close)


def context_names(context_type: type[BaseContext]) -> StoredNames:
    """Return the names under which runners store the runs of a context class: `stored_as`, then `stored_before`.

    Without `stored_as`, the name is the class's `__qualname__`. With `stored_as` and without `stored_before`, the
    `__qualname__` is an earlier name.
    """
    return StoredNames.of(context_type, context_type.__qualname__)


class BoundPolicy:
    """A policy that a context has bound to its runner. Created by `self._bind(policy)`, and called without `ctx`.

    `options` are the names of the bound policies that this policy may call when this policy is called as an option.
    None means the names that were offered together with this policy. `description` is sent to a model instead of the
    policy's docstring. Raises PolicyInvalid if `policy` cannot be a policy, for example if it is not async.
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
        self.as_option = lru_cache(MOST_CACHED)(self._as_option)
        self._name = ""

    @property
    def name(self) -> str:
        """The name of the context's attribute, which is also the option's name.

        Raises PolicyInvalid if the bound policy was not assigned to an attribute yet.
        """
        if not self._name:
            remedy = f"assign it to an attribute: self.{self.signature.function_name} = self._bind(…)"
            raise PolicyInvalid(f"bound policy {self.signature.function_name!r} has no name yet; {remedy}")
        return self._name

    @property
    def display_name(self) -> str:
        """The name for error messages: `name`, or the function's name before the bound policy has a name."""
        return self._name or self.signature.function_name

    def set_name(self, name: str) -> None:
        """Set the name. Called when a context assigns the bound policy to an attribute.

        Raises PolicyInvalid if the bound policy already has another name, or if the name is reserved.
        """
        if name == RUNTIME:
            remedy = f"bind {self.signature.function_name!r} to an attribute with another name"
            raise PolicyInvalid(
                f"the name {RUNTIME!r} is reserved for results that the library writes itself; {remedy}"
            )
        if self._name not in ("", name):
            remedy = "call self._bind(…) again for the second name"
            raise PolicyInvalid(f"bound policy {self._name!r} cannot also be named {name!r}; {remedy}")
        speaker: object = self.policy
        if not self._name and isinstance(speaker, Named):
            self.policy = speaker.bound_as(name)
        self._name = name

    # Each policy has keyword parameters of its own, which `signature` lists, hence Any.
    def __call__(
        self, observations: str | Message | Sequence[Message], options: Sequence[str] | None = None, **arguments: Any
    ) -> Awaitable[Batch]:
        """Call the policy through the runner, and return its batch followed by the results of its option calls.

        `observations` is a text, a message or a list of messages. `options` are the names of the bound policies that
        the policy may choose. `arguments` are the policy's own keyword arguments. Raises UnknownOption for a name that
        the context does not bind, PolicyInvalid for wrong arguments, and WrongWord for observations that are not
        messages. Awaiting the call raises PolicyFailed if the policy fails. Runners may raise further errors.
        """
        return self.perform(observations, options, self.signature.check(arguments))

    def perform(
        self, observations: str | Message | Sequence[Message], options: Sequence[str] | None, arguments: dict[str, Any]
    ) -> Awaitable[Batch]:
        """Call the policy through the runner, with arguments that `signature.check` has returned.

        Returns the batch, followed by the results of its option calls. Raises the errors of `__call__`, but does not
        check `arguments`.
        """
        return self.runner.perform(BoundCall(self, observations, options, arguments))

    def _as_option(self, offered: tuple[str, ...]) -> Option:
        """Return this policy as an option for a caller that may call the policies `offered`. `as_option` caches it."""

        async def perform(**arguments: Any) -> Any:  # a result contains any JSON value
            options = offered if self.options is None else self.options
            return _result_value_of(await self.perform([_CHOSEN.get()], options, arguments))

        return self.signature.as_option(self.name, perform)

    def __repr__(self) -> str:
        """Return `<bound policy 'name' of function>`."""
        return f"<bound policy {self._name!r} of {self.signature.function_name}>"


class BoundCall:
    """One call of a bound policy, which a runner performs. Passed to `Runner.perform`.

    `bound` is the bound policy. `observations` and `options` are copied into new lists; without options, `options` is
    None. `arguments` must already have the types of the policy's parameters; `bound.signature.check` converts them.
    Raises UnknownOption for a name that the context does not bind, and WrongWord for observations that are not
    messages.
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
        """True if the only observation is the option call that is being answered now.

        The policy was then called as an option, or by such a policy with the same observation.
        """
        message = _CHOSEN.get(None)
        return message is not None and len(self.observations) == 1 and self.observations[0] is message

    def announced(self, conversation_id: str = "", *, is_remote: bool = False) -> AbstractContextManager[object]:
        """Return a context manager that announces its block to telemetry as an agent's work, by the policy's name.

        If the policy was called as an option, nothing is announced, because the option's run is announced.
        `conversation_id` identifies the run of which the call is a part; "" means that the call is not a stored run.
        `is_remote` is True if another process runs the policy.
        """
        if self.is_option:
            return nullcontext()
        return announce_work(AgentWork("agent", self.bound.display_name, conversation_id, is_remote=is_remote))

    async def decide(self, by: AnyPolicy | None = None) -> Batch:
        """Run the policy, and return its batch, without answering the option calls in the batch.

        `by` is a function to call instead of the policy, with observations, options and arguments but without the
        context. Raises PolicyFailed if the policy raises, returns something other than a list or tuple of
        messages, or is nested too deeply in other calls. KeyboardInterrupt and the cancellation of the calling task
        are raised unchanged.
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
        """Run the option that the option call `message` names, and return the result message.

        If the option raises, is not in `options` or gets wrong arguments, the result is an error result. Raises
        PolicyFailed if calls are nested too deeply. `context` is passed to options with a ToolContext
        parameter; None means a new ToolContext with the call's id.
        """
        if context is None:
            call_id = message.call.invocation_id if message.call else ""
            context = ToolContext(call_id, idempotency_key=f"{message.id}/{call_id}")
        try:
            name = message.call.option_name if message.call else ""
            with (
                set_during(_CHOSEN, message),
                announce_work(AgentWork("option", name, option_call=message)) as work,
                context.entered(),
                CallDepth.one_deeper(self.bound.display_name),
            ):
                (work.option_result,) = await answer([message], self.bound.context.offer(self.options))
                return work.option_result
        except asyncio.CancelledError:
            context.cancelled.set()
            raise
        except CallsTooDeep as fault:
            raise PolicyFailed.from_exception(fault) from None


# A runner's own function defines its further arguments, hence Any.
def _bind_with(bind: Callable[..., object], ctx: BaseContext, policy: AnyPolicy, **keywords: Any) -> BoundPolicy:
    """Bind a policy with a runner's bind function, and return the BoundPolicy.

    The bind function may also return a function: the bound policy then calls this function instead of the policy.
    """
    bound = bind(policy, **keywords)
    if isinstance(bound, BoundPolicy):
        return bound
    if not callable(bound):
        remedy = "return a function, or derive the runner from Runner"
        raise PolicyInvalid(f"the runner's bind function returned a {type(bound).__name__}, not a policy; {remedy}")
    return BoundPolicy(
        policy, ctx, _FunctionRunner(bound), options=keywords.get("options"), description=keywords.get("description")
    )


_NOT_IN_A_RESULT = ("reasoning", "native_call", "native_result")
"""Kinds of parts that led to the answer and are not in the value of an option result if the answer is text."""


def _result_value_of(batch: Batch) -> Any:  # a result contains any JSON value
    """Return the value of the option result for a batch that answers an option call.

    The value is the joined text if the batch contains only text, None if the batch is empty, else the list of its
    messages as JSON without their ids, which differ from run to run. Core sends media in that list as parts of the
    result, next to the JSON. Reasoning and calls of a vendor's own tools are left out of the text. Raises OptionFailed
    if the batch has no text and one result, which is an error result.
    """
    if not batch:
        return None
    parts = [part for message in batch for part in message.parts if part.kind not in _NOT_IN_A_RESULT]
    if all(message.kind == "parts" for message in batch) and all(part.kind == "text" for part in parts):
        return "".join(message.text for message in batch)
    results = [message.result for message in batch if message.result is not None]
    if len(results) == 1 and results[0].is_error and not any(message.kind == "parts" for message in batch):
        (error,) = results
        raise OptionFailed(str(error.error_type), str(error.error_message), retryable=bool(error.retryable))
    return [_dump_of(message) for message in batch]


def _dump_of(message: Message) -> dict[str, Any]:
    """Return a message as JSON without its id. Media stay part objects, which core moves out of the JSON text."""
    dump = message.model_dump(mode="json", exclude={"id"})
    for index, part in enumerate(message.parts):
        if part.kind == "media":
            dump["payload"]["parts"][index] = part
    return dump
