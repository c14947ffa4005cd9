"""What a response cites, in characters of its texts."""

from functools import partial
from typing import Any

import pytest
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import TextPart
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Target
from sabir_google.dialect import GENERATE_CONTENT

from tests.providers import wires

SCOPE = DecodeScope(
    target=Target(provider="google", dialect=GENERATE_CONTENT.name, model="gemini-3-pro", endpoint="https://e.org")
)


def response(*parts: Any, reason: str = "STOP", **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason, **candidate}]}


decode = partial(wires.whole, SCOPE)


def only(reply: Reply) -> Message:
    (message,) = reply.messages
    return message


def grounded(text: str, *segments: dict[str, Any], before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
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
    assert {each[4:] for each in grounded("été ☂ Oslo", segment)} == {(6, 10)}


def test_of_words_that_occur_twice_the_nearest_is_cited() -> None:
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
    assert {each[4:] for each in grounded("Oslo", segment)} == {(None, None)}


def test_recitations_are_citations_too() -> None:
    source = {"startIndex": 0, "endIndex": 4, "uri": "https://b.org", "license": "mit"}
    for name in ("citations", "citationSources"):
        part = only(decode(response({"text": "Oslo!"}, citationMetadata={name: [source]}))).parts[0]
        assert isinstance(part, TextPart)
        (citation,) = part.citations
        assert (citation.kind, citation.url, citation.start, citation.end) == ("citation", "https://b.org", 0, 4)
        assert citation.source == source
