"""Turns, settings and options → a v2 chat request. https://docs.cohere.com/reference/chat

text, image, thinking ─▶ content     plan ─▶ tool_plan     call ─▶ tool_calls     citation ─▶ citations
result ─▶ a document that the model may cite, where it is an object; else text, and an error as JSON text (UP-09)
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sabir import MediaPart, OpaquePart, Option, ReasoningPart, ResponseFormat, TextPart
from sabir.authoring import (
    Entry,
    Frozen,
    FrozenDict,
    JSONValue,
    LossLog,
    Piece,
    RequestScope,
    Turn,
    TurnScope,
    list_or_empty,
    object_or_empty,
    without_fields,
)

Wire = dict[str, Any]
"""A JSON object of the wire."""
_FIELDS = {
    "max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "p", "stop": "stop_sequences",
    "seed": "seed",
}  # fmt: skip
"""Neutral setting → field that takes its value as it is."""
_CHOICE = "settings.option_choice"
_CHOICES = {None: None, "auto": None, "none": "NONE", "required": "REQUIRED"}
"""Neutral choice → the wire's; all others name an option."""
MOST_STOPS, LEAST_P, MOST_P = 5, 0.01, 0.99


class CohereSettings(Frozen):
    """Settings that only this vendor has; what is in an object the vendor checks, hence Any."""

    k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    safety_mode: str | None = None
    strict_tools: bool | None = None
    documents: tuple[Any, ...] | None = None
    citation_options: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    priority: int | None = None


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """The messages of one turn, in order."""
    match turn.side:
        case "assistant":
            return _assistant(turn, scope, losses)
        case "results":
            return [
                {"role": "tool", "tool_call_id": each.wire_id, "content": _result(each, losses)}
                for each in turn.entries
            ]
    blocks = [_block(piece) for entry in turn.entries for piece in entry.pieces]
    return [{"role": turn.side, "content": _content(blocks)}] if blocks else []


def _block(piece: Piece, state: Mapping[str, Any] = FrozenDict()) -> Wire:
    """A part as the wire has it; what else the vendor said of it is in its state."""
    if isinstance(piece, TextPart | ReasoningPart):
        return {"type": "text", **without_fields(state, "citations"), str(state.get("type", "text")): piece.text}
    assert isinstance(piece, MediaPart)
    is_data = piece.form == "data"
    url = f"data:{piece.data_url().mime};base64,{piece.data_url().base64}" if is_data else piece.url
    return {"type": "image_url", "image_url": {"url": url}}


def _content(blocks: list[Any]) -> str | list[Any]:
    """One text is a string."""
    is_text = len(blocks) == 1 and object_or_empty(blocks[0]).keys() == {"type", "text"}
    return str(blocks[0]["text"]) if is_text else blocks


def _result(entry: Entry, losses: LossLog) -> str | list[Wire]:
    result = entry.message.result
    assert result is not None
    if isinstance(result.result, Mapping):
        return [{"type": "document", "document": {"data": result.result}}]
    said = [TextPart(text=result.error_text)] if result.is_error else []
    texts = [_block(piece) for piece in (*said, *entry.pieces)]
    return _content(texts) if texts else entry.result_text(losses)


def _assistant(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Wire]:
    plan, content, calls, citations = "", list[Any](), list[Wire](), list[Any]()
    for entry in turn.entries:
        if entry.message.call:
            function = {"name": entry.wire_name, "arguments": entry.arguments_text(scope.target, losses)}
            calls.append({"id": entry.wire_id, "type": "function", "function": function})
        for piece in entry.pieces:
            if calls:
                losses.lose("relocated", "calls must come last in a message", piece, entry)
            state = object_or_empty(piece.state) if entry.keeps_state and not isinstance(piece, OpaquePart) else {}
            if isinstance(piece, ReasoningPart) and "tool_plan" in state:
                plan += piece.text
                citations += list_or_empty(state.get("citations"))
            else:
                cited = [*list_or_empty(state.get("citations")), *_sources(piece, entry, losses)]
                citations += [_moved(each, len(content)) for each in cited]
                content.append(piece.block if isinstance(piece, OpaquePart) else _block(piece, state))
    found = {"content": content and _content(content), "tool_plan": plan, "tool_calls": calls, "citations": citations}
    message = {"role": "assistant", **{name: value for name, value in found.items() if value}}
    return [message] if any(found.values()) else []


