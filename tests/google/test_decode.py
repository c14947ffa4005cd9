"""What a whole response becomes."""

import json
from typing import Any

import pytest
from google.genai import types
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart, OpaquePart, ReasoningPart, TextPart
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.target import Target
from sabir_google.decode import FINISH_REASONS
from sabir_google.dialect import GENERATE_CONTENT

SCOPE = DecodeScope(
    target=Target(provider="google", dialect=GENERATE_CONTENT.name, model="gemini-3-pro", endpoint="https://e.org")
)


def response(*parts: Any, reason: str = "STOP", **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason, **candidate}]}


def decode(body: Any, scope: DecodeScope = SCOPE) -> Reply:
    return GENERATE_CONTENT.decode(json.dumps(body).encode(), scope)


def only(reply: Reply) -> Message:
    (message,) = reply.messages
    return message


def test_a_text_and_what_stands_around_it() -> None:
    """Origin, reason, figures; what has no neutral place is in the details."""
    reply = decode(
        {
            **response({"text": "Hi."}, index=0, avgLogprobs=-0.5),
            "modelVersion": "gemini-3-pro-001",
            "responseId": "r-1",
            "createTime": "now",
        }
    )

    assert reply.text == "Hi."
    assert (reply.finish_reason, reply.raw_finish_reason) == ("stop", "STOP")
    assert (reply.origin.model, reply.origin.reported_model) == ("gemini-3-pro", "gemini-3-pro-001")
    assert reply.origin.response_id == "r-1"
    assert reply.details == {"createTime": "now", "candidates": [{"index": 0, "avgLogprobs": -0.5}]}


def test_a_plain_reply_has_no_details() -> None:
    """An index of nought says nothing."""
    assert decode(response({"text": "Hi."}, index=0)).details is None


def test_every_part_keeps_what_it_held_beside() -> None:
    """Law 3: the signature belongs to its part; a thought without one has no state."""
    reply = decode(
        response(
            {"text": "Hm.", "thought": True},
            {"text": "So.", "thoughtSignature": "c2ln"},
            {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "c2lu"},
            {"text": "", "thoughtSignature": "c2l0"},
        )
    )

    assert only(reply).parts == (
        ReasoningPart(text="Hm."),
        TextPart(text="So.", state={"part": {"thoughtSignature": "c2ln"}}),
        MediaPart(
            modality="image",
            url="data:image/png;base64,iVBORw0KGgo=",
            state={"part": {"thoughtSignature": "c2lu"}},
        ),
        TextPart(text="", state={"part": {"thoughtSignature": "c2l0"}}),
    )


def test_calls_with_and_without_an_id() -> None:
    """Where the wire has none, one is made up that the state does not hold, so that it is never sent."""
    scope = DecodeScope(SCOPE.target, option_names={"my_tool_1": "my.tool"})
    reply = decode(
        response(
            {"functionCall": {"name": "my_tool_1", "args": {"b": 1, "a": 2}, "id": "fc-1"}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "add"}},
        ),
        scope,
    )
    first, second = (message.call for message in reply.option_calls)

    assert reply.finish_reason == "option_calls"
    assert first is not None
    assert second is not None
    assert (first.invocation_id, first.option_name, first.arguments) == ("fc-1", "my.tool", {"a": 2, "b": 1})
    assert first.state == {"part": {"thoughtSignature": "c2ln"}, "call": {"id": "fc-1"}}
    assert (second.option_name, second.arguments, second.state) == ("add", {}, None)
    assert second.invocation_id


def test_what_the_vendors_server_did_is_opaque_and_paired_by_its_id() -> None:
    """A call and its output are sent together or not at all; without an id nothing tells that they are two halves."""
    code = {"executableCode": {"id": "x1", "language": "PYTHON", "code": "1"}, "thoughtSignature": "c2ln"}
    output = {"codeExecutionResult": {"id": "x1", "outcome": "OUTCOME_OK", "output": "1"}}
    bare = {"executableCode": {"language": "PYTHON", "code": "2"}}
    nameless = {"": {"id": "x1"}}
    parts = only(decode(response(code, output, bare, {"hologram": 1}, nameless))).parts
    opens, closes, alone, strange, last = parts

    assert isinstance(last, OpaquePart)
    assert (last.block, last.pair_id) == (nameless, None)
    assert isinstance(opens, OpaquePart)
    assert isinstance(closes, OpaquePart)
    assert isinstance(alone, OpaquePart)
    assert isinstance(strange, OpaquePart)
    assert [(each.pair, each.pair_id) for each in (opens, closes, alone, strange)] == [
        ("opens", "x1"), ("closes", "x1"), (None, None), (None, None),
    ]  # fmt: skip
    assert [each.block for each in (opens, closes, alone, strange)] == [code, output, bare, {"hologram": 1}]


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "image/svg+xml", "data": "AAAA"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thought": True},
        {"inlineData": {"mimeType": "image/png"}},
        {"text": 7},
        "words",
    ],
)
def test_a_part_that_no_block_can_be_stays_as_it_is(part: Any) -> None:
    """Of a type that no medium may carry, drawn while thinking, or of no shape that is known."""
    (found,) = only(decode(response(part))).parts

    assert isinstance(found, OpaquePart)
    assert found.block == part


def test_empty_parts_say_nothing() -> None:
    """They may not be sent back either."""
    assert only(decode(response({"text": "a"}, {}, {"text": ""}))).parts == (TextPart(text="a"),)


