"""A response → reply: every part becomes one block, in order, without loss.

    text, inlineData        text · media; with `thought`, the text is reasoning
    functionCall            an option call; if the wire has no id, one is made up and never sent; a call whose
                            arguments come in pieces is one call (see arguments)
    every other part        opaque, verbatim; a vendor's own call and its output are a pair if they have an id

The other fields of a part, such as its thought signature, are its block's state, so that they go back on the same part
(law 3). The wire counts grounding and citations in bytes, here they are in characters; the metadata itself is in the
reply's details, each candidate's under `candidates`. https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    first_whole_number,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    unknown_fields,
    without_fields,
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
_CALLS_ARE_WHOLE = frozenset({"TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL"})
"""Reasons to refuse calls that the model finished; other early ends may cut off a call that is the last part."""

MOST_SEARCHED = 2**28
"""Characters to search for the positions of all citations; above that, citations have no position."""

PAIRS: Mapping[str, Literal["opens", "closes"]] = {
    "executableCode": "opens",
    "codeExecutionResult": "closes",
    "toolCall": "opens",
    "toolResponse": "closes",
}
"""Parts of the vendor's own server → which half of a pair each is; its `id` names the pair."""
_PLACED = frozenset({"candidates", "modelVersion", "responseId", "usageMetadata"})
"""Fields of a response that have their own place in the reply."""


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """A whole response → reply; raises ResponseInvalid, or the CallError that the body reports."""
    found = read_response(body, scope)
    candidates = [object_or_empty(candidate) for candidate in list_or_empty(found.get("candidates"))]
    if not candidates and not found.keys() & {"promptFeedback", "usageMetadata"}:
        raise scope.invalid_answer("answered without candidates; expected at least one: send the request again")
    answers = []
    for each in scope.count_each(candidates):
        parts = scope.count_each(join_calls(parts_of(each), scope))
        answers.append(cite([part_block(part, scope) for part in parts], each, scope))
    return ReplyBuilder(scope, answers[0] if answers else ()).finish(**read_end(found, candidates, answers, scope))


def read_response(body: bytes | str, scope: DecodeScope) -> Fields:
    """The response in a body or an event; raises the CallError that it reports, also within a list of one."""
    try:
        found = scope.read_object(body)
    except ResponseInvalid:
        try:
            found = {"error": object_or_empty(list_or_empty(decode_json(body))[0]).get("error")}
        except (NotJSON, IndexError):
            found = {}
        if not found.get("error"):
            raise
    if error := found.get("error"):
        raise ERRORS.report(error, scope)
    return found


def origin_of(found: Fields, scope: DecodeScope) -> Origin:
    """The origin that a response names."""
    return scope.origin(
        text_or_empty(found.get("modelVersion")) or None, text_or_empty(found.get("responseId")) or None
    )


def read_end(
    found: Fields, candidates: Sequence[Fields], answers: Sequence[Sequence[Block]], scope: DecodeScope
) -> dict[str, Any]:
    """The fields of a reply, or of a stream's ReplyEnd, from everything in a response but its blocks.

    A response without candidates ended because its prompt was blocked.
    """
    reasons = [_finish(each, blocks) for each, blocks in zip(candidates, answers, strict=True)]
    blocked = text_or_empty(object_or_empty(found.get("promptFeedback")).get("blockReason"))
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
        "details": {**unknown_fields(found, _PLACED), **({"candidates": told} if any(told) else {})} or None,
        "finished_calls": "all" if reasons[0][1] in _CALLS_ARE_WHOLE else "followed",
    }


def _finish(candidate: Fields, blocks: Collection[Block]) -> tuple[FinishReason, str | None]:
    raw = text_or_empty(candidate.get("finishReason"))
    reason = FINISH_REASONS.get(raw, "other")
    calls = reason == "stop" and any(block.kind == "option_call" for block in blocks)
    return "option_calls" if calls else reason, raw or None


