"""Turns → messages, with one function for each kind of part.

    system, user   one message each
    assistant      one message a turn, with the blocks from which its parts were decoded
    results        one user message a turn; each result is a `tool_result` with the API's error flag

Consecutive messages of one role are not joined, so that bytes that were sent already never change. The vendor joins
them.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from sabir import MediaPart, OpaquePart, ReasoningPart, TextPart
from sabir.authoring import (
    Entry,
    JSONValue,
    LossLog,
    Piece,
    Turn,
    TurnScope,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_anthropic.schema import NAMES

MessagesObject = dict[str, Any]
"""A message or a content block, as a JSON object of the request."""
STORED_ERROR_TYPE = "error"
"""The error type of error results that are decoded from a stored request, which contains only an error's text."""
ARGUMENT_NAMES = "argument_names"
"""Field of a call's state that maps argument names as the API knows them to the option's names, where they differ."""
EMPTY_TEXT = "(empty)"
"""The text that is sent as a user message that would be empty, and as an assistant message that must be inserted."""
RESULT_BLOCK_TYPES = frozenset({"browser_state", "document", "image", "search_result", "tool_reference"})
"""Types of opaque blocks that an option's result may contain."""
BLANK_TEXT = "the API does not accept text that is only white space"
TRAILING_SPACE = "an assistant message may not end with white space"
EncodedBlock: TypeAlias = tuple[Any, Piece | None, Entry]
"""A content block, the part from which it was created (None for a call), and the part's entry."""
_BLOCK_OF = itemgetter(0)


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """Return the messages of one turn, in order. Report content that the API does not accept as losses."""
    return _SIDES[turn.side](turn, scope, losses)


def _input_blocks(pieces: Iterable[Piece], entry: Entry, scope: TurnScope, losses: LossLog) -> list[EncodedBlock]:
    """Return the blocks of parts that did not come from the model: texts, media and opaque blocks."""
    blocks: list[EncodedBlock] = []
    for piece in pieces:
        block: JSONValue = None
        if isinstance(piece, TextPart):
            if piece.citations and entry.keeps_state:
                reason = "the API accepts citations only in text of the assistant"
                losses.lose("dropped", reason, piece, entry, ".citations")
            block = {"type": "text", "text": piece.text}
        elif isinstance(piece, MediaPart):
            block = _MEDIA[piece.modality](piece, entry, scope, losses)
        elif isinstance(piece, OpaquePart):
            block = piece.block
        if block:
            blocks.append((block, piece, entry))
    return blocks


def _drop_blank_texts(blocks: list[EncodedBlock], losses: LossLog) -> list[EncodedBlock]:
    """Remove texts of white space only, unless there is another text, because the API refuses content that has only
    such texts. Return the blocks.
    """
    blank = []
    for index, (block, piece, _) in enumerate(blocks):
        text = (
            piece.text if isinstance(piece, TextPart) else piece and text_or_empty(object_or_empty(block).get("text"))
        )
        if text and not text.isspace():
            return blocks
        if text:
            blank.append(index)
    for index in reversed(blank):
        _drop_block(blocks, index, BLANK_TEXT, losses)
    return blocks


def _trim_end(blocks: list[EncodedBlock], losses: LossLog) -> list[EncodedBlock]:
    """Remove thinking, and white space in text of other models, from the end of an assistant message, because the API
    refuses them there. Return the blocks.
    """
    while blocks:
        block, piece, entry = blocks[-1]
        if isinstance(piece, ReasoningPart):
            _drop_block(blocks, -1, "nothing that followed this thinking in its turn was sent", losses)
            continue
        if entry.keeps_state or not isinstance(piece, TextPart):
            break
        if trimmed := piece.text.rstrip():
            if trimmed != piece.text:
                losses.lose("rewritten", TRAILING_SPACE, piece, entry)
                blocks[-1] = ({**block, "text": trimmed}, piece, entry)
            break
        _drop_block(blocks, -1, TRAILING_SPACE, losses)
    return blocks


def _drop_block(blocks: list[EncodedBlock], index: int, reason: str, losses: LossLog) -> None:
    _, piece, entry = blocks.pop(index)
    if piece is not None:
        losses.lose("dropped", reason, piece, entry)


