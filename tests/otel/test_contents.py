"""What was said is recorded where it was asked for, in the conventions' shape, and nowhere else."""

import json
import logging
from collections.abc import Callable
from typing import Any, get_args

import pytest
import sabir
from sabir.errors import CallError, SettingsInvalid
from sabir.vocabulary.messages import Message, OptionCallPayload
from sabir.vocabulary.parts import OpaquePart, ReasoningPart, RefusalPart
from sabir.vocabulary.reply import Alternative, Reply
from sabir_otel import Contents, Telemetry
from sabir_otel.contents import CONTENTS_VALUES, CONTENTS_VARIABLE, EVENTS_VARIABLE, input_messages, output_messages

from tests.otel.conftest import Recorded

Telling = Callable[..., None]
SECRET = "sesame"
CONTENT = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions")


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return "rain"


def called() -> Message:
    payload = OptionCallPayload(invocation_id="c1", option_name="weather", arguments={"city": "Rome"})
    return Message(policy="llm", payload=payload)


def conversation() -> list[Message]:
    """A call and its result, in the words of the echo's wire."""
    call = called()
    return [sabir.system("Be brief."), sabir.user("Rain?"), call, weather.answer_sync(call), sabir.user(SECRET)]


CALLED = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}}
SENT = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": "Rain?"}]},
    {"role": "assistant", "parts": [CALLED]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain"}]},
    {"role": "user", "parts": [{"type": "text", "content": SECRET}]},
]  # fmt: skip
CAME = [{"role": "assistant", "parts": [{"type": "text", "content": SECRET}], "finish_reason": "stop"}]
OFFERED = [{"type": "function", "name": "weather"}]


def everything(recorded: Recorded) -> str:
    spans = [span.to_json() for span in recorded.spans]
    return "".join([*spans, *(str((each.attributes, each.body)) for each in recorded.records())])


def test_contents_are_recorded_nowhere_unasked(heard: Recorded) -> None:
    llm = sabir.adapter("echo:small")
    llm.complete_sync(conversation(), options=[weather])
    llm.stream_sync(SECRET).reply()
    with llm.stream_sync(f"{SECRET} {SECRET}") as stream:
        next(stream)
    with pytest.raises(CallError):
        llm.complete_sync([sabir.user(SECRET), sabir.user("fail 400")])
    llm.complete_sync('call weather {"city": "Rome"}', options=[weather])

    assert len(heard.spans) == len(heard.records()) == 5
    assert (heard.spans[-1].attributes or {})["gen_ai.response.finish_reasons"] == ("tool_call",)
    told = everything(heard)
    assert all(word not in told for word in (SECRET, "weather", "brief", "Rome", *CONTENT))


@pytest.mark.parametrize("contents", get_args(Contents))
def test_contents_are_recorded_where_they_are_asked_for(
    recorded: Recorded, telling: Telling, monkeypatch: pytest.MonkeyPatch, contents: Contents
) -> None:
    telling(contents=contents)
    monkeypatch.setenv(CONTENTS_VARIABLE, "SPAN_AND_EVENT")
    sabir.adapter("echo:small").complete_sync(conversation(), options=[weather])

    on_span = {name: json.loads(value) for name, value in recorded.attributes().items() if name in CONTENT}
    (record,) = recorded.records()
    on_event = {name: json.loads(json.dumps(record.attributes[name])) for name in CONTENT if name in record.attributes}
    expected = {"gen_ai.input.messages": SENT, "gen_ai.output.messages": CAME, "gen_ai.tool.definitions": OFFERED}
    assert on_span == (expected if "span" in contents else {})
    assert on_event == (expected if "event" in contents else {})


