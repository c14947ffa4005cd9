"""Turns → contents, with one function for each kind of part.

    system, user   one `user` content a turn            assistant   one `model` content a turn
    results        one `user` content: a functionResponse for each call of the preceding turn, in their order, and no
                   other part, because the API reads a content with other parts as the model's own

Order: a conversation starts with the user, and a turn with calls follows a user turn or results. Otherwise a user
content with the text "…" is inserted (loss: synthesized).

Identifiers: a call that arrived with the vendor's own id is sent back with this id, and so is its result. A second call
with the same id gets another id, so that the results can be distinguished (loss: rewritten). A call without an id, or
from another API, gets no id: the API also pairs by order, and older endpoints of Google Cloud refuse the field
(vercel/ai#15891, langchainjs#10292).

Thought signatures are sent back with the part with which they arrived. From Gemini 3 on, the first call of every turn
needs a signature: a call without one gets the dummy that Google documents.
https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sabir import MediaPart, OpaquePart, OptionResultPayload, ReasoningPart, RefusalPart, TextPart
from sabir.authoring import Entry, Fields, JSONValue, KnownPart, LossLog, Turn, TurnScope, object_or_empty

from sabir_google.settings import camel, spelled

Item = dict[str, Any]
"""A content, or a part of a content, as a JSON object of the request."""

FILLER: Mapping[str, JSONValue] = {"role": "user", "parts": [{"text": "…"}]}
"""The user content that is inserted if the API requires a user content and there is none."""
WANTS_USER = (
    "the API requires a user message at the start, and a user message or results before calls; a user message '…' was "
    "added"
)
NO_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""Base64 of "skip_thought_signature_validator", the signature that Google documents for calls without a signature."""
PLAIN_ERROR = "error"
"""The error type of error results that are decoded from a response with only an error message."""
FILES = "https://generativelanguage.googleapis.com/v1beta/files/"
"""The start of the URLs of files that were uploaded to the vendor."""

_GENERATION = re.compile(r"(?:^|/)gemini-(?:(\d+)|[a-z-]*latest)")
_ALIASES: Mapping[str, str] = {
    "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "image/jpg": "image/jpeg",
}
"""MIME type → the name of the same type that the API accepts."""
_ENDINGS: Mapping[str, str] = {
    "aac": "audio/aac", "avi": "video/avi", "csv": "text/csv", "flac": "audio/flac", "heic": "image/heic",
    "heif": "image/heif", "html": "text/html", "jpeg": "image/jpeg", "jpg": "image/jpeg", "json": "application/json",
    "md": "text/markdown", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg",
    "ogg": "audio/ogg", "pdf": "application/pdf", "png": "image/png", "rtf": "application/rtf", "txt": "text/plain",
    "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp", "xml": "application/xml",
}  # fmt: skip
"""Extension of a URL's path or a name → MIME type of a medium without a type. Other extensions get no type, because the
API refuses a wrong one.
"""


@lru_cache(maxsize=256)
def generation(model: str) -> int:
    """Return the generation in a Gemini model's name, such as 3 for `gemini-3.5-flash`. A Gemini name with `latest`
    instead of a number has the generation 3, and any other name 0.
    """
    found = _GENERATION.search(model)
    return int(found[1] or 3) if found else 0


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """Return the contents of one turn, in order. A user content comes first if the API requires one (loss:
    synthesized).
    """
    parts = _PARTS[turn.side](turn, scope, losses)
    if not parts or turn.side != "assistant":
        return [{"role": "user", "parts": parts}] if parts else []
    said = {"role": "model", "parts": parts}
    if turn.follows in ("user", "results") or (turn.follows and not any(entry.wire_id for entry in turn.entries)):
        return [said]
    losses.add("synthesized", WANTS_USER, message=turn.entries[0].message)
    return [FILLER, said]


def system_parts(turns: Sequence[Turn]) -> list[Item]:
    """Return the parts of the leading system turns. They are all texts, because the tables allow nothing else."""
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
    """Return a tuple with the piece. The API refuses a document at another place (a URL or file) without a known type:
    instead, return a placeholder text or nothing, with a loss.
    """
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
    """Return the part for a medium, with its hints. For Gemini 1 and 2, except the computer-use models, the hint
    `media_resolution` is removed, because they refuse it (loss: dropped).
    """
    hints = {camel(name): spelled(value) for name, value in scope.target.hints_of(piece).items() if value is not None}
    model = scope.target.model
    if "mediaResolution" in hints and generation(model) in (1, 2) and "computer-use" not in model:
        del hints["mediaResolution"]
        reason = f"{model} does not accept the hint media_resolution; use the vendor setting of that name for all media"
        losses.lose("dropped", reason, piece, entry, ".vendor")
    return {**_medium(piece), **hints}


def _medium(piece: MediaPart) -> Item:
    """Return the part for a medium without hints: `inlineData` with base64, or `fileData` with a URL."""
    if piece.form == "data":
        data = piece.data_url()
        kind = _ALIASES.get(data.mime, data.mime) + data.parameters
        return {"inlineData": {"mimeType": kind, "data": data.base64}}
    url = _address(piece)
    mime = _type_at(url, piece)
    return {"fileData": {**({"mimeType": mime} if mime else {}), "fileUri": url}}


def _address(piece: MediaPart) -> str:
    """Return the URL of a medium that has a URL or is an uploaded file."""
    if piece.form != "file":
        return piece.url
    file = piece.provider_file()[1]
    return file if "://" in file else FILES + file.removeprefix("files/")


def _type_at(url: str, piece: MediaPart) -> str:
    """Return the MIME type of a medium at a URL: from `mime`, else from the extension of the URL or the name, else
    "".
    """
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
            reason = (
                f"{scope.target.model} requires a thought signature with a turn's first call; Google's dummy was sent"
            )
            losses.add("synthesized", reason, message=entry.message, path="payload.state")
            part["thoughtSignature"] = NO_SIGNATURE
        is_signed = True
        parts.append(part)
    return parts


def _piece(piece: KnownPart, entry: Entry, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """Return a list with the part for one piece of the assistant, with its state if it came from this API. Empty, with
    a loss, for an empty text without a signature.
    """
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
    """Return a list with the part for the assistant's medium. A medium from another API becomes a placeholder text, or
    nothing, with a loss.
    """
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
    """Return the fields `name` and, if the call arrived with an id of the vendor, `id` of a call or of its result."""
    own_id, call = object_or_empty(entry.call_state.get("call")).get("id"), (entry.call or entry).message.call
    is_rewritten = call is not None and entry.wire_id != call.invocation_id
    return {**({"id": entry.wire_id if is_rewritten else own_id} if own_id else {}), "name": entry.wire_name}


def _results(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    return [{"functionResponse": _result(entry, scope, losses)} for entry in turn.entries]


def _result(entry: Entry, scope: TurnScope, losses: LossLog) -> Item:
    """Return the functionResponse for a result: `output` with the result or `error` with the error, and the media. An
    object without these two keys is sent unchanged instead of `output`.
    """
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
"""Side of a turn → the function that returns its parts."""
