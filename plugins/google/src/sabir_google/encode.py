"""Turns → contents; a leaf function for each kind of piece.

    system, user   one `user` content a turn            assistant   one `model` content a turn
    results        one `user` content: a functionResponse for each call of the turn before, in their order, and no
                   other part, because a content with others is read as the model's own

Order: a conversation starts with the user, and a turn with calls follows a user turn or results; where neither
precedes it, a user text of a few dots is inserted (loss: synthesized).

Identifiers: a call that came with the vendor's own id goes back with an id, and so does its result. It is that id,
except that a second call with the same id gets another one, by which results can be told apart (loss: rewritten). A
call without an id, or from elsewhere, gets none: the wire pairs by order too, and older endpoints of Google Cloud
refuse the field (vercel/ai#15891, langchainjs#10292).

Thought signatures go back on the part that they came on. From Gemini 3 on, the first call of every step must carry
one: a call from elsewhere gets the documented dummy. https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sabir import MediaPart, OpaquePart, OptionResultPayload, ReasoningPart, RefusalPart, TextPart
from sabir.authoring import Entry, Fields, JSONValue, KnownPart, LossLog, Turn, TurnScope, object_or_empty

from sabir_google.settings import camel, spelled

Item = dict[str, Any]
"""A content or a part of one: a JSON object of the wire."""

FILLER: Mapping[str, JSONValue] = {"role": "user", "parts": [{"text": "…"}]}
"""The user's text where the wire requires a user content and there is none."""
WANTS_USER = "the API requires a user message at the start, and a user message or results before calls"
NO_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""The bytes `skip_thought_signature_validator`, which the vendor documents for calls from elsewhere."""
PLAIN_ERROR = "error"
"""The error type of an error with only a message."""
FILES = "https://generativelanguage.googleapis.com/v1beta/files/"
"""The base address of files that were uploaded to the vendor."""

_GENERATION = re.compile(r"(?:^|/)gemini-(?:(\d+)|[a-z-]*latest)")
_ALIASES: Mapping[str, str] = {
    "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "image/jpg": "image/jpeg",
}
"""Spelling of a MIME type → the spelling that the wire knows."""
_ENDINGS: Mapping[str, str] = {
    "aac": "audio/aac", "avi": "video/avi", "csv": "text/csv", "flac": "audio/flac", "heic": "image/heic",
    "heif": "image/heif", "html": "text/html", "jpeg": "image/jpeg", "jpg": "image/jpeg", "json": "application/json",
    "md": "text/markdown", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg",
    "ogg": "audio/ogg", "pdf": "application/pdf", "png": "image/png", "rtf": "application/rtf", "txt": "text/plain",
    "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp", "xml": "application/xml",
}  # fmt: skip
"""Extension of a path or a name → MIME type, if nothing else gives it; never guessed: a wrong one is refused."""


@lru_cache(maxsize=256)
def generation(model: str) -> int:
    """The number after `gemini-`: 3 for `gemini-3.5-flash` and for `latest`; 0 for another model."""
    found = _GENERATION.search(model)
    return int(found[1] or 3) if found else 0


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """The contents of one turn, in order."""
    parts = _PARTS[turn.side](turn, scope, losses)
    if not parts or turn.side != "assistant":
        return [{"role": "user", "parts": parts}] if parts else []
    said = {"role": "model", "parts": parts}
    if turn.follows in ("user", "results") or (turn.follows and not any(entry.wire_id for entry in turn.entries)):
        return [said]
    losses.add("synthesized", WANTS_USER, message=turn.entries[0].message)
    return [FILLER, said]


def system_parts(turns: Sequence[Turn]) -> list[Item]:
    """The parts of the hoisted system turns: only texts, because the tables allow nothing else."""
    return [_said(piece) for turn in turns for entry in turn.entries for piece in entry.pieces]


def _users(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    said: list[JSONValue] = []
    for entry in turn.entries:
        for piece in entry.pieces:
            if piece.kind == "media":
                typed = _typed(piece, entry, scope, losses)
                said += [_shown(each, entry, scope, losses) if each.kind == "media" else _said(each) for each in typed]
            else:
                said.append(piece.block if piece.kind == "opaque" else _said(piece))
    return said


def _typed(piece: KnownPart, entry: Entry, scope: TurnScope, losses: LossLog) -> Sequence[KnownPart]:
    """A piece, or the words for a document whose type neither its maker nor the vendor knows: that is refused."""
    if not isinstance(piece, MediaPart) or piece.modality != "document" or piece.form == "data":
        return (piece,)
    url = _address(piece)
    if url.startswith(FILES) or _type_at(url, piece):
        return (piece,)
    reason = f"{scope.target.dialect} requires a document's type; pass mime=, for example 'application/pdf'"
    words = scope.placeholder_or_drop(reason, piece, entry, losses)
    return (TextPart(text=words),) if words else ()


def _said(piece: KnownPart) -> Item:
    return {"text": "" if isinstance(piece, OpaquePart | MediaPart) else piece.text}


def _shown(piece: MediaPart, entry: Entry, scope: TurnScope, losses: LossLog) -> Item:
    """A medium with its hints; models before Gemini 3 refuse a resolution, but for those that use a computer."""
    hints = {camel(name): spelled(value) for name, value in scope.target.hints_of(piece).items() if value is not None}
    model = scope.target.model
    if "mediaResolution" in hints and generation(model) in (1, 2) and "computer-use" not in model:
        del hints["mediaResolution"]
        losses.lose("dropped", f"{model} does not accept media_resolution of a single part", piece, entry, ".vendor")
    return {**_medium(piece), **hints}


def _medium(piece: MediaPart) -> Item:
    """A medium: bytes in standard base64, or the address of what is elsewhere."""
    if piece.form == "data":
        data = piece.data_url()
        kind = _ALIASES.get(data.mime, data.mime) + data.parameters
        return {"inlineData": {"mimeType": kind, "data": data.base64}}
    url = _address(piece)
    mime = _type_at(url, piece)
    return {"fileData": {**({"mimeType": mime} if mime else {}), "fileUri": url}}


def _address(piece: MediaPart) -> str:
    """Where a medium is that is elsewhere."""
    if piece.form != "file":
        return piece.url
    file = piece.provider_file()[1]
    return file if "://" in file else FILES + file.removeprefix("files/")


def _type_at(url: str, piece: MediaPart) -> str:
    """The type of a medium that is elsewhere: its hint's, else that of its address's or its name's ending, or ""."""
    if hint := piece.mime_type:
        return _ALIASES.get(hint, hint) + piece.mime_parameters
    names = (url.partition("?")[0].partition("#")[0].rpartition("/")[2], piece.name or "")
    return next(filter(None, (_ENDINGS.get(name.rpartition(".")[2].lower()) for name in names)), "")


