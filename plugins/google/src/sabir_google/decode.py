"""A response → reply. Every part becomes one block, in order, without loss.

    text, inlineData        text · media; a text with `thought` becomes reasoning
    functionCall            an option call; a call without an id gets a generated id, which is not sent to this API; the
                            pieces of a call whose arguments arrive in pieces become one call (see streamed_calls)
    executableCode, …       a call of the vendor's own tool, or its result (native.py); the two are a pair if they have
                            an id. A search that only the metadata reports becomes a call and a result too
    other parts             opaque parts, unchanged

The other fields of a part, such as its thought signature, become the state of its block, so that they are sent back
with the same part (law 3). The API counts the positions of citations in bytes, and a Citation counts characters. The
metadata of each candidate is in the reply's details, under `candidates`. https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

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

from sabir_google.errors import ERRORS
from sabir_google.native import NAME, add_sources, decode_native, read_metadata
from sabir_google.streamed_calls import join_calls

DecodedPart: TypeAlias = KnownPart | OptionCallPayload

_BLOCKED = (
    "BLOCKLIST", "ESCALATION", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_SAFETY", "MODEL_ARMOR",
    "PROHIBITED_CONTENT", "RECITATION", "SAFETY", "SPII",
)  # fmt: skip
"""Finish reasons of answers that a filter stopped."""
_FAILED = (
    "IMAGE_OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE", "NO_IMAGE",
    "PUP_LIMITED_DISABLED", "TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL",
)  # fmt: skip
"""Finish reasons of answers that the vendor could not complete."""
FINISH_REASONS: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_BLOCKED, "content_filter"),
    **dict.fromkeys(_FAILED, "error"),
}
"""Google's finish reason → neutral finish reason. Other reasons become `other`."""
_COMPLETE_CALLS = frozenset({"TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL"})
"""Finish reasons that mean that the last call is complete. With other reasons, a call at the end may be cut off."""
MAX_SEARCHED = 2**28
"""The maximum of (number of citations * characters of the answer) for which the positions of citations are searched.
Beyond this maximum, citations have no position.
"""