def _input_messages(turn: Turn, scope: TurnScope, losses: LossLog) -> list[MessagesObject]:
    """Return the messages of a system or user turn. Texts and messages that the API requires are added, with losses."""
    messages: list[MessagesObject] = []
    for entry in turn.entries:
        blocks = [*map(_BLOCK_OF, _drop_blank_texts(_input_blocks(entry.pieces, entry, scope, losses), losses))]
        if not blocks and turn.side == "user":
            reason = f"the API does not accept an empty user message; {EMPTY_TEXT!r} was sent instead"
            losses.add("synthesized", reason, message=entry.message)
            blocks = [{"type": "text", "text": EMPTY_TEXT}]
        messages += [{"role": turn.side, "content": blocks}] if blocks else []
    if (turn.follows, turn.side) == ("system", "user"):
        rule = "only an assistant message may follow a system message"
        reason = f"{rule}; an assistant message {EMPTY_TEXT!r} was inserted"
        losses.add("synthesized", reason, message=turn.entries[0].message)
        messages.insert(0, {"role": "assistant", "content": [{"type": "text", "text": EMPTY_TEXT}]})
    return messages


def encode_system(turns: Sequence[Turn], losses: LossLog) -> list[MessagesObject]:
    """Return the text blocks for the field `system` from the leading system turns. Report texts of white space only as
    losses.
    """
    blocks = []
    pieces = ((each, piece) for turn in turns for each in turn.entries for piece in each.pieces)
    for entry, piece in pieces:
        if isinstance(piece, TextPart) and piece.text.strip():
            blocks.append({"type": "text", "text": piece.text})
        else:
            losses.lose("dropped", BLANK_TEXT, piece, entry)
    return blocks


def _image_block(piece: MediaPart, entry: Entry, scope: TurnScope, losses: LossLog) -> MessagesObject | None:
    return {"type": "image", "source": _media_source(piece)}


def _media_source(piece: MediaPart) -> MessagesObject:
    """Return the field `source` of a medium: a file's id, a URL, or base64 with its type."""
    if piece.form == "file":
        return {"type": "file", "file_id": piece.provider_file()[1]}
    if piece.form == "url":
        return {"type": "url", "url": piece.url}
    data = piece.data_url()
    return {"type": "base64", "media_type": data.mime.replace("image/jpg", "image/jpeg"), "data": data.base64}


def _document_block(piece: MediaPart, entry: Entry, scope: TurnScope, losses: LossLog) -> MessagesObject | None:
    """Return the block for a document. PDFs, URLs and uploaded files are sent unchanged, other bytes as plain text.

    If other bytes are not UTF-8 text, or only white space, report a loss and return a placeholder text or None.
    """
    source = _media_source(piece)
    mime = source.get("media_type", "application/pdf")
    if mime != "application/pdf":
        try:
            text = piece.data_url().content.decode()
        except ValueError:
            text = ""
        if not text.strip():
            reason = f"the document has the type {mime}, but contains no UTF-8 text"
            placeholder = scope.placeholder_or_drop(reason, piece, entry, losses)
            return {"type": "text", "text": placeholder} if placeholder else None
        if mime != "text/plain":
            reason = f"{mime} was sent as text/plain, the only text type that the API accepts"
            losses.lose("rewritten", reason, piece, entry)
        source = {"type": "text", "media_type": "text/plain", "data": text}
    title = {"title": piece.name} if piece.name else {}
    return {"type": "document", "source": source, **title, **scope.target.hints_of(piece)}


_MEDIA = {"image": _image_block, "document": _document_block}


def _result_messages(turn: Turn, scope: TurnScope, losses: LossLog) -> list[MessagesObject]:
    return [{"role": "user", "content": [_tool_result_block(entry, scope, losses) for entry in turn.entries]}]


def _tool_result_block(entry: Entry, scope: TurnScope, losses: LossLog) -> MessagesObject:
    """Return the block for a result, with the result's parts or, without parts, its text. A text of white space only is
    sent as JSON.

    Opaque blocks are sent only if their type is in RESULT_BLOCK_TYPES, and never with an error.
    """
    result = entry.result
    fields: MessagesObject = {"type": "tool_result", "tool_use_id": entry.wire_id}
    # The API refuses a result that does not repeat the toolset of its call. https://platform.claude.com/docs/en/agents-and-tools/tool-use/browser-use-tool
    if toolset := entry.call_state.get("toolset_name"):
        fields["toolset_name"] = toolset
    accepted: list[Piece] = []
    allowed, reason = RESULT_BLOCK_TYPES, "the API does not accept this kind of block in a result"
    if result.is_error:
        allowed, reason = frozenset(), f"{scope.target.dialect} accepts only text in an error result"
    for piece in entry.pieces:
        if isinstance(piece, MediaPart) and result.is_error:
            placeholder = scope.placeholder_or_drop(reason, piece, entry, losses)
            accepted += [TextPart(text=placeholder)] if placeholder else []
        elif isinstance(piece, OpaquePart) and text_or_empty(object_or_empty(piece.block).get("type")) not in allowed:
            losses.lose("dropped", reason, piece, entry)
        else:
            accepted.append(piece)
    encoded = _input_blocks(accepted, entry, scope, losses)
    if result.is_error:
        is_stored = (result.error_type, result.retryable) == (STORED_ERROR_TYPE, None)
        text = (is_stored and result.error_message) or ""
        text = text if text.strip() else result.error_text
        content = [{"type": "text", "text": text}, *map(_BLOCK_OF, encoded)] if encoded else text
        return {**fields, "content": content, "is_error": True}
    if blocks := [*map(_BLOCK_OF, _drop_blank_texts(encoded, losses))]:
        return {**fields, "content": blocks}
    text = entry.result_text(losses)
    return {**fields, "content": text if text.strip() else result.result_json[:]}


