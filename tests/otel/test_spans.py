"""One span a call, by the conventions: what it is called, what it says, and how it ends."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import sabir
import sabir_session
from opentelemetry.trace import SpanKind, StatusCode
from sabir.errors import ServerFailed, StreamBroken
from sabir.vocabulary.settings import RetryPolicy, Settings
from sabir_otel.conventions import DURATION, TOKEN_USAGE
from sabir_testing.loopback import Server, head

from tests.otel.conftest import Recorded

Telling = Callable[..., None]
AT_ONCE = RetryPolicy(first_delay=0)
ANSWER: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-4.1-2030-01-01",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Rain."}}],
    "usage": {
        "prompt_tokens": 90,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 12},
    },
}
DELTA = {"id": "chatcmpl-2", "model": "gpt-4.1", "choices": [{"index": 0, "delta": {"content": "Rain"}}]}


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return "rain"


def gpt(server: Server, **given: Any) -> sabir.ModelAdapter:
    return sabir.adapter("openai.chat:gpt-4.1", api_key="sk-test", base_url=f"{server.url}/v1", **given)


def test_a_call_is_one_client_span_with_what_the_conventions_ask_for(heard: Recorded) -> None:
    asked = {"title": "out", **weather.parameters}
    settings = Settings(max_output_tokens=50, temperature=0.5, top_p=0.9, stop="END", seed=7, response_format=asked)
    settings = settings.model_copy(update={"vendor": {"openai": {"n": 2}}})
    with Server([head(), json.dumps(ANSWER).encode()]) as server, gpt(server) as llm:
        llm.complete_sync("Weather?", settings=settings)
        port = int(server.url.rpartition(":")[2])

    span = heard.span()
    assert (span.name, span.kind, span.status.status_code) == ("chat gpt-4.1", SpanKind.CLIENT, StatusCode.UNSET)
    assert heard.attributes() == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.seed": 7,
        "gen_ai.request.choice.count": 2,
        "gen_ai.output.type": "json",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "gpt-4.1-2030-01-01",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 90,
        "gen_ai.usage.output_tokens": 30,
        "gen_ai.usage.cache_read.input_tokens": 64,
        "gen_ai.usage.reasoning.output_tokens": 12,
        "server.address": "127.0.0.1",
        "server.port": port,
        "sabir.attempts": 1,
        "sabir.losses": 0,
    }
    assert heard.events() == []


async def test_asynchronous_and_streamed_calls_are_told_alike(heard: Recorded) -> None:
    llm = sabir.adapter("echo:small")
    await llm.complete("one two")
    llm.complete_sync("one two")
    await llm.send(llm.render("one two"))
    await llm.stream("one two").reply()
    llm.stream_sync("one two").reply()
    await llm.send(llm.render("one two").for_stream())

    told = [dict(span.attributes or {}) for span in heard.spans]
    plain = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "echo",
        "gen_ai.request.model": "small",
        "gen_ai.response.model": "small",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 2,
        "gen_ai.usage.output_tokens": 2,
        "sabir.attempts": 1,
        "sabir.losses": 0,
    }
    assert told == [plain] * 3 + [{**plain, "gen_ai.request.stream": True}] * 3


def test_a_conversations_span_has_what_a_prompt_cache_can_give(heard: Recorded) -> None:
    chat = sabir_session.Conversation("echo:m", settings=Settings(prompt_cache=True))
    for question, instructions in (("One?", "Be brief."), ("Two?", "Be brief."), ("Three?", "Be long.")):
        chat.instructions = instructions
        chat.ask_sync(question)
    chat.settings = None
    chat.ask_sync("Four?")

    caches = [
        {name: fact for name, fact in (span.attributes or {}).items() if "prompt_cache" in name}
        for span in heard.spans
        if span.name.startswith("chat ")
    ]
    predicted, changed = "sabir.prompt_cache.predicted_tokens", "sabir.prompt_cache.changed"
    assert [set(each) for each in caches] == [set(), {predicted}, {predicted, changed}, set()]
    assert caches[1][predicted] > 0
    assert caches[2][changed] == "messages[0]"


def test_losses_are_counted_and_their_kinds_told(heard: Recorded) -> None:
    message = sabir.user("look", sabir.image("https://example.org/a.png"), sabir.audio("https://example.org/a.wav"))
    sabir.adapter("echo:small").complete_sync(message)

    assert heard.attributes()["sabir.losses"] == 2
    assert heard.events() == [("sabir.lost", {"sabir.loss.kind": "downgraded", "sabir.loss.count": 2})]


def test_attempts_that_failed_are_events_of_one_span(heard: Recorded) -> None:
    answers = iter([(head(503), b'{"error": {"message": "secret words"}}'), (head(), json.dumps(ANSWER).encode())])

    class Turns(Server):
        def _send_script(self, connection: Any) -> None:
            self.script = next(answers)
            super()._send_script(connection)

    with Turns([]) as server, gpt(server, settings=Settings(retries=AT_ONCE)) as llm:
        llm.complete_sync("Weather?")

    failed = {"sabir.attempt": 1, "error.type": "Unavailable", "http.response.status_code": 503}
    (failure, (name, retried)) = heard.events()
    assert failure == ("sabir.attempt_failed", failed)
    assert (name, retried["sabir.attempt"]) == ("sabir.retried", 2)
    assert retried["sabir.waited"] == heard.attributes()["sabir.waited"]
    assert heard.span().status.status_code is StatusCode.UNSET
    assert heard.attributes()["sabir.attempts"] == 2
    assert "error.type" not in heard.attributes()


def test_the_last_failure_is_the_spans(heard: Recorded) -> None:
    settings = Settings(retries=RetryPolicy(attempts=2, first_delay=0), temperature=0.25)
    with pytest.raises(ServerFailed):
        sabir.adapter("echo:small", settings=settings).complete_sync("fail 500")

    span = heard.span()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ServerFailed 500")
    assert heard.attributes().items() >= {"error.type": "ServerFailed", "gen_ai.request.temperature": 0.25}.items()
    assert [name for name, _ in heard.events()] == ["sabir.attempt_failed", "sabir.retried", "sabir.attempt_failed"]
    assert "you asked for" not in str((heard.events(), heard.attributes()))
    (duration,) = heard.points(DURATION)
    assert duration.attributes["error.type"] == "ServerFailed"
    assert heard.points(TOKEN_USAGE) == []


def test_an_error_of_nobodys_is_named_with_its_module(heard: Recorded) -> None:
    llm = sabir.adapter("echo:small")
    bug = json.JSONDecodeError("secret words", "", 0)

    class Broken:
        def open_sync(self, request: object) -> None:
            raise bug

        def translate(self, error: Exception) -> None: ...

        def close(self) -> None: ...

    llm._connector.connection = Broken()  # type: ignore[assignment]
    with pytest.raises(json.JSONDecodeError):
        llm.complete_sync("x")

    assert heard.attributes()["error.type"] == "json.decoder.JSONDecodeError"
    assert heard.span().status.description == "json.decoder.JSONDecodeError"


def test_a_stream_left_early_ends_its_span_without_an_error(heard: Recorded) -> None:
    with sabir.adapter("echo:small").stream_sync("one two three") as stream:
        next(stream)
        assert heard.spans == []

    attributes = heard.attributes()
    assert (attributes["sabir.left"], "error.type" in attributes) == (True, False)
    assert heard.span().status.status_code is StatusCode.UNSET


def test_a_broken_stream_is_an_error_that_tells_what_had_come(heard: Recorded) -> None:
    script = [head(kind="text/event-stream"), f"data: {json.dumps(DELTA)}\n\n".encode()]
    with Server(script) as server, gpt(server) as llm, pytest.raises(StreamBroken):
        llm.stream_sync("Weather?").reply()

    attributes = heard.attributes()
    assert (attributes["error.type"], attributes["gen_ai.response.id"]) == ("StreamBroken", "chatcmpl-2")
    assert "gen_ai.response.finish_reasons" not in attributes


def test_an_unrecorded_span_costs_no_reading_of_the_request(telling: Telling, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody configured OpenTelemetry, installing the package changes little."""

    read: list[object] = []
    telling(tracer_provider=None, logger_provider=None, meter_provider=None)
    monkeypatch.setattr("sabir_otel.telemetry.request_settings", read.append)
    monkeypatch.setattr("sabir_otel.telemetry.request_contents", read.append)

    sabir.adapter("echo:small").complete_sync("x")

    assert read == []