RESPONSE_FIELDS = frozenset({"candidates", "modelVersion", "responseId", "usageMetadata"})
"""Fields of a response that are not copied to `Reply.details`, because a Reply has its own fields for them."""


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return the reply for the body of a response.

    Raises the CallError that the body reports, and ResponseInvalid for an invalid body. A body without candidates is
    invalid, unless it has the field "promptFeedback" or "usageMetadata".
    """
    response = read_response(body, scope)
    if not isinstance(response.get("candidates"), list | None):
        raise scope.invalid_answer("answered with candidates that are not an array; send the request again")
    candidates = [object_or_empty(candidate) for candidate in list_or_empty(response.get("candidates"))]
    if not candidates and not response.keys() & {"promptFeedback", "usageMetadata"}:
        raise scope.invalid_answer(
            "answered without candidates; expected at least one candidate: send the request again"
        )
    answers = []
    for each in scope.count_each(candidates):
        parts = scope.count_each(join_calls(parts_of(each, scope), scope))
        answers.append(add_metadata([decode_part(part, scope) for part in parts], each, scope))
    return ReplyBuilder(scope, answers[0] if answers else ()).finish(**read_end(response, candidates, answers, scope))


def read_response(body: bytes | str, scope: DecodeScope) -> Fields:
    """Return the response in a body or an event. Raises ResponseInvalid if it is not a JSON object. Raises the
    CallError that it reports, also if the error object is in a list.
    """
    try:
        response = scope.read_object(body)
    except ResponseInvalid:
        try:
            response = {"error": object_or_empty(list_or_empty(decode_json(body))[0]).get("error")}
        except (NotJSON, IndexError):
            response = {}
        if not response.get("error"):
            raise
    if error := response.get("error"):
        raise ERRORS.report(error, scope)
    return response


def origin_of(response: Fields, scope: DecodeScope) -> Origin:
    """Return the origin with the model and the id of a response."""
    model, response_id = text_or_empty(response.get("modelVersion")), text_or_empty(response.get("responseId"))
    return scope.origin(model, response_id)


def read_end(
    response: Fields, candidates: Sequence[Fields], answers: Sequence[Sequence[DecodedPart]], scope: DecodeScope
) -> dict[str, Any]:
    """Return the fields of a Reply or ReplyEnd for the first candidate. The other candidates become alternatives.

    `answers` are the blocks of each candidate. Without candidates, the finish reason is "content_filter" if the prompt
    was blocked, otherwise "other".
    """
    reasons = [_candidate_finish_reason(each, blocks) for each, blocks in zip(candidates, answers, strict=True)]
    blocked = text_or_empty(object_or_empty(response.get("promptFeedback")).get("blockReason"))
    if not reasons:
        reasons = [("content_filter" if blocked else "other", blocked or None)]
    origin, further = origin_of(response, scope), [_candidate_details(candidate) for candidate in candidates]
    details = unknown_fields(response, RESPONSE_FIELDS) | ({"candidates": further} if any(further) else {})
    return {
        "finish_reason": reasons[0][0],
        "raw_finish_reason": reasons[0][1],
        "usage": read_usage(response.get("usageMetadata")),
        "origin": origin,
        "alternatives": tuple(
            Alternative(
                messages=ReplyBuilder(scope, blocks).messages(origin), finish_reason=reason, raw_finish_reason=raw
            )
            for blocks, (reason, raw) in zip(answers[1:], reasons[1:], strict=True)
        ),
        "details": details or None,
        "finished_calls": "all" if reasons[0][1] in _COMPLETE_CALLS else "followed",
    }


def _candidate_finish_reason(candidate: Fields, blocks: Collection[DecodedPart]) -> tuple[FinishReason, str | None]:
    """Return the neutral finish reason and Google's own. "STOP" after calls means "option_calls"."""
    finish_reason = text_or_empty(candidate.get("finishReason"))
    reason = FINISH_REASONS.get(finish_reason, "other")
    has_calls = reason == "stop" and any(block.kind == "option_call" for block in blocks)
    return "option_calls" if has_calls else reason, finish_reason or None


def _candidate_details(candidate: Fields) -> Fields:
    """Return the fields of a candidate for the reply's details: all except its parts and its finish reason. Return {}
    if only an index of 0 remains.
    """
    details = unknown_fields(candidate, {"content", "finishReason"})
    if content := unknown_fields(object_or_empty(candidate.get("content")), {"parts", "role"}):
        details["content"] = content
    return {} if details == {"index": 0} else details


def read_usage(figures: JSONValue) -> Usage:
    """Return the token counts of a call; None for counts that the response does not contain.

    The input includes the tokens that results of the vendor's own tools added to the prompt. The output includes the
    thinking tokens.
    """
    usage = object_or_empty(figures)
    if not usage:
        return Usage()
    return Usage.unchecked(
        usage,
        input_tokens=_sum_counts(usage, "promptTokenCount", "toolUsePromptTokenCount"),
        output_tokens=_sum_counts(usage, "candidatesTokenCount", "thoughtsTokenCount"),
        cache_read_tokens=first_whole_number(usage.get("cachedContentTokenCount")),
        reasoning_tokens=first_whole_number(usage.get("thoughtsTokenCount")),
    )


def _sum_counts(usage: Fields, *names: str) -> int | None:
    figures = [figure for name in names if (figure := first_whole_number(usage.get(name))) is not None]
    return sum(figures) if figures else None


def parts_of(candidate: Fields, scope: DecodeScope) -> list[Any]:
    """Return the parts of a candidate, each as `plain_part` returns it. Leave out parts that are then empty, because
    the API refuses empty parts in requests. Raises ResponseInvalid if the parts are not an array.
    """
    parts = object_or_empty(candidate.get("content")).get("parts")
    if not isinstance(parts, list | None):
        raise scope.invalid_answer("answered with parts that are not an array; send the request again")
    return [part for part in map(plain_part, parts or ()) if part != {}]