def _told(candidate: Fields) -> Fields:
    """The fields of a candidate beside its blocks and its finish reason."""
    told = unknown_fields(candidate, {"content", "finishReason"})
    if content := unknown_fields(object_or_empty(candidate.get("content")), {"parts", "role"}):
        told["content"] = content
    return {} if told == {"index": 0} else told


def read_usage(figures: JSONValue) -> Usage:
    """The tokens of a call: tokens that the vendor's own tools put into the prompt are input, thoughts are output."""
    found = object_or_empty(figures)
    if not found:
        return Usage()
    return Usage.unchecked(
        found,
        input_tokens=_sum(found, "promptTokenCount", "toolUsePromptTokenCount"),
        output_tokens=_sum(found, "candidatesTokenCount", "thoughtsTokenCount"),
        cache_read_tokens=first_whole_number(found.get("cachedContentTokenCount")),
        reasoning_tokens=first_whole_number(found.get("thoughtsTokenCount")),
    )


def _sum(found: Fields, *names: str) -> int | None:
    figures = [figure for name in names if (figure := first_whole_number(found.get(name))) is not None]
    return sum(figures) if figures else None


def parts_of(candidate: Fields) -> list[Any]:
    """Return the parts of a candidate, plain, without empty ones: these may not be sent back."""
    parts = map(plain_part, list_or_empty(object_or_empty(candidate.get("content")).get("parts")))
    return [part for part in parts if part != {}]


def plain_part(part: Any) -> Any:
    """Return a part without fields that say nothing: null, or `thought` if it is false."""
    if not isinstance(part, dict) or len(part) == 1:  # as most parts are
        return part
    return {name: value for name, value in part.items() if value is not None and (name != "thought" or value)}


def part_block(part: JSONValue, scope: DecodeScope) -> Block:
    """The block for one part."""
    found = object_or_empty(part)
    reader = next((reader for name, reader in READERS.items() if name in found), None)
    return (reader(found, scope) if reader else None) or _opaque(part)


def _text(part: Fields, scope: DecodeScope) -> Block | None:
    said = part["text"]
    if not isinstance(said, str):
        return None
    if part.get("thought") is True:
        return ReasoningPart(text=said, state=_state(part=without_fields(part, "text", "thought")))
    return TextPart(text=said, state=_state(part=without_fields(part, "text")))


def _state(**beside: Fields) -> Fields | None:
    """A block's state: fields that the block cannot express, under names that no other maker's state has."""
    return {name: value for name, value in beside.items() if value} or None


def _call(part: Fields, scope: DecodeScope) -> Block:
    call = object_or_empty(part["functionCall"])
    state = _state(part=without_fields(part, "functionCall"), call=unknown_fields(call, ("name", "args")))
    return scope.read_call(
        text_or_empty(call.get("id")) or None, text_or_empty(call.get("name")), call.get("args"), state
    )


def _media(part: Fields, scope: DecodeScope) -> Block | None:
    """A medium that the model made; None if it was made while thinking or no part may carry its type."""
    blob = object_or_empty(part["inlineData"])
    mime, data = (
        text_or_empty(blob.get("mimeType")),
        text_or_empty(blob.get("data")).replace("-", "+").replace("_", "/"),
    )
    state = _state(part=without_fields(part, "inlineData"), blob=without_fields(blob, "mimeType", "data"))
    if part.get("thought") or not data:
        return None
    return MediaPart.from_wire(modality_of(mime), DataURL.from_base64(data, mime), state=state)


def modality_of(mime: str) -> Modality:
    """The modality of a MIME type; anything but an image, audio or video is a document."""
    match mime.partition("/")[0].lower():
        case "image" | "audio" | "video" as modality:
            return modality
        case _:
            return "document"


def _opaque(part: JSONValue) -> OpaquePart:
    found = object_or_empty(part)
    kind = next((name for name in PAIRS if name in found), "")
    pair_id = text_or_empty(object_or_empty(found.get(kind)).get("id")) if kind else ""
    return OpaquePart(dialect=NAME, block=part, pair_id=pair_id or None, pair=PAIRS[kind] if pair_id else None)


