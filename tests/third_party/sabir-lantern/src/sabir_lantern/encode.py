"""Turns, options and settings → the request's fields.

    a turn   ─▶ {"role": "human" | "machine", "parts": [{"kind": …}, …]}      results are parts of the human
    options  ─▶ "tools"      settings ─▶ fields of other names      leading system text ─▶ "brief"

A part's `state` contains the vendor's own fields that decode.py stored, such as a thought's seal.
"""

from collections.abc import Mapping, Sequence

from sabir import MediaPart, OpaquePart
from sabir.authoring import (
    Entry,
    JSONValue,
    LossLog,
    Piece,
    ReasoningEffort,
    RequestScope,
    Turn,
    TurnScope,
    fit_effort,
)

from sabir_lantern.settings import LanternSettings

ROLES = {"user": "human", "results": "human", "assistant": "machine"}
KINDS = {"text": "text", "reasoning": "thought"}
SETTINGS = {"max_output_tokens": "max_tokens", "temperature": "temperature", "stop": "stop_words"}
"""Neutral setting → request field in which its value is sent unchanged."""
ABSENT = ("top_p", "seed", "parallel_options", "response_format", "prompt_cache")
EFFORTS: Mapping[ReasoningEffort, str] = {"low": "quick", "high": "deep"}


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """Return the items of the request for one turn: here one item."""
    parts = [part for entry in turn.entries for part in _entry(entry, losses)]
    return [{"role": ROLES[turn.side], "parts": parts}]


def _entry(entry: Entry, losses: LossLog) -> list[JSONValue]:
    """Return the parts for one message: a call, a result, or the parts of a message with parts."""
    if call := entry.message.call:
        fields = {"kind": "call", "id": entry.wire_id, "name": entry.wire_name, "args": entry.arguments_value(losses)}
        return [{**entry.state_of(call), **fields}]
    if entry.message.result:
        return [_result(entry, losses)]
    return [_part(piece, entry) for piece in entry.pieces]


def _result(entry: Entry, losses: LossLog) -> JSONValue:
    """Return the part for an option result. The API has one text for a result, so several texts become lines."""
    result, texts = entry.result, [piece.text for piece in entry.pieces if piece.kind == "text"]
    fields: dict[str, JSONValue] = {"kind": "result", "call": entry.wire_id}
    if texts or not result.is_error:
        fields["text"] = "\n".join(texts) if texts else entry.result_text(losses)
    if result.is_error:
        fields["failed"] = {"name": result.error_type, "about": result.error_message, "again": result.retryable}
    return fields


def _part(piece: Piece, entry: Entry) -> JSONValue:
    if isinstance(piece, OpaquePart):
        return piece.block
    if isinstance(piece, MediaPart):
        data, named = piece.data_url(), {"name": piece.name} if piece.name else {}
        return {"kind": "image", **named, "mime": data.mime, "base64": data.base64}
    return {**entry.state_of(piece), "kind": KINDS[piece.kind], "text": piece.text}


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return every field of the request except the turns, without empty fields. The API has no field for the option
    choice. Without options the model calls none, so the choice "none" offers none.
    """
    pieces = [piece for turn in scope.system for entry in turn.entries for piece in entry.pieces]
    choice = scope.setting("option_choice")
    if choice not in (None, "auto", "none"):
        scope.losses.add("dropped", "the model always chooses itself", path="settings.option_choice")
    effort = fit_effort(scope, unknown=tuple(EFFORTS))
    body = {
        "model": scope.target.model,
        "brief": "\n\n".join(piece.text for piece in pieces if piece.kind == "text"),
        "tools": [
            {"name": scope.option_names[each.name], "about": each.description, "args": each.parameters}
            for each in scope.options
            if choice != "none"
        ],
        **scope.neutral_fields(SETTINGS, absent=ABSENT),
        "effort": effort and EFFORTS[effort],
        **scope.read_vendor(LanternSettings),
    }
    return {name: value for name, value in body.items() if value not in (None, "", [])}
