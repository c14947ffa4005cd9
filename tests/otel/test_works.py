"""One trace for each answer of a conversation, with its options and calls, however it is asked and however it ends."""

import asyncio
import contextvars
import gc
import json
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sabir
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from sabir.authoring import AgentWork, announce_work
from sabir.errors import ServerFailed
from sabir.hooks import announcing
from sabir_actors import AEIOUY, ActorSystem, ThreadClient
from sabir_otel import Telemetry
from sabir_otel.conventions import DURATION, TOKEN_USAGE
from sabir_session import ApprovalPending, Conversation, Prompt, evaluate_sync
from sabir_testing.loopback import Server, head

from tests.otel.conftest import Recorded
from tests.otel.trees import trace_ids, tree

Telling = Callable[..., None]
QUESTION = 'call weather {"city": "Rome"}\ncall broken {}'
TREE = ["invoke_agent", "  chat m", "  execute_tool weather", "  execute_tool broken", "  chat m"]


def weather(city: str) -> str:
    """Current weather in a city."""
    return f"rain in {city}"


def broken() -> str:
    """Fail."""
    raise LookupError("the key is mellon")


def chat(**how: Any) -> Conversation:
    return Conversation("echo:m", **{"options": [weather, broken], **how})


async def ask_sync(conversation: Conversation) -> None:
    await asyncio.to_thread(conversation.ask_sync, QUESTION)


async def ask(conversation: Conversation) -> None:
    await conversation.ask(QUESTION)


async def stream_sync(conversation: Conversation) -> None:
    with conversation.stream_sync(QUESTION) as events:
        for _ in events:
            assert not get_current_span().get_span_context().is_valid


async def stream(conversation: Conversation) -> None:
    async with conversation.stream(QUESTION) as events:
        async for _ in events:
            assert not get_current_span().get_span_context().is_valid


def named(recorded: Recorded, name: str) -> list[ReadableSpan]:
    return [span for span in recorded.spans if span.name == name]


def attributes(recorded: Recorded, name: str) -> dict[str, Any]:
    (span,) = named(recorded, name)
    return dict(span.attributes or {})


@pytest.mark.parametrize("way", [ask_sync, ask, stream_sync, stream])
async def test_an_answer_with_two_options_is_one_trace(
    heard: Recorded, way: Callable[[Conversation], Awaitable[None]]
) -> None:
    await way(chat())

    assert tree(heard.spans) == TREE
    assert len(trace_ids(heard.spans)) == 1
    assert {span.kind for span in heard.spans if span.name != "chat m"} == {SpanKind.INTERNAL}
    assert not get_current_span().get_span_context().is_valid


def test_the_callers_span_is_the_parent_and_otherwise_each_answer_has_a_trace(heard: Recorded, tmp_path: Path) -> None:
    """The id of the conversation joins the traces: the name of a conversation in a store."""
    with chat(keep=tmp_path / "chats.db", name="trip") as conversation:
        conversation.ask_sync("Hello.")
        conversation.ask_sync("Hello again.")
        apart = heard.spans
        with heard.tracers.get_tracer("test").start_as_current_span("caller"):
            conversation.ask_sync("And now?")
            conversation.ask_sync("And then?")
    joined = [span for span in heard.spans if span not in apart]

    assert tree(apart) == ["invoke_agent", "  chat m"] * 2
    assert tree(joined) == ["caller", *["  invoke_agent", "    chat m"] * 2]
    assert (len(trace_ids(apart)), len(trace_ids(joined))) == (2, 1)
    assert {(span.attributes or {}).get("gen_ai.conversation.id") for span in apart} == {"trip"}


class Prices:
    """Every reply costs half a dollar."""

    @sabir.hookimpl
    def sabir_reply_cost(self, reply: sabir.Reply) -> Decimal:
        return Decimal("0.5")


class Turns(Server):
    """A server with a script for each request."""

    def __init__(self, *scripts: list[bytes]) -> None:
        self._scripts = iter(scripts)
        super().__init__([])

    def _send_script(self, connection: Any) -> None:
        self.script = next(self._scripts)
        super()._send_script(connection)


def reply(content: str | None, *calls: str) -> list[bytes]:
    function = {"name": "weather", "arguments": '{"city": "Rome"}'}
    tool_calls = [{"id": each, "type": "function", "function": function} for each in calls]
    message = {"role": "assistant", "content": content, **({"tool_calls": tool_calls} if calls else {})}
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
    usage = {"prompt_tokens": 90, "completion_tokens": 30}
    body = {"id": "c-1", "object": "chat.completion", "model": "gpt-4.1", "choices": [choice], "usage": usage}
    return [head(), json.dumps(body).encode()]


