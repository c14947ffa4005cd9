"""What the events of a Responses stream become, and that they fold to the reply."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.dialect import ServerEvent
from sabir.contract.scope import DecodeScope
from sabir.errors import SabirError
from sabir.reading.fold import Fold
from sabir.vocabulary.parts import ReasoningPart
from sabir.vocabulary.reply import BlockDelta, BlockEnd, BlockStart, Reply
from sabir.vocabulary.settings import Target
from sabir_openai.responses_dialect import RESPONSES

from tests.providers import wires
from tests.providers.wires import same

SCOPE = DecodeScope(
    target=Target(provider="openai", dialect="openai.responses", model="gpt-5.4"),
    option_names={"my_weather": "my weather"},
)
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
CALL = {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "my_weather"}
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "whole",
}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}


def say(*texts: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {**MESSAGE, **fields, "content": content}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "model": "gpt-5.4", "status": "completed", "output": output, **fields}


CREATED = {"type": "response.created", "response": response(status="in_progress")}


def added(place: int, item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def done(place: int, item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def delta(kind: str, place: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": place, "delta": text, **fields}


def completed(*output: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": response(*output, **fields)}


events, fold = partial(wires.events, SCOPE), partial(wires.fold, SCOPE)


def whole(*output: Any, **fields: Any) -> Reply:
    return RESPONSES.decode(json.dumps(response(*output, **fields)).encode(), SCOPE)


def test_a_streamed_call_that_the_client_must_answer_ends_the_reply_as_one_of_native_calls() -> None:
    custom = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_1", "name": "sum", "input": "4 + 4"}
    for wire in ([done(0, custom), completed(custom)], [completed(custom)], [done(0, custom), completed()]):
        reply = fold(CREATED, *wire)
        assert reply.finish_reason == "native_calls"
        assert same(reply, whole(custom))


def test_a_background_response_may_be_streamed() -> None:
    queued = {"type": "response.queued", "response": response(status="queued")}
    assert fold({**CREATED, "response": response(status="queued")}, queued, completed(say("Hi."))).text == "Hi."


def test_a_name_is_mapped_back_once() -> None:
    """A call that nothing announced has its option's name all the same."""
    scope = DecodeScope(target=SCOPE.target, option_names={"my_weather": "your_weather", "your_weather": "weather"})
    decoder = RESPONSES.decoder(scope)
    found = list(decoder.feed(ServerEvent(json.dumps(done(0, {**CALL, "arguments": "{}"})))))

    assert found[1] == BlockStart(index=0, kind="option_call", invocation_id="call_1", option_name="your_weather")


def test_passages_of_reasoning_are_paragraphs() -> None:
    item = {**REASONING, "summary": [{"type": "summary_text", "text": text} for text in ("First.", "Then.")]}
    found = events(
        CREATED, added(0, {**REASONING, "summary": []}), delta("reasoning_summary_text", 0, "Fir", summary_index=0),
        delta("reasoning_summary_text", 0, "st.", summary_index=0),
        delta("reasoning_summary_text", 0, "Then.", summary_index=1), done(0, item), completed(item, say(".")),
    )  # fmt: skip

    assert [event.text for event in found if isinstance(event, BlockDelta)] == ["Fir", "st.", "\n\nThen."]
    assert found[5] == BlockEnd(index=0, block=ReasoningPart(text="First.\n\nThen.", state=item))


def test_reasoning_is_taken_from_its_done_item() -> None:
    """An earlier event's encrypted content may be incomplete; the final response encrypts it anew."""
    early, late = ({**REASONING, "encrypted_content": text} for text in ("half", "anew"))
    reply = fold(CREATED, added(0, early), done(0, REASONING), done(1, say(".")), completed(late, say(".")))

    assert reply.messages[0].parts[0] == ReasoningPart(text="Hm.", state=REASONING)


