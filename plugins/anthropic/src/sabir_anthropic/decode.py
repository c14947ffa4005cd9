"""A response → reply: every content block gives one part or option call, in order, and nothing of it is lost.

    text                        a text, its citations as they came
    thinking, redacted_thinking reasoning; all but its text is the state, the signature with it
    tool_use                    an option call; further fields are its state
    every other block           an opaque part, verbatim; a call of the vendor's server and its result are a pair

What a part does not say itself is in its state, so that encoding gives the block back (law 3).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from sabir import Citation, Loss, OpaquePart, OptionCallPayload, Origin, ReasoningPart, Reply, TextPart, Usage
from sabir.authoring import (
    DecodeScope,
    Fields,
    FinishReason,
    JSONValue,
    KnownPart,
    ReplyBuilder,
    fields,
    first_count,
    items,
    left_over,
    text,
    without,
)

from sabir_anthropic.errors import ERRORS

NAME = "anthropic.messages"

Block: TypeAlias = KnownPart | OptionCallPayload

FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "option_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "paused",
    "compaction": "paused",
}
"""Stop reason → neutral reason; all others are `other`. https://platform.claude.com/docs/en/api/handling-stop-reasons"""
OPENERS = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls that the vendor's server answers itself, by a block whose type ends with the words below."""
CLOSER = "_tool_result"
REASONING = frozenset({"thinking", "redacted_thinking"})
PLACED = frozenset({"content", "id", "model", "role", "stop_reason", "type", "usage"})
"""Fields of a response that stay out of its details: they have a place of their own."""
_TEXT_FIELDS = frozenset({"type", "text", "citations"})
_CALL_FIELDS = frozenset({"type", "id", "name", "input"})


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """A whole response → reply; ResponseInvalid, or the CallError that the body reports."""
    found = scope.read_object(body)
    raise_reported(found, scope)
    if not isinstance(found.get("content"), list):
        raise scope.invalid("answered without content; expected a list of blocks: send the request again")
    blocks = [decode_block(block, scope) for block in found["content"]]
    return ReplyBuilder(scope, blocks).finish(**read_end(found, scope))


def raise_reported(found: Fields, scope: DecodeScope) -> None:
    """Raise the CallError for the `error` that a response or an event holds; nothing where it holds none."""
    if error := found.get("error"):
        request_id = text(found.get("request_id")) or scope.request_id
        raise ERRORS.report(error, replace(scope, request_id=request_id))


def origin_of(found: Fields, scope: DecodeScope) -> Origin:
    """The origin that a response names."""
    return scope.origin(text(found.get("model")), text(found.get("id")) or None)


def read_end(found: Fields, scope: DecodeScope) -> dict[str, Any]:
    """What a response says beside its blocks: the fields of a reply, and of a stream's ReplyEnd."""
    raw = text(found.get("stop_reason"))
    return {
        "finish_reason": FINISH_REASONS.get(raw, "other"),
        "raw_finish_reason": raw or None,
        "usage": read_usage(found.get("usage")),
        "origin": origin_of(found, scope),
        "losses": tuple(_removals(found)),
        "details": left_over(found, PLACED) or None,
    }


def read_usage(figures: JSONValue) -> Usage:
    """The tokens of a call. The vendor counts cached input apart from the rest; here the input is all of it."""
    found = fields(figures)
    if not found:
        return Usage()
    fresh, read = first_count(found.get("input_tokens")), first_count(found.get("cache_read_input_tokens"))
    written = first_count(found.get("cache_creation_input_tokens"))
    return Usage.counted(
        found,
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        output_tokens=first_count(found.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=first_count(fields(found.get("output_tokens_details")).get("thinking_tokens")),
    )


def _removals(found: Fields) -> list[Loss]:
    """What the server left out of the request by itself: thinking that it could not use."""
    changes = [fields(change) for change in items(found.get("input_transformations"))]
    return [
        Loss(
            kind="dropped",
            path=text(change.get("path")) or f"input_transformations[{index}]",
            reason=f"the server removed it ({text(change.get('reason')) or 'for no reason given'})",
        )
        for index, change in enumerate(changes)
        if change.get("type") == "thinking_dropped"
    ]


def decode_block(block: JSONValue, scope: DecodeScope) -> Block:
    """The part or the option call that a content block is; an opaque part for one of an unknown shape."""
    found = fields(block)
    reader = READERS.get(text(found.get("type")))
    return (reader(found, scope) if reader else None) or opaque_block(block)


def _text(found: Fields, scope: DecodeScope) -> Block | None:
    if not isinstance(found.get("text"), str):
        return None
    citations = tuple([_citation(each) for each in items(found.get("citations"))])
    return TextPart(text=found["text"], citations=citations, state=left_over(found, _TEXT_FIELDS) or None)


def _citation(source: JSONValue) -> Citation:
    """A citation; the vendor's offsets are those of the document, not of the text, and stay in the source."""
    found = fields(source)
    return Citation(
        kind=text(found.get("type")) or "citation",
        url=text(found.get("url")) or None,
        title=text(found.get("title")) or text(found.get("document_title")) or None,
        cited_text=text(found.get("cited_text")) or None,
        file_id=text(found.get("file_id")) or None,
        source=source,
    )


def _thinking(found: Fields, scope: DecodeScope) -> Block | None:
    return ReasoningPart(text=text(found.get("thinking")), state=without(found, "thinking"))


def _call(found: Fields, scope: DecodeScope) -> Block | None:
    state = left_over(found, _CALL_FIELDS) or None
    return scope.read_call(text(found.get("id")), text(found.get("name")), found.get("input"), state)


def opaque_block(block: JSONValue) -> OpaquePart:
    """A block as it is; it opens or closes a pair where its type does."""
    found = fields(block)
    kind = text(found.get("type"))
    if kind in OPENERS and (pair_id := text(found.get("id"))):
        return OpaquePart(dialect=NAME, block=block, pair_id=pair_id, pair="opens")
    if kind.endswith(CLOSER) and (pair_id := text(found.get("tool_use_id"))):
        return OpaquePart(dialect=NAME, block=block, pair_id=pair_id, pair="closes")
    return OpaquePart(dialect=NAME, block=block)


READERS: Mapping[str, Callable[[Fields, DecodeScope], Block | None]] = {
    "text": _text,
    **dict.fromkeys(REASONING, _thinking),
    "tool_use": _call,
}
"""Block type → what reads it; every other block is opaque."""
