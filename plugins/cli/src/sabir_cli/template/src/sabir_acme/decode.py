"""An answer → reply. stream.py and history.py use the functions that read parts, too.

    {"id": …, "model": …, "parts": [{"type": "text", "text": …}, …], "finish": "done", "usage": {…}}

Change: the tables, and how a part of each type is read. Unknown fields of a text or a call are stored in its `state`, a
part of an unknown type becomes an opaque part, and other unknown fields of the answer become the reply's `details`. So
nothing is lost, and the vendor's own data is sent back unchanged.
"""

from collections.abc import Mapping
from typing import Any

from sabir import MediaPart, OpaquePart, OptionCallPayload, ReasoningPart, RefusalPart, Reply, TextPart, Usage
from sabir.authoring import (
    DataURL,
    DecodeScope,
    FinishReason,
    JSONValue,
    KnownPart,
    Modality,
    ReplyBuilder,
    first_whole_number,
    object_or_empty,
    text_or_empty,
    unknown_fields,
)
from sabir.errors import ResponseInvalid

from sabir_acme.errors import ERRORS

TEXTS: Mapping[str, type[TextPart | ReasoningPart | RefusalPart]] = {
    "text": TextPart, "thought": ReasoningPart, "refusal": RefusalPart,
}  # fmt: skip
MEDIA: Mapping[str, Modality] = {"image": "image", "audio": "audio", "document": "document"}
FINISH: Mapping[str, FinishReason] = {
    "done": "stop", "calls": "option_calls", "limit": "length", "refused": "content_filter",
}  # fmt: skip
"""Finish reasons, also "paused" (send the conversation again to continue), "native_calls" (the model calls the vendor's
own tool, whose result the program must send) and "error". A word that is not in this table becomes "other".
"""
COUNTS = {"input": "input_tokens", "output": "output_tokens", "thinking": "reasoning_tokens"}
URL_FIELDS, DATA_FIELDS = {"type", "name", "url"}, {"type", "name", "mime", "data"}
END_FIELDS = {"id", "model", "parts", "finish", "usage", "type"}


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return the reply for the body of an answer. Raises ResponseInvalid for an invalid body or one without parts, and
    the CallError that the body reports.
    """
    answer = scope.read_object(body)
    if "error" in answer:
        raise ERRORS.report(answer["error"], scope)
    if not isinstance(answer.get("parts"), list):
        raise ResponseInvalid(f"{scope.target} answered without parts; send the request again")
    builder = ReplyBuilder(scope)
    for part in answer["parts"]:
        builder.add(read_block(part, scope))
    return builder.finish(**read_end(answer, scope))


def read_end(answer: Mapping[str, Any], scope: DecodeScope) -> dict[str, Any]:
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
    """Return the option call or the part for a part of the model's answer."""
    fields = object_or_empty(part)
    if fields.get("type") != "call":
        return read_part(part, scope)
    own = unknown_fields(fields, {"type", "id", "name", "arguments"}) or None
    return scope.read_call(
        text_or_empty(fields.get("id")), text_or_empty(fields.get("name")), fields.get("arguments"), own
    )


def read_part(part: JSONValue, scope: DecodeScope) -> KnownPart:
    """Return the part for a part of the user or the model. If no other part of sabir can express it, return an opaque
    part with the unchanged JSON.
    """
    fields = object_or_empty(part)
    kind, text, url = text_or_empty(fields.get("type")), fields.get("text", ""), text_or_empty(fields.get("url"))
    if kind in TEXTS and isinstance(text, str):
        return TEXTS[kind](text=text, state=unknown_fields(fields, {"type", "text"}) or None)
    if kind in MEDIA and not unknown_fields(fields, URL_FIELDS if url else DATA_FIELDS):
        url = url or DataURL.with_sniffed_type(text_or_empty(fields.get("data")), text_or_empty(fields.get("mime")))
        if medium := MediaPart.from_wire(MEDIA[kind], url, fields.get("name")):
            return medium
    return OpaquePart(dialect=scope.target.dialect, block=part)