@pytest.fixture
def priced(recorded: Recorded, telling: Telling, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    telling(Prices())
    hooks = announcing.installed_hooks()
    monkeypatch.setattr("sabir_otel.works.installed_hooks", lambda: hooks)
    return recorded


def test_an_agents_span_has_the_sums_of_its_calls(priced: Recorded) -> None:
    """Tokens, cost, losses by kind, retries and the seconds between attempts."""
    settings = sabir.Settings(retries=sabir.RetryPolicy(first_delay=0.05))
    question = sabir.user("Weather?", sabir.video("https://example.org/sky.mp4"))
    with (
        Turns([head(503), b"{}"], reply(None, "a"), reply("Rain.")) as server,
        sabir.adapter("openai.chat:gpt-4.1", api_key="k", base_url=f"{server.url}/v1", settings=settings) as llm,
    ):
        evaluate_sync(llm, Prompt(messages=[question]), options=[weather], agent="forecaster")

    assert tree(priced.spans)[1:] == ["  chat gpt-4.1", "  execute_tool weather", "  chat gpt-4.1"]
    (agent,) = named(priced, "invoke_agent forecaster")
    sums = dict(agent.attributes or {})
    waited, conversation = sums.pop("sabir.waited"), sums.pop("gen_ai.conversation.id")
    first, second = ((dict(span.attributes or {}), span.events) for span in named(priced, "chat gpt-4.1"))
    assert sums == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "forecaster",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.usage.input_tokens": 180,
        "gen_ai.usage.output_tokens": 60,
        "sabir.calls": 2,
        "sabir.cost": 1.0,
        "sabir.losses": 2,
        "sabir.retries": 1,
    }
    assert [(event.name, dict(event.attributes or {})) for event in agent.events] == [
        ("sabir.lost", {"sabir.loss.kind": "downgraded", "sabir.loss.count": 2})
    ]
    assert {first[0]["gen_ai.conversation.id"], second[0]["gen_ai.conversation.id"]} == {conversation}
    assert (first[0]["sabir.cost"], first[0]["sabir.attempts"]) == (0.5, 2)
    assert [event.name for event in first[1]] == ["sabir.attempt_failed", "sabir.retried", "sabir.lost"]
    assert first[0]["sabir.waited"] == waited == (first[1][1].attributes or {})["sabir.waited"]
    assert 0 < waited < 5


def test_an_option_that_failed_is_an_error_of_its_span_alone(heard: Recorded) -> None:
    chat().ask_sync(QUESTION)

    statuses = {span.name: (span.status.status_code, span.status.description) for span in heard.spans}
    assert statuses.pop("execute_tool broken") == (StatusCode.ERROR, "LookupError")
    assert set(statuses.values()) == {(StatusCode.UNSET, None)}
    assert attributes(heard, "execute_tool broken")["error.type"] == "LookupError"
    found = attributes(heard, "execute_tool weather")
    assert found.pop("gen_ai.conversation.id") and found.pop("gen_ai.tool.call.id")
    assert found == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.type": "function",
    }


@pytest.mark.parametrize("contents", ["none", "event", "span"])
def test_arguments_and_results_are_recorded_only_on_request(
    recorded: Recorded, telling: Telling, contents: str
) -> None:
    telling(contents=contents)
    chat().ask_sync(QUESTION)

    texts = "".join(span.to_json() for span in recorded.spans)
    assert ("Rome" in texts, "mellon" in texts) == (contents == "span", contents == "span")
    if contents == "span":
        found = attributes(recorded, "execute_tool weather")
        assert json.loads(found["gen_ai.tool.call.arguments"]) == {"city": "Rome"}
        assert json.loads(found["gen_ai.tool.call.result"]) == "rain in Rome"
        (failed,) = named(recorded, "execute_tool broken")
        assert failed.status.description == "the key is mellon"


def test_a_failed_call_ends_the_agent_as_an_error(heard: Recorded) -> None:
    settings = sabir.Settings(retries=sabir.RetryPolicy(attempts=1))
    with pytest.raises(ServerFailed):
        Conversation("echo:m", settings=settings).ask_sync("fail 500")

    assert tree(heard.spans) == ["invoke_agent", "  chat m"]
    assert [span.status.status_code for span in heard.spans] == [StatusCode.ERROR] * 2
    assert attributes(heard, "invoke_agent")["error.type"] == "ServerFailed"
    assert "you asked for" not in "".join(span.to_json() for span in heard.spans)


async def test_a_cancelled_answer_was_left_and_did_not_fail(heard: Recorded) -> None:
    begun = asyncio.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    asking = asyncio.ensure_future(Conversation("echo:m", options=[wait]).ask("call wait {}"))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert tree(heard.spans) == ["invoke_agent", "  chat m", "  execute_tool wait"]
    assert {span.status.status_code for span in heard.spans} == {StatusCode.UNSET}
    assert attributes(heard, "invoke_agent")["sabir.left"] is True
    assert attributes(heard, "execute_tool wait")["sabir.left"] is True


def test_an_answer_that_waits_for_a_person_did_not_fail(heard: Recorded) -> None:
    with pytest.raises(ApprovalPending):
        chat(approve=lambda call: "wait").ask_sync(QUESTION)

    assert attributes(heard, "invoke_agent")["sabir.waiting"] is True
    assert {span.status.status_code for span in heard.spans} == {StatusCode.UNSET}


