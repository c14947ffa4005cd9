"""One span a message that an actor handles: a thread's messages and its models' calls are found by one id."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from sabir_actors import AEIOUY, Actor, ActorSystem, Message, ThreadClient
from sabir_otel import message_span

from tests.otel.conftest import Recorded


def system(recorded: Recorded, model: str = "echo:small") -> ActorSystem:
    """A system whose messages are told."""
    return ActorSystem(model, spans=lambda message: message_span(message, tracer_provider=recorded.tracers))


def conversation(span: ReadableSpan) -> Any:
    """The id by which a span is joined to others."""
    return (span.attributes or {}).get("messaging.message.conversation_id")


async def a_thread(recorded: Recorded, model: str = "echo:small") -> str:
    async with system(recorded, model) as running:
        client = ThreadClient(running)
        thread_id = await client.create("user1", "Is this a secret?")
        await client.start(thread_id)
        await client.result(thread_id)
        return thread_id


def test_a_threads_messages_have_one_conversation_id(recorded: Recorded, telling: Any) -> None:
    """From its start to the result that its client is told: whoever sent them, and whichever actor handled them."""
    known = ("START_THREAD", "PROCESS_PHASE", "PROCESS_WITH_AGENT", "THREAD_RESULT")
    thread_id = asyncio.run(a_thread(recorded))
    names = Counter(span.name for span in recorded.spans if conversation(span) == thread_id)

    assert [names[each] for each in known] == [1, 6, 6, 1]


def test_a_models_call_stands_below_the_message_that_it_is_for(recorded: Recorded, telling: Any) -> None:
    """A trace is read from the start of a thread down to each call."""
    telling()
    asyncio.run(a_thread(recorded))
    by_id = {span.context.span_id: span for span in recorded.spans if span.context}
    chats = [span for span in recorded.spans if span.name == "chat small"]

    def above(span: ReadableSpan) -> list[str]:
        if span.parent is None:
            return []
        parent = by_id[span.parent.span_id]
        return [parent.name, *above(parent)]

    assert [above(chat) for chat in chats] == [["PROCESS_WITH_AGENT", "PROCESS_PHASE", "START_THREAD"]] * len(AEIOUY)


class Safe(Actor):
    """Opens for nobody."""

    async def on_open(self, message: Message) -> dict[str, Any]:
        raise RuntimeError("the code is 1234")


def test_a_span_has_the_names_of_the_conventions(recorded: Recorded) -> None:
    async def heartbeat() -> Message:
        async with system(recorded) as running:
            running.add(Safe("safe", running))
            asked = Message(type="HEARTBEAT", data={}, sender="me", receiver="safe", correlation_id="c1")
            await running.send_message(asked)
            return asked

    asked = asyncio.run(heartbeat())

    assert (recorded.span().name, recorded.span().kind) == ("HEARTBEAT", SpanKind.CONSUMER)
    assert recorded.attributes() == {
        "messaging.system": "sabir",
        "messaging.operation.name": "HEARTBEAT",
        "messaging.operation.type": "process",
        "messaging.destination.name": "safe",
        "messaging.message.id": asked.id,
        "messaging.message.conversation_id": "c1",
    }


def test_an_error_ends_the_span_as_one_by_its_code(recorded: Recorded) -> None:
    """What an exception says may quote contents, and is not told."""

    async def opened() -> None:
        async with system(recorded) as running:
            running.supervisor_id = None
            running.add(Safe("safe", running))
            await running.send_message(Message(type="OPEN", data={}, sender="me", receiver="safe"))

    asyncio.run(opened())

    assert recorded.attributes()["error.type"] == "FAILED"
    assert recorded.span().status.status_code is StatusCode.ERROR
    assert "1234" not in recorded.span().to_json()


def test_what_is_said_in_a_thread_is_not_recorded(recorded: Recorded, telling: Any) -> None:
    asyncio.run(a_thread(recorded))

    assert "secret" not in "".join(span.to_json() for span in recorded.spans)


def test_what_the_block_raises_passes_through(recorded: Recorded) -> None:
    """A fault ends the span as an error, a cancellation as left."""
    message = Message(type="OPEN", data={}, sender="me", receiver="safe")
    for fault in (RuntimeError("1234"), asyncio.CancelledError()):
        with pytest.raises(type(fault)), message_span(message, tracer_provider=recorded.tracers):
            raise fault
    failed, left = recorded.spans

    assert failed.status.status_code is StatusCode.ERROR
    assert "1234" not in failed.to_json()
    assert left.status.status_code is StatusCode.UNSET
    assert (left.attributes or {})["sabir.left"] is True


def test_telemetry_that_cannot_begin_a_span_stops_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and the message is answered."""

    def broken(message: Message) -> Any:
        raise RuntimeError("no exporter")

    async def heartbeat() -> str:
        async with ActorSystem(spans=broken) as running:
            running.add(Safe("safe", running))
            return (await running.send_message(Message(type="HEARTBEAT", data={}, sender="me", receiver="safe"))).type

    assert asyncio.run(heartbeat()) == "HEARTBEAT_RESPONSE"
    assert "spans failed at HEARTBEAT: RuntimeError: no exporter" in caplog.text