def plain_part(part: Any) -> Any:
    """Return a part without fields that are null, and without a `thought` that is false. A part with only one field is
    returned unchanged.
    """
    if not isinstance(part, dict) or len(part) == 1:  # the usual case
        return part
    return {name: value for name, value in part.items() if value is not None and (name != "thought" or value)}


def decode_part(part: JSONValue, scope: DecodeScope) -> DecodedPart:
    """Return the block for one part."""
    fields = object_or_empty(part)
    reader = next((reader for name, reader in READERS.items() if name in fields), None)
    return (reader(fields, scope) if reader else decode_native(fields)) or OpaquePart(dialect=NAME, block=part)


def _read_text_part(part: Fields, scope: DecodeScope) -> DecodedPart | None:
    text = part["text"]
    if not isinstance(text, str):
        return None
    if part.get("thought") is True:
        return ReasoningPart(text=text, state=_part_state(part=without_fields(part, "text", "thought")))
    return TextPart(text=text, state=_part_state(part=without_fields(part, "text")))


def _part_state(**fields: Fields) -> Fields | None:
    """Return a block's state, which contains the arguments that are not empty; None if all are empty.

    The arguments are fields that the block cannot express: fields of the part, and of the call or media object in it.
    """
    return {name: value for name, value in fields.items() if value} or None


def _read_function_call(part: Fields, scope: DecodeScope) -> DecodedPart:
    call = object_or_empty(part["functionCall"])
    state = _part_state(part=without_fields(part, "functionCall"), call=unknown_fields(call, ("name", "args")))
    return scope.read_call(
        text_or_empty(call.get("id")) or None, text_or_empty(call.get("name")), call.get("args"), state
    )


def _read_inline_data(part: Fields, scope: DecodeScope) -> DecodedPart | None:
    """Return the media part for a medium from the model. None for a thought, and for a medium without data or without a
    valid MIME type.
    """
    blob = object_or_empty(part["inlineData"])
    mime, base64 = text_or_empty(blob.get("mimeType")), text_or_empty(blob.get("data"))
    base64 = base64.replace("-", "+").replace("_", "/")
    state = _part_state(part=without_fields(part, "inlineData"), blob=without_fields(blob, "mimeType", "data"))
    if part.get("thought") or not base64:
        return None
    return MediaPart.from_wire(modality_of(mime), DataURL.from_base64(base64, mime), state=state)


def modality_of(mime: str) -> Modality:
    """Return the modality of a MIME type: "image", "audio" or "video", and "document" for all other types."""
    match mime.partition("/")[0].lower():
        case "image" | "audio" | "video" as modality:
            return modality
        case _:
            return "document"


READERS: Mapping[str, Callable[[Fields, DecodeScope], DecodedPart | None]] = {
    "functionCall": _read_function_call,
    "inlineData": _read_inline_data,
    "text": _read_text_part,
}
"""Field of a part → the function that reads parts with this field. `decode_native` reads parts of Google's own tools,
and every other part becomes an opaque part.
"""


def add_metadata(blocks: Sequence[DecodedPart], candidate: Fields, scope: DecodeScope) -> list[DecodedPart]:
    """Return the blocks of a candidate with everything that its metadata reports: citations, and Google's own tools."""
    return [*read_metadata(candidate, blocks), *add_citations(add_sources(blocks, candidate), candidate, scope)]


