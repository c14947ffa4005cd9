"""A v2 chat response → reply; everything of the body is in it, and a stream's events end here, too.

    content text ─▶ text     thinking ─▶ reasoning     another block ─▶ opaque     tool_plan ─▶ reasoning
    tool_calls ─▶ calls      citations ─▶ on the text or thoughts that they stand in

Thoughts have what else their block says as state, so that encoding gives it back (law 3). https://docs.cohere.com/reference/chat
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from sabir import Citation, OpaquePart, OptionCallPayload, ReasoningPart, Reply, TextPart, Usage
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
from sabir.errors import ResponseInvalid

from sabir_cohere.errors import ERRORS

Block: TypeAlias = KnownPart | OptionCallPayload
PLAN, CONTENT, CALLS = 0, 1, 1000
"""Where the blocks of a message stand; content and calls take as many places as they need."""
FINISH_REASONS: Mapping[str, FinishReason] = {
    "COMPLETE": "stop", "STOP_SEQUENCE": "stop", "MAX_TOKENS": "length", "TOOL_CALL": "option_calls", "ERROR": "error",
    "TIMEOUT": "error",
}  # fmt: skip


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """A whole response → reply; ResponseInvalid, or the CallError that the body reports."""
    found = scope.read_object(body)
    if text_or_empty(found.get("message")):
        raise ERRORS.report(found, scope)
    if not object_or_empty(found.get("message")):
        raise ResponseInvalid(f"{scope.target} answered without a message; expected one: send the request again")
    builder = ReplyBuilder(scope)
    for _, block in read_blocks(object_or_empty(found["message"]), scope):
        builder.add(block)
    return builder.finish(**read_ending(found, scope))


def read_ending(found: Fields, scope: DecodeScope) -> dict[str, Any]:
    """What a reply holds beside its messages, by the names that ReplyBuilder.finish and ReplyEnd share."""
    raw, message = text_or_empty(found.get("finish_reason")), object_or_empty(found.get("message"))
    details = unknown_fields(found, ("id", "finish_reason", "message", "usage"))
    further = unknown_fields(message, ("role", "content", "tool_plan", "tool_calls", "citations"))
    return {
        "finish_reason": FINISH_REASONS.get(raw, "other"),
        "raw_finish_reason": raw or None,
        "usage": _usage(object_or_empty(found.get("usage"))),
        "origin": scope.origin(None, text_or_empty(found.get("id"))),
        "details": {**details, **({"message": further} if further else {})} or None,
    }


def _usage(found: Fields) -> Usage:
    tokens = object_or_empty(found.get("tokens")) or object_or_empty(found.get("billed_units"))
    return Usage(
        input_tokens=first_whole_number(tokens.get("input_tokens")),
        output_tokens=first_whole_number(tokens.get("output_tokens")),
        cache_read_tokens=first_whole_number(found.get("cached_tokens")),
        details=dict(found) or None,
    )


def read_blocks(message: Fields, scope: DecodeScope) -> Iterator[tuple[int, Block]]:
    """An assistant message's blocks in their order, each with its place."""
    content = list_or_empty(message.get("content"))
    cited: dict[int, list[Any]] = {}
    for citation in list_or_empty(message.get("citations")):
        index = min(first_whole_number(object_or_empty(citation).get("content_index")) or 0, max(len(content) - 1, 0))
        cited.setdefault(PLAN if object_or_empty(citation).get("type") == "PLAN" else CONTENT + index, []).append(
            citation
        )
    if plan := text_or_empty(message.get("tool_plan")):
        yield PLAN, ReasoningPart(text=plan, state={"tool_plan": True, **_cited(cited.get(PLAN))})
    for place, block in enumerate(content, CONTENT):
        yield place, _part(object_or_empty(block), block, cited.get(place), scope)
    for place, call in enumerate(list_or_empty(message.get("tool_calls")), CALLS):
        function = object_or_empty(object_or_empty(call).get("function"))
        identifier, name = text_or_empty(object_or_empty(call).get("id")), text_or_empty(function.get("name"))
        yield place, scope.read_call(identifier, name, function.get("arguments"))


def _part(found: Fields, block: JSONValue, cited: list[Any] | None, scope: DecodeScope) -> KnownPart:
    kind = text_or_empty(found.get("type"))
    said, further = text_or_empty(found.get(kind)), without_fields(found, kind)
    match kind:
        case "text":
            state = further if further.keys() != {"type"} else None
            return TextPart(text=said, citations=tuple(map(_citation, cited or ())), state=state)
        case "thinking":
            return ReasoningPart(text=said, state={**further, **_cited(cited)} if said else None)
        case _:
            return OpaquePart(dialect=scope.target.dialect, block=block)


def _cited(citations: list[Any] | None) -> dict[str, Any]:
    return {"citations": citations} if citations else {}


def _citation(citation: JSONValue) -> Citation:
    found = object_or_empty(citation)
    source = object_or_empty(next(iter(list_or_empty(found.get("sources"))), None))
    about = object_or_empty(source.get("document") or source.get("tool_output"))
    return Citation(
        kind=text_or_empty(source.get("type")) or "citation",
        url=text_or_empty(about.get("url")) or None,
        title=text_or_empty(about.get("title")) or None,
        cited_text=text_or_empty(found.get("text")) or None,
        start=first_whole_number(found.get("start")),
        end=first_whole_number(found.get("end")),
        source=citation,
    )
