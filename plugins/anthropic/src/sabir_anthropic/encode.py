"""Turns → messages; a leaf function for each kind of piece.

    system, user   one message each
    assistant      one message a turn, its blocks as decoding took them apart
    results        one user message a turn, each result a `tool_result` with the wire's own error flag

Neighbouring messages of one role stay apart: the vendor joins them, and the bytes already sent do not change.
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
"""A message or a content block: a JSON object of the wire."""
TOLD = "error"
"""The error type of an error result in a stored request, which holds only its text."""
RENAMED = "argument_names"
"""Field of a call's state: names of its arguments on the wire → their own names, where they differ."""
EMPTY = "(empty)"
"""The text that replaces a user's message of white space only, which the wire refuses."""
WITHIN_RESULTS = frozenset({"browser_state", "document", "image", "search_result", "tool_reference"})
"""Types of the vendor's own blocks that an option's result may hold."""
BLANK = "the API does not accept text that is only white space"
WHITE_END = "an assistant message may not end with white space"


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """The messages of one turn, in order."""
    return _SIDES[turn.side](turn, scope, losses)


Placed: TypeAlias = tuple[Any, KnownPart | None, Entry]
"""A content block with the piece and the message that it came from."""
_BLOCK = itemgetter(0)


def _shown(pieces: Iterable[KnownPart], entry: Entry, scope: TurnScope, losses: LossLog) -> list[Placed]:
    """The blocks of text and media that did not come from the model."""
    found: list[Placed] = []
    for piece in pieces:
        block: JSONValue = None
        if isinstance(piece, TextPart):
            if piece.citations and entry.keeps_state:
                losses.lose("dropped", "only text of the assistant can have citations", piece, entry, ".citations")
            block = {"type": "text", "text": piece.text}
        elif isinstance(piece, MediaPart):
            block = _MEDIA[piece.modality](piece, entry, scope, losses)
        elif isinstance(piece, OpaquePart):
            block = piece.block
        if block:
            found.append((block, piece, entry))
    return found


def _worded(placed: list[Placed], losses: LossLog) -> list[Placed]:
    """The blocks without texts of white space only, which the wire takes only beside another text."""
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
    """The blocks without an end that no assistant message may have: white space from the user, thinking."""
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
            losses.add("synthesized", f"{EMPTY!r} was sent for a message of white space", message=entry.message)
            blocks = [{"type": "text", "text": EMPTY}]
        said += [{"role": turn.side, "content": blocks}] if blocks else []
    if (turn.follows, turn.side) == ("system", "user"):
        reason = f"only an assistant message may follow a system message; {EMPTY!r} was sent for the missing one"
        losses.add("synthesized", reason, message=turn.entries[0].message)
        said.insert(0, {"role": "assistant", "content": [{"type": "text", "text": EMPTY}]})
    return said


def encode_system(turns: Sequence[Turn], losses: LossLog) -> list[Item]:
    """The text blocks of the hoisted system turns, which are not sent as messages."""
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
    """A PDF or an uploaded file as it is; any other document is text and goes as plain text."""
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
    """A result: its pieces, of the vendor's own blocks a few types; else its text, or JSON text for a blank one."""
    result = entry.result
    found: Item = {"type": "tool_result", "tool_use_id": entry.wire_id}
    # The API refuses a result that does not repeat its call's. https://platform.claude.com/docs/en/agents-and-tools/tool-use/browser-use-tool
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
    """Return a call, its arguments under the names that the wire takes.

    A call that came from here goes back under the very names that it came with, because the vendor signs its words.
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
        losses.lose("dropped", "citations are only sent back in the vendor's own form", piece, entry, ".citations")
    return {**found, "citations": sources} if sources else found


def _thinking(piece: ReasoningPart, entry: Entry, losses: LossLog) -> Item | None:
    """A thinking block as it came; nothing without the signature or the data that shows that it did."""
    state = entry.state_of(piece)
    if state.get("type") == "redacted_thinking" and state.get("data"):
        return dict(state)
    if state.get("type") == "thinking" and state.get("signature"):
        return {"type": "thinking", "thinking": piece.text, **state}
    losses.lose("dropped", "the thinking has no signature", piece, entry)
    return None


_SIDES = {"system": _speakers, "user": _speakers, "assistant": _assistant, "results": _results}
"""Side → the function that makes its messages."""
