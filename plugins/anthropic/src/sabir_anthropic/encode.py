"""Turns → messages; a leaf function for each kind of piece.

    system, user   one message each
    assistant      one message a turn, its blocks as decoding took them apart
    results        one message of the user's a turn, each result a `tool_result` with the wire's own error flag

Neighbouring messages of one role stay apart: the vendor joins them itself, and what was sent stays as it was.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sabir import MediaPart, OpaquePart, OptionCallPayload, OptionResultPayload, ReasoningPart, TextPart
from sabir.authoring import (
    Entry,
    Fields,
    JSONValue,
    KnownPart,
    LossLog,
    Side,
    Turn,
    TurnScope,
    arguments_value,
    data_url_base64,
    data_url_bytes,
    error_text,
    fields,
    form_of,
    hints_of,
    lose,
    result_text,
    split_provider_file,
    stand_in,
    state_of,
    text,
)

Item = dict[str, Any]
"""A message or a content block: a JSON object of the wire."""
TOLD = "error"
"""The type of an error result that a stored request holds: its text alone was told."""
EMPTY = "(empty)"
"""What stands for a user's message of white space alone, which the wire refuses."""
WITHIN_RESULTS = frozenset({"browser_state", "document", "image", "search_result", "tool_reference"})
"""Types of the vendor's own blocks that an option's result may hold."""
BLANK = "the wire takes no text of white space alone"
WHITE_END = "an assistant's message may not end with white space"


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """The messages of one turn, in order."""
    return _SIDES[turn.side](turn, scope, losses)


class _Content:
    """The content of one wire message being put together: each block with the piece that it came from."""

    __slots__ = ("_has_blanks", "_has_words", "_losses", "_scope", "_sources", "blocks")

    def __init__(self, scope: TurnScope, losses: LossLog) -> None:
        self._scope = scope
        self._losses = losses
        self.blocks: list[Any] = []
        self._sources: list[tuple[KnownPart | None, Entry]] = []
        self._has_words = self._has_blanks = False
        """Whether a text says something; whether one is of white space alone."""

    def add(self, block: JSONValue, piece: KnownPart | None, entry: Entry) -> None:
        """Add the next block."""
        self.blocks.append(block)
        self._sources.append((piece, entry))
        said = block.get("text") if isinstance(block, dict) else None
        if said and isinstance(said, str):
            if said.isspace():
                self._has_blanks = True
            else:
                self._has_words = True

    def add_shown(self, entry: Entry, pieces: Sequence[KnownPart]) -> None:
        """Add what anyone but the model says or shows."""
        for piece in pieces:
            if isinstance(piece, TextPart):
                if piece.citations and entry.keeps_state:
                    lose(self._losses, "dropped", "only an assistant's text is cited", piece, entry, ".citations")
                self.add({"type": "text", "text": piece.text}, piece, entry)
            elif isinstance(piece, MediaPart):
                if block := _MEDIA[piece.modality](piece, entry, self._scope, self._losses):
                    self.add(block, piece, entry)
            elif isinstance(piece, OpaquePart):
                self.add(piece.block, piece, entry)

    def drop_blank(self) -> None:
        """Leave out texts of white space alone, which the wire takes only beside another text."""
        if self._has_blanks and not self._has_words:
            said = [text(fields(block).get("text")) for block in self.blocks]
            for index in reversed([index for index, each in enumerate(said) if each]):
                self._lose(index, BLANK)

    def end_well(self) -> None:
        """Leave out what no assistant's message may end with: white space of the user's making, thinking."""
        while self.blocks:
            piece, entry = self._sources[-1]
            if isinstance(piece, ReasoningPart):
                self._lose(-1, "nothing that this thinking led to is left in its turn")
                continue
            if entry.keeps_state or not isinstance(piece, TextPart):
                return
            if trimmed := piece.text.rstrip():
                if trimmed != piece.text:
                    lose(self._losses, "rewritten", WHITE_END, piece, entry)
                    self.blocks[-1] = {**self.blocks[-1], "text": trimmed}
                return
            self._lose(-1, WHITE_END)

    def _lose(self, index: int, reason: str) -> None:
        self.blocks.pop(index)
        piece, entry = self._sources.pop(index)
        if piece is not None:
            lose(self._losses, "dropped", reason, piece, entry)