def _assistant_messages(turn: Turn, scope: TurnScope, losses: LossLog) -> list[MessagesObject]:
    """Return a list with one message for the turn; an empty list if nothing in the turn can be sent."""
    encoded: list[EncodedBlock] = []
    for entry in turn.entries:
        if entry.wire_id:
            encoded.append((_tool_use_block(entry, losses), None, entry))
        for piece in entry.pieces:
            block: JSONValue = None
            if isinstance(piece, TextPart):
                block = _text_block(piece, entry, losses)
            elif isinstance(piece, ReasoningPart):
                block = _thinking_block(piece, entry, losses)
            elif isinstance(piece, OpaquePart):
                block = piece.block
            if block:
                encoded.append((block, piece, entry))
    blocks = [*map(_BLOCK_OF, _trim_end(_drop_blank_texts(encoded, losses), losses))]
    return [{"role": "assistant", "content": blocks}] if blocks else []


def _tool_use_block(entry: Entry, losses: LossLog) -> MessagesObject:
    """Return the block for a call, with argument names that the API accepts. Changed names are reported as losses.

    A call that came from this API keeps the names that it had when it arrived, because the vendor signs its text.
    """
    state, arguments = entry.call_state, entry.arguments_value(losses)
    identity = {"type": "tool_use", "id": entry.wire_id, "name": entry.wire_name}
    if ARGUMENT_NAMES not in state and (entry.keeps_state or all(map(NAMES.whole.fullmatch, arguments))):
        return {**state, **identity, "input": arguments}
    wire_names = {name: wire for wire, name in object_or_empty(state.get(ARGUMENT_NAMES)).items()}
    sent = {wire_names.get(name, name if entry.keeps_state else NAMES.fit(name)): name for name in arguments}
    for wire, name in sent.items():
        if wire != name:
            reason = f"the name {name!r} was sent as {wire!r}, which the API accepts"
            losses.add("rewritten", reason, message=entry.message, path=f"payload.arguments.{name}")
    named = {wire: arguments[name] for wire, name in sent.items()}
    return {**without_fields(state, ARGUMENT_NAMES), **identity, "input": named}


def _text_block(piece: TextPart, entry: Entry, losses: LossLog) -> MessagesObject:
    """Return the block for an assistant's text, with the fields and citations that it had when it arrived from this
    API.
    """
    block: MessagesObject = {"type": "text", "text": piece.text}
    if piece.state_json is not None:
        block = {**entry.state_of(piece), **block}
    if not (piece.citations and entry.keeps_state):
        return block
    sources = [citation.source for citation in piece.citations if citation.source is not None]
    if len(sources) < len(piece.citations):
        losses.lose("dropped", "only citations that came from this API can be sent back", piece, entry, ".citations")
    return {**block, "citations": sources} if sources else block


def _thinking_block(piece: ReasoningPart, entry: Entry, losses: LossLog) -> MessagesObject | None:
    """Return the thinking block from which a part was decoded. If the part has neither a signature nor redacted data,
    report a loss and return None.
    """
    state = entry.state_of(piece)
    if state.get("type") == "redacted_thinking" and state.get("data"):
        return dict(state)
    if state.get("type") == "thinking" and state.get("signature"):
        return {"type": "thinking", "thinking": piece.text, **state}
    losses.lose("dropped", "the thinking has no signature", piece, entry)
    return None


_SIDES = {
    "system": _input_messages, "user": _input_messages, "assistant": _assistant_messages, "results": _result_messages,
}  # fmt: skip
"""Side of a turn → the function that returns its messages."""
