"""Turns, options and settings → the request's fields.

    a turn   ─▶ {"by": "user" | "model" | "option", "parts": [{"type": …}, …]}
    options  ─▶ "tools", "choice"      settings ─▶ fields of other names      leading system text ─▶ "instructions"

Change: the tables, and the JSON that the functions return. Core calls these functions only with content that TABLES in
dialect.py accept. A part's `state` contains the vendor's own fields that decode.py stored, such as signatures.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sabir import MediaPart, OpaquePart
from sabir.authoring import (
    Entry,
    JSONValue,
    LossLog,
    Piece,
    RequestScope,
    Turn,
    TurnScope,
    object_or_empty,
)

from sabir_acme.settings import AcmeSettings

BY = {"user": "user", "assistant": "model", "results": "option"}
TYPES = {"text": "text", "reasoning": "thought", "refusal": "refusal"}
SETTINGS = {
    "max_output_tokens": "limit", "temperature": "temperature", "top_p": "top_p", "stop": "stops", "seed": "seed",
    "reasoning_effort": "effort", "parallel_options": "parallel", "prompt_cache": "cache",
}  # fmt: skip
"""Neutral setting → request field in which its value is sent unchanged."""


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """Return the items of the request for one turn: here one item."""
    parts = [part for entry in turn.entries for part in _entry(entry, scope, losses)]
    return [{"by": BY[turn.side], "parts": parts}]


def _entry(entry: Entry, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """Return the parts for one message: a call, a result, or the parts of a message with parts."""
    parts = [_part(piece, entry) for piece in entry.pieces]
    if call := entry.message.call:
        call_fields = {"type": "call", "id": entry.wire_id, "name": entry.wire_name}
        return [{**_own(call.state, entry), **call_fields, "arguments": entry.arguments_text(scope.target, losses)}]
    if (result := entry.message.result) is None:
        return parts
    if not result.is_error:
        parts = parts or [{"type": "text", "text": entry.result_text(losses)}]
        return [{"type": "result", "id": entry.wire_id, "parts": parts}]
    error = {"type": result.error_type, "message": result.error_message, "retryable": result.retryable}
    return [{"type": "result", "id": entry.wire_id, "parts": parts, "error": error}]


def _part(piece: Piece, entry: Entry) -> JSONValue:
    if isinstance(piece, OpaquePart):
        return piece.block
    own = _own(piece.state, entry)
    if not isinstance(piece, MediaPart):
        return {**own, "type": TYPES[piece.kind], "text": piece.text}
    named = {"type": piece.modality} | ({"name": piece.name} if piece.name else {})
    if piece.form == "url":
        return {**own, **named, "url": piece.url}
    data = piece.data_url()
    return {**own, **named, "mime": data.mime, "data": data.base64}


def _own(state: JSONValue, entry: Entry) -> Mapping[str, Any]:
    """Return the vendor's own fields of a part or call; {} if the message did not come from this API and model."""
    return object_or_empty(state) if entry.keeps_state else {}


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return every field of the request except the turns, without empty fields."""
    choice, shape = scope.setting("option_choice"), scope.setting("response_format")
    system_pieces = [piece for turn in scope.system for entry in turn.entries for piece in entry.pieces]
    body = {
        "model": scope.target.model,
        "instructions": "\n\n".join(piece.text for piece in system_pieces if piece.kind == "text"),
        "tools": [
            {"name": scope.option_names[each.name], "description": each.description, "parameters": each.parameters}
            for each in scope.options
        ],
        "choice": choice if choice in (None, *RequestScope.CHOICES) else {"name": scope.name_choice(choice)},
        "shape": shape and {"name": shape.name, "schema": shape.schema_view, "description": shape.description},
        **{field: scope.setting(setting) for setting, field in SETTINGS.items()},
        **scope.read_vendor(AcmeSettings),
    }
    return {name: value for name, value in body.items() if value not in (None, "", [])}
