"""The smallest provider is a whole one: text, calls, results, streams, errors, losses."""

import asyncio
import json
from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir.authoring import Access, DecodeScope, InProcessConnection, InProcessResponse
from sabir.errors import CallError, InvalidRequest, RateLimited, ResponseInvalid, ServerFailed, SettingsInvalid
from sabir_echo.dialect import PLAIN
from sabir_echo.plugin import Echo

ONCE = sabir.Settings(retries=0)
SCOPE = DecodeScope(sabir.Target(provider="echo", dialect="echo.plain", model="any", endpoint="echo:"))


@sabir.option
def weather(city: str) -> str:
    "Current weather in a city."
    return f"18 °C in {city}"


@pytest.fixture
def llm() -> sabir.ModelAdapter:
    return sabir.adapter("echo:any")


def content(reply: sabir.Reply) -> list[Any]:
    """What a reply says, without the ids that every message has of its own."""
    return [(message.policy, message.payload) for message in reply.messages] + [reply.finish_reason, reply.usage]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_whatever_is_said_comes_back_unchanged(said: str) -> None:
    llm = sabir.adapter("echo:any")
    whole = llm.complete_sync(said, settings=ONCE)
    with llm.stream_sync(said, settings=ONCE) as stream:
        words = "".join(stream.text)
        streamed = stream.reply()

    assert whole.text == words == said
    assert content(streamed) == content(whole)
    assert (whole.finish_reason, whole.raw_finish_reason) == ("stop", "done")


def test_a_stream_comes_word_by_word(llm: sabir.ModelAdapter) -> None:
    with llm.stream_sync("one  two\nthree ") as stream:
        events = list(stream)

    deltas = ["text-delta"] * 3
    assert [event.type for event in events] == ["reply-start", "text-start", *deltas, "text-end", "reply-end"]
    assert [event.text for event in events if isinstance(event, sabir.BlockDelta)] == ["one  ", "two\n", "three "]


def test_an_option_is_called_answered_and_its_result_comes_back(llm: sabir.ModelAdapter) -> None:
    chat = [sabir.system("Be brief."), sabir.user('call weather {"city": "Oslo"}')]
    texts = []
    while True:
        reply = llm.complete_sync(chat, options=[weather])
        chat += reply.messages
        texts.append(reply.text)
        if not reply.option_calls:
            break
        chat += sabir.answer_sync(reply, [weather])

    assert texts == ["", "18 °C in Oslo"]
    assert [message.kind for message in chat] == ["parts", "parts", "option_call", "option_result", "parts"]
    assert reply.usage == sabir.Usage(input_tokens=10, output_tokens=4)


async def test_a_call_streams_to_the_same_reply(llm: sabir.ModelAdapter) -> None:
    said = 'call weather {"city": "Oslo"}'
    whole = await llm.complete(said, options=[weather])
    async with llm.stream(said, options=[weather]) as stream:
        events = [event async for event in stream]
        streamed = await stream.reply()

    start = next(event for event in events if isinstance(event, sabir.BlockStart))
    assert (start.kind, start.invocation_id, start.option_name) == ("option_call", "call-1", "weather")
    assert content(streamed) == content(whole)
    assert whole.finish_reason == "option_calls"


def test_text_and_calls_keep_their_order() -> None:
    call = {"call": {"id": "1", "name": "weather", "arguments": "{}"}}
    usage = {"input_tokens": 1, "output_tokens": 1}
    pieces = [{"text": "a "}, {"text": "b"}, call, {"text": "c"}, {"finish": "call", "usage": usage}]
    reply = PLAIN.decode(json.dumps(pieces).encode(), SCOPE)

    said = [message.text or (message.call and message.call.option_name) for message in reply.messages]
    assert said == ["a b", "weather", "c"]
    assert reply.finish_reason == "option_calls"


def test_broken_arguments_become_an_error_result_and_go_back_as_they_came(llm: sabir.ModelAdapter) -> None:
    chat = [sabir.user("call weather {oops")]
    reply = llm.complete_sync(chat, options=[weather])
    chat += [*reply.messages, *sabir.answer_sync(reply, [weather])]
    rendering = llm.render(chat, options=[weather])

    assert rendering.body["messages"][1]["call"]["arguments"] == "{oops"
    assert rendering.body["messages"][2]["failed"] == {"type": "invalid_arguments", "retryable": False}
    assert "the arguments are not a JSON object: '{oops'" in llm.complete_sync(chat).text


