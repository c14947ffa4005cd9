"""Turns → contents, with one function for each kind of part.

    system, user   one `user` content a turn            assistant   one `model` content a turn
    results        one `user` content: a functionResponse for each call of the preceding turn, in the calls' order, and
                   no other part, because the API reads a content with other parts as the model's own

Order: a conversation must start with the user, and a turn with calls must follow a user turn or results. If not, a user
content with the text "…" is inserted (loss: synthesized).

Identifiers: a call that arrived with the vendor's own id is sent back with this id, and so is its result. A second call
with the same id is sent with another id, so that the results can be distinguished (loss: rewritten). A call without an
id, or from another API, is sent without an id, because the API also pairs by order, and older endpoints of Google Cloud
refuse the field (vercel/ai#15891, langchainjs#10292).

A thought signature is sent back in the part in which it arrived. From Gemini 3 on, the first call of every turn
needs a signature. If that call has none, it is sent with the dummy signature that Google documents.
https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sabir import MediaPart, OpaquePart, OptionResultPayload, ReasoningPart, RefusalPart, TextPart
from sabir.authoring import Entry, Fields, JSONValue, LossLog, Piece, Turn, TurnScope, object_or_empty

from sabir_google.settings import camel_fields

ContentObject = dict[str, Any]
"""A content, or a part of a content, as a JSON object of the request."""
FILLER: Mapping[str, JSONValue] = {"role": "user", "parts": [{"text": "…"}]}
"""The user content that is inserted if the API requires a user content and there is none."""
NEEDS_USER = (
    "the API requires a user message at the start, and a user message or results before calls; a user message '…' was "
    "added"
)
"""The reason of the loss if FILLER is inserted before a turn."""
DUMMY_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""Base64 of "skip_thought_signature_validator", the signature that Google documents for calls without a signature."""
STORED_ERROR_TYPE = "error"
"""The error type of error results that are decoded from a stored functionResponse with only an error message."""
FILES_URL = "https://generativelanguage.googleapis.com/v1beta/files/"
"""The start of the URLs of files that were uploaded to the vendor."""

_GENERATION = re.compile(r"(?:^|/)gemini-(?:(\d+)|[a-z-]*latest)")
_ALIASES: Mapping[str, str] = {
    "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "image/jpg": "image/jpeg",
}
"""MIME type → the name of the same type that the API accepts."""
_EXTENSIONS: Mapping[str, str] = {
    "aac": "audio/aac", "avi": "video/avi", "csv": "text/csv", "flac": "audio/flac", "heic": "image/heic",
    "heif": "image/heif", "html": "text/html", "jpeg": "image/jpeg", "jpg": "image/jpeg", "json": "application/json",
    "md": "text/markdown", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg",
    "ogg": "audio/ogg", "pdf": "application/pdf", "png": "image/png", "rtf": "application/rtf", "txt": "text/plain",
    "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp", "xml": "application/xml",
}  # fmt: skip
"""Extension of a URL's path or a name → MIME type of a medium without a type. For other extensions, no type is sent,
because the API refuses a wrong type.
"""


@lru_cache(maxsize=256)
def generation(model: str) -> int:
    """Return the generation in a Gemini model's name, such as 3 for `gemini-3.5-flash`. A Gemini name with `latest`
    instead of a number has the generation 3, and any other name 0.
    """
    match = _GENERATION.search(model)
    return int(match[1] or 3) if match else 0


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """Return the contents of one turn, in order. A user content comes first if the API requires one (loss:
    synthesized).
    """
    parts = _PARTS[turn.side](turn, scope, losses)
    if not parts or turn.side != "assistant":
        return [{"role": "user", "parts": parts}] if parts else []
    content = {"role": "model", "parts": parts}
    if turn.follows in ("user", "results") or (turn.follows and not any(entry.wire_id for entry in turn.entries)):
        return [content]
    losses.add("synthesized", NEEDS_USER, message=turn.entries[0].message)
    return [FILLER, content]


def system_parts(turns: Sequence[Turn]) -> list[ContentObject]:
    """Return the parts of the leading system turns. All parts are texts, because the tables allow only texts."""
    return [_text_part(piece) for turn in turns for entry in turn.entries for piece in entry.pieces]