def test_every_reason_that_the_sdk_names_is_known() -> None:
    """Those that say nothing aside: they are `other`, as is a reason of tomorrow."""
    unsaid = {"FINISH_REASON_UNSPECIFIED", "OTHER"}
    assert {each.value for each in types.FinishReason} - FINISH_REASONS.keys() == unsaid


def test_a_blocked_prompt_is_a_filtered_reply() -> None:
    """No candidates are no exception: the details say what was found."""
    feedback = {"blockReason": "SAFETY", "safetyRatings": [{"category": "HARM", "probability": "HIGH"}]}
    reply = decode({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 4}})

    assert (reply.messages, reply.finish_reason, reply.raw_finish_reason) == ((), "content_filter", "SAFETY")
    assert reply.details == {
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [{"category": "HARM", "probability": "HIGH"}]}
    }
    assert reply.usage.input_tokens == 4


def test_further_candidates_are_alternatives() -> None:
    """The first is the reply; each has its own reason."""
    body = response({"text": "a"})
    body["candidates"] += response({"text": "b"}, {"functionCall": {"name": "add", "args": {}}}, index=1)["candidates"]
    reply = decode(body)

    assert reply.text == "a"
    (other,) = reply.alternatives
    assert (other.finish_reason, other.raw_finish_reason) == ("option_calls", "STOP")
    assert [message.kind for message in other.messages] == ["parts", "option_call"]
    assert reply.details == {"candidates": [{}, {"index": 1}]}


def test_figures_of_the_vendors_tools_are_input_and_thoughts_are_output() -> None:
    """The vendor counts both apart, and its total holds them."""
    figures = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "cachedContentTokenCount": 8,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 20,
        "totalTokenCount": 38,
    }
    usage = decode({**response({"text": "a"}), "usageMetadata": figures}).usage

    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (15, 23, 38)
    assert (usage.cache_read_tokens, usage.reasoning_tokens, usage.details) == (8, 20, figures)
    assert decode(response({"text": "a"})).usage.input_tokens is None


def grounded(text: str, *segments: dict[str, Any], before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The citations of a text whose segments each rest on both chunks."""
    chunks = [
        {"web": {"uri": "https://a.org", "title": "A"}},
        {"retrievedContext": {"text": "as it was written", "title": "B"}},
    ]
    supports = [{"segment": segment, "groundingChunkIndices": [0, 1, 9]} for segment in segments]
    metadata = {"groundingChunks": chunks, "groundingSupports": supports}
    part = only(decode(response(*before, {"text": text}, groundingMetadata=metadata))).parts[-1]
    assert isinstance(part, TextPart)
    return [(each.kind, each.url, each.title, each.cited_text, each.start, each.end) for each in part.citations]


def test_grounding_becomes_citations_in_characters() -> None:
    """Bytes of the wire, characters here: é and ☂ are longer there. One citation a source, of those that exist."""
    found = grounded("été ☂ Oslo", {"startIndex": 10, "endIndex": 14, "text": "Oslo"})

    assert found == [
        ("web", "https://a.org", "A", None, 6, 10),
        ("retrievedContext", None, "B", "as it was written", 6, 10),
    ]


@pytest.mark.parametrize(
    "segment",
    [
        {"startIndex": 9, "endIndex": 13, "text": "Oslo"},
        {"startIndex": 11, "endIndex": 15, "text": "Oslo"},
        {"startIndex": 1, "endIndex": 5, "text": "Oslo"},
        {"text": "Oslo"},
        {"startIndex": 10, "endIndex": 14},
        {"startIndex": 10, "endIndex": 14, "partIndex": 1},
    ],
)
def test_offsets_that_are_one_off_are_mended_by_the_words(segment: dict[str, Any]) -> None:
    """The vendor's are at times; one may split a character, or be missing."""
    assert {each[4:] for each in grounded("été ☂ Oslo", segment)} == {(6, 10)}


def test_of_words_that_occur_twice_the_nearest_is_cited() -> None:
    """The offset still says which."""
    assert {each[4:] for each in grounded("Oslo, Oslo", {"startIndex": 7, "endIndex": 11, "text": "Oslo"})} == {(6, 10)}
    far = {"startIndex": 22, "endIndex": 26, "text": "Oslo"}  # one off, after fifteen bytes that are five characters
    assert {each[4:] for each in grounded("☂☂☂☂☂ Oslo, Oslo", far)} == {(12, 16)}


def test_the_part_that_a_segment_names_is_looked_at_first() -> None:
    """Offsets count from the start of that part."""
    before = ({"text": "Oslo"}, {"executableCode": {"code": "1"}})
    segment = {"partIndex": 2, "startIndex": 0, "endIndex": 4, "text": "Oslo"}

    assert {each[4:] for each in grounded("Oslo!", segment, before=before)} == {(0, 4)}


@pytest.mark.parametrize("segment", [{}, {"startIndex": 90, "endIndex": 95}, {"startIndex": "x", "text": "Rome"}])
def test_a_segment_that_is_nowhere_is_cited_without_a_place(segment: dict[str, Any]) -> None:
    """The source is named all the same."""
    assert {each[4:] for each in grounded("Oslo", segment)} == {(None, None)}


def test_recitations_are_citations_too() -> None:
    """Under either name; the vendor's own is the source, verbatim."""
    source = {"startIndex": 0, "endIndex": 4, "uri": "https://b.org", "license": "mit"}
    for name in ("citations", "citationSources"):
        part = only(decode(response({"text": "Oslo!"}, citationMetadata={name: [source]}))).parts[0]
        assert isinstance(part, TextPart)
        (citation,) = part.citations
        assert (citation.kind, citation.url, citation.start, citation.end) == ("citation", "https://b.org", 0, 4)
        assert citation.source == source
