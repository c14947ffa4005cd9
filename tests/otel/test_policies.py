"""One span a call of a policy (RN-23): named after it, ended whatever happens, and above what the policy calls."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sabir
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from sabir_otel import Telemetry
from sabir_otel import policies as module
from sabir_otel.contents import CONTENTS_VARIABLE
from sabir_otel.policies import policy_span

from tests.otel.conftest import Recorded
from tests.otel.test_telemetry import parents

Telling = Callable[..., None]


class SearchFailed(Exception):
    """A user's own error; its message may quote what was said."""


@pytest.fixture
def installed(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> Telemetry:
    telemetry = Telemetry(**recorded.providers())
    monkeypatch.setattr(module, "installed", telemetry)
    return telemetry


@pytest.mark.parametrize(
    ("call", "name", "described"),
    [
        ("", "invoke_agent one", {"gen_ai.agent.name": "one", "gen_ai.agent.description": "Answers."}),
        (
            "call_7",
            "execute_tool one",
            {
                "gen_ai.tool.name": "one",
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": "call_7",
                "gen_ai.tool.description": "Answers.",
            },
        ),
    ],
)
def test_a_policys_span_is_that_of_an_agent_or_of_the_option_that_it_answers(
    recorded: Recorded, call: str, name: str, described: dict[str, str]
) -> None:  # RN-23, D-09
    given = {"app.run": "r1"}
    how: dict[str, Any] = {"description": "Answers.", "attributes": given, "tracer_provider": recorded.tracers}
    with policy_span("one", invocation_id=call, **how) as span:
        at_the_start = dict(span.attributes)  # type: ignore[attr-defined]
        span.set_attribute("app.found", 3)

    span = recorded.span()
    assert (span.name, span.kind, span.status.status_code) == (name, SpanKind.INTERNAL, StatusCode.UNSET)
    assert at_the_start == {"gen_ai.operation.name": name.partition(" ")[0], **described, **given}
    assert recorded.attributes() == {**at_the_start, "app.found": 3}
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "sabir_otel"


@pytest.mark.parametrize(
    ("error", "kind"),
    [(SearchFailed("the key is 1234"), f"{__name__}.SearchFailed"), (KeyboardInterrupt("1234"), "KeyboardInterrupt")],
    ids=["failure", "interrupt"],
)
def test_a_failing_policy_ends_its_span_as_an_error(recorded: Recorded, error: BaseException, kind: str) -> None:
    # RN-23
    with pytest.raises(type(error)) as caught, policy_span("search", tracer_provider=recorded.tracers):
        raise error

    span = recorded.span()
    assert caught.value is error
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, kind)
    assert recorded.attributes()["error.type"] == kind
    assert recorded.events() == [("exception", {"exception.type": kind})]
    assert "1234" not in span.to_json()
    assert not get_current_span().get_span_context().is_valid


def test_a_cancelled_policy_was_left_and_did_not_fail(recorded: Recorded) -> None:
    with pytest.raises(asyncio.CancelledError), policy_span("search", tracer_provider=recorded.tracers):
        assert recorded.spans == []
        raise asyncio.CancelledError

    assert recorded.attributes()["sabir.left"] is True
    assert recorded.span().status.status_code is StatusCode.UNSET
    assert recorded.events() == []


@pytest.mark.parametrize("way", ["configured", "environment"])
def test_what_an_error_says_is_recorded_where_contents_are(
    recorded: Recorded, installed: Telemetry, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
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


async def test_policies_at_once_keep_their_calls_apart(heard: Recorded) -> None:
    tracers = heard.tracers
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
    assert parents(heard) == {
        "invoke_agent above": None,
        **{f"invoke_agent {name}": "invoke_agent above" for name in names},
        **{f"chat {name}": f"invoke_agent {name}" for name in names},
    }
    failed = [span.name for span in heard.spans if span.status.status_code is StatusCode.ERROR]
    assert failed == ["invoke_agent two"]


def test_without_a_provider_it_goes_where_calls_go(recorded: Recorded, installed: Telemetry) -> None:
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
    monkeypatch.setattr(module, "installed", Telemetry(tracer_provider=trace.NoOpTracerProvider()))
    ran: list[Any] = []
    with policy_span("search") as span:
        ran.append(span.is_recording())

    assert ran == [False]
