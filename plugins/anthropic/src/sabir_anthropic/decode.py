"""A response → reply. Every content block becomes one part or option call, in order, without loss.

    text                        a text; the source of each citation is stored unchanged
    thinking, redacted_thinking reasoning; every field except the text is its state, including the signature
    tool_use                    an option call; further fields are its state
    every other block           an opaque part, unchanged; a server-side call and its result are a pair

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

from sabir_anthropic.encode import RENAMED
from sabir_anthropic.errors import ERRORS

NAME = "anthropic.messages"

Block: TypeAlias = KnownPart | OptionCallPayload

FINISH_REASONS: Mapping[str, FinishReason] = {
    **dict.fromkeys(("end_turn", "stop_sequence"), "stop"),
    "tool_use": "option_calls",
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    "refusal": "content_filter",
    **dict.fromkeys(("pause_turn", "compaction"), "paused"),
}
"""Stop reason → neutral reason; all others are `other`. https://platform.claude.com/docs/en/api/handling-stop-reasons"""
OPENERS = frozenset({"server_tool_use", "mcp_tool_use"})
"""Types of blocks with calls that the vendor's server answers itself."""
CLOSER = "_tool_result"
"""Suffix of the types of blocks with the answers to these calls."""
REASONING = frozenset({"thinking", "redacted_thinking"})
PLACED = frozenset({"content", "id", "model", "role", "stop_reason", "type", "usage"})
"""Fields of a response that are not in the reply's details: the reply has them elsewhere, or they never differ."""
BILLED_APART = frozenset({"advisor_message", "compaction"})
"""Types of the entries in `usage.iterations` that are billed but not contained in the other figures of the usage: an
advisor's answer, and the summary of a long context (BetaUsage.iterations in anthropic 2.14.0, and recorded replies)."""
_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_TEXT_FIELDS = frozenset({"type", "text", "citations"})
_CALL_FIELDS = frozenset({"type", "id", "name", "input"})


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return the reply for the body of a response. Raises ResponseInvalid for an invalid body or one without content,
    and the CallError that the body reports.
    """
    found = scope.read_object(body)
    raise_reported(found, scope)
    if not isinstance(found.get("content"), list):
        raise scope.invalid_answer("answered without content; expected a list of blocks: send the request again")
    blocks = (decode_block(block, scope) for block in found["content"])
    return ReplyBuilder(scope, blocks).finish(**read_end(found, scope))


def raise_reported(found: Fields, scope: DecodeScope) -> None:
    """Raise the CallError for the `error` of a response or an event; do nothing if it has no error."""
    if error := found.get("error"):
        request_id = text_or_empty(found.get("request_id")) or scope.request_id
        raise ERRORS.report(error, replace(scope, request_id=request_id))


def origin_of(found: Fields, scope: DecodeScope) -> Origin:
    """Return the origin with the model and the id of a response."""
    return scope.origin(text_or_empty(found.get("model")), text_or_empty(found.get("id")) or None)


def read_end(found: Fields, scope: DecodeScope) -> dict[str, Any]:
    """Return the fields of a Reply or ReplyEnd that do not come from the content of a response.

    The losses are thinking blocks of the input that the server removed.
    """
    raw = text_or_empty(found.get("stop_reason"))
    changes = map(object_or_empty, scope.count_each(list_or_empty(found.get("input_transformations"))))
    return {
        "finish_reason": FINISH_REASONS.get(raw, "other"),
        "raw_finish_reason": raw or None,
        "usage": read_usage(found.get("usage")),
        "origin": origin_of(found, scope),
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
        "details": unknown_fields(found, PLACED) or None,
        # Blocks arrive one after another. An event that ends a block does not show that the model finished the block: a
        # block that was cut off gets such an event too, and its `input` contains the members that were complete.
        "finished_calls": "followed",
    }


def read_usage(figures: JSONValue) -> Usage:
    """Return the token counts of a call: the vendor's figures plus the iterations in BILLED_APART.

    The vendor does not include cached tokens in its input figure; `input_tokens` here does.
    """
    found = object_or_empty(figures)
    if not found:
        return Usage()
    iterations = [object_or_empty(each) for each in list_or_empty(found.get("iterations"))]
    counted = [found, *(each for each in iterations if text_or_empty(each.get("type")) in BILLED_APART)]
    fresh, read, written, output = (_sum(counted, name) for name in _COUNTS)
    return Usage.unchecked(
        found,
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=_sum(
            [object_or_empty(each.get("output_tokens_details")) for each in counted], "thinking_tokens"
        ),
    )


def _sum(counted: Sequence[Fields], name: str) -> int | None:
    figures = [figure for each in counted if (figure := first_whole_number(each.get(name))) is not None]
    return sum(figures) if figures else None


def decode_block(block: JSONValue, scope: DecodeScope) -> Block:
    """The part or option call for a content block; an opaque part if its shape is unknown."""
    found = object_or_empty(block)
    reader = READERS.get(text_or_empty(found.get("type")))
    return (reader(found, scope) if reader else None) or opaque_block(block)


def _text(found: Fields, scope: DecodeScope) -> Block | None:
    if not isinstance(found.get("text"), str):
        return None
    citations = tuple([_citation(each) for each in scope.count_each(list_or_empty(found.get("citations")))])
    return TextPart(text=found["text"], citations=citations, state=unknown_fields(found, _TEXT_FIELDS) or None)


def _citation(source: JSONValue) -> Citation:
    """Return the citation for a vendor's citation. It has no start and end, because the vendor's offsets refer to the
    document, not to the answer; they are in `source`.
    """
    found = object_or_empty(source)
    return Citation(
        kind=text_or_empty(found.get("type")) or "citation",
        url=text_or_empty(found.get("url")) or None,
        title=text_or_empty(found.get("title")) or text_or_empty(found.get("document_title")) or None,
        cited_text=text_or_empty(found.get("cited_text")) or None,
        file_id=text_or_empty(found.get("file_id")) or None,
        source=source,
    )


def _thinking(found: Fields, scope: DecodeScope) -> Block | None:
    return ReasoningPart(text=text_or_empty(found.get("thinking")), state=without_fields(found, "thinking"))


def _call(found: Fields, scope: DecodeScope) -> Block | None:
    name, state = text_or_empty(found.get("name")), unknown_fields(found, _CALL_FIELDS)
    names = scope.argument_names.get(scope.option_names.get(name, name), {})
    if renamed := {wire: own for wire, own in names.items() if wire in object_or_empty(found.get("input"))}:
        state[RENAMED] = renamed
    return scope.read_call(text_or_empty(found.get("id")), name, found.get("input"), state or None)


def opaque_block(block: JSONValue) -> OpaquePart:
    """Return an opaque part with the unchanged block. A server-side call with an id opens a pair, and its result closes
    it.
    """
    found = object_or_empty(block)
    opens, closes = text_or_empty(found.get("type")) in OPENERS, text_or_empty(found.get("type")).endswith(CLOSER)
    pair_id = text_or_empty(found.get("id" if opens else "tool_use_id")) if opens or closes else ""
    pair: Literal["opens", "closes"] = "opens" if opens else "closes"
    return OpaquePart(dialect=NAME, block=block, pair_id=pair_id or None, pair=pair if pair_id else None)


READERS: Mapping[str, Callable[[Fields, DecodeScope], Block | None]] = {
    "text": _text,
    **dict.fromkeys(REASONING, _thinking),
    "tool_use": _call,
}
"""Block type → the function that reads such blocks. It returns None for an invalid block. All other blocks are
opaque.
"""