@pytest.mark.parametrize("value", [*CONTENTS_VALUES, "sometimes"])
def test_the_environment_asks_for_contents(
    heard: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    value: str,
) -> None:
    monkeypatch.setenv(CONTENTS_VARIABLE, value.lower())
    with caplog.at_level(logging.WARNING, "sabir"):
        sabir.adapter("echo:small").complete_sync("x")

    (record,) = heard.records()
    found = ("gen_ai.input.messages" in heard.attributes(), "gen_ai.input.messages" in record.attributes)
    wanted = {"none": (False, False), "span": (True, False), "event": (False, True), "span_and_event": (True, True)}
    assert found == wanted[CONTENTS_VALUES.get(value, "none")]
    logged = "CAPTURE_MESSAGE_CONTENT is 'SOMETIMES'; expected one of NO_CONTENT, SPAN_ONLY" in caplog.text
    assert logged == (value == "sometimes")


def test_an_error_is_told_in_its_words_where_contents_are(recorded: Recorded, telling: Telling) -> None:
    telling(contents="span")
    with pytest.raises(CallError) as caught:
        sabir.adapter("echo:small").complete_sync("fail 400")

    assert recorded.span().status.description == str(caught.value)
    assert recorded.events()[0][1]["exception.message"] == str(caught.value)


@pytest.mark.parametrize(("given", "variable"), [({"events": "off"}, ""), ({}, "false")])
def test_events_can_be_turned_off(
    recorded: Recorded, telling: Telling, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], variable: str
) -> None:
    telling(**given)
    monkeypatch.setenv(EVENTS_VARIABLE, variable)
    sabir.adapter("echo:small").complete_sync("x")

    assert (len(recorded.spans), recorded.records()) == (1, [])


@pytest.mark.parametrize("given", [{"contents": "all"}, {"events": "yes"}])
def test_another_word_is_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(SettingsInvalid, match=f"^{name} is '.*; expected "):
        Telemetry(**given)


def test_an_event_says_what_the_span_says_and_belongs_to_it(heard: Recorded) -> None:
    sabir.adapter("echo:small").complete_sync("x")

    (record,) = heard.records()
    span = heard.span()
    assert record.event_name == "gen_ai.client.inference.operation.details"
    assert dict(record.attributes) == heard.attributes()
    assert (record.trace_id, record.span_id) == (span.context.trace_id, span.context.span_id)


def test_instructions_stand_apart_where_the_wire_has_a_place_for_them() -> None:
    from sabir.contract.dialect import DecodedHistory
    from sabir_otel.contents import _history_attributes

    history = DecodedHistory(messages=(sabir.system("Be brief."), sabir.user("Rain?")))

    assert dict(_history_attributes(history, instructions=1)) == {
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Rain?"}]}],
    }


def test_media_are_named_without_their_bytes() -> None:
    message = sabir.user(
        sabir.image("https://example.org/a.png"),
        sabir.document("provider-file:openai/file-1"),
        sabir.image(b"\x89PNG\r\n\x1a\n" + bytes(30)),
    )

    assert input_messages([message])[0]["parts"] == [
        {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
        {"type": "file", "modality": "document", "file_id": "file-1"},
        {"type": "media", "mime_type": "image/png", "modality": "image", "characters": 52},
    ]


def test_an_answer_is_one_message_however_many_hold_it() -> None:
    opaque = OpaquePart(dialect="acme.talk", block={"secret": SECRET})
    said = sabir.assistant(ReasoningPart(text="Hm."), "Look.", RefusalPart(text="No."), opaque)
    origin = sabir.Origin(provider="acme", dialect="acme.talk", endpoint="", model="m")
    other = Alternative(messages=(sabir.assistant("Or so."),), finish_reason="native_calls")
    reply = Reply(messages=(said, called()), finish_reason="option_calls", origin=origin, alternatives=(other,))

    assert output_messages(reply) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm."},
                {"type": "text", "content": "Look."},
                {"type": "refusal", "content": "No."},
                {"type": "opaque", "dialect": "acme.talk"},
                CALLED,
            ],
            "finish_reason": "tool_call",
        },
        {"role": "assistant", "parts": [{"type": "text", "content": "Or so."}], "finish_reason": "tool_call"},
    ]
