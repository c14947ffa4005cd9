"""Turns → input items, with one function for each kind of part.

    system, user   one message item for each message; an opaque item is sent as an item between them
    assistant      the items from which the blocks were decoded: messages, reasoning, option calls, images, opaque items
    results        one function_call_output each: text, or texts and media

System messages are items of the input. The field `instructions` would join them into one text, is not inherited from a
previous response, and would move the start of the cached prefix into another field. Their role is `system` for every
model: OpenAI reads `system` as `developer` where needed, and compatible endpoints know only `system`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sabir import MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.authoring import (
    Entry,
    Fields,
    JSONValue,
    LossLog,
    Piece,
    Turn,
    TurnScope,
    object_or_empty,
    text_or_empty,
    unknown_fields,
    without_fields,
)

from sabir_openai.chat_encode import base64_url, call_arguments, file_name

ResponsesObject = dict[str, Any]
"""An input item, or a content part of an item, as a JSON object of the request."""

CONTENT_TYPES = frozenset(
    {"input_audio", "input_file", "input_image", "input_text", "output_audio", "output_text", "refusal"}
)
"""Types of opaque blocks that belong into a message's content. All other opaque blocks are items of the input."""
_NULL_FREE_TYPES = ("function_call", "message", "reasoning")
"""Types of items from which all null fields are removed."""
REPEATED_FIELDS = ("caller", "namespace")
"""Fields that a call's output must repeat, because the API does not find a call with such a field by its id alone."""


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """Return the items of one turn, in order, without the null fields that the API refuses."""
    return [_without_nulls(item) for item in _SIDES[turn.side](turn, scope, losses)]


def _without_nulls(item: JSONValue) -> JSONValue:
    """Return an item without the null fields that endpoints send but refuse in requests.

    From messages, reasoning and function calls, remove all null fields, also those in their content. From other items,
    remove only a null `status`, because the vendor's own calls need their other null fields.
    """
    if not isinstance(item, dict) or (None not in item.values() and not isinstance(item.get("content"), list)):
        return item
    is_null_free = item.get("type") in _NULL_FREE_TYPES
    null_fields = {name for name, value in item.items() if value is None and (is_null_free or name == "status")}
    fields = without_fields(item, *null_fields)
    if is_null_free and isinstance(content := fields.get("content"), list):
        fields["content"] = [unknown_fields(part, ()) if isinstance(part, dict) else part for part in content]
    return fields


def _input_items(turn: Turn, scope: TurnScope, losses: LossLog) -> list[ResponsesObject]:
    """Return the items of a system or user turn. Parts before and after an opaque item are separate messages."""
    items: list[ResponsesObject] = []
    for entry in turn.entries:
        content: list[ResponsesObject] = []
        for piece in entry.pieces:
            if piece.kind == "opaque" and not _is_content(piece.block):
                items.append(piece.block)
                content = []
                continue
            if not content:
                items.append({"type": "message", "role": turn.side, "content": content})
            content.append(_input_content(piece, scope))
    return items


def _is_content(block: JSONValue) -> bool:
    return object_or_empty(block).get("type") in CONTENT_TYPES


def _input_content(piece: Piece, scope: TurnScope) -> JSONValue:
    if isinstance(piece, OpaquePart):
        return piece.block
    if not isinstance(piece, MediaPart):
        return {"type": "input_text", "text": piece.text}
    return {**_MEDIA[piece.modality](piece), **scope.target.hints_of(piece)}


def _input_image(piece: MediaPart) -> ResponsesObject:
    url = base64_url(piece) if piece.form == "data" else piece.url
    source = {"file_id": piece.provider_file()[1]} if piece.form == "file" else {"image_url": url}
    return {"type": "input_image", "detail": "auto", **source}


def _input_file(piece: MediaPart) -> ResponsesObject:
    if piece.form == "data":
        return {"type": "input_file", "filename": file_name(piece), "file_data": base64_url(piece)}
    source = {"file_url": piece.url} if piece.form == "url" else {"file_id": piece.provider_file()[1]}
    return {"type": "input_file", **source}