READERS = {"functionCall": _call, "inlineData": _media, "text": _text}
"""Field of a part → the function that reads it; every other part is opaque."""


def cite(blocks: Sequence[Block], candidate: Fields, scope: DecodeScope) -> list[Block]:
    """Return the blocks of a candidate, its texts with the citations from its metadata."""
    texts = {place: block.text for place, block in enumerate(blocks) if isinstance(block, TextPart) and block.text}
    found: dict[int, list[Citation]] = {}
    for place, citation in scope.count_each(_citations(texts, candidate)) if texts else ():
        scope.count_copied_bytes(len(citation.source_json or ""))
        found.setdefault(place, []).append(citation)
    return [
        block.model_copy(update={"citations": tuple(found[place])}) if place in found else block
        for place, block in enumerate(blocks)
    ]


def _citations(texts: Mapping[int, str], candidate: Fields) -> Iterator[tuple[int, Citation]]:
    grounding, metadata = (
        object_or_empty(candidate.get("groundingMetadata")),
        object_or_empty(candidate.get("citationMetadata")),
    )
    chunks, supports = (
        list_or_empty(grounding.get("groundingChunks")),
        list_or_empty(grounding.get("groundingSupports")),
    )
    sources = [*list_or_empty(metadata.get("citations")), *list_or_empty(metadata.get("citationSources"))]
    if (len(supports) + len(sources)) * sum(map(len, texts.values())) > MOST_SEARCHED:
        texts = dict.fromkeys(texts, "")
    for support in map(object_or_empty, supports):
        place, start, end = _locate(texts, object_or_empty(support.get("segment")))
        named = [at for at in list_or_empty(support.get("groundingChunkIndices")) if isinstance(at, int)]
        for chunk in [object_or_empty(chunks[at]) for at in named if 0 <= at < len(chunks)] or [{}]:
            kind, about = next(
                ((name, object_or_empty(value)) for name, value in chunk.items() if value), ("grounding", {})
            )
            whole = {"support": support, "chunk": chunk}
            yield place, _citation(kind or "grounding", about, start, end, whole, text_or_empty(about.get("text")))
    for source in map(object_or_empty, sources):
        place, start, end = _locate(texts, source)
        yield place, _citation("citation", source, start, end, source)


def _citation(
    kind: str, about: Fields, start: int | None, end: int | None, source: Fields, cited: str = ""
) -> Citation:
    url, title = text_or_empty(about.get("uri")) or None, text_or_empty(about.get("title")) or None
    return Citation(kind=kind, url=url, title=title, cited_text=cited or None, start=start, end=end, source=source)


def _locate(texts: Mapping[int, str], segment: Fields) -> tuple[int, int | None, int | None]:
    """A segment's position: the index of its text, start and end.

    The part that it names is tried first. The vendor's offsets are sometimes off by one, and it does not count a
    stream's parts: then the nearest occurrence of the segment's own words decides.
    """
    named = first_whole_number(segment.get("partIndex"), 0)
    places = sorted(texts, key=lambda place: place != named)
    for place in places:
        if span := _span(texts[place], segment):
            return place, *span
    return places[0], None, None


def _span(said: str, segment: Fields) -> tuple[int, int] | None:
    """A segment's start and end in characters; None if the text does not contain it."""
    data, words = said.encode(), text_or_empty(segment.get("text"))
    first, last = first_whole_number(segment.get("startIndex"), 0) or 0, first_whole_number(segment.get("endIndex"))
    start = len(data[:first].decode(errors="replace"))
    if last is not None and first < last <= len(data):
        cut = data[first:last].decode(errors="replace")
        if cut == (words or cut) and said[start : start + len(cut)] == cut:
            return start, start + len(cut)
    found = (match.start() for match in re.finditer(re.escape(words), said)) if words else ()
    nearest = min(found, key=lambda at: abs(at - start), default=None)
    return None if nearest is None else (nearest, nearest + len(words))
