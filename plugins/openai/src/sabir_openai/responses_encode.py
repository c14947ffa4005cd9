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
    KnownPart,
    LossLog,
    Turn,
    TurnScope,
    object_or_empty,
    text_or_empty,
    unknown_fields,
    without_fields,
)

from sabir_openai.chat_encode import base64_url, call_arguments, file_name

Item = dict[str, Any]
"""An input item, or a content part of an item, as a JSON object of the request."""

CONTENTS = frozenset(
    {"input_audio", "input_file", "input_image", "input_text", "output_audio", "output_text", "refusal"}
)
"""Types of opaque blocks that belong into a message's content. Every other opaque block is an item of the input."""


_OWN_TYPES = ("function_call", "message", "reasoning")
"""Types of items from which every null field is removed."""
REPEATED = ("caller", "namespace")
"""Fields that a call's output must repeat, because the API does not find a call with such a field by its id alone."""


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """Return the items of one turn, in order, without fields that are null."""
    return [_without_nulls(item) for item in _SIDES[turn.side](turn, scope, losses)]


def _without_nulls(item: JSONValue) -> JSONValue:
    """Return an item without the null fields that endpoints send but refuse in requests.

    Messages, reasoning and function calls lose all null fields, also in their content. Other items lose only a null
    `status`, because the vendor's own calls need their null fields.
    """
    if not isinstance(item, dict) or (None not in item.values() and not isinstance(item.get("content"), list)):
        return item
    is_own = item.get("type") in _OWN_TYPES
    body = {name: value for name, value in item.items() if value is not None or not (is_own or name == "status")}
    if is_own and isinstance(content := body.get("content"), list):
        body["content"] = [unknown_fields(part, ()) if isinstance(part, dict) else part for part in content]
    return body


