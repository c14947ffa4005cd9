"""Metrics, installation, configuration, faults that reach nobody, and calls at once that keep their spans apart."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from threading import Barrier, Thread
from typing import Any

import pytest
import sabir
import sabir_otel
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import get_current_span
from sabir.contract.provider import WireRequest
from sabir.errors import CallError
from sabir.hooks.plugins import Hooks, installed_hooks
from sabir.vocabulary.settings import Target
from sabir_echo.dialect import PLAIN
from sabir_otel import Telemetry
from sabir_otel.conventions import DURATION, TOKEN_USAGE, target_attributes

from tests.otel.conftest import Probe, Recorded

Telling = Callable[..., None]


def test_each_call_is_measured_once(heard: Recorded) -> None:
    llm = sabir.adapter("echo:small")
    llm.complete_sync("one two three")
    llm.stream_sync("one two three").reply()

    (duration,) = heard.points(DURATION)
    shared = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "echo",
        "gen_ai.request.model": "small",
        "gen_ai.response.model": "small",
    }
    assert (dict(duration.attributes), duration.count) == (shared, 2)
    assert 0 < duration.sum < 60
    assert tuple(duration.explicit_bounds) == tuple(0.01 * 2**power for power in range(14))
    tokens = {point.attributes["gen_ai.token.type"]: point for point in heard.points(TOKEN_USAGE)}
    assert {kind: (point.count, point.sum) for kind, point in tokens.items()} == {"input": (2, 6), "output": (2, 6)}
    assert dict(tokens["input"].attributes) == {**shared, "gen_ai.token.type": "input"}
    assert tokens["input"].explicit_bounds[-1] == 67_108_864


BEDROCK, VERTEX = "bedrock-runtime.eu-west-1.amazonaws.com", "europe-west1-aiplatform.googleapis.com"


@pytest.mark.parametrize(
    ("provider", "endpoint", "name", "server"),
    [
        ("openai", "https://api.openai.com/v1", "openai", ("api.openai.com", 443)),
        ("openai", "https://name.openai.azure.com/openai/", "azure.ai.openai", ("name.openai.azure.com", 443)),
        ("openai", "http://localhost:8000/v1", "openai", ("localhost", 8000)),
        ("openai", "https://models.elb.amazonaws.com", "openai", ("models.elb.amazonaws.com", 443)),
        ("anthropic", f"https://{BEDROCK}", "aws.bedrock", (BEDROCK, 443)),
        ("google", f"https://{VERTEX}", "gcp.vertex_ai", (VERTEX, 443)),
        ("google", "https://notaiplatform.googleapis.com", "gcp.gemini", ("notaiplatform.googleapis.com", 443)),
        ("azure", "https://gateway.example/openai/v1", "azure.ai.openai", ("gateway.example", 443)),
        ("bedrock", "https://gateway.example", "aws.bedrock", ("gateway.example", 443)),
        ("vertex", f"https://{VERTEX}/v1", "gcp.vertex_ai", (VERTEX, 443)),
        ("mistral", "https://api.mistral.ai/v1", "mistral_ai", ("api.mistral.ai", 443)),
        ("acme", "http://acme.example", "acme", ("acme.example", 80)),
        ("local", "local:", "local", (None, None)),
    ],
)
def test_a_provider_goes_by_the_conventions_name(
    provider: str, endpoint: str, name: str, server: tuple[str | None, int | None]
) -> None:
    found = target_attributes(Target(provider=provider, dialect="any.talk", model="m", endpoint=endpoint))

    assert found["gen_ai.provider.name"] == name
    assert (found.get("server.address"), found.get("server.port")) == server


@pytest.mark.parametrize(("dialect", "operation"), [("any.talk", "chat"), ("any.embeddings", "embeddings")])
def test_the_operations_name_follows_the_dialect(dialect: str, operation: str) -> None:
    target = Target(provider="acme", dialect=dialect, model="m", endpoint="acme:")

    assert target_attributes(target)["gen_ai.operation.name"] == operation


def test_what_is_installed_tells_where_it_is_configured_to(recorded: Recorded) -> None:
    installed_hooks.cache_clear()
    llm = sabir.adapter("echo:small")
    before = llm.stream_sync("one two")
    next(before)
    sabir_otel.configure(**recorded.providers(), contents="span")
    try:
        llm.complete_sync("x")
        before.close()
    finally:
        sabir_otel.configure()
    llm.complete_sync("y")

    assert "gen_ai.input.messages" in recorded.attributes()


def test_two_telemetries_tell_each_to_its_own(recorded: Recorded, telling: Telling) -> None:
    other = Recorded()
    telling(Telemetry(**other.providers()))
    before = get_current_span()
    sabir.adapter("echo:small").complete_sync("x")

    assert get_current_span() is before
    assert (recorded.span().parent, other.span().parent) == (None, None)
    other.shutdown()


def test_a_telemetry_that_tells_nobody_is_in_no_ones_way(recorded: Recorded, telling: Telling, probe: Probe) -> None:
    tracer = recorded.tracers.get_tracer("client")
    probe.before = lambda: tracer.start_span("POST").end()
    telling(Telemetry(**recorded.providers()), tracer_provider=None, meter_provider=None, logger_provider=None)
    sabir.adapter("probe:m").complete_sync("x")

    client, chat = recorded.spans
    assert (client.name, client.parent) == ("POST", chat.context)


def test_a_telemetry_that_comes_late_leaves_a_call_alone(recorded: Recorded) -> None:
    hooks = Hooks([Telemetry(**recorded.providers())])
    rendering = sabir.adapter("echo:small").render("x")
    hooks.call_started(rendering, 2, 1)
    hooks.call_failed(rendering, CallError("x"), 2, 1)
    hooks.call_given_up(rendering, None, 1)

    assert recorded.spans == []


class Bursting(SpanProcessor):
    def __init__(self, at_start: bool) -> None:
        self.at_start = at_start

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self.at_start:
            raise OSError("no room")

    def on_end(self, span: ReadableSpan) -> None:
        raise OSError("no room")


@pytest.mark.parametrize("at_start", [False, True])
def test_a_failing_exporter_breaks_no_call(heard: Recorded, at_start: bool, caplog: pytest.LogCaptureFixture) -> None:
    # UP-27
    heard.tracers.add_span_processor(Bursting(at_start))
    llm = sabir.adapter("echo:small")
    assert [llm.complete_sync("x").text, llm.stream_sync("y").reply().text] == ["x", "y"]
    with pytest.raises(CallError, match="you asked for 400"):
        llm.complete_sync("fail 400")
    caplog.clear()


def test_a_request_that_its_dialect_cannot_read_is_told_without_its_contents(
    recorded: Recorded, telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling(contents="span")
    monkeypatch.setattr("sabir_echo.plugin.PLAIN", replace(PLAIN, decode_history=lambda *_: 1 / 0))
    sabir.adapter("echo:small").complete_sync("x")

    attributes = recorded.attributes()
    assert "gen_ai.input.messages" not in attributes
    assert "gen_ai.output.messages" in attributes
    assert attributes["gen_ai.usage.output_tokens"] == 1


def parents(recorded: Recorded) -> dict[str, str | None]:
    """Name of each span → name of its parent."""
    names = {span.context.span_id: span.name for span in recorded.spans}
    return {span.name: names[span.parent.span_id] if span.parent else None for span in recorded.spans}


def test_two_threads_that_send_one_rendering_make_two_spans(heard: Recorded, probe: Probe) -> None:
    both_are_out = Barrier(2, timeout=20)
    probe.before = both_are_out.wait
    llm = sabir.adapter("probe:m")
    rendering = llm.render("x")
    tracer = heard.tracers.get_tracer("test")

    def send(name: str) -> None:
        with tracer.start_as_current_span(name):
            llm.send_sync(rendering)

    threads = [Thread(target=send, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    names = {span.context.span_id: span.name for span in heard.spans}
    chats = [span for span in heard.spans if span.name == "chat m"]
    assert sorted(names[span.parent.span_id] for span in chats if span.parent) == ["one", "two"]


async def test_streams_read_in_turns_keep_their_spans_apart(heard: Recorded) -> None:
    first, second = sabir.adapter("echo:one").stream("a b c"), sabir.adapter("echo:two").stream("d e f g")
    async for _ in first:
        await anext(second)
    await second.reply()

    told = [(span.name, (span.attributes or {})["gen_ai.usage.output_tokens"]) for span in heard.spans]
    assert told == [("chat one", 3), ("chat two", 4)]


@pytest.mark.parametrize("way", ["complete_sync", "complete", "stream_sync"])
async def test_the_clients_own_spans_are_below_the_call_where_it_is_awaited_whole(
    heard: Recorded, probe: Probe, way: str
) -> None:
    """During a stream they are beside it: between its events the reader's own code runs."""
    tracer = heard.tracers.get_tracer("client")
    probe.before = lambda: tracer.start_span("POST").end()
    llm = sabir.adapter("probe:m")
    with tracer.start_as_current_span("above"):
        if way == "complete":
            await llm.complete("x")
        else:
            getattr(llm, way)("x").text if way == "complete_sync" else llm.stream_sync("x").reply()

    assert parents(heard) == {
        "POST": "above" if way == "stream_sync" else "chat m",
        "chat m": "above",
        "above": None,
    }


def test_nothing_stays_current_after_a_call_or_during_a_stream(heard: Recorded) -> None:
    llm = sabir.adapter("echo:small")
    before = get_current_span()
    llm.complete_sync("x")
    with pytest.raises(sabir.SabirError):
        llm.complete_sync("fail 400")
    with llm.stream_sync("x y") as stream:
        next(stream)
        assert get_current_span() is before

    assert get_current_span() is before
    assert len(heard.spans) == 3


async def test_a_cancelled_call_ends_its_span(heard: Recorded, probe: Probe) -> None:
    out = asyncio.Event()

    class Silent:
        async def open(self, request: WireRequest) -> Any:
            out.set()
            await asyncio.Event().wait()

        async def aclose(self) -> None: ...

    llm = sabir.adapter("probe:m")
    llm._connector.connection = Silent()  # type: ignore[assignment]
    task = asyncio.create_task(llm.complete("x"))
    await out.wait()
    assert heard.spans == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert heard.attributes()["sabir.left"] is True