def _user_parts(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """Return the parts of a system or user turn, with placeholders for documents whose type is unknown."""
    parts: list[JSONValue] = []
    for entry in turn.entries:
        for piece in entry.pieces:
            if piece.kind == "media":
                pieces = _require_document_type(piece, entry, scope, losses)
                parts += [_media_part(each, entry, scope, losses) for each in pieces]
            else:
                parts.append(piece.block if piece.kind == "opaque" else _text_part(piece))
    return parts


def _require_document_type(piece: Piece, entry: Entry, scope: TurnScope, losses: LossLog) -> Sequence[Piece]:
    """Return a tuple with the piece. If it is a document with a URL whose MIME type is unknown, the API would refuse
    it: report a loss, and return a placeholder text or nothing.
    """
    if not isinstance(piece, MediaPart) or piece.modality != "document" or piece.form == "data":
        return (piece,)
    url = _file_uri(piece)
    if url.startswith(FILES_URL) or _mime_type(url, piece):
        return (piece,)
    reason = f"{scope.target.dialect} requires a document's type; pass mime=, for example 'application/pdf'"
    placeholder = scope.placeholder_or_drop(reason, piece, entry, losses)
    return (TextPart(text=placeholder),) if placeholder else ()


def _text_part(piece: Piece) -> ContentObject:
    return {"text": "" if isinstance(piece, OpaquePart | MediaPart) else piece.text}


def _media_part(piece: Piece, entry: Entry, scope: TurnScope, losses: LossLog) -> ContentObject:
    """Return the part for a medium with its hints, or for the placeholder text of a medium.

    The hint `media_resolution` is dropped with a loss for Gemini 1 and 2, except the computer-use models, because these
    models refuse it.
    """
    if not isinstance(piece, MediaPart):
        return _text_part(piece)
    hints = {name: camel_fields(value) for name, value in camel_fields(scope.target.hints_of(piece)).items()}
    model = scope.target.model
    if "mediaResolution" in hints and generation(model) in (1, 2) and "computer-use" not in model:
        del hints["mediaResolution"]
        reason = f"{model} does not accept the hint media_resolution; use the vendor setting of that name for all media"
        losses.lose("dropped", reason, piece, entry, ".vendor")
    return {**_inline_or_file_data(piece), **hints}


def _inline_or_file_data(piece: MediaPart) -> ContentObject:
    """Return the part for a medium without hints: `inlineData` with base64, or `fileData` with a URL."""
    if piece.form == "data":
        data_url = piece.data_url()
        kind = _ALIASES.get(data_url.mime, data_url.mime) + data_url.parameters
        return {"inlineData": {"mimeType": kind, "data": data_url.base64}}
    url = _file_uri(piece)
    mime = _mime_type(url, piece)
    return {"fileData": {**({"mimeType": mime} if mime else {}), "fileUri": url}}


def _file_uri(piece: MediaPart) -> str:
    """Return the URL of a medium that has a URL or is an uploaded file."""
    if piece.form != "file":
        return piece.url
    file = piece.provider_file()[1]
    return file if "://" in file else FILES_URL + file.removeprefix("files/")


def _mime_type(url: str, piece: MediaPart) -> str:
    """Return the MIME type of a medium at a URL, from `mime`, the URL's extension or the name's extension. "" if none
    of them is known.
    """
    if hint := piece.mime_type:
        return _ALIASES.get(hint, hint) + piece.mime_parameters
    names = (url.partition("?")[0].partition("#")[0].rpartition("/")[2], piece.name or "")
    return next(filter(None, (_EXTENSIONS.get(name.rpartition(".")[2].lower()) for name in names)), "")


def _model_parts(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """Return the parts of an assistant turn. From Gemini 3 on, a first call without a signature gets the dummy one."""
    parts: list[JSONValue] = []
    is_signed = generation(scope.target.model) < 3
    for entry in turn.entries:
        if not entry.wire_id:
            for piece in entry.pieces:
                parts += _encode_model_piece(piece, entry, scope, losses)
            continue
        part = _function_call_part(entry, losses)
        if not is_signed and "thoughtSignature" not in part:
            rule = f"{scope.target.model} requires one with a turn's first call"
            reason = f"Google's dummy thought signature was sent, because {rule}"
            losses.add("synthesized", reason, message=entry.message, path="payload.state")
            part["thoughtSignature"] = DUMMY_SIGNATURE
        is_signed = True
        parts.append(part)
    return parts


def _encode_model_piece(piece: Piece, entry: Entry, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """Return a list with the part for one piece of the assistant, including its state if it came from this API. For an
    empty text without a signature, report a loss and return an empty list.
    """
    if isinstance(piece, OpaquePart):
        return [piece.block]
    if isinstance(piece, RefusalPart):
        return [{"text": piece.text}]
    state = entry.state_of(piece)
    part_fields = object_or_empty(state.get("part")) if state else state
    if isinstance(piece, MediaPart):
        return _model_media(piece, state, entry, scope, losses)
    if not piece.text and "thoughtSignature" not in part_fields:
        losses.lose("dropped", "the text is empty and has no signature", piece, entry)
        return []
    thought = {"thought": True} if isinstance(piece, ReasoningPart) else {}
    return [{"text": piece.text, **thought, **part_fields}]


def _model_media(piece: MediaPart, state: Fields, entry: Entry, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """Return a list with the part for the assistant's medium. For a medium from another API, report a loss, and return
    a list with a placeholder text or an empty list.
    """
    if entry.keeps_state:
        data_url = piece.data_url()
        blob = {"mimeType": data_url.type, "data": data_url.base64, **object_or_empty(state.get("blob"))}
        return [{"inlineData": blob, **object_or_empty(state.get("part"))}]
    reason = f"{scope.target.dialect} accepts a model's media only at the API that created them"
    return [{"text": placeholder}] if (placeholder := scope.placeholder_or_drop(reason, piece, entry, losses)) else []


def _function_call_part(entry: Entry, losses: LossLog) -> ContentObject:
    """Return the part for a call, with the fields and the signature that it had when it arrived from this API."""
    state = entry.call_state
    call = {**object_or_empty(state.get("call")), **_call_identity(entry), "args": entry.arguments_value(losses)}
    return {"functionCall": call, **object_or_empty(state.get("part"))}


def _call_identity(entry: Entry) -> ContentObject:
    """Return the field `name` of a call or its result, and the field `id` if the call arrived with an id of the
    vendor.
    """
    own_id, call = object_or_empty(entry.call_state.get("call")).get("id"), (entry.call or entry).message.call
    is_rewritten = call is not None and entry.wire_id != call.invocation_id
    return {**({"id": entry.wire_id if is_rewritten else own_id} if own_id else {}), "name": entry.wire_name}


def _function_response_parts(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    return [{"functionResponse": _function_response(entry, scope, losses)} for entry in turn.entries]


def _function_response(entry: Entry, scope: TurnScope, losses: LossLog) -> ContentObject:
    """Return the functionResponse for a result: `output` with the result or `error` with the error, and the media. An
    object without these two keys is sent unchanged instead of `output`.
    """
    result, identity = entry.result, _call_identity(entry)
    if entry.pieces:
        pieces = tuple(each for piece in entry.pieces for each in _require_document_type(piece, entry, scope, losses))
        entry = entry._replace(pieces=pieces)
    response: ContentObject = {**identity, "response": _response_object(entry, result, losses)}
    if media := [piece for piece in entry.pieces if isinstance(piece, MediaPart)]:
        response["parts"] = [_media_part(piece, entry, scope, losses) for piece in media]
        if any(isinstance(piece, MediaPart) for piece in entry.pieces[: -len(media)]):
            reason = "the media of a result were moved after its texts"
            losses.add("relocated", reason, message=entry.message, path="payload.parts")
    return response


def _response_object(entry: Entry, result: OptionResultPayload, losses: LossLog) -> ContentObject:
    """Return the object `response` of a result: {"output": …}, {"error": …}, or an object with other keys unchanged."""
    texts = [piece.text for piece in entry.pieces if isinstance(piece, TextPart)] if entry.pieces else []
    output: JSONValue = texts[0] if len(texts) == 1 else texts
    if result.is_error:
        error_fields = {"type": result.error_type, "message": result.error_message, "retryable": result.retryable}
        error: JSONValue = {name: value for name, value in error_fields.items() if value is not None}
        if (result.error_type, result.retryable) == (STORED_ERROR_TYPE, None):
            error = result.error_message
        return {"error": error, **({"output": output} if texts else {})}
    if texts or entry.pieces:
        return {"output": output} if texts else {}
    if result.parts:
        return {"output": entry.result_text(losses)}
    value = result.plain_result()
    if isinstance(value, dict | list) and _contains_reference(value):
        reason = "the API reads `$ref` in a result as a reference, so the result was sent as JSON text"
        losses.add("rewritten", reason, message=entry.message, path="payload.result")
        return {"output": result.result_json[:]}
    is_response = isinstance(value, dict) and not value.keys() & {"output", "error"}
    return value if is_response else {"output": value}


def _contains_reference(value: JSONValue) -> bool:
    """Return whether a JSON value contains an object with the key "$ref"."""
    if isinstance(value, Mapping):
        return "$ref" in value or any(map(_contains_reference, value.values()))
    return isinstance(value, Sequence) and not isinstance(value, str) and any(map(_contains_reference, value))


_PARTS = {"system": _user_parts, "user": _user_parts, "assistant": _model_parts, "results": _function_response_parts}
"""Side of a turn → the function that returns its parts."""