def _moved(citation: Any, index: int) -> Any:
    """A citation that says in which block it stands, where it does."""
    return {**citation, "content_index": index} if "content_index" in object_or_empty(citation) else citation


def _sources(piece: Piece, entry: Entry, losses: LossLog) -> list[Any]:
    """The citations of a text as the vendor gave them; core reports those that came from elsewhere."""
    cited = piece.citations if isinstance(piece, TextPart) and entry.keeps_state else ()
    if any(citation.source is None for citation in cited):
        losses.lose("dropped", "citations are only sent back in the vendor's own form", piece, entry, ".citations")
    return [citation.source for citation in cited if citation.source is not None]


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Every field but the messages; one that says nothing is left out."""
    vendor, lost = scope.read_vendor(CohereSettings), scope.losses
    body: Wire = {"model": scope.target.model, **{name: scope.setting(each) for each, name in _FIELDS.items()}}
    for index in range(MOST_STOPS, len(body["stop_sequences"] or ())):
        lost.add("dropped", f"the wire takes {MOST_STOPS} stop texts", path=f"settings.stop[{index}]")
        body["stop_sequences"] = body["stop_sequences"][:MOST_STOPS]
    if body["p"] is not None and body["p"] != (near := min(max(body["p"], LEAST_P), MOST_P)):
        lost.add("rewritten", f"the wire takes {LEAST_P} to {MOST_P}; {near} is sent", path="settings.top_p")
        body["p"] = near
    if (effort := scope.setting("reasoning_effort")) is not None:
        body["thinking"] = {"type": "disabled" if effort == "none" else "enabled"}
        if effort != "none" or "thinking" in vendor:
            lost.add(
                "downgraded", "thinking is on or off; a budget is a vendor setting", path="settings.reasoning_effort"
            )
    for absent in ("parallel_options", "prompt_cache"):
        if scope.setting(absent) is not None:
            lost.add("dropped", "the wire has no word for it; the model decides", path=f"settings.{absent}")
    body |= {"response_format": _format(scope), **_tools(scope), **vendor}
    return {name: value for name, value in body.items() if value is not None}


def _tools(scope: RequestScope) -> Wire:
    """The options, and which is to be chosen: one by its name by offering it alone."""
    choice, offered = scope.setting("option_choice"), scope.options
    if choice not in _CHOICES:
        name = scope.name_choice(choice)
        offered = tuple(option for option in offered if scope.option_names[option.name] == name)
        scope.losses.add("rewritten", "the wire takes no name; that option is offered alone", path=_CHOICE)
    elif choice is not None and not offered:
        scope.losses.add("dropped", "no options were passed", path=_CHOICE)
    tools = [{"type": "function", "function": _function(option, scope)} for option in offered]
    return {"tools": tools, "tool_choice": _CHOICES.get(choice, "REQUIRED")} if tools else {}


def _function(option: Option, scope: RequestScope) -> Wire:
    described = {"description": option.description} if option.description else {}
    return {"name": scope.option_names[option.name], **described, "parameters": option.parameters}


def _format(scope: RequestScope) -> Wire | None:
    """The schema that replies are held to; the wire takes none beside options, and its name only as a title."""
    wanted: ResponseFormat | None = scope.setting("response_format")
    if wanted and not scope.options:
        described = {"description": wanted.description} if wanted.description else {}
        return {"type": "json_object", "json_schema": {"title": wanted.name, **described, **wanted.schema_view}}
    if wanted:
        scope.losses.add("dropped", "the wire takes it only without options", path="settings.response_format")
    return None
