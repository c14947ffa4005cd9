"""One span a call of a policy (RN-23): named after it, ended whatever happens, and above what the policy calls."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sabir
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from sabir_otel import Telemetry
from sabir_otel import policies as module
from sabir_otel.contents import CONTENTS_VARIABLE
from sabir_otel.policies import policy_span

from tests.otel.conftest import Recorded
from tests.otel.test_calls_at_once import parents

Telling = Callable[..., None]


class SearchFailed(Exception):
    """A user's own error; its message may quote what was said."""


@pytest.fixture
def installed(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> Telemetry:
    """The Telemetry that the package installs, telling the test's providers."""
    telemetry = Telemetry(**recorded.providers())
    monkeypatch.setattr(module, "installed", telemetry)
    return telemetry


def test_a_policys_span_is_that_of_an_agent(recorded: Recorded) -> None:
    """Its name, operation and kind are the conventions' (RN-23, D-09)."""
    with policy_span("assistant", description="Answers.", tracer_provider=recorded.tracers):
        pass

    span = recorded.span()
    assert (span.name, span.kind, span.status.status_code) == (
        "invoke_agent assistant",
        SpanKind.INTERNAL,
        StatusCode.UNSET,
    )
    assert recorded.attributes() == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "assistant",
        "gen_ai.agent.description": "Answers.",
    }
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "sabir_otel"


def test_a_policy_that_answers_an_option_call_has_the_span_of_one(recorded: Recorded) -> None:
    """The call's identifier finds it."""
    with policy_span("search", invocation_id="call_7", description="Looks it up.", tracer_provider=recorded.tracers):
        pass

    assert recorded.span().name == "execute_tool search"
    assert recorded.attributes() == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_7",
        "gen_ai.tool.description": "Looks it up.",
    }


def test_attributes_are_set_at_the_start_and_in_the_block(recorded: Recorded) -> None:
    """A sampler sees the first; the block has the span itself."""
    given = {"app.run": "r1", "app.attempts": 2}
    with policy_span("assistant", attributes=given, tracer_provider=recorded.tracers) as span:
        at_the_start = dict(span.attributes)  # type: ignore[attr-defined]
        span.set_attribute("app.found", 3)

    assert at_the_start.items() >= given.items()
    assert recorded.attributes().items() >= {**given, "app.found": 3}.items()


def test_a_failing_policy_ends_its_span_as_an_error(recorded: Recorded) -> None:
    """The error passes through; its class is told, what it says is not (RN-23)."""
    error = SearchFailed("the key is 1234")
    with pytest.raises(SearchFailed) as caught:
        with policy_span("search", tracer_provider=recorded.tracers):
            raise error

    kind = f"{SearchFailed.__module__}.SearchFailed"
    span = recorded.span()
    assert caught.value is error
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, kind)
    assert recorded.attributes()["error.type"] == kind
    assert recorded.events() == [("exception", {"exception.type": kind})]
    assert "1234" not in span.to_json()


@pytest.mark.parametrize("way", ["configured", "environment"])
def test_what_an_error_says_is_recorded_where_contents_are(
    recorded: Recorded, installed: Telemetry, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """As for calls."""
    if way == "configured":
        installed.configure(**recorded.providers(), contents="span")
    else:
        monkeypatch.setenv(CONTENTS_VARIABLE, "SPAN_ONLY")
    with pytest.raises(SearchFailed), policy_span("search"):
        raise SearchFailed("the key is\n1234")

    ((name, said),) = recorded.events()
    assert recorded.span().status.description == "the key is 1234"
    assert (name, said["exception.message"]) == ("exception", "the key is\n1234")
    assert "SearchFailed" in said["exception.stacktrace"]


def test_an_interrupt_ends_the_span_too(recorded: Recorded) -> None:
    """Whatever ends the block."""
    with pytest.raises(KeyboardInterrupt), policy_span("search", tracer_provider=recorded.tracers):
        raise KeyboardInterrupt

    assert recorded.attributes()["error.type"] == "KeyboardInterrupt"
    assert not get_current_span().get_span_context().is_valid


async def test_a_cancelled_policy_was_left_and_did_not_fail(recorded: Recorded) -> None:
    """As a cancelled call."""
    began = asyncio.Event()

    async def policy() -> None:
        with policy_span("search", tracer_provider=recorded.tracers):
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(policy())
    await began.wait()
    assert recorded.spans == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert recorded.attributes()["sabir.left"] is True
    assert recorded.span().status.status_code is StatusCode.UNSET
    assert recorded.events() == []


async def test_calls_of_a_policy_stand_below_it(recorded: Recorded, telling: Telling) -> None:
    """And policies below the policy that called them."""
    telling()
    tracers = recorded.tracers
    with policy_span("assistant", tracer_provider=tracers):
        await sabir.adapter("echo:first").complete("x")
        with policy_span("search", invocation_id="c1", tracer_provider=tracers):
            sabir.adapter("echo:second").complete_sync("x")
        await sabir.adapter("echo:third").complete("x")

    assert parents(recorded) == {
        "invoke_agent assistant": None,
        "chat first": "invoke_agent assistant",
        "execute_tool search": "invoke_agent assistant",
        "chat second": "execute_tool search",
        "chat third": "invoke_agent assistant",
    }


async def test_policies_at_once_keep_their_calls_apart(recorded: Recorded, telling: Telling) -> None:
    """Each in a task of its own, all of them open at the same time, one failing."""
    telling()
    tracers = recorded.tracers
    names = ["one", "two", "three"]
    all_are_open = asyncio.Barrier(len(names))

    async def policy(name: str) -> None:
        with policy_span(name, tracer_provider=tracers):
            await all_are_open.wait()
            await sabir.adapter(f"echo:{name}").complete("x")
            if name == "two":
                raise SearchFailed

    with policy_span("above", tracer_provider=tracers):
        outcomes = await asyncio.gather(*map(policy, names), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [type(None), SearchFailed, type(None)]
    assert parents(recorded) == {
        "invoke_agent above": None,
        **{f"invoke_agent {name}": "invoke_agent above" for name in names},
        **{f"chat {name}": f"invoke_agent {name}" for name in names},
    }
    failed = [span.name for span in recorded.spans if span.status.status_code is StatusCode.ERROR]
    assert failed == ["invoke_agent two"]


def test_without_a_provider_it_goes_where_calls_go(recorded: Recorded, installed: Telemetry) -> None:
    """To what `configure` was given last."""
    elsewhere = Recorded()
    with policy_span("first"):
        pass
    installed.configure(**elsewhere.providers())
    with policy_span("second"):
        pass

    assert [span.name for span in recorded.spans] == ["invoke_agent first"]
    assert [span.name for span in elsewhere.spans] == ["invoke_agent second"]
    elsewhere.shutdown()


def test_where_nothing_is_configured_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the block runs as it would without."""
    monkeypatch.setattr(module, "installed", Telemetry(tracer_provider=trace.NoOpTracerProvider()))
    ran: list[Any] = []
    with policy_span("search") as span:
        ran.append(span.is_recording())

    assert ran == [False]


def test_a_span_that_was_not_sampled_costs_no_error(recorded: Recorded) -> None:
    """A policy that fails within it fails as it did."""
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    silent = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    with pytest.raises(SearchFailed), policy_span("search", tracer_provider=silent):
        raise SearchFailed

    silent.shutdown()
