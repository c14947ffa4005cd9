"""Turns → messages, with one function for each kind of part.

    system, user   one message each
    assistant      one message a turn, with the blocks from which its parts were decoded
    results        one user message a turn; each result is a `tool_result` with the API's error flag

Consecutive messages of one role are not joined: the vendor joins them, and so the bytes already sent never change.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from sabir import MediaPart, OpaquePart, ReasoningPart, TextPart
from sabir.authoring import (
    Entry,
    JSONValue,
    KnownPart,
    LossLog,
    Turn,
    TurnScope,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_anthropic.schema import NAMES

Item = dict[str, Any]
"""A message or a content block: a JSON object of the request."""
TOLD = "error"
"""The error type of error results that are decoded from a stored request, which contains only an error's text."""
RENAMED = "argument_names"
"""Field of a call's state: name of an argument as it was sent → its own name, for the names that differ."""
EMPTY = "(empty)"
"""The text that replaces a user message of white space only, which the API refuses."""
WITHIN_RESULTS = frozenset({"browser_state", "document", "image", "search_result", "tool_reference"})
"""Types of opaque blocks that an option's result may contain."""
BLANK = "the API does not accept text that is only white space"
WHITE_END = "an assistant message may not end with white space"


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """Return the messages of one turn, in order. Report as losses what the API does not accept."""
    return _SIDES[turn.side](turn, scope, losses)


Placed: TypeAlias = tuple[Any, KnownPart | None, Entry]
"""A content block, the part from which it was created (None for a call), and the part's entry."""
_BLOCK = itemgetter(0)


def _shown(pieces: Iterable[KnownPart], entry: Entry, scope: TurnScope, losses: LossLog) -> list[Placed]:
    """Return the blocks of parts that did not come from the model: texts, media and opaque blocks."""
    found: list[Placed] = []
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
            found.append((block, piece, entry))
    return found


def _worded(placed: list[Placed], losses: LossLog) -> list[Placed]:
    """Return the blocks. If none of them has visible text, remove texts of white space only, which the API refuses
    then.
    """
    blank = []
    for index, (block, piece, _) in enumerate(placed):
        said = (
            piece.text if isinstance(piece, TextPart) else piece and text_or_empty(object_or_empty(block).get("text"))
        )
        if said and not said.isspace():
            return placed
        if said:
            blank.append(index)
    for index in reversed(blank):
        _drop(placed, index, BLANK, losses)
    return placed


def _ended(placed: list[Placed], losses: LossLog) -> list[Placed]:
    """Return the blocks without an end that the API refuses in an assistant message: thinking, and white space in text
    that did not come from this model.
    """
    while placed:
        block, piece, entry = placed[-1]
        if isinstance(piece, ReasoningPart):
            _drop(placed, -1, "nothing that followed this thinking in its turn was sent", losses)
            continue
        if entry.keeps_state or not isinstance(piece, TextPart):
            break
        if trimmed := piece.text.rstrip():
            if trimmed != piece.text:
                losses.lose("rewritten", WHITE_END, piece, entry)
                placed[-1] = ({**block, "text": trimmed}, piece, entry)
            break
        _drop(placed, -1, WHITE_END, losses)
    return placed


def _drop(placed: list[Placed], index: int, reason: str, losses: LossLog) -> None:
    _, piece, entry = placed.pop(index)
    if piece is not None:
        losses.lose("dropped", reason, piece, entry)


