"""Chat Completions responses → replies: everything of the body is in the reply, and goes back as it came."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.scope import DecodeScope
from sabir.hooks.builders import OptionResultBuilder
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.target import Target
from sabir_openai.chat_dialect import CHAT

TARGET = Target(provider="openai", dialect="openai.chat", model="gpt-4o", endpoint="https://api.openai.com/v1")
SCOPE = DecodeScope(target=TARGET, request_id="req_1")
USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 7,
    "total_tokens": 27,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 1, "cache_write_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2, "rejected_prediction_tokens": 0},
}


def body(message: Any, finish_reason: Any = "stop", **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-4o-2024-08-06",
        "choices": [choice],
        **fields,
    }


def decode(found: Any, scope: DecodeScope = SCOPE) -> Reply:
    return CHAT.decode(json.dumps(found).encode(), scope)


def test_text_usage_and_origin() -> None:
    """The commonest answer, whole."""
    reply = decode(body({"content": "Hello."}, usage=USAGE, created=1, service_tier="default", system_fingerprint="fp"))

    assert [part for message in reply.messages for part in message.parts] == [TextPart(text="Hello.")]
    assert (reply.finish_reason, reply.raw_finish_reason) == ("stop", "stop")
    assert (reply.origin.model, reply.origin.reported_model, reply.origin.response_id) == (
        "gpt-4o",
        "gpt-4o-2024-08-06",
        "chatcmpl-1",
    )
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (20, 7, 4)
    assert (usage.cache_write_tokens, usage.reasoning_tokens, usage.details) == (3, 2, USAGE)
    assert reply.details == {"created": 1, "service_tier": "default", "system_fingerprint": "fp"}


def test_usage_of_compatibles_is_read_and_odd_figures_are_kept() -> None:
    """What an endpoint calls its cache; a figure that is no number counts as unknown, and stays in the details."""
    figures = {"prompt_tokens": 5, "completion_tokens": "2", "prompt_cache_hit_tokens": 3, "reasoning_tokens": True}
    usage = decode(body({"content": "a"}, usage=figures)).usage

    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.reasoning_tokens) == (
        5,
        None,
        3,
        None,
    )
    assert usage.details == figures


def test_calls_keep_their_ids_names_and_argument_text() -> None:
    """Names on the wire are mapped back; text that is no object marks its call (design: messages at rest)."""
    scope = DecodeScope(target=TARGET, option_names={"my_tool": "my.tool"})
    function = [("call_1", "my_tool", '{ "a" : 1 }'), ("call_2", "other", "not json"), ("call_3", "other", "")]
    calls = [
        {"id": wire_id, "type": "function", "function": {"name": name, "arguments": text}}
        for wire_id, name, text in function
    ]
    reply = decode(body({"content": None, "tool_calls": calls}, "tool_calls"), scope)
    found = [message.call for message in reply.option_calls]

    assert [(call.invocation_id, call.option_name, call.raw_arguments) for call in found if call] == [
        ("call_1", "my.tool", '{ "a" : 1 }'),
        ("call_2", "other", "not json"),
        ("call_3", "other", ""),
    ]
    assert [call.invalid_arguments for call in found if call] == [False, True, False]
    assert reply.finish_reason == "option_calls"


def test_further_fields_of_a_custom_call_are_kept() -> None:
    """Law 3: they go back with it."""
    call = {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}, "signature": "s"}
    found = decode(body({"tool_calls": [call]}, "tool_calls")).option_calls[0].call

    assert found is not None
    assert found.state == {"type": "custom", "further": {"signature": "s"}}


def test_a_custom_call_is_a_call_whose_input_is_an_argument() -> None:
    """Free text is no JSON object: it stands under `input`, and an option of that one parameter can answer it."""
    call = {"id": "call_1", "type": "custom", "custom": {"name": "math_exp", "input": "4 + 4"}}
    found = decode(body({"tool_calls": [call]}, "tool_calls")).option_calls[0].call

    assert found is not None
    assert (found.option_name, found.arguments, found.invalid_arguments) == ("math_exp", {"input": "4 + 4"}, False)


def test_a_legacy_function_call_is_a_call() -> None:
    """Without an id one is made up, so that it can be answered."""
    found = decode(body({"function_call": {"name": "joke", "arguments": '{"a":1}'}}, "function_call"))

    assert [call.call.raw_arguments for call in found.option_calls if call.call] == ['{"a":1}']
    assert found.option_calls[0].call.invocation_id
    assert found.finish_reason == "option_calls"


def test_a_refusal_is_a_part_of_its_own() -> None:
    """In the model's words."""
    reply = decode(body({"content": None, "refusal": "I cannot."}))

    assert reply.messages[0].parts == (RefusalPart(text="I cannot."),)
    assert reply.refusal == "I cannot."


