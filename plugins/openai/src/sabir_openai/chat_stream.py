"""Chunks of a Chat Completions stream → events, and at the end the same body as the answer without streaming.

    chunk ─▶ deltas of text, reasoning, refusal, transcript, arguments ─▶ events for the caller
         └─▶ body so far ──read_answer──▶ the blocks' ends and the reply's (law 8: fold = whole)

The reply ends with `[DONE]`, or with a clean close after the finish reason of choice 0. The end of another choice does
not end it. A reply that only `[DONE]` ended has no finish reason (`other`), so its last call may be cut off (law 12).
"""

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

from sabir import BlockDelta, BlockEnd, BlockStart, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import BlockKind, DecodeScope, Fields, JSONValue, ServerEvent, fields, items, left_over, text

from sabir_openai import chat_decode


class ChatDecoder:
    """One stream's wire events → core events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._body: dict[str, Any] = {}
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._open: set[int] = set()
        self._has_begun = False
        self._is_done = False

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield the core events for one wire event; raises the CallError for an `error` object."""
        data = event.data.strip()
        if self._is_done or not data:
            return
        if data == "[DONE]":
            yield from self._end()
            return
        chunk = self._scope.read_object(data)
        is_flat = event.event == "error" and "error" not in chunk
        chat_decode.raise_reported({"error": chunk} if is_flat else chunk, self._scope)
        if not self._has_begun:
            self._has_begun = True
            yield ReplyStart(origin=chat_decode.origin_of(chunk, self._scope))
        choices, _ = chunk.pop("choices", None), chunk.pop("obfuscation", None)
        if chunk != self._head:  # it is the same in nearly every chunk
            self._head = chunk
            self._body |= {name: value for name, value in chunk.items() if value not in (None, "")}
        for found in map(fields, items(choices)):
            number = chat_decode.index_of(found)
            choice = self._choices.get(number) or self._begun_choice(number)
            if not choice.is_text(found):
                self._scope.count_kept(data)
            for place, kind, more in choice.take(found):
                if number != 0:
                    continue
                if place not in self._open:
                    yield from self._begun(place, kind, more, choice)
                elif more:
                    yield BlockDelta.of(place, kind, more)

    def _begun_choice(self, number: int) -> "_Choice":
        self._scope.count_blocks()
        return self._choices.setdefault(number, _Choice(number))

    def _begun(self, place: int, kind: BlockKind, more: str, choice: "_Choice") -> Iterator[StreamEvent]:
        """A block's start and its content so far; a call's start waits for the call's name."""
        if kind != "option_call":
            yield BlockStart(index=place, kind=kind)
        else:
            call = choice.calls[place - chat_decode.CALLS]
            if not call.name:
                return
            call.id, more = call.id or f"call_{uuid4().hex}", "".join(call.arguments)
            name = self._scope.option_names.get(call.name, call.name)
            yield BlockStart(index=place, kind=kind, invocation_id=call.id, option_name=name)
        self._open.add(place)
        if more:
            yield BlockDelta.of(place, kind, more)

    def close(self) -> Iterator[StreamEvent]:
        """Yield the ends of all blocks and of the reply; nothing if choice 0 has no finish reason."""
        if not self._is_done and (first := self._choices.get(0)) and first.found.get("finish_reason"):
            yield from self._end()

    def _end(self) -> Iterator[StreamEvent]:
        """Yield the ends of all blocks and of the reply; nothing if no choice came."""
        if not self._choices:
            return
        self._is_done = True
        whole = {**self._body, "choices": [choice.whole() for choice in self._choices.values()]}
        placed, end = chat_decode.read_answer(whole, self._scope)
        for place, block in placed:
            if place not in self._open:
                yield BlockStart.of(place, block)
            yield BlockEnd(index=place, block=block)
        yield ReplyEnd(**end)


Grown = tuple[int, BlockKind, str]
"""A block's place, its kind and the text that was added."""


ANY = None
"""Stands for every id."""
_OWN_FIELDS = frozenset({"index", "id", "type", "function", "custom"})