def test_items_that_grow_side_by_side_keep_the_order_of_the_output() -> None:
    call, message = {**CALL, "arguments": "{}"}, say("One.", "Two.")
    wire = [
        CREATED, delta("output_text", 0, "One.", content_index=0), added(1, call),
        delta("function_call_arguments", 1, "{}"), done(1, call), delta("output_text", 0, "Two.", content_index=1),
        done(0, message), completed(message, call),
    ]  # fmt: skip

    assert same(fold(*wire), whole(message, call))


def test_a_stream_without_places_is_read_by_its_items_ids() -> None:
    call, message = {**CALL, "arguments": "{}"}, say("Hello.")
    wire = [
        CREATED, added(0, {**MESSAGE, "content": []}), delta("output_text", 0, "Hello.", item_id="msg_1"),
        added(0, CALL),
        delta("function_call_arguments", 0, "{}", item_id="fc_1"), done(0, message), done(0, call),
    ]  # fmt: skip
    for event in wire:
        event.pop("output_index", None)
    found = events(*wire, completed(message, call))

    assert [event.index for event in found if isinstance(event, BlockDelta)] == [0, 1000]
    assert same(fold(*wire, completed(message, call)), whole(message, call))


def test_without_places_an_item_is_known_by_its_id_to_the_end() -> None:
    found = [
        event for event in events(CREATED, {**done(0, SEARCH), "output_index": None}, completed(say("Hi."), SEARCH))
    ]

    blocks = [(event.index, event.block.kind) for event in found if isinstance(event, BlockEnd)]
    assert blocks == [(0, "native_call"), (1000, "text")]


def test_what_the_final_response_does_not_hold_is_kept_as_far_as_it_came() -> None:
    """Some endpoints end with an empty output, or never end an item."""
    wire = [
        CREATED, delta("reasoning_text", 0, "Hm.", content_index=0), delta("output_text", 1, "Hel", content_index=0),
        delta("refusal", 1, "No.", content_index=1), added(2, CALL), delta("function_call_arguments", 2, '{"a":1}'),
    ]  # fmt: skip
    reply = fold(*wire, completed())

    assert (reply.reasoning, reply.text, reply.refusal) == ("Hm.", "Hel", "No.")
    assert [message.call and message.call.arguments for message in reply.option_calls] == [{"a": 1}]
    assert reply.finish_reason == "content_filter"


