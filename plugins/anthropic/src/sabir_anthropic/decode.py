"""A response → reply. Every content block becomes one part or option call, in order, without loss.

    text                        a text; the source of each citation is stored unchanged
    thinking, redacted_thinking reasoning; every field except the text is its state, including the signature
    tool_use                    an option call; further fields are its state
    server_tool_use, mcp_…      a call of the vendor's own tool, or its result (native.py); the two are a pair
    other blocks                opaque parts, unchanged

Fields that a part cannot express are stored in its state, so that encoding restores the block (law 3).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from sabir import Citation, Loss, OpaquePart, OptionCallPayload, Origin, ReasoningPart, Reply, TextPart, Usage
from sabir.authoring import (
    DecodeScope,
    Fields,
    FinishReason,
    JSONValue,
    KnownPart,
    ReplyBuilder,
    first_whole_number,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    unknown_fields,
    without_fields,
)

from sabir_anthropic.encode import ARGUMENT_NAMES
from sabir_anthropic.errors import ERRORS
from sabir_anthropic.native import NAME, RESULT_SUFFIX, SERVER_CALL_TYPES, decode_native

DecodedBlock: TypeAlias = KnownPart | OptionCallPayload

FINISH_REASONS: Mapping[str, FinishReason] = {
    **dict.fromkeys(("end_turn", "stop_sequence"), "stop"),
    "tool_use": "option_calls",
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    "refusal": "content_filter",
    **dict.fromkeys(("pause_turn", "compaction"), "paused"),
}
"""Stop reason → neutral finish reason. Other stop reasons become `other`.
https://platform.claude.com/docs/en/api/handling-stop-reasons
"""
THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
"""Types of blocks that contain reasoning."""
RESPONSE_FIELDS = frozenset({"content", "id", "model", "role", "stop_reason", "type", "usage"})
"""Fields of a response that are not copied to `Reply.details`: a Reply has fields for them, or they never differ."""
EXTRA_ITERATIONS = frozenset({"advisor_message", "compaction"})
"""Types of the entries in `usage.iterations` that are billed but not contained in the other figures of the usage: an
advisor's answer, and the summary of a long context. The sources are BetaUsage.iterations in anthropic 2.14.0 and
recorded replies.
"""
_USAGE_FIELDS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_TEXT_FIELDS = frozenset({"type", "text", "citations"})
_CALL_FIELDS = frozenset({"type", "id", "name", "input"})


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return the reply for the body of a response. Raises ResponseInvalid for an invalid body or one whose
    `content` is not a list, and the CallError that the body reports.
    """
    response = scope.read_object(body)
    raise_reported(response, scope)
    if not isinstance(response.get("content"), list):
        raise scope.invalid_answer("answered without content; expected a list of blocks: send the request again")
    blocks = (decode_block(block, scope) for block in response["content"])
    return ReplyBuilder(scope, blocks).finish(**read_end(response, scope))


def raise_reported(response: Fields, scope: DecodeScope) -> None:
    """Raise the CallError for the `error` of a response or an event. Do nothing if it has no error."""
    if error := response.get("error"):
        request_id = text_or_empty(response.get("request_id")) or scope.request_id
        raise ERRORS.report(error, replace(scope, request_id=request_id))


def origin_of(response: Fields, scope: DecodeScope) -> Origin:
    """Return the origin with the model and the id of a response."""
    return scope.origin(text_or_empty(response.get("model")), text_or_empty(response.get("id")))


def read_end(response: Fields, scope: DecodeScope) -> dict[str, Any]:
    """Return the fields of a Reply or ReplyEnd that do not come from the content of a response.

    The losses are thinking blocks of the input that the server removed.
    """
    stop_reason = text_or_empty(response.get("stop_reason"))
    changes = map(object_or_empty, scope.count_each(list_or_empty(response.get("input_transformations"))))
    return {
        "finish_reason": FINISH_REASONS.get(stop_reason, "other"),
        "raw_finish_reason": stop_reason or None,
        "usage": read_usage(response.get("usage")),
        "origin": origin_of(response, scope),
        "losses": tuple(
            Loss(
                kind="dropped",
                path=text_or_empty(change.get("path")) or f"input_transformations[{index}]",
                reason="the server removed this thinking from the input"
                f" ({text_or_empty(change.get('reason')) or 'without a reason'})",
            )
            for index, change in enumerate(changes)
            if change.get("type") == "thinking_dropped"
        ),
        "details": unknown_fields(response, RESPONSE_FIELDS) or None,
        # Blocks arrive one after another. An event that ends a block does not prove that the model finished the block:
        # a block that was cut off has such an event too, and its `input` contains the members that were complete.
        "finished_calls": "followed",
    }