_ASSISTANT_MESSAGE: Mapping[str, JSONValue] = {"type": "message", "role": "assistant"}
_MEDIA = {"image": _input_image, "document": _input_file}


def _function_call_outputs(turn: Turn, scope: TurnScope, losses: LossLog) -> list[ResponsesObject]:
    """Return an output item for each result of the turn."""
    return [
        {
            "type": "function_call_output",
            "call_id": entry.wire_id,
            **_repeated_fields(entry),
            "output": _output_content(entry, scope, losses),
        }
        for entry in turn.entries
    ]


def _repeated_fields(entry: Entry) -> ResponsesObject:
    """Return the REPEATED_FIELDS of the output's call, and the call's name. {} if the call has none of these fields."""
    state = entry.call_state
    repeated = {name: state[name] for name in REPEATED_FIELDS if state.get(name)}
    return {**repeated, "name": entry.wire_name} if repeated else {}


def _output_content(entry: Entry, scope: TurnScope, losses: LossLog) -> str | list[ResponsesObject]:
    """Return a result as content parts if the message has parts, otherwise as text. An error becomes JSON text before
    the parts.
    """
    result = entry.result
    parts = [_input_content(piece, scope) for piece in entry.pieces]
    if result.is_error:
        error_text = result.error_text
        return [{"type": "input_text", "text": error_text}, *parts] if parts else error_text
    return parts or entry.result_text(losses)


def _assistant_items(turn: Turn, scope: TurnScope, losses: LossLog) -> list[ResponsesObject]:
    builder = _AssistantItems(scope, losses)
    for entry in turn.entries:
        if entry.wire_id:
            builder.add_call(entry)
        for piece in entry.pieces:
            builder.add(piece, entry)
    return builder.build()


