"""One span a message that an actor handles: a thread's messages and its models' calls are found by one id."""

from collections import Counter
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from sabir_actors import AEIOUY, Actor, ActorSystem, Message, ThreadClient
from sabir_otel import message_span

from tests.otel.conftest import Recorded


def system(recorded: Recorded, model: str = "echo:small") -> ActorSystem:
    return ActorSystem(model, spans=lambda message: message_span(message, tracer_provider=recorded.tracers))


async def test_a_models_call_stands_below_the_messages_of_its_thread(heard: Recorded) -> None:
    """A trace is read from the start of a thread down to each call, all found by one id; nothing said is heard."""

    async with system(heard) as running:
        client = ThreadClient(running)
        thread_id = await client.create("user1", "Is this a secret?")
        await client.start(thread_id)
        await client.result(thread_id)

    def above(span: ReadableSpan) -> list[str]:
        if span.parent is None:
            return []
        parent = by_id[span.parent.span_id]
        return [parent.name, *above(parent)]

    by_id = {span.context.span_id: span for span in heard.spans if span.context}
    conversation = "messaging.message.conversation_id"
    names = Counter(span.name for span in heard.spans if (span.attributes or {}).get(conversation) == thread_id)
    known = ("START_THREAD", "PROCESS_PHASE", "PROCESS_WITH_AGENT", "THREAD_RESULT")
    chats = [above(span) for span in heard.spans if span.name == "chat small"]

    assert [names[each] for each in known] == [1, 6, 6, 1]
    assert chats == [
        [f"invoke_agent {phase}", "PROCESS_WITH_AGENT", "PROCESS_PHASE", "invoke_workflow aeiou-y", "START_THREAD"]
        for phase in AEIOUY
    ]
    assert "secret" not in "".join(span.to_json() for span in heard.spans)


class Safe(Actor):
    async def on_open(self, message: Message) -> dict[str, Any]:
        raise RuntimeError("the code is mellon")


def sent(message_type: str) -> Message:
    return Message(type=message_type, data={}, sender="me", receiver="safe", correlation_id="c1")


async def test_a_span_has_the_names_of_the_conventions(recorded: Recorded) -> None:
    asked = sent("HEARTBEAT")
    async with system(recorded) as running:
        running.add(Safe("safe", running))
        await running.send_message(asked)

    assert (recorded.span().name, recorded.span().kind) == ("HEARTBEAT", SpanKind.CONSUMER)
    assert recorded.attributes() == {
        "messaging.system": "sabir",
        "messaging.operation.name": "HEARTBEAT",
        "messaging.operation.type": "process",
        "messaging.destination.name": "safe",
        "messaging.message.id": asked.id,
        "messaging.message.conversation_id": "c1",
    }


async def test_an_error_ends_the_span_as_one_by_its_code(recorded: Recorded) -> None:
    async with system(recorded) as running:
        running.supervisor_id = None
        running.add(Safe("safe", running))
        await running.send_message(sent("OPEN"))

    assert recorded.attributes()["error.type"] == "FAILED"
    assert recorded.span().status.status_code is StatusCode.ERROR
    assert "mellon" not in recorded.span().to_json()


async def test_telemetry_that_cannot_begin_a_span_stops_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    def broken(message: Message) -> Any:
        raise RuntimeError("no exporter")

    async with ActorSystem(spans=broken) as running:
        running.add(Safe("safe", running))
        assert (await running.send_message(sent("HEARTBEAT"))).type == "HEARTBEAT_RESPONSE"
    assert "spans failed at HEARTBEAT: RuntimeError: no exporter" in caplog.text