def _speakers(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    said: list[Item] = []
    for entry in turn.entries:
        said += _said(turn.side, entry, scope, losses)
    if (turn.follows, turn.side) != ("system", "user"):
        return said
    reason = f"only the assistant may speak after a system message: {EMPTY!r} stands for what is left out there"
    losses.add("synthesized", reason, message=turn.entries[0].message)
    return [{"role": "assistant", "content": [{"type": "text", "text": EMPTY}]}, *said]


def _said(role: str, entry: Entry, scope: TurnScope, losses: LossLog) -> list[Item]:
    content = _Content(scope, losses)
    content.add_shown(entry, entry.pieces)
    content.drop_blank()
    blocks = content.blocks
    if not blocks and role == "user":
        losses.add("synthesized", f"{EMPTY!r} stands for a message of white space", message=entry.message)
        blocks = [{"type": "text", "text": EMPTY}]
    return [{"role": role, "content": blocks}] if blocks else []


def encode_system(turns: Sequence[Turn], losses: LossLog) -> list[Item]:
    """The text blocks of the hoisted system turns, which are no messages."""
    found = []
    for entry in (entry for turn in turns for entry in turn.entries):
        for piece in entry.pieces:
            if isinstance(piece, TextPart) and piece.text.strip():
                found.append({"type": "text", "text": piece.text})
            else:
                lose(losses, "dropped", BLANK, piece, entry)
    return found


def _image(piece: MediaPart, entry: Entry, scope: TurnScope, losses: LossLog) -> Item | None:
    return {"type": "image", "source": _source(piece)}


def _source(piece: MediaPart) -> Item:
    url = piece.url
    match form_of(url):
        case "file":
            return {"type": "file", "file_id": split_provider_file(url)[1]}
        case "url":
            return {"type": "url", "url": url}
    mime, data = data_url_base64(url)
    return {"type": "base64", "media_type": mime.replace("image/jpg", "image/jpeg"), "data": data}


def _document(piece: MediaPart, entry: Entry, scope: TurnScope, losses: LossLog) -> Item | None:
    """A PDF or a file as it is; whatever else is text goes as plain text."""
    source = _source(piece)
    mime = source.get("media_type", "application/pdf")
    if mime != "application/pdf":
        try:
            data = data_url_bytes(piece.url).decode()
        except ValueError:
            data = ""
        if not data.strip():
            said = stand_in(f"the document is no text of UTF-8, though of the type {mime}", piece, entry, scope, losses)
            return {"type": "text", "text": said} if said else None
        if mime != "text/plain":
            lose(losses, "rewritten", f"the wire takes {mime} as text/plain", piece, entry)
        source = {"type": "text", "media_type": "text/plain", "data": data}
    title = {"title": piece.name} if piece.name else {}
    return {"type": "document", "source": source, **title, **hints_of(piece, scope)}


_MEDIA: Mapping[str, Callable[[MediaPart, Entry, TurnScope, LossLog], Item | None]] = {
    "image": _image,
    "document": _document,
}


def _results(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    return [{"role": "user", "content": [_result(entry, scope, losses) for entry in turn.entries]}]


def _result(entry: Entry, scope: TurnScope, losses: LossLog) -> Item:
    result = entry.message.payload
    assert isinstance(result, OptionResultPayload)
    found: Item = {"type": "tool_result", "tool_use_id": entry.wire_id}
    # The API refuses a result that does not repeat its call's. https://platform.claude.com/docs/en/agents-and-tools/tool-use/browser-use-tool
    if toolset := _state_of_call(entry.call).get("toolset_name"):
        found["toolset_name"] = toolset
    if not (result.is_error or entry.pieces):
        found["content"] = _plain(entry, result, losses)
        return found
    content = _Content(scope, losses)
    if not result.is_error:
        content.add_shown(entry, [piece for piece in entry.pieces if _fits_result(piece, entry, losses)])
        content.drop_blank()
        found["content"] = content.blocks or _plain(entry, result, losses)
        return found
    said = (result.error_message or "") if (result.error_type, result.retryable) == (TOLD, None) else ""
    content.add({"type": "text", "text": said if said.strip() else error_text(result)}, None, entry)
    content.add_shown(entry, _texts(entry, scope, losses))
    blocks = content.blocks
    return {**found, "content": blocks[0]["text"] if len(blocks) == 1 else blocks, "is_error": True}


def _fits_result(piece: KnownPart, entry: Entry, losses: LossLog) -> bool:
    """Whether a result may hold a piece; of the vendor's own blocks it may hold a few."""
    fits = not isinstance(piece, OpaquePart) or text(fields(piece.block).get("type")) in WITHIN_RESULTS
    if not fits:
        lose(losses, "dropped", "the wire takes no such block within a result", piece, entry)
    return fits


def _plain(entry: Entry, result: OptionResultPayload, losses: LossLog) -> str:
    """A result as text; one of white space alone as the JSON text of what it is."""
    said = result_text(entry, result, losses)
    return said if said.strip() else result.result_json[:]


def _texts(entry: Entry, scope: TurnScope, losses: LossLog) -> list[KnownPart]:
    """What an error result says beside its message: the wire takes nothing but text where it is flagged as one."""
    reason, found = f"{scope.target.dialect} takes only text in an error result", list[KnownPart]()
    for piece in entry.pieces:
        if isinstance(piece, MediaPart):
            said = stand_in(reason, piece, entry, scope, losses)
            found += [TextPart(text=said)] if said else []
        elif isinstance(piece, TextPart):
            found.append(piece)
        else:
            lose(losses, "dropped", reason, piece, entry)
    return found


def _assistant(turn: Turn, scope: TurnScope, losses: LossLog) -> list[Item]:
    content = _Content(scope, losses)
    for entry in turn.entries:
        if entry.wire_id:
            content.add(_call(entry, losses), None, entry)
        for piece in entry.pieces:
            if block := _own(piece, entry, losses):
                content.add(block, piece, entry)
    content.drop_blank()
    content.end_well()
    return [{"role": "assistant", "content": content.blocks}] if content.blocks else []


def _own(piece: KnownPart, entry: Entry, losses: LossLog) -> JSONValue:
    """What the model itself said, as the block that it came from; else as a new one."""
    if isinstance(piece, TextPart):
        return _text(piece, entry, losses)
    if isinstance(piece, ReasoningPart):
        return _thinking(piece, entry, losses)
    return piece.block if isinstance(piece, OpaquePart) else None


def _text(piece: TextPart, entry: Entry, losses: LossLog) -> Item:
    found: Item = {"type": "text", "text": piece.text}
    if piece.state_json is not None:
        found = {**state_of(piece, entry), **found}
    if not (piece.citations and entry.keeps_state):
        return found
    sources = [citation.source for citation in piece.citations if citation.source is not None]
    if len(sources) < len(piece.citations):
        lose(losses, "dropped", "citations go back only as the vendor gave them", piece, entry, ".citations")
    return {**found, "citations": sources} if sources else found


def _thinking(piece: ReasoningPart, entry: Entry, losses: LossLog) -> Item | None:
    """A thinking block as it came; nothing without the signature or the data that shows that it did."""
    state = state_of(piece, entry)
    if state.get("type") == "redacted_thinking" and state.get("data"):
        return dict(state)
    if state.get("type") == "thinking" and state.get("signature"):
        return {"type": "thinking", "thinking": piece.text, **state}
    lose(losses, "dropped", "the thinking came without a signature", piece, entry)
    return None


def _call(entry: Entry, losses: LossLog) -> Item:
    arguments = arguments_value(entry, losses)
    said = {"type": "tool_use", "id": entry.wire_id, "name": entry.wire_name, "input": arguments}
    return {**_state_of_call(entry), **said}


def _state_of_call(entry: Entry | None) -> Fields:
    call = entry.message.payload if entry else None
    return state_of(call, entry) if entry and isinstance(call, OptionCallPayload) else {}


_SIDES: Mapping[Side, Callable[[Turn, TurnScope, LossLog], list[Item]]] = {
    "system": _speakers,
    "user": _speakers,
    "assistant": _assistant,
    "results": _results,
}