class _AssistantItems:
    """Builds the items of one assistant turn."""

    __slots__ = ("items", "lacks_reasoning", "losses", "pieces_with_id", "scope")

    def __init__(self, scope: TurnScope, losses: LossLog) -> None:
        self.scope = scope
        self.losses = losses
        self.items: list[Any] = []
        self.lacks_reasoning = False
        self.pieces_with_id: list[tuple[Piece | None, Entry]] = []
        """Parts (None for a call) whose items have an id of the vendor, with their entries. An id may depend on
        reasoning.
        """

    def add_call(self, entry: Entry) -> None:
        """Add the item of a call. A call from this API keeps the fields of the item from which it was decoded."""
        item = _function_call_item(entry, self.scope, self.losses)
        self.items.append(item)
        if "id" in item:
            self.pieces_with_id.append((None, entry))

    def add(self, piece: Piece, entry: Entry) -> None:
        """Add the item of one part. A part from this API becomes the item, or part of the item, from which it was
        decoded.
        """
        if isinstance(piece, TextPart):
            self._add_text(piece, entry.state_of(piece), entry)
        elif isinstance(piece, ReasoningPart):
            self._add_reasoning(piece, entry.state_of(piece), entry)
        elif isinstance(piece, OpaquePart):
            block = piece.block
            self._append_item({**_ASSISTANT_MESSAGE, "content": [block]} if _is_content(block) else block)
        elif isinstance(piece, MediaPart):
            self._add_image(piece, entry.state_of(piece), entry)
        else:
            self._add_refusal(piece, entry.state_of(piece), entry)

    def _append_item(self, item: JSONValue) -> None:
        """Append an item. If it continues the last message (same id and fields), append its content to that message."""
        last, fields = object_or_empty(self.items[-1]) if self.items else {}, object_or_empty(item)
        if last.get("id") and last["id"] == fields.get("id"):
            earlier, more = last.get("content"), fields.get("content")
            if isinstance(earlier, list) and isinstance(more, list) and {**last, "content": more} == fields:
                self.items[-1] = {**fields, "content": [*earlier, *more]}
                return
        self.items.append(item)

    def _add_text(self, piece: TextPart, state: Fields, entry: Entry) -> None:
        """Add a text: as part of the message from which it was decoded, or as a new message without an id."""
        head, cited = object_or_empty(state.get("item")) if state else state, piece.citations
        sources = [citation.source for citation in cited if head and citation.source is not None] if cited else []
        if len(sources) < len(cited) and entry.keeps_state:
            reason = "only citations that came from this API can be sent back"
            self.losses.lose("dropped", reason, piece, entry, ".citations")
        if head:
            content = {**object_or_empty(state.get("part")), "text": piece.text, "annotations": sources}
            self._append_own_message(piece, head, content, entry)
        else:
            self._append_plain_text(piece.text)

    def _append_own_message(self, piece: Piece, head: Fields, content: Fields, entry: Entry) -> None:
        self.pieces_with_id += [(piece, entry)] if "id" in head else []
        self._append_item({**head, "content": [content]})

    def _add_refusal(self, piece: RefusalPart, state: Fields, entry: Entry) -> None:
        """Add a refusal of this API as it arrived, and any other refusal as text, with a loss."""
        if head := object_or_empty(state.get("item")):
            self._append_own_message(piece, head, {**object_or_empty(state.get("part")), "refusal": piece.text}, entry)
        else:
            reason = "only this model's own refusals are sent as refusals; this refusal was sent as text"
            self.losses.lose("downgraded", reason, piece, entry)
            self._append_plain_text(piece.text)

    def _add_image(self, piece: MediaPart, state: Fields, entry: Entry) -> None:
        """Add an image of this API as the call that created it, and a placeholder for any other image, with a loss."""
        if head := object_or_empty(state.get("item")):
            self._append_item({**head, "result": piece.data_url().base64})
        else:
            reason = f"{self.scope.target.dialect} accepts an assistant's image only at the API that created it"
            self._append_plain_text(self.scope.placeholder_or_drop(reason, piece, entry, self.losses))

    def _append_plain_text(self, text: str) -> None:
        # Without an id, the content must be a string. Only the vendor's own messages have an array.
        if text:
            self.items.append({**_ASSISTANT_MESSAGE, "content": text})

    def _add_reasoning(self, piece: ReasoningPart, state: Fields, entry: Entry) -> None:
        """Add reasoning that has encrypted or visible content. Any other reasoning is a loss."""
        # If the vendor did not store the response, it does not know the id, and refuses items that depend on it.
        if state.get("encrypted_content") or state.get("content"):
            self.items.append(without_fields(state, "status"))  # the API refuses this field in requests
            return
        self.lacks_reasoning = True
        reason = "the reasoning has no encrypted content, and is not sent by its id, which the server may not know"
        self.losses.lose("dropped", reason, piece, entry)

    def build(self) -> list[Any]:
        """Return the items. If reasoning was lost, remove the ids of messages and calls, with losses, because the
        vendor refuses ids that depend on missing reasoning.
        """
        if not self.lacks_reasoning:
            return self.items
        for piece, entry in self.pieces_with_id:
            _withhold_id("the item's id may belong to reasoning that was not sent", piece, entry, self.losses)
        types = ("message", "function_call")
        return [
            without_fields(item, "id") if object_or_empty(item).get("type") in types else item for item in self.items
        ]


def _function_call_item(entry: Entry, scope: TurnScope, losses: LossLog) -> ResponsesObject:
    """Return the item of a call. An id that the API refuses is left out, with a loss."""
    state = entry.call_state
    if "id" in state and not text_or_empty(state["id"]).startswith("fc"):
        state = without_fields(state, "id")
        _withhold_id("the API accepts only ids that begin with 'fc'", None, entry, losses)
    identity = {"type": "function_call", "call_id": entry.wire_id, "name": entry.wire_name}
    return {**state, **identity, "arguments": call_arguments(entry, scope, losses)}


def _withhold_id(reason: str, piece: Piece | None, entry: Entry, losses: LossLog) -> None:
    """Report that the item of a part, or of a call (None), is sent without its id."""
    if piece is None:
        losses.add("withheld", reason, message=entry.message, path="payload.state")
    else:
        losses.lose("withheld", reason, piece, entry, ".state")


_SIDES = {
    "system": _input_items, "user": _input_items, "assistant": _assistant_items, "results": _function_call_outputs,
}  # fmt: skip
"""Side of a turn → the function that returns its items."""