def _models(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    parts: list[JSONValue] = []
    is_signed = generation(scope.target.model) < 3
    for entry in turn.entries:
        if not entry.wire_id:
            for piece in entry.pieces:
                parts += _piece(piece, entry, scope, losses)
            continue
        part = _call(entry, losses)
        if not is_signed and "thoughtSignature" not in part:
            reason = f"{scope.target.model} requires a thought signature on a step's first call; the documented dummy"
            losses.add("synthesized", f"{reason} was sent", message=entry.message, path="payload.state")
            part["thoughtSignature"] = NO_SIGNATURE
        is_signed = True
        parts.append(part)
    return parts


def _piece(piece: KnownPart, entry: Entry, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """One piece as the part that it came from, with its state if it came from here; or nothing."""
    if isinstance(piece, OpaquePart):
        return [piece.block]
    if isinstance(piece, RefusalPart):
        return [{"text": piece.text}]
    state = entry.state_of(piece)
    beside = object_or_empty(state.get("part")) if state else state
    if isinstance(piece, MediaPart):
        return _own_media(piece, state, entry, scope, losses)
    if not piece.text and "thoughtSignature" not in beside:
        losses.lose("dropped", "the text is empty and has no signature", piece, entry)
        return []
    thought = {"thought": True} if isinstance(piece, ReasoningPart) else {}
    return [{"text": piece.text, **thought, **beside}]


def _own_media(piece: MediaPart, state: Fields, entry: Entry, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """A medium of the model's own; a placeholder text for one from elsewhere."""
    if entry.keeps_state:
        data = piece.data_url()
        blob = {"mimeType": data.type, "data": data.base64, **object_or_empty(state.get("blob"))}
        return [{"inlineData": blob, **object_or_empty(state.get("part"))}]
    reason = f"{scope.target.dialect} accepts a model's media only at the API that created them"
    return [{"text": said}] if (said := scope.placeholder_or_drop(reason, piece, entry, losses)) else []


def _call(entry: Entry, losses: LossLog) -> Item:
    state = entry.call_state
    call = {**object_or_empty(state.get("call")), **_identity(entry), "args": entry.arguments_value(losses)}
    return {"functionCall": call, **object_or_empty(state.get("part"))}


def _identity(entry: Entry) -> Item:
    """Return the name of a call, or of a result's call, and its id if the call came with one of the vendor's."""
    own_id, call = object_or_empty(entry.call_state.get("call")).get("id"), (entry.call or entry).message.call
    is_rewritten = call is not None and entry.wire_id != call.invocation_id
    return {**({"id": entry.wire_id if is_rewritten else own_id} if own_id else {}), "name": entry.wire_name}


def _results(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    return [{"functionResponse": _result(entry, scope, losses)} for entry in turn.entries]


def _result(entry: Entry, scope: TurnScope, losses: LossLog) -> Item:
    """A result under `output`, an error under `error`; an object without these keys is sent as it is."""
    result = entry.result
    identity = _identity(entry)
    if entry.pieces:
        pieces = tuple(each for piece in entry.pieces for each in _typed(piece, entry, scope, losses))
        entry = entry._replace(pieces=pieces)
    found: Item = {**identity, "response": _response(entry, result, losses)}
    if media := [piece for piece in entry.pieces if isinstance(piece, MediaPart)]:
        found["parts"] = [_shown(piece, entry, scope, losses) for piece in media]
        if any(isinstance(piece, MediaPart) for piece in entry.pieces[: -len(media)]):
            reason = "the media of a result were moved after its texts"
            losses.add("relocated", reason, message=entry.message, path="payload.parts")
    return found


def _response(entry: Entry, result: OptionResultPayload, losses: LossLog) -> Item:
    texts = [piece.text for piece in entry.pieces if isinstance(piece, TextPart)] if entry.pieces else []
    said: JSONValue = texts[0] if len(texts) == 1 else texts
    if result.is_error:
        whole = {"type": result.error_type, "message": result.error_message, "retryable": result.retryable}
        is_plain = result.error_type == PLAIN_ERROR and result.retryable is None
        error = result.error_message if is_plain else {name: each for name, each in whole.items() if each is not None}
        return {"error": error, **({"output": said} if texts else {})}
    if texts or entry.pieces:
        return {"output": said} if texts else {}
    if result.parts:
        return {"output": entry.result_text(losses)}
    value = result.plain_result()
    if isinstance(value, dict | list) and _refers(value):
        reason = "the API reads `$ref` in a result as a reference, so the result was sent as JSON text"
        losses.add("rewritten", reason, message=entry.message, path="payload.result")
        return {"output": result.result_json[:]}
    is_whole = isinstance(value, dict) and not value.keys() & {"output", "error"}
    return value if is_whole else {"output": value}


def _refers(value: JSONValue) -> bool:
    if isinstance(value, Mapping):
        return "$ref" in value or any(_refers(each) for each in value.values())
    return isinstance(value, Sequence) and not isinstance(value, str) and any(_refers(each) for each in value)


_PARTS = {"system": _users, "user": _users, "assistant": _models, "results": _results}
"""Side → the function that makes its parts."""
