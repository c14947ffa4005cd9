"""An answer → reply. stream.py and history.py use the functions that read parts, too.

    {"id": …, "model": …, "parts": [{"kind": "text", "text": …}, …], "finish": "done", "usage": {…}}

    text ─▶ text     thought {text, seal} ─▶ reasoning     call {id, name, args} ─▶ option call     others ─▶ opaque

Unknown fields of a part are stored in its `state`, and unknown fields of the answer in the reply's `details`.
"""

from collections.abc import Mapping
from typing import Any

from sabir import MediaPart, OpaquePart, OptionCallPayload, ReasoningPart, Reply, TextPart, Usage
from sabir.authoring import (
    DataURL,
    DecodeScope,
    Fields,
    FinishReason,
    JSONValue,
    KnownPart,
    ReplyBuilder,
    first_whole_number,
    object_or_empty,
    text_or_empty,
    unknown_fields,
)

from sabir_lantern.errors import ERRORS, failure

TEXTS: Mapping[str, type[TextPart | ReasoningPart]] = {"text": TextPart, "thought": ReasoningPart}
FINISH: Mapping[str, FinishReason] = {
    "done": "stop", "cut": "length", "asks": "option_calls", "blocked": "content_filter",
}  # fmt: skip
COUNTS = {"in": "input_tokens", "out": "output_tokens", "cached": "cache_read_tokens"}
END_FIELDS = {"is", "id", "model", "parts", "finish", "usage"}
CALL_FIELDS = {"kind", "id", "name", "args"}
IMAGE_FIELDS = {"kind", "name", "mime", "base64"}


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return the reply for the body of an answer. Raises ResponseInvalid for an invalid body or one without parts, and
    the CallError that the body reports.
    """
    answer = scope.read_object(body)
    if answer.get("is") == "fail":
        raise ERRORS.report(failure(answer), scope)
    parts = answer.get("parts")
    if not isinstance(parts, list):
        raise scope.invalid_answer("answered without parts; send the request again")
    builder = ReplyBuilder(scope)
    for part in parts:
        builder.add(read_block(part, scope))
    return builder.finish(**read_end(answer, scope))


def read_end(answer: Fields, scope: DecodeScope) -> dict[str, Any]:
    """Return the fields of a Reply or a stream's ReplyEnd that do not come from the parts of an answer."""
    reason, usage = text_or_empty(answer.get("finish")), object_or_empty(answer.get("usage"))
    counts: dict[str, Any] = {name: first_whole_number(usage.get(field)) for field, name in COUNTS.items()}
    return {
        "finish_reason": FINISH.get(reason, "other"),
        "raw_finish_reason": reason or None,
        "usage": Usage(**counts, details=usage or None),
        "origin": scope.origin(text_or_empty(answer.get("model")), text_or_empty(answer.get("id"))),
        "details": unknown_fields(answer, END_FIELDS) or None,
    }


def read_block(part: JSONValue, scope: DecodeScope) -> KnownPart | OptionCallPayload:
    """Return the option call or the part for a part of the model's answer. Raises ResponseInvalid for a call without a
    name or whose arguments are not an object.
    """
    fields = object_or_empty(part)
    if fields.get("kind") != "call":
        return read_part(part, scope)
    if not isinstance(args := fields.get("args"), dict | None):
        raise scope.invalid_answer("sent a call whose args are not an object; send the request again")
    state = unknown_fields(fields, CALL_FIELDS) or None
    return scope.read_call(text_or_empty(fields.get("id")), text_or_empty(fields.get("name")), args, state)


def read_part(part: JSONValue, scope: DecodeScope) -> KnownPart:
    """Return the part for a part of the human or the machine. A part of another kind, and an image with unknown fields,
    becomes an opaque part with the unchanged JSON.
    """
    fields = object_or_empty(part)
    kind, text = text_or_empty(fields.get("kind")), fields.get("text", "")
    if kind in TEXTS and isinstance(text, str):
        return TEXTS[kind](text=text, state=unknown_fields(fields, {"kind", "text"}) or None)
    if kind == "image" and not unknown_fields(fields, IMAGE_FIELDS):
        url = DataURL.with_sniffed_type(text_or_empty(fields.get("base64")), text_or_empty(fields.get("mime")))
        if image := MediaPart.from_wire("image", url, fields.get("name")):
            return image
    return OpaquePart(dialect=scope.target.dialect, block=part)
