"""What the chunks of a stream become."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.scope import DecodeScope
from sabir.errors import CallError
from sabir.vocabulary.messages import OptionCallPayload
from sabir.vocabulary.parts import ReasoningPart, TextPart
from sabir.vocabulary.reply import BlockEnd, BlockStart, StreamEvent
from sabir.vocabulary.settings import Target
from sabir_google.dialect import GENERATE_CONTENT

from tests.providers import wires

SCOPE = DecodeScope(target=Target(provider="google", dialect=GENERATE_CONTENT.name, model="gemini-3-pro"))
SIGNED = {"text": "", "thoughtSignature": "c2ln"}


def chunk(*parts: Any, reason: str = "", index: int = 0, usage: Any = None, **candidate: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": index, **candidate}
    found |= {"finishReason": reason} if reason else {}
    return {"candidates": [found], "modelVersion": "gemini-3-pro", **({"usageMetadata": usage} if usage else {})}


def events(chunks: Iterable[Any]) -> list[StreamEvent]:
    return wires.events(SCOPE, *chunks)


fold = partial(wires.fold, SCOPE)


def test_a_text_of_very_many_chunks_is_one_block() -> None:
    found = fold(*(chunk({"text": f"{number} "}) for number in range(5_000)), chunk(reason="STOP"))

    assert found.text == "".join(f"{number} " for number in range(5_000))
    assert len(found.messages[0].parts) == 1


def test_figures_and_metadata_merge_field_by_field() -> None:
    """What a later chunk leaves out, or says without a value, holds as an earlier one told it."""
    reply = fold(
        chunk({"text": "a"}, usage={"promptTokenCount": 5, "thoughtsTokenCount": 2}, groundingMetadata={"a": 1}),
        chunk({"text": "b"}, usage={"promptTokenCount": 6, "candidatesTokenCount": 1}, groundingMetadata={"b": 2}),
        {"usageMetadata": {"totalTokenCount": 9, "promptTokenCount": None}, "responseId": "r-1"},
        {**chunk({"text": "c"}, reason="MAX_TOKENS"), "usageMetadata": None, "modelVersion": None},
    )

    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.reasoning_tokens) == (6, 3, 2)
    assert reply.details == {"candidates": [{"index": 0, "groundingMetadata": {"a": 1, "b": 2}}]}
    assert (reply.text, reply.finish_reason, reply.origin.response_id) == ("abc", "length", "r-1")
    assert reply.origin.model == SCOPE.target.model


def test_neighbouring_texts_of_one_kind_are_one_block() -> None:
    thoughts = ({"text": text, "thought": True} for text in ("H", "m."))
    code = {"executableCode": {"code": "1"}}
    said = [next(thoughts)], [next(thoughts), {"text": "So"}], [{"text": " on."}], [code]
    reply = fold(*(chunk(*each) for each in said), chunk({"text": "One."}, reason="STOP"))
    parts = reply.messages[0].parts

    assert parts[:2] == (ReasoningPart(text="Hm."), TextPart(text="So on."))
    assert [part.kind for part in parts[2:]] == ["native_call", "text"]


def test_a_signed_text_is_a_block_of_its_own() -> None:
    """Its signature belongs to that part, the empty last one above all: joined with others it would be refused."""
    reply = fold(chunk({"text": "a"}), chunk({"text": "b", "thoughtSignature": "c2l0"}), chunk(SIGNED, reason="STOP"))

    assert reply.messages[0].parts == (
        TextPart(text="a"),
        TextPart(text="b", state={"part": {"thoughtSignature": "c2l0"}}),
        TextPart(text="", state={"part": {"thoughtSignature": "c2ln"}}),
    )


def test_a_stream_folds_to_what_its_parts_at_once_give() -> None:
    parts = (
        {"text": "Hm.", "thought": True},
        {"text": "été in Oslo"},
        {"functionCall": {"id": "fc-1", "name": "weather", "args": {}}, "thoughtSignature": "c2ln"},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
        {"codeExecutionResult": {"id": "x", "output": "1"}},
        SIGNED,
    )
    support = {"segment": {"startIndex": 9, "endIndex": 13, "text": "Oslo"}, "groundingChunkIndices": [0]}
    metadata = {"groundingChunks": [{"web": {"uri": "https://a.org"}}], "groundingSupports": [support]}
    end: dict[str, Any] = {
        "reason": "STOP", "usage": {"promptTokenCount": 1, "candidatesTokenCount": 2}, "groundingMetadata": metadata,
    }  # fmt: skip
    reply = fold(*map(chunk, parts), chunk(**end))
    at_once = wires.whole(SCOPE, chunk(*parts, **end))

    searched, found, thought, text = reply.messages[0].parts
    assert (searched.kind, found.kind, thought.kind) == ("native_call", "native_result", "reasoning")
    assert text.kind == "text" and text.citations[0].start == 7
    assert len(reply.messages) == 3 and wires.same(reply, at_once)


def test_a_reason_in_every_chunk_ends_nothing_before_the_bytes_end() -> None:
    reply = fold(chunk({"text": "a"}, reason="STOP"), chunk({"text": "b"}, reason="STOP"), chunk(reason="RECITATION"))

    assert (reply.text, reply.raw_finish_reason) == ("ab", "RECITATION")


def test_further_candidates_are_alternatives() -> None:
    """The first that comes is the one that is streamed."""
    found = events(
        [chunk({"text": "a"}), chunk({"text": "x"}, index=1), chunk({"text": "b"}, reason="STOP"),
         chunk({"text": "y"}, index=1, reason="SAFETY")]
    )  # fmt: skip
    end = found[-1]

    assert "".join(getattr(each, "text", "") for each in found) == "ab"
    assert [each.raw_finish_reason for each in end.alternatives] == ["SAFETY"]  # type: ignore[union-attr]
    assert end.alternatives[0].messages[0].text == "xy"  # type: ignore[union-attr]


def test_a_blocked_prompt_ends_a_stream_too() -> None:
    reply = fold({"promptFeedback": {"blockReason": "SAFETY"}})

    assert (reply.messages, reply.finish_reason, reply.raw_finish_reason) == ((), "content_filter", "SAFETY")


parts = st.one_of(
    st.builds(lambda text: {"text": text}, st.text(max_size=3)),
    st.builds(lambda text: {"text": text, "thought": True}, st.text(max_size=3)),
    st.builds(lambda text: {"text": text, "thoughtSignature": "c2ln"}, st.text(max_size=2)),
    st.just({"functionCall": {"id": "fc-1", "name": "weather", "args": {"a": 1}}}),
    st.just({"executableCode": {"code": "1"}}),
    st.just({}),
    st.sampled_from([None, 7, "words", {"text": 7}, {"functionCall": 7}]),
)


@given(chunks=st.lists(st.lists(parts, max_size=3), max_size=4))
def test_the_deltas_of_any_stream_join_to_its_blocks(chunks: list[list[Any]]) -> None:
    """Laws 8 and 10: every text is its deltas, or the library says what is wrong."""
    try:
        found = events([*(chunk(*each) for each in chunks), chunk(reason="STOP")])
    except CallError:
        return
    grown: dict[int, str] = {}
    ended: dict[int, str] = {}
    for event in found:
        if event.type in ("text-delta", "reasoning-delta"):
            grown[event.index] = grown.get(event.index, "") + event.text  # type: ignore[union-attr]
        elif event.type in ("text-end", "reasoning-end"):
            ended[event.index] = event.block.text  # type: ignore[union-attr]

    assert {index: text for index, text in ended.items() if text} == grown


def test_a_call_in_pieces_is_one_block_under_one_id() -> None:
    begun = {"functionCall": {"name": "weather", "willContinue": True}, "thoughtSignature": "c2ln"}
    more = {"jsonPath": "$.location", "stringValue": "New", "willContinue": True}
    rest = {"jsonPath": "$.location", "stringValue": " York"}
    pieces = [{"functionCall": {"partialArgs": [each], "willContinue": True}} for each in (more, rest)]
    parts: list[Any] = [begun, *pieces, {"functionCall": {}}]
    chunks = [*map(chunk, parts), chunk({"text": "Soon."}, reason="STOP")]
    found = [each for each in events(chunks) if getattr(each, "index", None) == 0]
    assert [(each.type, getattr(each, "text", None)) for each in found] == [
        ("option_call-start", None),
        ("option_call-delta", '{"location":"New'),
        ("option_call-delta", " York"),
        ("option_call-delta", '"}'),
        ("option_call-end", None),
    ]
    start, end = found[0], found[-1]
    assert isinstance(start, BlockStart) and isinstance(end, BlockEnd) and isinstance(end.block, OptionCallPayload)
    assert start.option_name == "weather" and start.invocation_id == end.block.invocation_id != ""
    reply = fold(*chunks)
    assert reply.finish_reason == "option_calls" and reply.text == "Soon."
    (call,) = reply.option_calls
    assert call.call is not None and call.call.arguments == {"location": "New York"}
    assert call.call.state == {"part": {"thoughtSignature": "c2ln"}}