def _speakers(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    said: list[Item] = []
    for entry in turn.entries:
        blocks = [*map(_BLOCK, _worded(_shown(entry.pieces, entry, scope, losses), losses))]
        if not blocks and turn.side == "user":
            reason = f"the API does not accept an empty user message; {EMPTY!r} was sent instead"
            losses.add("synthesized", reason, message=entry.message)
            blocks = [{"type": "text", "text": EMPTY}]
        said += [{"role": turn.side, "content": blocks}] if blocks else []
    if (turn.follows, turn.side) == ("system", "user"):
        reason = f"only an assistant message may follow a system message; an assistant message {EMPTY!r} was inserted"
        losses.add("synthesized", reason, message=turn.entries[0].message)
        said.insert(0, {"role": "assistant", "content": [{"type": "text", "text": EMPTY}]})
    return said


def encode_system(turns: Sequence[Turn], losses: LossLog) -> list[Item]:
    """Return the text blocks for the field `system` from the leading system turns. Report texts of white space only as
    losses.
    """
    found = []
    said = ((each, piece) for turn in turns for each in turn.entries for piece in each.pieces)
    for entry, piece in said:
        if isinstance(piece, TextPart) and piece.text.strip():
            found.append({"type": "text", "text": piece.text})
        else:
            losses.lose("dropped", BLANK, piece, entry)
    return found


def _image(piece: MediaPart, entry: Entry, scope: TurnScope, losses: LossLog) -> Item | None:
    return {"type": "image", "source": _source(piece)}


def _source(piece: MediaPart) -> Item:
    if piece.form == "file":
        return {"type": "file", "file_id": piece.provider_file()[1]}
    if piece.form == "url":
        return {"type": "url", "url": piece.url}
    data = piece.data_url()
    return {"type": "base64", "media_type": data.mime.replace("image/jpg", "image/jpeg"), "data": data.base64}


def _document(piece: MediaPart, entry: Entry, scope: TurnScope, losses: LossLog) -> Item | None:
    """Return the block of a document. PDFs, URLs and uploaded files are sent unchanged, other bytes as plain text.

    Bytes that are not UTF-8 text become a placeholder text, or None, with a loss.
    """
    source = _source(piece)
    mime = source.get("media_type", "application/pdf")
    if mime != "application/pdf":
        try:
            data = piece.data_url().content.decode()
        except ValueError:
            data = ""
        if not data.strip():
            said = scope.placeholder_or_drop(
                f"the document has the type {mime}, but is not UTF-8 text", piece, entry, losses
            )
            return {"type": "text", "text": said} if said else None
        if mime != "text/plain":
            losses.lose(
                "rewritten", f"{mime} was sent as text/plain, the only text type that the API accepts", piece, entry
            )
        source = {"type": "text", "media_type": "text/plain", "data": data}
    title = {"title": piece.name} if piece.name else {}
    return {"type": "document", "source": source, **title, **scope.target.hints_of(piece)}


_MEDIA = {"image": _image, "document": _document}


def _results(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    return [{"role": "user", "content": [_result(entry, scope, losses) for entry in turn.entries]}]


def _result(entry: Entry, scope: TurnScope, losses: LossLog) -> Item:
    """Return the block of a result: its parts, or without parts its text. A text of white space only is sent as JSON.

    Opaque blocks are sent only if their type is in WITHIN_RESULTS, and never with an error.
    """
    result = entry.result
    found: Item = {"type": "tool_result", "tool_use_id": entry.wire_id}
    # The API refuses a result that does not repeat the toolset of its call. https://platform.claude.com/docs/en/agents-and-tools/tool-use/browser-use-tool
    if toolset := entry.call_state.get("toolset_name"):
        found["toolset_name"] = toolset
    taken, reason, fitting = WITHIN_RESULTS, "the API does not accept this kind of block in a result", list[KnownPart]()
    if result.is_error:
        taken, reason = frozenset(), f"{scope.target.dialect} accepts only text in an error result"
    for piece in entry.pieces:
        if isinstance(piece, MediaPart) and result.is_error:
            shown = scope.placeholder_or_drop(reason, piece, entry, losses)
            fitting += [TextPart(text=shown)] if shown else []
        elif isinstance(piece, OpaquePart) and text_or_empty(object_or_empty(piece.block).get("type")) not in taken:
            losses.lose("dropped", reason, piece, entry)
        else:
            fitting.append(piece)
    placed = _shown(fitting, entry, scope, losses)
    if result.is_error:
        said = (result.error_message or "") if (result.error_type, result.retryable) == (TOLD, None) else ""
        told = {"type": "text", "text": said if said.strip() else result.error_text}
        return {**found, "content": [told, *map(_BLOCK, placed)] if placed else told["text"], "is_error": True}
    if blocks := [*map(_BLOCK, _worded(placed, losses))]:
        return {**found, "content": blocks}
    said = entry.result_text(losses)
    return {**found, "content": said if said.strip() else result.result_json[:]}


def _assistant(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    placed: list[Placed] = []
    for entry in turn.entries:
        if entry.wire_id:
            placed.append((_call(entry, losses), None, entry))
        for piece in entry.pieces:
            block: JSONValue = None
            if isinstance(piece, TextPart):
                block = _text(piece, entry, losses)
            elif isinstance(piece, ReasoningPart):
                block = _thinking(piece, entry, losses)
            elif isinstance(piece, OpaquePart):
                block = piece.block
            if block:
                placed.append((block, piece, entry))
    blocks = [*map(_BLOCK, _ended(_worded(placed, losses), losses))]
    return [{"role": "assistant", "content": blocks}] if blocks else []


def _call(entry: Entry, losses: LossLog) -> Item:
    """Return the block of a call, with argument names that the API accepts. Changed names are reported as losses.

    A call that came from this API gets the names with which it arrived, because the vendor signs its text.
    """
    state, arguments = entry.call_state, entry.arguments_value(losses)
    said = {"type": "tool_use", "id": entry.wire_id, "name": entry.wire_name}
    if RENAMED not in state and (entry.keeps_state or all(map(NAMES.whole.fullmatch, arguments))):
        return {**state, **said, "input": arguments}
    own = {name: wire for wire, name in object_or_empty(state.get(RENAMED)).items()}
    named = {own.get(name, name if entry.keeps_state else NAMES.fit(name)): name for name in arguments}
    for wire, name in named.items():
        if wire != name:
            path = f"payload.arguments.{name}"
            losses.add(
                "rewritten",
                f"the name {name!r} was sent as {wire!r}, which the API accepts",
                message=entry.message,
                path=path,
            )
    return {**without_fields(state, RENAMED), **said, "input": {wire: arguments[name] for wire, name in named.items()}}


def _text(piece: TextPart, entry: Entry, losses: LossLog) -> Item:
    found: Item = {"type": "text", "text": piece.text}
    if piece.state_json is not None:
        found = {**entry.state_of(piece), **found}
    if not (piece.citations and entry.keeps_state):
        return found
    sources = [citation.source for citation in piece.citations if citation.source is not None]
    if len(sources) < len(piece.citations):
        losses.lose("dropped", "only citations that came from this API can be sent back", piece, entry, ".citations")
    return {**found, "citations": sources} if sources else found


def _thinking(piece: ReasoningPart, entry: Entry, losses: LossLog) -> Item | None:
    """Return the thinking block from which a part was decoded. Without a signature or redacted data, return None and
    report a loss.
    """
    state = entry.state_of(piece)
    if state.get("type") == "redacted_thinking" and state.get("data"):
        return dict(state)
    if state.get("type") == "thinking" and state.get("signature"):
        return {"type": "thinking", "thinking": piece.text, **state}
    losses.lose("dropped", "the thinking has no signature", piece, entry)
    return None


_SIDES = {"system": _speakers, "user": _speakers, "assistant": _assistant, "results": _results}
"""Side of a turn → the function that returns its messages."""