def test_an_option_that_was_not_offered_is_not_called(llm: sabir.ModelAdapter) -> None:
    assert llm.complete_sync("call weather {}").text == "call weather {}"


def test_values_and_parts_come_back_as_text(llm: sabir.ModelAdapter) -> None:
    def give(which: str) -> Any:
        return {"value": {"a": [1, None]}, "nothing": None, "parts": [sabir.user("one "), sabir.user("two")]}[which]

    offered = sabir.Option.from_function(give)
    found = {}
    for which in ("value", "nothing", "parts"):
        chat = [sabir.user(f'call give {{"which": "{which}"}}')]
        reply = llm.complete_sync(chat, options=[offered])
        chat += [*reply.messages, *sabir.answer_sync(reply, [offered])]
        found[which] = llm.complete_sync(chat).text

    assert found == {"value": '{"a":[1,null]}', "nothing": "null", "parts": "one \ntwo"}


def test_names_that_the_wire_does_not_take_are_mapped_and_mapped_back(llm: sabir.ModelAdapter) -> None:
    odd = sabir.Option.from_schema("météo!", "", {"type": "object"}, lambda: "rain")
    wire_name = llm.render("x", options=[odd]).body["options"][0]["name"]
    reply = llm.complete_sync(f"call {wire_name} {{}}", options=[odd])

    assert wire_name != "météo!"
    assert [call.call and call.call.option_name for call in reply.option_calls] == ["météo!"]


def test_words_are_counted_and_cut_off(llm: sabir.ModelAdapter) -> None:
    reply = llm.complete_sync("one two three", settings=sabir.Settings(max_output_tokens=2))

    assert (reply.text, reply.finish_reason, reply.usage.output_tokens) == ("one two ", "length", 2)
    assert llm.complete_sync("one two", settings=sabir.Settings(max_output_tokens=2)).finish_reason == "stop"


def test_every_setting_is_in_the_request(llm: sabir.ModelAdapter) -> None:
    settings = sabir.Settings(seed=1, stop="a", response_format={"type": "object"}, vendor={"acme": {"x": 1}})
    rendering = llm.render("x", settings=settings)

    assert rendering.losses == ()
    form = {"name": "output", "schema": {"type": "object"}, "description": None}
    assert rendering.body["settings"] == {"stop": ["a"], "seed": 1, "response_format": form}
    with pytest.raises(SettingsInvalid, match="echo has no settings of its own; remove loudness"):
        llm.render("x", settings=sabir.Settings(vendor={"echo": {"loudness": 3}}))


def test_media_are_named_by_a_placeholder_and_a_loss(llm: sabir.ModelAdapter) -> None:
    reply = llm.complete_sync(sabir.user("look: ", sabir.image("https://example.org/a.png", hint="the sky")))

    assert reply.text.startswith("look: [image")
    assert [loss.kind for loss in reply.losses] == ["downgraded"]


@pytest.mark.parametrize(
    ("status", "kind"), [(400, InvalidRequest), (429, RateLimited), (500, ServerFailed), (418, InvalidRequest)]
)
def test_it_fails_when_it_is_asked_to(llm: sabir.ModelAdapter, status: int, kind: type[CallError]) -> None:
    with pytest.raises(kind, match=f"you asked for {status}") as caught:
        llm.complete_sync(f"fail {status}", settings=ONCE)
    assert (caught.value.status, caught.value.provider) == (status, "echo")
    with pytest.raises(kind), llm.stream_sync(f"fail {status}", settings=ONCE) as stream:
        stream.reply()
    with pytest.raises(kind):
        asyncio.run(llm.complete(f"fail {status}", settings=ONCE))


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b"[3]", b"[{}]", b'[{"text": 3}]', b'[{"finish": "done"}]', b"[]"]
)
def test_a_body_that_is_no_answer_is_the_librarys_own_error(body: bytes) -> None:
    """Law 10: the plugin checks nothing, core reports what fits nowhere."""

    class Broken(Echo):
        def connect(self, access: Access) -> InProcessConnection:
            return InProcessConnection(lambda request: InProcessResponse(200, [body]))

    with pytest.raises(ResponseInvalid) as caught:
        sabir.ModelAdapter(Broken(), PLAIN, "any", Access()).complete_sync("x", settings=ONCE)

    assert "\n" not in str(caught.value)
