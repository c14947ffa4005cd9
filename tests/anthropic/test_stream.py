"""What the events of a Messages stream become, and that they fold to the reply."""

import json
import struct
import zlib
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.errors import RateLimited, ResponseInvalid
from sabir.vocabulary.parts import ReasoningPart, TextPart
from sabir.vocabulary.reply import BlockDelta, BlockEnd
from sabir_anthropic.dialect import EVENT_STREAM, MESSAGES
from sabir_anthropic.stream import _OpenContentBlock

from tests.anthropic.answers import (
    FOUND,
    SCOPE,
    SERVER,
    START,
    STOP,
    THINKING,
    USE,
    begun,
    decode,
    delta,
    done,
    ended,
    frame,
    framed,
)  # fmt: skip
from tests.providers import wires
from tests.providers.wires import same

events, fold = partial(wires.events, SCOPE), partial(wires.fold, SCOPE)


@pytest.mark.parametrize("first", ["", "Hel"])
def test_a_delta_that_is_no_text_replaces_no_text(first: str) -> None:
    unlike = {"type": "content_block_delta", "index": 0, "delta": {"text": {"lost": True}}}
    deltas = [delta(0, "text", text="Hel")] if not first else []
    reply = fold(START, begun(0, {"type": "text", "text": first}), *deltas, unlike, delta(0, "text", text="lo."),
                 done(0), ended(), STOP)  # fmt: skip

    assert reply.text == "Hello."


def test_events_of_unknown_types_are_passed_over_wherever_they_stand() -> None:
    """One that comes before `message_start` begins no message: its model and id are those that come with that."""
    news, grown = (
        {"type": "news", "message": {"model": "other"}},
        [begun(0, {"type": "text"}), delta(0, "text", text="Hi")],
    )
    wire = [START, *grown, done(0), ended(), STOP]
    assert events(news, *wire) == events(*wire) == events(START, news, *wire[1:])


def test_thinking_grows_and_is_signed_at_its_end() -> None:
    found = events(
        START, begun(0, {"type": "thinking", "thinking": "", "signature": ""}), delta(0, "thinking", thinking="Hm."),
        delta(0, "signature", signature="sig"), done(0), ended(), STOP,
    )  # fmt: skip

    assert BlockDelta(index=0, kind="reasoning", text="Hm.") in found
    part = ReasoningPart(text="Hm.", state={"type": "thinking", "signature": "sig"})
    assert BlockEnd(index=0, block=part) in found


CITED = {"type": "text", "text": "So.", "citations": [{"type": "page_location", "cited_text": "s"}]}
GROWN: list[tuple[Any, list[dict[str, Any]]]] = [
    ({"type": "text", "text": "Hi."}, [begun(0, {"type": "text", "text": "H"}), delta(0, "text", text="i.")]),
    (THINKING, [begun(0, {**THINKING, "thinking": "H", "signature": ""}), delta(0, "thinking", thinking="m."),
                delta(0, "signature", signature="sig")]),
    ({"type": "redacted_thinking", "data": "x"}, [begun(0, {"type": "redacted_thinking", "data": "x"})]),
    (USE, [begun(0, {**USE, "input": {}}), delta(0, "input_json", partial_json='{"city":"Rome"}')]),
    (USE, [begun(0, USE)]),
    ({**USE, "input": {}}, [begun(0, {**USE, "input": {}}), delta(0, "input_json", partial_json="")]),
    (SERVER, [begun(0, {**SERVER, "input": {}}), delta(0, "input_json", partial_json='{"query":"q"}')]),
    (FOUND, [begun(0, FOUND)]),
    (CITED, [begun(0, {"type": "text", "text": "", "citations": []}),
             delta(0, "citations", citation=CITED["citations"][0]), delta(0, "text", text="So.")]),
    ({"type": "compaction", "content": "Long ago."},
     [begun(0, {"type": "compaction", "content": None}), delta(0, "compaction", content="Long ago.")]),
]  # fmt: skip
"""A block whole, and as a stream brings it."""


@pytest.mark.parametrize(("block", "wire"), GROWN, ids=[f"{n}-{block['type']}" for n, (block, _) in enumerate(GROWN)])
def test_a_block_is_the_same_whole_and_streamed(block: Any, wire: list[Any]) -> None:
    usage = {"input_tokens": 3, "output_tokens": 1}

    assert same(fold(START, *wire, done(0), ended(), STOP), decode(block, usage=usage))


