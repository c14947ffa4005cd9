"""A response → reply: every part gives one block, in order, and nothing of it is lost.

    text, inlineData        text · media; with `thought`, the text is reasoning
    functionCall            an option call; its id is made up where the wire has none, and never sent then; one whose
                            arguments come in pieces is one call (see arguments)
    every other part        opaque, verbatim; a call of the vendor's own and its output are a pair where they have an id

What else a part holds, its thought signature above all, is its block's state, so that it goes back on that very part
(law 3). Grounding and citations are told in bytes of the wire, here in characters; the metadata itself is in the
reply's details, each candidate's under `candidates`. https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from sabir import (
    Alternative,
    Citation,
    MediaPart,
    OpaquePart,
    OptionCallPayload,
    Origin,
    ReasoningPart,
    Reply,
    TextPart,
    Usage,
)
from sabir.authoring import (
    DataURL,
    DecodeScope,
    Fields,
    FinishReason,
    JSONValue,
    KnownPart,
    Modality,
    ReplyBuilder,
    decode_json,
    fields,
    first_count,
    items,
    left_over,
    text,
    without,
)
from sabir.errors import NotJSON, ResponseInvalid

from sabir_google.arguments import join_calls
from sabir_google.errors import ERRORS

NAME = "google.generate_content"

Block: TypeAlias = KnownPart | OptionCallPayload

_BLOCKED = (
    "BLOCKLIST", "ESCALATION", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_SAFETY", "MODEL_ARMOR",
    "PROHIBITED_CONTENT", "RECITATION", "SAFETY", "SPII",
)  # fmt: skip
_FAILED = (
    "IMAGE_OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE", "NO_IMAGE",
    "PUP_LIMITED_DISABLED", "TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL",
)  # fmt: skip
FINISH_REASONS: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_BLOCKED, "content_filter"),
    **dict.fromkeys(_FAILED, "error"),
}
"""The wire's reason → the neutral one; all others are `other`."""

PAIRS: Mapping[str, Literal["opens", "closes"]] = {
    "executableCode": "opens",
    "codeExecutionResult": "closes",
    "toolCall": "opens",
    "toolResponse": "closes",
}
"""What the vendor's own server did: which half of a pair it is, where its `id` says with what."""
_PLACED = frozenset({"candidates", "modelVersion", "responseId", "usageMetadata"})
"""Fields of a response that have a place of their own."""


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """A whole response → reply; ResponseInvalid, or the CallError that the body reports."""
    found = read_response(body, scope)
    candidates = [fields(candidate) for candidate in items(found.get("candidates"))]
    if not candidates and not found.keys() & {"promptFeedback", "usageMetadata"}:
        raise scope.invalid("answered without candidates; expected at least one: send the request again")
    parts = [join_calls(parts_of(each), scope) for each in candidates]
    answers = [
        cite([part_block(part, scope) for part in found], each) for found, each in zip(parts, candidates, strict=True)
    ]
    return ReplyBuilder(scope, answers[0] if answers else ()).finish(**read_end(found, candidates, answers, scope))


def read_response(body: bytes | str, scope: DecodeScope) -> Fields:
    """The response that a body or an event holds; raises the CallError that it reports, in a list of one also."""
    try:
        found = scope.read_object(body)
    except ResponseInvalid:
        try:
            found = {"error": fields(items(decode_json(body))[0]).get("error")}
        except (NotJSON, IndexError):
            found = {}
        if not found.get("error"):
            raise
    if error := found.get("error"):
        raise ERRORS.report(error, scope)
    return found


def origin_of(found: Fields, scope: DecodeScope) -> Origin:
    """The origin that a response names."""
    return scope.origin(text(found.get("modelVersion")) or None, text(found.get("responseId")) or None)


