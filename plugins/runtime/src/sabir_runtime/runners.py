"""The runner that performs calls here and now, and keeps nothing; others record them, or send them elsewhere."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sabir_runtime.batches import answer_batch
from sabir_runtime.contexts import BoundCall, Runner
from sabir_runtime.errors import RuntimeFault
from sabir_runtime.policies import Batch


class InMemoryRunner(Runner):
    """Performs calls in this process, and keeps nothing.

    `trace=True` opens a span for each call, by sabir-otel; RuntimeFault where that is not installed.
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


def _policy_span() -> Callable[..., Any]:
    try:
        spans = import_module("sabir_otel.policies")
    except ModuleNotFoundError:
        remedy = "install sabir-otel, or sabir-runtime[trace]"
        raise RuntimeFault(f"InMemoryRunner(trace=True) needs the package sabir-otel; {remedy}") from None
    span: Callable[..., Any] = spans.policy_span
    return span