def test_an_abandoned_sync_stream_ends_its_spans(heard: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing stays current for the reader, and OpenTelemetry does not complain."""
    events = iter(chat().stream_sync("Hello there, you all!"))
    next(events)
    next(events)
    del events
    gc.collect()

    assert tree(heard.spans) == ["invoke_agent", "  chat m"]
    assert attributes(heard, "invoke_agent")["sabir.left"] is True
    assert attributes(heard, "chat m")["sabir.left"] is True
    assert not get_current_span().get_span_context().is_valid
    assert caplog.messages == []


async def test_an_abandoned_stream_ends_its_spans(heard: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    async def read_two() -> None:
        events = aiter(chat().stream("Hello there, you all!"))
        await anext(events)
        await anext(events)

    await read_two()
    gc.collect()
    async with asyncio.timeout(5):
        while len(heard.spans) < 2:
            await asyncio.sleep(0.01)

    assert tree(heard.spans) == ["invoke_agent", "  chat m"]
    assert attributes(heard, "invoke_agent")["sabir.left"] is True
    assert not get_current_span().get_span_context().is_valid
    assert caplog.messages == []


def test_a_work_that_ends_in_another_context_leaves_nothing_current(
    heard: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    """As when an event loop ends, and the garbage collector closes the coroutine of a task."""

    async def work_on() -> None:
        with announce_work(AgentWork("agent", "lost")):
            await Suspension()

    coroutine = work_on()
    contextvars.copy_context().run(coroutine.send, None)
    with heard.tracers.get_tracer("test").start_as_current_span("other") as other:
        coroutine.close()
        assert get_current_span() is other

    assert sorted(tree(heard.spans)) == ["invoke_agent lost", "other"]
    assert caplog.messages == []


class Suspension:
    def __await__(self) -> Iterator[None]:
        yield


def test_works_are_measured_by_operation_and_name(heard: Recorded) -> None:
    """The tokens are measured once, at the calls."""
    chat().ask_sync(QUESTION)

    durations = {
        (point.attributes["gen_ai.operation.name"], point.attributes.get("gen_ai.tool.name")): point
        for point in heard.points(DURATION)
    }
    assert {name: point.count for name, point in durations.items()} == {
        ("invoke_agent", None): 1,
        ("chat", None): 2,
        ("execute_tool", "weather"): 1,
        ("execute_tool", "broken"): 1,
    }
    assert durations["execute_tool", "broken"].attributes["error.type"] == "LookupError"
    assert durations["invoke_agent", None].attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "echo",
        "gen_ai.request.model": "m",
    }
    assert {point.attributes["gen_ai.operation.name"] for point in heard.points(TOKEN_USAGE)} == {"chat"}


async def test_answers_at_once_keep_their_traces_apart(heard: Recorded) -> None:
    await asyncio.gather(*(chat().ask(QUESTION) for _ in range(20)))

    traces = trace_ids(heard.spans)
    assert len(traces) == 20
    for trace_id in traces:
        spans = [span for span in heard.spans if span.get_span_context().trace_id == trace_id]
        assert sorted(tree(spans)) == sorted(TREE)


def test_two_telemetries_have_a_tree_each(recorded: Recorded, telling: Telling) -> None:
    second = Recorded()
    telling(Telemetry(**second.providers()))
    with recorded.tracers.get_tracer("test").start_as_current_span("caller"):
        chat().ask_sync(QUESTION)

    assert tree(recorded.spans) == ["caller", *(f"  {line}" for line in TREE)]
    assert tree(second.spans) == TREE
    assert not get_current_span().get_span_context().is_valid
    second.shutdown()


async def test_a_thread_is_one_trace(heard: Recorded) -> None:
    """Also without `spans=`: a workflow of agents, one for each phase."""
    async with ActorSystem("echo:m") as system:
        client = ThreadClient(system)
        thread_id = await client.create("user1", "Is this a secret?")
        await client.start(thread_id)
        await client.result(thread_id)

    agents = [[f"  invoke_agent {phase}", "    chat m"] for phase in AEIOUY]
    assert tree(heard.spans) == ["invoke_workflow aeiou-y", *(line for agent in agents for line in agent)]
    assert {(span.attributes or {}).get("gen_ai.conversation.id") for span in heard.spans} == {thread_id}
    assert "secret" not in "".join(span.to_json() for span in heard.spans)
    assert attributes(heard, "invoke_workflow aeiou-y")["sabir.calls"] == len(AEIOUY)


def test_a_telemetry_without_a_provider_hides_no_span_of_the_program(recorded: Recorded, telling: Telling) -> None:
    telling(tracer_provider=trace.NoOpTracerProvider())
    inside: list[str] = []

    def look() -> None:
        inside.append(getattr(get_current_span(), "name", ""))

    with recorded.tracers.get_tracer("test").start_as_current_span("caller"):
        Conversation("echo:m", options=[look]).ask_sync("call look {}")

    assert inside == ["caller"]