def read_end(
    found: Fields, candidates: Sequence[Fields], answers: Sequence[Sequence[Block]], scope: DecodeScope
) -> dict[str, Any]:
    """What a response says beside its blocks: the fields of a reply, and of a stream's ReplyEnd.

    Without candidates, it ended as its prompt was blocked.
    """
    reasons = [_finish(each, blocks) for each, blocks in zip(candidates, answers, strict=True)]
    blocked = text(fields(found.get("promptFeedback")).get("blockReason"))
    if not reasons:
        reasons = [("content_filter" if blocked else "other", blocked or None)]
    origin, told = origin_of(found, scope), [_told(candidate) for candidate in candidates]
    return {
        "finish_reason": reasons[0][0],
        "raw_finish_reason": reasons[0][1],
        "usage": read_usage(found.get("usageMetadata")),
        "origin": origin,
        "alternatives": tuple(
            Alternative(
                messages=ReplyBuilder(scope, blocks).messages(origin), finish_reason=reason, raw_finish_reason=raw
            )
            for blocks, (reason, raw) in zip(answers[1:], reasons[1:], strict=True)
        ),
        "details": {**left_over(found, _PLACED), **({"candidates": told} if any(told) else {})} or None,
    }


def _finish(candidate: Fields, blocks: Collection[Block]) -> tuple[FinishReason, str | None]:
    raw = text(candidate.get("finishReason"))
    reason = FINISH_REASONS.get(raw, "other")
    calls = reason == "stop" and "option_call" in {block.kind for block in blocks}
    return "option_calls" if calls else reason, raw or None


def _told(candidate: Fields) -> Fields:
    """What a candidate says beside its blocks and its reason."""
    told = left_over(candidate, {"content", "finishReason"})
    if content := left_over(fields(candidate.get("content")), {"parts", "role"}):
        told["content"] = content
    return {} if told == {"index": 0} else told


def read_usage(figures: JSONValue) -> Usage:
    """The tokens of a call: what the vendor's own tools put into the prompt is input, thoughts are output."""
    found = fields(figures)
    if not found:
        return Usage()
    return Usage.counted(
        found,
        input_tokens=_sum(found, "promptTokenCount", "toolUsePromptTokenCount"),
        output_tokens=_sum(found, "candidatesTokenCount", "thoughtsTokenCount"),
        cache_read_tokens=first_count(found.get("cachedContentTokenCount")),
        reasoning_tokens=first_count(found.get("thoughtsTokenCount")),
    )


def _sum(found: Fields, *names: str) -> int | None:
    figures = [figure for name in names if (figure := first_count(found.get(name))) is not None]
    return sum(figures) if figures else None


def parts_of(candidate: Fields) -> list[Any]:
    """The parts of a candidate, without those that hold nothing at all: none may be sent back."""
    return [part for part in items(fields(candidate.get("content")).get("parts")) if part != {}]


def part_block(part: JSONValue, scope: DecodeScope) -> Block:
    """The block that one part is."""
    found = fields(part)
    reader = next((reader for name, reader in READERS.items() if name in found), None)
    return (reader(found, scope) if reader else None) or _opaque(part)


def _text(part: Fields, scope: DecodeScope) -> Block | None:
    said = part["text"]
    if not isinstance(said, str):
        return None
    if part.get("thought") is True:
        return ReasoningPart(text=said, state=_state(part=without(part, "text", "thought")))
    return TextPart(text=said, state=_state(part=without(part, "text")))


def _state(**beside: Fields) -> Fields | None:
    """What stood beside what a block says; under names of its own, so that no other maker's state is taken for it."""
    return {name: value for name, value in beside.items() if value} or None


def _call(part: Fields, scope: DecodeScope) -> Block:
    call = fields(part["functionCall"])
    state = _state(part=without(part, "functionCall"), call=without(call, "name", "args"))
    return scope.read_call(text(call.get("id")) or None, text(call.get("name")), call.get("args"), state)


def _media(part: Fields, scope: DecodeScope) -> Block | None:
    """What the model made; what it made while thinking, or of a type that no part may carry, stays as it is."""
    blob = fields(part["inlineData"])
    mime, data = text(blob.get("mimeType")), text(blob.get("data")).replace("-", "+").replace("_", "/")
    state = _state(part=without(part, "inlineData"), blob=without(blob, "mimeType", "data"))
    if part.get("thought") or not data:
        return None
    return MediaPart.read(modality_of(mime), DataURL.of_base64(data, mime), state=state)


