"""Runners decide how a call is performed; the one in memory adds nothing."""

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest
import sabir
import sabir_otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from sabir_runtime import BaseContext, BaseRunner, Batch, BoundCall, InMemoryRunner, PolicyFailed, Runner, RuntimeFault
from sabir_runtime.policies import AnyPolicy

from tests.runtime.support import Context, Names, call, results

HISTORY = [sabir.user("Umbrella today?")]


def test_the_base_binds_nothing() -> None:
    """RN-20."""
    with pytest.raises(NotImplementedError, match="derive from Runner"):
        BaseRunner().create_bind_function(Context())


async def test_a_runner_of_ones_own_defines_perform_alone() -> None:
    """RN-11, RN-21: and sees every call, with its name."""
    seen = []

    class Counting(InMemoryRunner):
        def perform(self, call: BoundCall):  # type: ignore[no-untyped-def, override]
            seen.append(call.name)
            return super().perform(call)

    await Context(call("search", query="rain"), runner=Counting()).chooser(HISTORY, ["search"])

    assert seen == ["chooser", "search"]
    with pytest.raises(NotImplementedError, match=r"Runner does not define the method perform\(call\)"):
        Context(runner=Runner()).chooser(HISTORY)


async def test_what_a_runner_wraps_in_a_plain_function_is_a_policy_like_any_other() -> None:
    """RN-05, RN-11, RN-21: it is called by that function, offered, chosen and answered; its errors are PolicyFailed."""
    heard: list[str] = []

    class Counting(BaseRunner):
        def create_bind_function(self, ctx: BaseContext) -> Callable[..., Any]:
            def bind(policy: AnyPolicy) -> AnyPolicy:
                @wraps(policy)
                async def bound(observations: Batch, options: Names = None, **arguments: Any) -> Batch:
                    heard.append(policy.__name__)
                    return await policy(ctx, observations, options, **arguments)

                return bound

            return bind

    ctx = Context(call("search", query="rain", most="4"), call("broken", "call-2"), runner=Counting())
    batch = await ctx.chooser("Umbrella?", ["search", "broken"])

    assert [option.name for option in ctx.offer(["search"])] == ["search"]
    assert (heard, results(batch)) == (["chooser", "search_web", "broken"], ["4 × rain", "RuntimeError"])
    with pytest.raises(PolicyFailed, match="no disk"):
        await ctx.broken(HISTORY)


async def test_untraced_calls_pass_the_context_and_know_no_tracing() -> None:
    """RN-22, D-10."""
    seen = []

    async def spy(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        seen.append(ctx)
        return []

    ctx = Context(runner=InMemoryRunner(trace=False))
    ctx.spy = ctx._bind(spy)
    await ctx.spy(HISTORY)

    assert seen == [ctx]


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What ended, in the order of ending."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sabir_otel.configure(tracer_provider=provider)
    yield exporter
    sabir_otel.configure()


async def test_a_traced_call_is_a_span_named_after_the_policy(spans: InMemorySpanExporter) -> None:
    """RN-23: options are spans within; each ends, also if the policy fails."""
    ctx = Context(call("search", query="rain"), runner=InMemoryRunner(trace=True))
    batch = await ctx.chooser(HISTORY, ["search"])
    with pytest.raises(PolicyFailed):
        await ctx.broken(HISTORY)

    inner, outer, failed = spans.get_finished_spans()
    assert results(batch) == ["3 × rain"]
    assert [inner.name, outer.name, failed.name] == [
        "execute_tool search", "invoke_agent chooser", "invoke_agent broken",
    ]  # fmt: skip
    assert inner.parent is not None
    assert inner.parent.span_id == outer.get_span_context().span_id
    assert failed.status.status_code is StatusCode.ERROR


def test_tracing_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """RN-23: when the runner is made, not at the first call."""
    monkeypatch.setitem(sys.modules, "sabir_otel", None)

    with pytest.raises(RuntimeFault, match=r"install sabir-otel, or sabir-runtime\[trace\]"):
        InMemoryRunner(trace=True)