_TEXT_FIELDS = frozenset({"role", "content", "refusal", *chat_decode.REASONING_FIELDS})
"""Fields of a delta whose texts are joined."""
_REPEATED_FIELDS = ("index", "delta", "message", "text")
"""Fields of a chunk's choice that are its delta, or that repeat the text so far beside the delta."""


class _Words(list[str]):
    """A text that may still grow; its pieces are joined once."""


class _Thinking:
    """A chunk of reasoning that may still grow: its texts, and the fields that its pieces repeat or add."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.texts = _Words()

    def take(self, piece: Fields, thought: str) -> None:
        """Add a piece, whose text is `thought`."""
        self.fields |= piece
        self.texts.append(thought)

    def joined(self) -> dict[str, Any]:
        """Return the chunk as in a response that is not streamed."""
        thought = _settled(self.texts)
        return {**self.fields, "thinking": [{"type": "text", "text": thought}] if thought else []}


class _Details:
    """Details of reasoning that may still grow.

    A piece with a text or a signature continues the latest detail with its type, index and id, unless that has a
    signature already. Every other piece is a detail of its own, as encrypted ones are.
    """

    def __init__(self) -> None:
        self.details: list[dict[str, Any]] = []
        self._latest: dict[tuple[str, str | float | None], dict[str, Any]] = {}

    def take(self, piece: Fields) -> None:
        """Add a piece."""
        key = text(piece.get("type")), _key(piece)
        detail = self._latest.get(key)
        if detail is None or not _continues(piece, detail):
            detail = self._latest[key] = {}
            self.details.append(detail)
        for name, value in piece.items():
            if isinstance(value, str) and name in chat_decode.DETAIL_TEXTS:
                detail.setdefault(name, _Words()).append(value)
            elif value not in (None, "") or name not in detail:
                detail[name] = value

    def joined(self) -> list[dict[str, Any]]:
        """Return the details as in a response that is not streamed."""
        return [fields(_settled(detail)) for detail in self.details]


def _continues(piece: Fields, detail: Fields) -> bool:
    """Return whether a piece of reasoning belongs to an earlier detail of its type and index."""
    ids = {text(each.get("id")) for each in (piece, detail)} - {""}
    is_more = bool(piece.get("signature")) or not detail.get("signature")
    grows = "signature" in piece or any(name in piece for name in chat_decode.DETAIL_TEXTS)
    return len(ids) < 2 and is_more and grows and not piece.get("data")


class _Choice:
    """One choice so far."""

    def __init__(self, index: int) -> None:
        self.found: dict[str, Any] = {"index": index}
        self.message: dict[str, Any] = {}
        self.chunks: list[Any] = []
        """Content: growing texts, growing reasoning, and other chunks as they came."""
        self.audio: dict[str, Any] = {}
        self.sounds: list[str] = []
        self.calls: list[_Call] = []
        self._latest: dict[tuple[str | float | None, str | None], int] = {}
        """The latest call's place by index and id, by index alone (ANY), and by id alone."""
        self._without_id: list[int] = []
        self._reasoning_field: str | None = None
        self._details = _Details()

    @staticmethod
    def is_text(found: Fields) -> bool:
        """Return whether a chunk's part of a choice only adds text, which takes no more memory than its characters."""
        return not found.get("logprobs") and all(
            name in _TEXT_FIELDS and isinstance(value, str | None) for name, value in fields(found.get("delta")).items()
        )

    def take(self, found: Fields) -> Iterator[Grown]:
        """Add a chunk's part of this choice; yields the blocks that grew."""
        known = _REPEATED_FIELDS if "delta" in found else ("index",)
        for name, value in left_over(found, known).items():
            is_list = name == "logprobs"
            self.found[name] = _grown(dict(fields(self.found.get(name))), fields(value)) if is_list else value
        delta = left_over(fields(found.get("delta")), ("role",))
        for name, value in delta.items():
            match name:
                case "content":
                    for chunk in value if isinstance(value, list) else [value]:
                        yield from self._chunk(chunk)
                case "audio" if isinstance(value, dict):
                    yield from self._audio(value)
                case "tool_calls" if isinstance(value, list):
                    yield from self._calls(value)
                case "reasoning_details" if isinstance(value, list):
                    yield from self._reasoning(value, delta)
                case "function_call" if isinstance(value, dict):
                    self.message[name] = _grown(dict(fields(self.message.get(name))), fields(value))
                case _ if isinstance(value, str):
                    yield from self._text(name, value)
                case _:
                    _grown(self.message, {name: value})

    def _text(self, name: str, value: str) -> Iterator[Grown]:
        if not isinstance(self.message.get(name), _Words):
            self.message[name] = _Words()
        self.message[name].append(value)
        if name == "refusal" and value:
            yield chat_decode.REFUSAL, "refusal", value
        if name in chat_decode.REASONING_FIELDS and value and self._reasoning_field in (None, name):
            self._reasoning_field = name
            yield chat_decode.REASONING, "reasoning", value

    def _reasoning(self, pieces: list[Any], delta: Fields) -> Iterator[Grown]:
        """Add pieces of details; their text is the reasoning where no other field has it."""
        for piece in map(fields, pieces):
            self._details.take(piece)
            more = chat_decode.detail_text(piece)
            if more and self._reasoning_field is None and not any(map(delta.get, chat_decode.REASONING_FIELDS)):
                yield chat_decode.REASONING, "reasoning", more

    def _chunk(self, chunk: JSONValue) -> Iterator[Grown]:
        """Add a chunk of content, which is a text or an object."""
        found = {"type": "text", "text": chunk} if isinstance(chunk, str) else fields(chunk)
        more = found.get("text")
        if (thought := chat_decode.thinking_text(found)) is not None:
            if not self.chunks or not isinstance(self.chunks[-1], _Thinking):
                self.chunks.append(_Thinking())
            self.chunks[-1].take(found, thought)
            if thought:
                yield chat_decode.CONTENT + len(self.chunks) - 1, "reasoning", thought
        elif found != {"type": "text", "text": more} or not isinstance(more, str):
            self.chunks.append(chunk)
        elif more:
            if not self.chunks or not isinstance(self.chunks[-1], _Words):
                self.chunks.append(_Words())
            self.chunks[-1].append(more)
            yield chat_decode.CONTENT + len(self.chunks) - 1, "text", more

    def _audio(self, value: Fields) -> Iterator[Grown]:
        data, transcript = text(value.get("data")), text(value.get("transcript"))
        self.audio |= {name: item for name, item in value.items() if name not in ("data", "transcript")}
        if data:
            self.sounds.append(data)
            yield chat_decode.SOUND, "media", data
        if transcript:
            _grown(self.audio, {"transcript": transcript})
            yield chat_decode.TRANSCRIPT, "text", transcript

    def _calls(self, deltas: list[Any]) -> Iterator[Grown]:
        for delta in map(fields, deltas):
            place = self._place_of(delta)
            if place == len(self.calls):
                index = _key(delta)
                self.calls.append(_Call(index))
                self._latest[index, ANY] = self._latest[index, ""] = place
                self._without_id.append(place)
            call = self.calls[place]
            more = call.take(delta)
            for key in ((call.index, call.id), (None, call.id)):
                self._latest[key] = max(place, self._latest.get(key, place))
            self._latest.setdefault((_key(delta), ANY), place)  # its next pieces may have this index and no id
            yield chat_decode.CALLS + place, "option_call", more

    def _place_of(self, delta: Fields) -> int:
        """Return the place of the latest call that a delta continues, else the next place.

        A delta continues the call with its index and no other id; without an index, the call with its id or without
        one; without both, the last call, if the delta has no name. A name begins a call: a delta with a new id but
        without a name continues the call at its index, then the call with its id, then, without an index, the last.
        """
        index, wire_id = _key(delta), text(delta.get("id"))
        is_named = any(text(fields(delta.get(kind)).get("name")) for kind in ("function", "custom"))
        if index is None and not wire_id:
            return len(self.calls) - bool(self.calls and not is_named)
        place = self._latest.get((index, wire_id or ANY), -1)
        if wire_id:
            place = max(place, self._place_without_id(index))
            if place < 0 and not is_named:
                place = self._place_of_nameless(index, wire_id)
        return place if place >= 0 else len(self.calls)

    def _place_of_nameless(self, index: str | float | None, wire_id: str) -> int:
        """Return the place of the call that a delta with a new id, but without a name, continues; -1 for none."""
        if index is None:
            return len(self.calls) - 1
        return self._latest.get((index, ANY), self._latest.get((None, wire_id), -1))

    def _place_without_id(self, index: str | float | None) -> int:
        """The latest call without an id that has that index, or any; -1 for none. An index has one at most."""
        if index is not None:
            place = self._latest.get((index, ""), -1)
            return place if place >= 0 and not self.calls[place].id else -1
        while self._without_id and self.calls[self._without_id[-1]].id:
            self._without_id.pop()
        return self._without_id[-1] if self._without_id else -1

    def whole(self) -> dict[str, Any]:
        """The choice as in a response that is not streamed."""
        message = {name: _settled(_once(name, value)) for name, value in self.message.items()}
        if self._details.details:
            message["reasoning_details"] = self._details.joined()
        if self.chunks:
            joined = (each.joined() if isinstance(each, _Thinking) else _settled(each) for each in self.chunks)
            message["content"] = [{"type": "text", "text": each} if isinstance(each, str) else each for each in joined]
        if self.audio or self.sounds:
            message["audio"] = {**fields(_settled(self.audio)), "data": _joined(self.sounds)}
        if self.calls:
            message["tool_calls"] = [call.whole() for call in self.calls]
        return {**fields(_settled(self.found)), "message": message}


