"""Parts of a streamed message while their pieces arrive: texts, reasoning, details of reasoning, and calls.

The pieces of a text are collected in a list and joined once, at the end.
"""

import base64
import json
from contextlib import suppress
from typing import Any

from sabir.authoring import Fields, JSONValue, object_or_empty, text_or_empty, unknown_fields

from sabir_openai.chat_decode import DETAIL_TEXT_FIELDS, REASONING_FIELDS

_OWN_FIELDS = frozenset({"index", "id", "type", "function", "custom"})
TEXT_FIELDS = frozenset({"role", "content", "refusal", *REASONING_FIELDS})
"""Fields of a delta whose texts are always joined. If another field has the same text in every delta, the text is not
joined.
"""


class TextPieces(list[str]):
    """The pieces of a text that may still grow."""


class StreamedThinking:
    """A content item of the type `thinking` that may still grow: the pieces of its text, and its other fields."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.pieces = TextPieces()

    def add(self, piece: Fields, text: str) -> None:
        """Add a piece of the item. `text` is the piece's text."""
        self.fields |= piece
        self.pieces.append(text)

    def build(self) -> dict[str, Any]:
        """Return the content item as in a response that is not streamed."""
        text = join_pieces(self.pieces)
        return {**self.fields, "thinking": [{"type": "text", "text": text}] if text else []}


class StreamedDetails:
    """The objects of `reasoning_details` while their pieces arrive.

    A piece with a text or a signature continues the latest object of its type and index, unless the ids differ, or the
    object has a signature already and the piece has no signature. Every other piece, and a piece with encrypted
    reasoning (`data`), becomes a new object.
    """

    def __init__(self) -> None:
        self.details: list[dict[str, Any]] = []
        self._latest: dict[tuple[str, str | float | None], dict[str, Any]] = {}

    def add(self, piece: Fields) -> None:
        """Add a piece."""
        key = text_or_empty(piece.get("type")), index_key(piece)
        detail = self._latest.get(key)
        if detail is None or not _is_continuation(piece, detail):
            detail = self._latest[key] = {}
            self.details.append(detail)
        for name, value in piece.items():
            if isinstance(value, str) and name in DETAIL_TEXT_FIELDS:
                detail.setdefault(name, TextPieces()).append(value)
            elif value not in (None, "") or name not in detail:
                detail[name] = value

    def build(self) -> list[dict[str, Any]]:
        """Return the details as in a response that is not streamed."""
        return [join_pieces(detail) for detail in self.details]


def _is_continuation(piece: Fields, detail: Fields) -> bool:
    """Return whether a piece of reasoning continues `detail`, the latest object of the same type and index."""
    ids = {text_or_empty(each.get("id")) for each in (piece, detail)} - {""}
    is_more = bool(piece.get("signature")) or not detail.get("signature")
    grows = "signature" in piece or any(name in piece for name in DETAIL_TEXT_FIELDS)
    return len(ids) < 2 and is_more and grows and not piece.get("data")


class StreamedToolCall:
    """One option call while its pieces arrive."""

    def __init__(self, index: str | float | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = TextPieces()
        self.parsed: JSONValue = None
        self.kind = "function"
        self.further: dict[str, Any] = {}

    def add(self, delta: Fields) -> str:
        """Add a delta of the call. Return the argument text that it added, which may be empty."""
        self.id = self.id or text_or_empty(delta.get("id"))
        self.kind = "custom" if isinstance(delta.get("custom"), dict) else self.kind
        inner = object_or_empty(delta.get(self.kind))
        name = text_or_empty(inner.get("name"))
        # Some endpoints repeat the name in every chunk.
        self.name += name if name != self.name else ""
        added = inner.get("input" if self.kind == "custom" else "arguments")
        if isinstance(added, dict):
            self.parsed = added
        self.further |= unknown_fields(delta, _OWN_FIELDS)
        self.arguments.append(text_or_empty(added))
        return text_or_empty(added)

    def build(self) -> dict[str, Any]:
        """Return the call as in a response that is not streamed."""
        field = "input" if self.kind == "custom" else "arguments"
        text = "".join(self.arguments)
        if self.parsed is not None and text:  # both an object and text: the joined text is invalid, but nothing is lost
            text = json.dumps(self.parsed) + text
        inner = {"name": self.name, field: text if text or self.parsed is None else self.parsed}
        return {**self.further, "id": self.id, "type": self.kind, self.kind: inner}


def index_key(delta: Fields) -> str | float | None:
    """Return the index of a piece, or its repr if the index is not hashable. None without an index."""
    index = delta.get("index")
    return index if isinstance(index, str | int | float | None) else repr(index)


def add_fields(target: dict[str, Any], delta: Fields) -> dict[str, Any]:
    """Add the fields of a delta to `target` and return `target`. Texts and arrays are appended, and other values are
    replaced.
    """
    for name, value in delta.items():
        earlier = target.get(name)
        if isinstance(value, str) and isinstance(earlier, str):
            target[name] = TextPieces((earlier, value))
        elif isinstance(value, str) and isinstance(earlier, TextPieces):
            earlier.append(value)
        elif isinstance(value, list) and type(earlier) is list:
            earlier.extend(value)
        else:
            target[name] = value
    return target


def drop_repeats(name: str, value: Any) -> Any:
    """Return a field's value. If every delta had the same text, return it once, except for fields in TEXT_FIELDS."""
    is_repeated = name not in TEXT_FIELDS and isinstance(value, TextPieces) and len({*value}) == 1
    return value[0] if is_repeated else value


def join_pieces(value: Any) -> Any:
    """Return the value with the pieces of each text joined, also within objects."""
    if isinstance(value, dict):
        return {name: join_pieces(member) for name, member in value.items()}
    return "".join(value) if isinstance(value, TextPieces) else value


def join_audio(pieces: list[str]) -> str:
    """Return the base64 text of a sound from its pieces. Pieces with their own padding are decoded and joined."""
    if any("=" in piece for piece in pieces[:-1]):
        with suppress(ValueError):
            return base64.b64encode(b"".join(base64.b64decode(piece) for piece in pieces)).decode()
    return "".join(pieces)