def add_citations(blocks: Sequence[DecodedPart], candidate: Fields, scope: DecodeScope) -> list[DecodedPart]:
    """Return the blocks of a candidate, with the citations of its metadata added to its text parts."""
    texts = {index: block.text for index, block in enumerate(blocks) if isinstance(block, TextPart) and block.text}
    citations: dict[int, list[Citation]] = {}
    for index, citation in scope.count_each(_locate_citations(texts, candidate)) if texts else ():
        scope.count_copied_bytes(len(citation.source_json or ""))
        citations.setdefault(index, []).append(citation)
    return [
        block.model_copy(update={"citations": tuple(citations[index])}) if index in citations else block
        for index, block in enumerate(blocks)
    ]


def _locate_citations(texts: Mapping[int, str], candidate: Fields) -> Iterator[tuple[int, Citation]]:
    """Yield each citation of a candidate's metadata, after the index of the block that it supports.

    A passage with several sources gives a citation for each. If searching for the passages would take too long,
    citations have no position.
    """
    grounding = object_or_empty(candidate.get("groundingMetadata"))
    metadata = object_or_empty(candidate.get("citationMetadata"))
    chunks, supports = (list_or_empty(grounding.get(name)) for name in ("groundingChunks", "groundingSupports"))
    sources = [*list_or_empty(metadata.get("citations")), *list_or_empty(metadata.get("citationSources"))]
    if (len(supports) + len(sources)) * sum(map(len, texts.values())) > MAX_SEARCHED:
        texts = dict.fromkeys(texts, "")
    for support in map(object_or_empty, supports):
        index, start, end = _locate_segment(texts, object_or_empty(support.get("segment")))
        indices = [at for at in list_or_empty(support.get("groundingChunkIndices")) if isinstance(at, int)]
        for chunk in [object_or_empty(chunks[at]) for at in indices if 0 <= at < len(chunks)] or [{}]:
            kind = next((name for name, value in chunk.items() if value), "grounding")
            about, pair = object_or_empty(chunk.get(kind)), {"support": support, "chunk": chunk}
            text = text_or_empty(about.get("text"))
            yield index, _new_citation(kind or "grounding", about, start, end, pair, text)
    for source in map(object_or_empty, sources):
        index, start, end = _locate_segment(texts, source)
        yield index, _new_citation("citation", source, start, end, source)


def _new_citation(
    kind: str, about: Fields, start: int | None, end: int | None, source: Fields, cited: str = ""
) -> Citation:
    url, title = text_or_empty(about.get("uri")) or None, text_or_empty(about.get("title")) or None
    return Citation(kind=kind, url=url, title=title, cited_text=cited or None, start=start, end=end, source=source)


def _locate_segment(texts: Mapping[int, str], segment: Fields) -> tuple[int, int | None, int | None]:
    """Return the index of the block that contains a segment, and the segment's start and end in the block's text.

    The block that the segment names is searched first, then the others. If no text contains the segment, return the
    index of the first block, without start and end.
    """
    named = first_whole_number(segment.get("partIndex"), 0)
    indices = sorted(texts, key=lambda index: index != named)
    for index in indices:
        if span := _find_span(texts[index], segment):
            return index, *span
    return indices[0], None, None


def _find_span(text: str, segment: Fields) -> tuple[int, int] | None:
    """Return a segment's start and end in a text, in characters. None if the text does not contain the segment.

    The vendor's byte offsets are sometimes off by one, and in a stream they may refer to another part. If they do not
    match the segment's text, the nearest occurrence of that text counts.
    """
    encoded, cited = text.encode(), text_or_empty(segment.get("text"))
    first, last = first_whole_number(segment.get("startIndex"), 0) or 0, first_whole_number(segment.get("endIndex"))
    start = len(encoded[:first].decode(errors="replace"))
    if last is not None and first < last <= len(encoded):
        cut = encoded[first:last].decode(errors="replace")
        if cut == (cited or cut) and text[start : start + len(cut)] == cut:
            return start, start + len(cut)
    matches = (match.start() for match in re.finditer(re.escape(cited), text)) if cited else ()
    nearest = min(matches, key=lambda at: abs(at - start), default=None)
    return None if nearest is None else (nearest, nearest + len(cited))