def test_a_delta_of_an_unknown_type_replaces_no_text() -> None:
    """Its text is in the part's state, under the delta's type."""
    grown = [delta(0, "text", text="a"), delta(0, "of_tomorrow", text="b"), delta(0, "text", text="c")]
    found = events(START, begun(0, {"type": "text", "text": ""}), *grown, done(0))

    assert [event.text for event in found if isinstance(event, BlockDelta)] == ["a", "c"]
    (end,) = (event for event in found if isinstance(event, BlockEnd))
    assert isinstance(end.block, TextPart)
    assert end.block.text == "ac"
    assert end.block.state["of_tomorrow_delta"] == {"text": "b"}


def test_citations_are_added_to_one_list() -> None:
    open_block = _OpenContentBlock({"type": "text"}, "text")
    lists = set()
    for _ in range(20):
        open_block.add_delta({"type": "citations_delta", "citation": {}})
        lists.add(id(open_block.block["citations"]))

    assert len(lists) == 1
    assert len(open_block.block["citations"]) == 20


def test_the_model_that_took_over_is_the_one_that_answered() -> None:
    """A whole body names it as its model; a stream, in the block where it begins."""
    block = {"type": "fallback", "from": {"model": "claude-a"}, "to": {"model": "claude-b"}}
    streamed = fold(START, begun(0, block), done(0), ended(), STOP)

    assert streamed.origin is not None
    assert streamed.origin.reported_model == "claude-b"
    assert same(streamed, decode(block, model="claude-b", usage={"input_tokens": 3, "output_tokens": 1}))


def test_details_of_the_end_are_those_of_the_whole() -> None:
    details = {"container": {"id": "c"}, "stop_details": {"type": "refusal"}}
    end = {**ended("refusal"), "context_management": {"applied_edits": []}}
    end["delta"] |= details
    reply = fold(START, end, STOP)

    assert (reply.finish_reason, reply.details) == (
        "content_filter", {**details, "context_management": {"applied_edits": []}},
    )  # fmt: skip


def test_a_block_that_no_event_ended_ends_with_the_message() -> None:
    assert fold(START, begun(0, {"type": "text", "text": ""}), delta(0, "text", text="Hi"), STOP).text == "Hi"


@pytest.mark.parametrize(
    "wire", [[delta(0, "text", text="x")], [done(3)], [begun(-1, {"type": "text"})], [begun(0, {}), done(0), done(0)]]
)  # fmt: skip
def test_events_out_of_order_are_an_invalid_response(wire: list[Any]) -> None:
    with pytest.raises(ResponseInvalid, match="send the request again"):
        fold(START, *wire, STOP)


@given(size=st.integers(1, 200))
def test_aws_frames_are_read_in_any_chunks(size: int) -> None:
    wire = [START, begun(0, {"type": "text", "text": ""}), delta(0, "text", text="é\n"), done(0), ended(), STOP]
    sent, reader = b"".join(framed(each) for each in wire), MESSAGES.framing(EVENT_STREAM)
    chunks = [sent[start : start + size] for start in range(0, len(sent), size)]
    found = [event for chunk in chunks for event in reader.feed(chunk)]

    assert [json.loads(event.data) for event in found] == wire
    assert (reader.kept, reader.close()) == (0, [])


def test_an_aws_exception_is_an_error_event() -> None:
    sent = frame(b'{"message":"Too many requests"}', exception_type="throttlingException", message_type="exception")
    (event,) = MESSAGES.framing(EVENT_STREAM).feed(sent)
    with pytest.raises(RateLimited, match="Too many requests"):
        list(MESSAGES.decoder(SCOPE).feed(event))


@given(sent=st.lists(st.binary(max_size=80), max_size=4))
def test_any_bytes_are_read_as_frames_without_a_fault(sent: list[bytes]) -> None:
    """Law 10: what is no frame gives nothing, or an error that says so."""
    reader = MESSAGES.framing(EVENT_STREAM)
    with suppress(ResponseInvalid):
        for chunk in sent:
            reader.feed(chunk)


def test_a_frame_that_would_not_end_is_refused_at_its_head() -> None:
    """Nobody collects the four gigabytes that a frame may claim to have."""
    prelude = b"\xff\xff\xff\xff" + b"\0" * 4
    with pytest.raises(ResponseInvalid, match="4294967295 bytes"):
        MESSAGES.framing(EVENT_STREAM).feed(prelude + struct.pack(">I", zlib.crc32(prelude)))