def _speakers(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    said: list[Item] = []
    for entry in turn.entries:
        content: list[Item] = []
        for piece in entry.pieces:
            if piece.kind == "opaque" and not _is_content(piece.block):
                said.append(piece.block)
                content = []
                continue
            if not content:
                said.append({"type": "message", "role": turn.side, "content": content})
            content.append(_part(piece, scope))
    return said


def _is_content(block: JSONValue) -> bool:
    return object_or_empty(block).get("type") in CONTENTS


def _part(piece: KnownPart, scope: TurnScope) -> JSONValue:
    if isinstance(piece, OpaquePart):
        return piece.block
    if not isinstance(piece, MediaPart):
        return {"type": "input_text", "text": piece.text}
    return {**_MEDIA[piece.modality](piece), **scope.target.hints_of(piece)}


def _image(piece: MediaPart) -> Item:
    url = base64_url(piece) if piece.form == "data" else piece.url
    where = {"file_id": piece.provider_file()[1]} if piece.form == "file" else {"image_url": url}
    return {"type": "input_image", "detail": "auto", **where}


def _document(piece: MediaPart) -> Item:
    if piece.form == "data":
        return {"type": "input_file", "filename": file_name(piece), "file_data": base64_url(piece)}
    where = {"file_url": piece.url} if piece.form == "url" else {"file_id": piece.provider_file()[1]}
    return {"type": "input_file", **where}


_SPOKEN: Mapping[str, JSONValue] = {"type": "message", "role": "assistant"}
_MEDIA = {"image": _image, "document": _document}


def _results(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    return [
        {
            "type": "function_call_output",
            "call_id": entry.wire_id,
            **_repeated(entry),
            "output": _output(entry, scope, losses),
        }
        for entry in turn.entries
    ]


def _repeated(entry: Entry) -> Item:
    """Return the REPEATED fields of the output's call and the call's name; {} if the call has no REPEATED field."""
    state = entry.call_state
    repeated = {name: state[name] for name in REPEATED if state.get(name)}
    return {**repeated, "name": entry.wire_name} if repeated else {}


def _output(entry: Entry, scope: TurnScope, losses: LossLog) -> str | list[Item]:
    """Return a result as content parts if the message has parts, otherwise as text. An error becomes JSON text, which
    comes before the parts.
    """
    result = entry.result
    parts = [_part(piece, scope) for piece in entry.pieces]
    if result.is_error:
        said = result.error_text
        return [{"type": "input_text", "text": said}, *parts] if parts else said
    return parts or entry.result_text(losses)


def _assistant(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    answer = _Answer(scope, losses)
    for entry in turn.entries:
        if entry.wire_id:
            answer.call(entry)
        for piece in entry.pieces:
            answer.take(piece, entry)
    return answer.whole()


class _Answer:
    """The items of one assistant turn under construction."""

    __slots__ = ("identified", "items", "lacks_reasoning", "losses", "scope")

    def __init__(self, scope: TurnScope, losses: LossLog) -> None:
        self.scope = scope
        self.losses = losses
        self.items: list[Any] = []
        self.lacks_reasoning = False
        self.identified: list[tuple[KnownPart | None, Entry]] = []
        """Parts (None for a call) and their entries whose items have the vendor's id, which may depend on reasoning."""

    def call(self, entry: Entry) -> None:
        """Add the item of a call. A call from this API keeps the fields of the item from which it was decoded."""
        item = _call(entry, self.scope, self.losses)
        self.items.append(item)
        if "id" in item:
            self.identified.append((None, entry))

    def take(self, piece: KnownPart, entry: Entry) -> None:
        """Add the item of one part. A part from this API becomes the item, or part of the item, from which it was
        decoded.
        """
        if isinstance(piece, TextPart):
            self._text(piece, entry.state_of(piece), entry)
        elif isinstance(piece, ReasoningPart):
            self._reasoning(piece, entry.state_of(piece), entry)
        elif isinstance(piece, OpaquePart):
            block = piece.block
            self._append({**_SPOKEN, "content": [block]} if _is_content(block) else block)
        elif isinstance(piece, MediaPart):
            self._image(piece, entry.state_of(piece), entry)
        else:
            self._refusal(piece, entry.state_of(piece), entry)

    def _append(self, item: JSONValue) -> None:
        """Append an item. If it continues the last message (same id and fields), add its content to that message."""
        last, found = object_or_empty(self.items[-1]) if self.items else {}, object_or_empty(item)
        if last.get("id") and last["id"] == found.get("id"):
            before, more = last.get("content"), found.get("content")
            if isinstance(before, list) and isinstance(more, list) and {**last, "content": more} == found:
                self.items[-1] = {**found, "content": [*before, *more]}
                return
        self.items.append(item)

    def _text(self, piece: TextPart, state: Fields, entry: Entry) -> None:
        head, cited = object_or_empty(state.get("item")) if state else state, piece.citations
        sources = [citation.source for citation in cited if head and citation.source is not None] if cited else []
        if len(sources) < len(cited) and entry.keeps_state:
            self.losses.lose(
                "dropped", "only citations that came from this API can be sent back", piece, entry, ".citations"
            )
        if head:
            self._give_back(
                piece, head, {**object_or_empty(state.get("part")), "text": piece.text, "annotations": sources}, entry
            )
        else:
            self._say(piece.text)

    def _give_back(self, piece: KnownPart, head: Fields, content: Fields, entry: Entry) -> None:
        self.identified += [(piece, entry)] if "id" in head else []
        self._append({**head, "content": [content]})

    def _refusal(self, piece: RefusalPart, state: Fields, entry: Entry) -> None:
        if head := object_or_empty(state.get("item")):
            self._give_back(piece, head, {**object_or_empty(state.get("part")), "refusal": piece.text}, entry)
        else:
            reason = "only this model's own refusals are sent as refusals; this refusal was sent as text"
            self.losses.lose("downgraded", reason, piece, entry)
            self._say(piece.text)

    def _image(self, piece: MediaPart, state: Fields, entry: Entry) -> None:
        if head := object_or_empty(state.get("item")):
            self._append({**head, "result": piece.data_url().base64})
        else:
            reason = f"{self.scope.target.dialect} accepts an assistant's image only at the API that created it"
            self._say(self.scope.placeholder_or_drop(reason, piece, entry, self.losses))

    def _say(self, said: str) -> None:
        # The content of an assistant message without an id is a string: the array form is for the vendor's own
        # messages.
        if said:
            self.items.append({**_SPOKEN, "content": said})

    def _reasoning(self, piece: ReasoningPart, state: Fields, entry: Entry) -> None:
        # If nothing is stored, the vendor does not know a bare id, and refuses the items that depend on it.
        if state.get("encrypted_content") or state.get("content"):
            self.items.append(without_fields(state, "status"))  # the wire refuses the field in requests
            return
        self.lacks_reasoning = True
        reason = "the reasoning has no encrypted content, and the server does not store it under its id"
        self.losses.lose("dropped", reason, piece, entry)

    def whole(self) -> list[Any]:
        """Return the items. If reasoning was lost, messages and calls are returned without their ids, with losses,
        because the vendor refuses ids that depend on missing reasoning.
        """
        if not self.lacks_reasoning:
            return self.items
        for piece, entry in self.identified:
            _withhold_id("the item's id may belong to reasoning that was not sent", piece, entry, self.losses)
        bound = ("message", "function_call")
        return [
            without_fields(item, "id") if object_or_empty(item).get("type") in bound else item for item in self.items
        ]


def _call(entry: Entry, scope: TurnScope, losses: LossLog) -> Item:
    state = entry.call_state
    if "id" in state and not text_or_empty(state["id"]).startswith("fc"):
        state = without_fields(state, "id")
        _withhold_id("the API accepts only ids that begin with 'fc'", None, entry, losses)
    said = {"type": "function_call", "call_id": entry.wire_id, "name": entry.wire_name}
    return {**state, **said, "arguments": call_arguments(entry, scope, losses)}


def _withhold_id(reason: str, piece: KnownPart | None, entry: Entry, losses: LossLog) -> None:
    if piece is None:
        losses.add("withheld", reason, message=entry.message, path="payload.state")
    else:
        losses.lose("withheld", reason, piece, entry, ".state")


_SIDES = {"system": _speakers, "user": _speakers, "assistant": _assistant, "results": _results}
"""Side of a turn → the function that returns its items."""
