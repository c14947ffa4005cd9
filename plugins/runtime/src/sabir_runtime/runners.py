"""Runners decide how a bound call is performed; policies are the same under all of them (RN-20 … RN-23, RN-21).

BaseRunner ── create_bind_function(ctx) ──▶ _bind
└── Runner ── perform(BoundCall)               what recording and remote runners override
    ├── InMemoryRunner                         here and now
    └── Wrapping                               by the plain function that a BaseRunner bound
"""

from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sabir_runtime.batches import answer_batch
from sabir_runtime.bound import BoundCall, BoundPolicy
from sabir_runtime.errors import PolicyInvalid, RuntimeFault
from sabir_runtime.policies import AnyPolicy, Batch

if TYPE_CHECKING:
    from sabir_runtime.contexts import BaseContext


class BaseRunner:
    """What every runner is: it binds policies to contexts."""

    def create_bind_function(self, ctx: "BaseContext") -> Callable[..., BoundPolicy]:
        """The function that a context binds its policies with."""
        raise NotImplementedError(f"{type(self).__name__} defines no create_bind_function; derive from Runner instead")


class Runner(BaseRunner):
    """A runner of bound calls: it defines `perform` alone."""

    def create_bind_function(self, ctx: "BaseContext") -> Callable[..., BoundPolicy]:
        """The function that binds a policy to the context and to this runner."""

        def bind(
            policy: AnyPolicy, *, options: Sequence[str] | None = None, description: str | None = None
        ) -> BoundPolicy:
            return BoundPolicy(policy, ctx, self, options=options, description=description)

        return bind

    def perform(self, call: BoundCall) -> Awaitable[Batch]:
        """The batch that a call's policy chose, its option calls answered.

        Called when the program calls, before anything is awaited.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no perform(call)")


class InMemoryRunner(Runner):
    """Performs calls in this process, and keeps nothing.

    `trace=True` opens a span for each call, by sabir-otel (RN-23); RuntimeFault where that is not installed.
    """

    def __init__(self, trace: bool = False) -> None:
        self.trace = trace
        self._span: Callable[..., Any] | None = _policy_span() if trace else None

    async def perform(self, call: BoundCall) -> Batch:
        """The batch of a call's policy, its option calls answered."""
        if self._span is None:
            batch = await call.decide()
            for message in batch:
                if message.kind == "option_call":
                    return await answer_batch(batch, call.answer)
            return batch
        asked = call.observations[-1].call if call.is_option else None
        with self._span(call.bound.signature.function_name, invocation_id=asked.invocation_id if asked else ""):
            return await answer_batch(await call.decide(), call.answer)


class Wrapping(Runner):
    """Performs the calls of one policy by the function that a runner's own bind function made of it."""

    def __init__(self, function: AnyPolicy) -> None:
        self._function = function

    async def perform(self, call: BoundCall) -> Batch:
        """The batch that the function gave, its option calls answered."""
        return await answer_batch(await call.decide(self._function), call.answer)


# What a runner's own function takes besides the policy is for it to say, hence Any.
def bound_by(bind: Callable[..., object], ctx: "BaseContext", policy: AnyPolicy, **how: Any) -> BoundPolicy:
    """A policy as a runner's function binds it: where that gives a plain function, a bound policy that calls it."""
    made = bind(policy, **how)
    if isinstance(made, BoundPolicy):
        return made
    if not callable(made):
        remedy = "give a function, or derive from Runner"
        raise PolicyInvalid(f"the runner bound a {type(made).__name__} in place of a policy; {remedy}")
    return BoundPolicy(policy, ctx, Wrapping(made), options=how.get("options"), description=how.get("description"))


def _policy_span() -> Callable[..., Any]:
    try:
        spans = import_module("sabir_otel.policies")
    except ModuleNotFoundError:
        remedy = "install sabir-otel, or sabir-runtime[trace]"
        raise RuntimeFault(f"InMemoryRunner(trace=True) needs the package sabir-otel; {remedy}") from None
    span: Callable[..., Any] = spans.policy_span
    return span