@pytest.mark.parametrize(
    ("terminal", "fields", "reason"),
    [
        ("completed", {}, "stop"),
        ("incomplete", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ("failed", {"status": "failed"}, "error"),
    ],
)
def test_each_terminal_event_ends_the_reply(terminal: str, fields: dict[str, Any], reason: str) -> None:
    usage = {"input_tokens": 3, "output_tokens": 2}
    end = {"type": f"response.{terminal}", "response": response(say("Hi."), usage=usage, service_tier="flex", **fields)}
    reply = fold(CREATED, done(0, say("Hi.")), end, done(1, SEARCH), completed())

    assert (reply.finish_reason, reply.usage.total_tokens, reply.text) == (reason, 5, "Hi.")
    assert same(reply, whole(say("Hi."), usage=usage, service_tier="flex", **fields))


def test_events_that_only_repeat_or_are_unknown_change_nothing() -> None:
    wire = [
        CREATED,
        {"type": "response.in_progress"},
        {"type": "keepalive"},
        {"type": "response.tomorrow.delta", "delta": "x"},
    ]
    decoder = RESPONSES.decoder(SCOPE)
    silent = [event for data in ("", " ", "[DONE]") for event in decoder.feed(ServerEvent(data))]

    assert silent == []
    assert same(fold(*wire, done(0, say("Hi.")), completed(say("Hi."))), whole(say("Hi.")))


def test_an_event_may_be_named_by_its_line_alone() -> None:
    """Some endpoints leave `type` out of the data."""
    decoder = RESPONSES.decoder(SCOPE)
    wire = [("response.created", CREATED), ("response.output_text.delta", delta("output_text", 0, "Hi."))]
    found = [
        event for name, data in wire for event in decoder.feed(ServerEvent(json.dumps({**data, "type": None}), name))
    ]

    assert found[-1] == BlockDelta(index=0, kind="text", text="Hi.")


FULL = [
    CREATED, added(0, REASONING), delta("reasoning_summary_text", 0, "Hm.", summary_index=0), done(0, REASONING),
    added(1, MESSAGE), delta("output_text", 1, "Hi.", content_index=0), done(1, say("Hi.")), added(2, CALL),
    delta("function_call_arguments", 2, "{}"), done(2, {**CALL, "arguments": "{}"}), done(3, SEARCH),
    completed(REASONING, say("Hi."), {**CALL, "arguments": "{}"}, SEARCH),
]  # fmt: skip


@given(dropped=st.sets(st.integers(1, len(FULL) - 2)))
def test_whatever_events_are_missing_the_final_response_makes_up_for_them(dropped: set[int]) -> None:
    wire = [event for number, event in enumerate(FULL) if number not in dropped]

    assert same(fold(*wire), whole(REASONING, say("Hi."), {**CALL, "arguments": "{}"}, SEARCH))


@given(order=st.permutations(FULL), cut=st.integers(0, len(FULL)))
def test_events_in_any_order_give_a_reply_or_an_error_of_the_library(order: list[Any], cut: int) -> None:
    """Law 10: a block that has ended neither grows nor ends again."""
    folded = Fold(SCOPE)
    try:
        for event in events(*order[:cut]):
            folded.feed(event)
        reply = folded.partial()
    except SabirError as error:
        assert "\n" not in str(error)
        return

    assert reply.origin.provider == "openai"


def event(kind: str, name: str = "", text: str = "", place: int = 0, **fields: Any) -> dict[str, Any]:
    """An event that repeats the whole text of a passage."""
    return {"type": f"response.{kind}.done", "output_index": place, **({name: text} if name else {}), **fields}


ARGUMENTS = '{"city":"Rome"}'
TEXTS: dict[str, tuple[Any, Any, list[Any], list[Any]]] = {
    "call": (
        {**CALL, "arguments": ARGUMENTS}, {**CALL, "arguments": ""},
        [delta("function_call_arguments", 0, each) for each in ('{"city"', ':"Rome"}')],
        [event("function_call_arguments", "arguments", ARGUMENTS)],
    ),
    "call of an object": (
        {**CALL, "arguments": ARGUMENTS}, {**CALL, "arguments": "{}"},
        [delta("function_call_arguments", 0, ARGUMENTS)], [event("function_call_arguments", "arguments", ARGUMENTS)],
    ),
    "text": (
        say("Hello."), {**MESSAGE, "content": []},
        [delta("output_text", 0, each, content_index=0) for each in ("Hel", "lo.")],
        [event("output_text", "text", "Hello.", content_index=0)],
    ),
    "text of a part": (
        say("Hello."), say(""), [delta("output_text", 0, "Hello.", content_index=0)],
        [event("content_part", content_index=0, part={"type": "output_text", "text": "Hello."})],
    ),
    "refusal": (
        {**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}, {**MESSAGE, "content": None},
        [delta("refusal", 0, "No.", content_index=0)], [event("refusal", "refusal", "No.", content_index=0)],
    ),
    "summary": (
        REASONING, {**REASONING, "summary": []}, [delta("reasoning_summary_text", 0, "Hm.", summary_index=0)],
        [event("reasoning_summary_text", "text", "Hm.", summary_index=0)],
    ),
    "summary of a part": (
        REASONING, {**REASONING, "summary": []}, [delta("reasoning_summary_text", 0, "Hm.", summary_index=0)],
        [event("reasoning_summary_part", summary_index=0, part={"type": "summary_text", "text": "Hm."})],
    ),
    "reasoning": (
        {"id": "rs_1", "type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"id": "rs_1", "type": "reasoning"}, [delta("reasoning_text", 0, "Hm.", content_index=0)],
        [event("reasoning_text", "text", "Hm.", content_index=0)],
    ),
    "native call": (
        {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "sum", "input": "4 + 4"},
        {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "sum", "input": ""},
        [delta("custom_tool_call_input", 0, "4 + 4")], [event("custom_tool_call_input", "input", "4 + 4")],
    ),
}  # fmt: skip
"""An item, the same without its text, and the text in deltas, and in one event."""


def calls(reply: Reply) -> list[tuple[str, str, str | None]]:
    payloads = [message.call for message in reply.option_calls]
    return [(each.invocation_id, each.option_name, each.raw_arguments) for each in payloads if each]


def sources(full: Any, empty: Any, deltas: list[Any], repeated: list[Any]) -> dict[str, list[Any]]:
    """Streams of one item, whose text is in one source alone; items may lack fields, too."""
    bare = {name: empty.get(name) for name in ("id",)}
    return {
        "deltas": [*deltas, done(0, empty), completed(empty)],
        "deltas, and no final item": [*deltas, done(0, empty), completed()],
        "deltas, and an item of an id alone": [*deltas, done(0, bare), completed()],
        "deltas, and no end": [*deltas, completed()],
        "one event, and no end": [*repeated, completed()],
        "one event": [*repeated, done(0, empty), completed(empty)],
        "one event, and no final item": [*repeated, done(0, empty), completed()],
        "one event, after the item": [done(0, empty), *repeated, completed(empty)],
        "the item": [done(0, full), completed(empty)],
        "the item, and no final item": [done(0, full), completed()],
        "the final response": [done(0, empty), completed(full)],
        "the final response alone": [completed(full)],
    }


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_is_read_from_the_one_source_that_has_it(kind: str) -> None:
    full, empty, _, _ = TEXTS[kind]
    for source, wire in sources(*TEXTS[kind]).items():
        reply = fold(CREATED, added(0, empty), *wire)
        expected = whole(full)
        assert calls(reply) == calls(expected), source
        assert (reply.text, reply.refusal, reply.reasoning) == (expected.text, expected.refusal, expected.reasoning)
        assert (reply.finish_reason, reply.losses) == (expected.finish_reason, ()), source


def arguments(number: int) -> dict[str, Any]:
    return {**CALL, "arguments": f'{{"n":{number}}}'}


CONTRADICTIONS: dict[str, list[Any]] = {
    "deltas and the item":
        [delta("function_call_arguments", 0, '{"n":1}'), done(0, arguments(5)), completed(arguments(5))],
    "the event and the item":
        [event("function_call_arguments", "arguments", '{"n":1}'), done(0, arguments(5)), completed()],
    "the item and the final response": [done(0, arguments(1)), completed(arguments(5))],
}  # fmt: skip


@pytest.mark.parametrize("wire", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_sources_that_contradict_each_other_are_a_loss_and_the_later_one_counts(wire: list[Any]) -> None:
    reply = fold(CREATED, added(0, CALL), *wire)

    assert calls(reply) == [("call_1", "my weather", '{"n":5}')]
    assert [(loss.kind, loss.path) for loss in reply.losses] == [("dropped", "output[0].arguments")]


def test_a_text_that_ended_and_the_final_response_contradicts_is_a_loss() -> None:
    reply = fold(CREATED, done(0, say("Hello.")), completed(say("Good bye.")))

    assert (reply.text, [loss.path for loss in reply.losses]) == ("Hello.", ["output[0].content[0]"])


@pytest.mark.parametrize("more", ['{"city": "Rome"}', '{"city":"Ro', '{"city":"Rome"', "", "{}"])
def test_a_less_complete_form_of_arguments_is_no_contradiction(more: str) -> None:
    reply = fold(CREATED, done(0, {**CALL, "arguments": ARGUMENTS}), completed({**CALL, "arguments": more}))

    assert [each.call and each.call.arguments for each in reply.option_calls] == [{"city": "Rome"}]
    assert reply.losses == ()