def modality_of(mime: str) -> Modality:
    """What a MIME type is for a model; what is no image, sound or video is a document."""
    match mime.partition("/")[0].lower():
        case "image" | "audio" | "video" as modality:
            return modality
        case _:
            return "document"


def _opaque(part: JSONValue) -> OpaquePart:
    found = fields(part)
    kind = next((name for name in PAIRS if name in found), "")
    pair_id = text(fields(found.get(kind)).get("id")) if kind else ""
    return OpaquePart(dialect=NAME, block=part, pair_id=pair_id or None, pair=PAIRS[kind] if pair_id else None)


READERS: Mapping[str, Callable[[Any, DecodeScope], Block | None]] = {
    "functionCall": _call,
    "inlineData": _media,
    "text": _text,
}
"""Field of a part → what reads it; every other part is opaque."""


def cite(blocks: Sequence[Block], candidate: Fields) -> list[Block]:
    """The blocks of a candidate, its texts with the citations that its metadata tells of."""
    texts = {place: block.text for place, block in enumerate(blocks) if isinstance(block, TextPart) and block.text}
    found: dict[int, list[Citation]] = {}
    for place, citation in _citations(texts, candidate) if texts else ():
        found.setdefault(place, []).append(citation)
    return [
        block.model_copy(update={"citations": tuple(found[place])}) if place in found else block
        for place, block in enumerate(blocks)
    ]


def _citations(texts: Mapping[int, str], candidate: Fields) -> Iterator[tuple[int, Citation]]:
    grounding = fields(candidate.get("groundingMetadata"))
    chunks = items(grounding.get("groundingChunks"))
    for support in map(fields, items(grounding.get("groundingSupports"))):
        place, start, end = _locate(texts, fields(support.get("segment")))
        named = [at for at in items(support.get("groundingChunkIndices")) if isinstance(at, int)]
        for chunk in [fields(chunks[at]) for at in named if 0 <= at < len(chunks)] or [{}]:
            kind, about = next(((name, fields(value)) for name, value in chunk.items() if value), ("grounding", {}))
            whole = {"support": support, "chunk": chunk}
            yield place, _citation(kind or "grounding", about, start, end, whole, text(about.get("text")))
    metadata = fields(candidate.get("citationMetadata"))
    for source in map(fields, [*items(metadata.get("citations")), *items(metadata.get("citationSources"))]):
        place, start, end = _locate(texts, source)
        yield place, _citation("citation", source, start, end, source)


def _citation(
    kind: str, about: Fields, start: int | None, end: int | None, source: Fields, cited: str = ""
) -> Citation:
    url, title = text(about.get("uri")) or None, text(about.get("title")) or None
    return Citation(kind=kind, url=url, title=title, cited_text=cited or None, start=start, end=end, source=source)


def _locate(texts: Mapping[int, str], segment: Fields) -> tuple[int, int | None, int | None]:
    """Where a segment is: its text's place, start and end.

    The part that it names is looked at first. The vendor's offsets are one off at times, and a stream's parts are not
    those that it counts: the segment's own words decide then, the nearest of them.
    """
    named = first_count(segment.get("partIndex"), 0)
    places = sorted(texts, key=lambda place: place != named)
    for place in places:
        if span := _span(texts[place], segment):
            return place, *span
    return places[0], None, None


def _span(said: str, segment: Fields) -> tuple[int, int] | None:
    """A segment's start and end in characters; None where the text does not hold it."""
    data, words = said.encode(), text(segment.get("text"))
    first, last = first_count(segment.get("startIndex"), 0) or 0, first_count(segment.get("endIndex"))
    start = len(data[:first].decode(errors="replace"))
    if last is not None and first < last <= len(data):
        cut = data[first:last].decode(errors="replace")
        if cut == (words or cut) and said[start : start + len(cut)] == cut:
            return start, start + len(cut)
    found = (match.start() for match in re.finditer(re.escape(words), said)) if words else ()
    nearest = min(found, key=lambda at: abs(at - start), default=None)
    return None if nearest is None else (nearest, nearest + len(words))