def read_usage(figures: JSONValue) -> Usage:
    """Return the token counts of a call: the sum of the vendor's figures and the figures of iterations whose types are
    in EXTRA_ITERATIONS.

    The vendor's `input_tokens` does not include cached tokens, but the `input_tokens` of a Usage does.
    """
    usage = object_or_empty(figures)
    if not usage:
        return Usage()
    iterations = [object_or_empty(each) for each in list_or_empty(usage.get("iterations"))]
    counted = [usage, *(each for each in iterations if text_or_empty(each.get("type")) in EXTRA_ITERATIONS)]
    details = [object_or_empty(each.get("output_tokens_details")) for each in counted]
    uncached, cache_read, cache_written, output = (_sum_tokens(counted, name) for name in _USAGE_FIELDS)
    return Usage.unchecked(
        usage,
        input_tokens=None if uncached is None else uncached + (cache_read or 0) + (cache_written or 0),
        output_tokens=output,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_written,
        reasoning_tokens=_sum_tokens(details, "thinking_tokens"),
    )


def _sum_tokens(counted: Sequence[Fields], name: str) -> int | None:
    figures = [figure for each in counted if (figure := first_whole_number(each.get(name))) is not None]
    return sum(figures) if figures else None


def decode_block(block: JSONValue, scope: DecodeScope) -> DecodedBlock:
    """Return the part or option call for a content block: an opaque part if the block's type is unknown or a field is
    invalid.
    """
    fields = object_or_empty(block)
    reader = READERS.get(text_or_empty(fields.get("type")), decode_native)
    return reader(fields, scope) or opaque_block(block)


def _read_text_block(block: Fields, scope: DecodeScope) -> DecodedBlock | None:
    if not isinstance(block.get("text"), str):
        return None
    citations = tuple([_read_citation(each) for each in scope.count_each(list_or_empty(block.get("citations")))])
    return TextPart(text=block["text"], citations=citations, state=unknown_fields(block, _TEXT_FIELDS) or None)


def _read_citation(source: JSONValue) -> Citation:
    """Return the Citation for a citation of the vendor. It has no start and end, because the vendor's offsets refer to
    the document, not to the answer. The offsets are in `source`.
    """
    citation = object_or_empty(source)
    return Citation(
        kind=text_or_empty(citation.get("type")) or "citation",
        url=text_or_empty(citation.get("url")) or None,
        title=text_or_empty(citation.get("title")) or text_or_empty(citation.get("document_title")) or None,
        cited_text=text_or_empty(citation.get("cited_text")) or None,
        file_id=text_or_empty(citation.get("file_id")) or None,
        source=source,
    )


def _read_thinking_block(block: Fields, scope: DecodeScope) -> DecodedBlock | None:
    return ReasoningPart(text=text_or_empty(block.get("thinking")), state=without_fields(block, "thinking"))


def _read_tool_use_block(block: Fields, scope: DecodeScope) -> DecodedBlock | None:
    """Return the option call of a block. Its state contains the names of renamed arguments as they arrived."""
    name, state = text_or_empty(block.get("name")), unknown_fields(block, _CALL_FIELDS)
    names = scope.argument_names.get(scope.option_names.get(name, name), {})
    if renamed := {wire: own for wire, own in names.items() if wire in object_or_empty(block.get("input"))}:
        state[ARGUMENT_NAMES] = renamed
    return scope.read_call(text_or_empty(block.get("id")), name, block.get("input"), state or None)


def opaque_block(block: JSONValue) -> OpaquePart:
    """Return an opaque part with the unchanged block. A server-side call with an id opens a pair, and the call's result
    closes the pair.
    """
    fields = object_or_empty(block)
    kind = text_or_empty(fields.get("type"))
    opens, closes = kind in SERVER_CALL_TYPES, kind.endswith(RESULT_SUFFIX)
    pair_id = text_or_empty(fields.get("id" if opens else "tool_use_id")) if opens or closes else ""
    pair: Literal["opens", "closes"] = "opens" if opens else "closes"
    return OpaquePart(dialect=NAME, block=block, pair_id=pair_id or None, pair=pair if pair_id else None)


READERS: Mapping[str, Callable[[Fields, DecodeScope], DecodedBlock | None]] = {
    "text": _read_text_block,
    **dict.fromkeys(THINKING_TYPES, _read_thinking_block),
    "tool_use": _read_tool_use_block,
}
"""Block type → the function that reads such blocks. It returns None for an invalid block, which is opaque then.
`decode_native` reads blocks of all other types.
"""