def test_annotations_are_citations_of_the_text() -> None:
    """Offsets are characters; the annotation is kept verbatim; one of an unknown form as well."""
    text = "Ünder the sea (example)."
    url = {"start_index": 14, "end_index": 23, "url": "https://example.org", "title": "Sea"}
    annotations = [{"type": "url_citation", "url_citation": url}, {"type": "hint", "n": 1}]
    part = decode(body({"content": text, "annotations": annotations})).messages[0].parts[0]

    assert part == TextPart(
        text=text,
        citations=(
            Citation(
                kind="url_citation", url="https://example.org", title="Sea", start=14, end=23, source=annotations[0]
            ),
            Citation(kind="hint", source={"type": "hint", "n": 1}),
        ),
    )
    assert text[14:23] == "(example)"


def test_a_sound_is_a_medium_with_its_transcript() -> None:
    """Its type is told from its bytes, its id is the state that goes back."""
    audio = {"id": "audio_1", "data": "UklGRgAAAABXQVZF", "transcript": "Hello.", "expires_at": 9}
    reply = decode(body({"content": None, "audio": audio}))

    assert reply.messages[0].parts == (
        MediaPart(
            modality="audio",
            url="data:audio/wav;base64,UklGRgAAAABXQVZF",
            state={"audio": {"id": "audio_1", "expires_at": 9}},
        ),
        TextPart(text="Hello.", state={"transcript_of": "audio_1"}),
    )
    assert reply.text == "Hello."


def test_a_sound_of_unknown_type_says_so() -> None:
    """Raw samples have no mark."""
    part = decode(body({"audio": {"id": "a", "data": "AAAA"}})).media[0]

    assert part.url == "data:application/octet-stream;base64,AAAA"


def test_a_sound_that_is_no_base64_is_kept_as_it_came() -> None:
    """No part can carry it; nothing of the body is lost."""
    sound = {"id": "a", "data": "not base64!"}
    reply = decode(body({"audio": sound}))

    assert (reply.media, reply.details) == ((), {"choices": [{"index": 0, "message": {"audio": sound}}]})


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_of_compatibles_is_reasoning(field: str) -> None:
    """It stands first and remembers its field; `reasoning_details` are state."""
    details = [{"type": "reasoning.text", "text": "Hm.", "signature": "s"}]
    reply = decode(body({"content": "Ah.", field: "Hm.", "reasoning_details": details}))

    assert reply.messages[0].parts == (
        ReasoningPart(text="Hm.", state={"field": field, "details": details}),
        TextPart(text="Ah."),
    )


def test_reasoning_given_twice_is_taken_once() -> None:
    """Some servers repeat it under both names; a different text is kept in the details."""
    same = decode(body({"content": "a", "reasoning": "Hm.", "reasoning_content": "Hm."}))
    other = decode(body({"content": "a", "reasoning": "Ha.", "reasoning_content": "Hm."}))

    assert (same.reasoning, same.details) == ("Hm.", None)
    assert other.details == {"choices": [{"index": 0, "message": {"reasoning": "Ha."}}]}


def test_content_arrays_keep_every_chunk() -> None:
    """Text and thinking are parts; what is unknown is opaque, verbatim, in its place."""
    chunks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Ah."},
        {"type": "reference", "reference_ids": [1]},
        {"type": "text", "text": "Oh.", "cache": True},
        {"type": "refusal", "refusal": "No."},
        "bare",
    ]
    parts = decode(body({"content": chunks})).messages[0].parts

    assert parts == (
        ReasoningPart(text="Hm.", state={"chunk": chunks[0]}),
        TextPart(text="Ah."),
        OpaquePart(dialect="openai.chat", block=chunks[2]),
        TextPart(text="Oh.", state={"chunk": chunks[3]}),
        RefusalPart(text="No."),
        TextPart(text="bare"),
    )


@pytest.mark.parametrize("content", [5, {"a": 1}, {"type": "text", "text": 5}, {"type": "refusal", "refusal": []}, {}])
def test_content_that_is_no_text_is_kept_as_it_came(content: Any) -> None:
    """Alone or in an array: a block of the vendor's own, which goes back or is told of."""
    for said in (content, [content]):
        [message] = decode(body({"content": said})).messages
        assert message.parts == (OpaquePart(dialect="openai.chat", block=content),)

    rendering = Renderer(CHAT, TARGET).render([sabir.user("?"), message, sabir.user("!")])
    assert [(loss.kind, loss.path) for loss in rendering.losses] == [("dropped", "parts[0]")]