class _Call:
    """One option call so far."""

    def __init__(self, index: str | float | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = _Words()
        self.parsed: JSONValue = None
        self.kind = "function"
        self.further: dict[str, Any] = {}

    def take(self, delta: Fields) -> str:
        """Add a delta; return the argument text that it added."""
        self.id = self.id or text(delta.get("id"))
        self.kind = "custom" if isinstance(delta.get("custom"), dict) else self.kind
        inner = fields(delta.get(self.kind))
        name = text(inner.get("name"))
        # Some endpoints repeat the name in every chunk.
        self.name += name if name != self.name else ""
        more = inner.get("input" if self.kind == "custom" else "arguments")
        if isinstance(more, dict):
            self.parsed = more
        self.further |= left_over(delta, _OWN_FIELDS)
        self.arguments.append(text(more))
        return text(more)

    def whole(self) -> dict[str, Any]:
        """The call as in a response that is not streamed."""
        said = "input" if self.kind == "custom" else "arguments"
        words = "".join(self.arguments)
        if self.parsed is not None and words:  # both together are no valid arguments; both are kept
            words = json.dumps(self.parsed) + words
        inner = {"name": self.name, said: words if words or self.parsed is None else self.parsed}
        return {**self.further, "id": self.id, "type": self.kind, self.kind: inner}


def _key(delta: Fields) -> str | float | None:
    index = delta.get("index")
    return index if isinstance(index, str | int | float | None) else repr(index)


def _grown(found: dict[str, Any], more: Fields) -> dict[str, Any]:
    """Fields extended in place by a delta: texts and arrays are appended, other values are replaced."""
    for name, value in more.items():
        before = found.get(name)
        if isinstance(value, str) and isinstance(before, str):
            found[name] = _Words((before, value))
        elif isinstance(value, str) and isinstance(before, _Words):
            before.append(value)
        elif isinstance(value, list) and type(before) is list:
            before.extend(value)
        else:
            found[name] = value
    return found


def _once(name: str, value: Any) -> Any:
    """Return a field's pieces, or only one of them if an unknown field had the same value in each delta."""
    is_repeated = name not in _TEXT_FIELDS and isinstance(value, _Words) and len({*value}) == 1
    return value[0] if is_repeated else value


def _settled(value: Any) -> Any:
    """A value with all its growing texts joined."""
    if isinstance(value, dict):
        return {name: _settled(member) for name, member in value.items()}
    return "".join(value) if isinstance(value, _Words) else value


def _joined(sounds: list[str]) -> str:
    """Base64 of all pieces of a sound; each piece may have its own padding."""
    if any("=" in sound for sound in sounds[:-1]):
        with suppress(ValueError):
            return base64.b64encode(b"".join(base64.b64decode(sound) for sound in sounds)).decode()
    return "".join(sounds)