@pytest.mark.parametrize(
    "field", [{"refusal": {"a": 1}}, {"annotations": "x"}, {"tool_calls": {"a": 1}}, {"function_call": 5}]
)
def test_a_field_of_another_shape_is_in_the_details(field: dict[str, Any]) -> None:
    """What cannot be read is kept beside what can."""
    reply = decode(body({"content": "Hi.", **field}))

    assert (reply.text, reply.details) == ("Hi.", {"choices": [{"index": 0, "message": field}]})


def test_pictures_beside_the_content_are_media() -> None:
    """As gateways give them; one that no part may carry stays in the details."""
    good = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    bad = [{"type": "image_url", "image_url": {"url": "javascript:1"}}]

    assert [part.url for part in decode(body({"content": "a", "images": good})).media] == ["data:image/png;base64,AAAA"]
    assert decode(body({"content": "a", "images": bad})).details == {
        "choices": [{"index": 0, "message": {"images": bad}}]
    }


def test_what_has_no_neutral_place_is_in_the_details() -> None:
    """Log probabilities, a filter's findings, unknown fields of a message, a call of an unknown type."""
    found = body({"content": "a", "mood": "good", "tool_calls": [{"id": "1", "type": "odd", "odd": {}}]})
    found["choices"][0] |= {"logprobs": {"content": []}, "content_filter_results": {"hate": {"filtered": False}}}
    found["prompt_filter_results"] = [{"prompt_index": 0}]

    assert decode(found).details == {
        "prompt_filter_results": [{"prompt_index": 0}],
        "choices": [
            {
                "index": 0,
                "logprobs": {"content": []},
                "content_filter_results": {"hate": {"filtered": False}},
                "message": {"mood": "good", "tool_calls": [{"id": "1", "type": "odd", "odd": {}}]},
            }
        ],
    }


def test_further_choices_are_alternatives() -> None:
    """In the order of their indices, whatever their place in the body."""
    found = body({"content": "first"})
    second = {"index": 1, "message": {"content": "second"}, "finish_reason": "length", "logprobs": {"content": [1]}}
    found["choices"] = [second, *found["choices"]]
    reply = decode(found)

    assert reply.text == "first"
    assert [(other.messages[0].text, other.finish_reason) for other in reply.alternatives] == [("second", "length")]
    assert reply.details == {"choices": [{"index": 1, "logprobs": {"content": [1]}}]}


def test_a_filtered_choice_without_a_message_is_an_empty_reply() -> None:
    """As Azure answers where its filter held the text back."""
    reply = decode({"choices": [{"index": 0, "finish_reason": "content_filter"}], "model": "m", "id": "1"})

    assert (reply.messages, reply.finish_reason) == ((), "content_filter")


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    """No text of the library holds one; pairs stay what they are."""
    assert CHAT.decode(rb'{"choices":[{"message":{"content":"a\ud83d\ude00b\ud800c"}}]}', SCOPE).text == "a😀b\ufffdc"


@pytest.mark.parametrize(
    ("message", "quirks"),
    [
        ({"content": "Hello."}, ()),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, ()),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, ()),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    {"type": "odd", "x": 1},
                ],
                "reasoning_content": "So.",
                "reasoning_details": [{"type": "reasoning.encrypted", "data": "e"}],
            },
            ("echoes_reasoning",),
        ),
        (
            {
                "content": None,
                "tool_calls": [
                    {
                        "id": "c:1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{ "a":1}'},
                        "extra": {"s": 1},
                    },
                    {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "4 + 4"}},
                ],
            },
            (),
        ),
    ],
)
def test_a_decoded_reply_goes_back_as_it_came(message: dict[str, Any], quirks: tuple[str, ...]) -> None:
    """Law 3, round trip: every block, signature and unknown block; argument text byte for byte."""
    reply = decode(body(message))
    results = [OptionResultBuilder.response_to(call).success(1) for call in reply.option_calls]
    rendering = Renderer(CHAT, TARGET, quirks=frozenset(quirks)).render([sabir.user("a"), *reply.messages, *results])

    assert json.loads(rendering.body_bytes)["messages"][1] == {"role": "assistant", **message}
    assert rendering.losses == ()
