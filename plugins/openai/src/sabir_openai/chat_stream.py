"""Chunks of a Chat Completions stream → events. The chunks are also joined to the body of a response without streaming.

    chunk ─▶ deltas of text, reasoning, refusal, transcript, arguments ─▶ events for the caller
         └─▶ joined body ──read_answer──▶ the end of each block and of the reply, as without streaming (law 8)

The reply ends with `[DONE]`, or when the stream closes cleanly after the finish reason of choice 0. The end of another
choice does not end the reply. A reply that ends with `[DONE]` but without a finish reason has the reason `other`, and
its last call may be cut off (law 12).
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from sabir import BlockDelta, BlockEnd, BlockStart, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import (
    BlockKind,
    DecodeScope,
    Fields,
    JSONValue,
    ServerEvent,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    unknown_fields,
)

from sabir_openai import chat_decode
from sabir_openai.chat_stream_parts import (
    TEXT_FIELDS,
    Call,
    Details,
    Thinking,
    Words,
    grown,
    joined_sound,
    key_of,
    once,
    settled,
)


class ChatDecoder:
    """Decodes the events of one stream into sabir's events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._body: dict[str, Any] = {}
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._open: set[int] = set()
        self._has_begun = False
        self._is_done = False

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield sabir's events for one event of the API, possibly none. Events after the end are ignored.

        Raises ResponseInvalid for data that is not a JSON object, and the CallError that an `error` object reports.
        """
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
        for found in map(object_or_empty, list_or_empty(choices)):
            number = chat_decode.index_of(found)
            choice = self._choices.get(number) or self._begun_choice(number)
            if not choice.is_text(found):
                self._scope.count_stored_values(data)
            for place, kind, more in choice.take(found):
                if number != 0:
                    continue
                if place not in self._open:
                    yield from self._begun(place, kind, more, choice)
                elif more:
                    yield BlockDelta.unchecked(place, kind, more)

    def _begun_choice(self, number: int) -> "_Choice":
        self._scope.count_blocks()
        return self._choices.setdefault(number, _Choice(number))

    def _begun(self, place: int, kind: BlockKind, more: str, choice: "_Choice") -> Iterator[StreamEvent]:
        """Yield a block's start and its content so far. For a call without a name yet, yield nothing."""
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
            yield BlockDelta.unchecked(place, kind, more)

    def close(self) -> Iterator[StreamEvent]:
        """Yield the ends of all blocks and of the reply when the stream closes. Yield nothing if the reply has ended or
        choice 0 has no finish reason.
        """
        if not self._is_done and (first := self._choices.get(0)) and first.found.get("finish_reason"):
            yield from self._end()

    def _end(self) -> Iterator[StreamEvent]:
        """Yield the ends of all blocks and of the reply; nothing if the stream contained no choice."""
        if not self._choices:
            return
        self._is_done = True
        whole = {**self._body, "choices": [choice.whole() for choice in self._choices.values()]}
        placed, end = chat_decode.read_answer(whole, self._scope)
        for place, block in placed:
            if place not in self._open:
                yield BlockStart.unchecked(place, block)
            yield BlockEnd(index=place, block=block)
        yield ReplyEnd(**end)


Grown = tuple[int, BlockKind, str]
"""A block's place, its kind and the text that was added."""


ANY = None
"""In a key of `_Choice._latest`, matches every id."""
_REPEATED_FIELDS = ("index", "delta", "message", "text")
"""Fields of a chunk's choice that are its delta, or that repeat what was streamed so far."""


class _Choice:
    """One choice of the reply while its chunks arrive."""

    def __init__(self, index: int) -> None:
        self.found: dict[str, Any] = {"index": index}
        self.message: dict[str, Any] = {}
        self.chunks: list[Any] = []
        """Items of the content: texts and reasoning that may still grow, and other items unchanged."""
        self.audio: dict[str, Any] = {}
        self.sounds: list[str] = []
        self.calls: list[Call] = []
        self._latest: dict[tuple[str | float | None, str | None], int] = {}
        """(index, id) → the place of the latest such call. Keys also have ANY as id, None as index, or "" for a call
        that began without an id.
        """
        self._without_id: list[int] = []
        self._reasoning_field: str | None = None
        self._details = Details()

    @staticmethod
    def is_text(found: Fields) -> bool:
        """Return whether a chunk only adds text to the choice, so that its memory need not be counted separately."""
        delta = found.get("delta", found)
        return not found.get("logprobs") and all(
            name in TEXT_FIELDS and isinstance(value, str | None) for name, value in object_or_empty(delta).items()
        )

    def take(self, found: Fields) -> Iterator[Grown]:
        """Add the part of a chunk that belongs to this choice. Yield each block that grew, with the added text."""
        for name, value in unknown_fields(found, _REPEATED_FIELDS).items():
            has_lists = name == "logprobs"
            self.found[name] = (
                grown(dict(object_or_empty(self.found.get(name))), object_or_empty(value)) if has_lists else value
            )
        delta = unknown_fields(self._delta_of(found), ("role",))
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
                    self.message[name] = grown(dict(object_or_empty(self.message.get(name))), object_or_empty(value))
                case _ if isinstance(value, str):
                    yield from self._text(name, value)
                case _:
                    grown(self.message, {name: value})

    def _delta_of(self, found: Fields) -> Fields:
        """Return what a chunk adds: its `delta`; without one its `message`, or {} if earlier chunks added content."""
        has_begun = self.message or self.chunks or self.calls
        return object_or_empty(found.get("delta") if "delta" in found or has_begun else found.get("message"))

    def _text(self, name: str, value: str) -> Iterator[Grown]:
        if not isinstance(self.message.get(name), Words):
            self.message[name] = Words()
        self.message[name].append(value)
        if name == "refusal" and value:
            yield chat_decode.REFUSAL, "refusal", value
        if name in chat_decode.REASONING_FIELDS and value and self._reasoning_field in (None, name):
            self._reasoning_field = name
            yield chat_decode.REASONING, "reasoning", value

    def _reasoning(self, pieces: list[Any], delta: Fields) -> Iterator[Grown]:
        """Add pieces of `reasoning_details`. Yield their text as reasoning if no other field contains the reasoning."""
        for piece in map(object_or_empty, pieces):
            self._details.take(piece)
            more = chat_decode.detail_text(piece)
            if more and self._reasoning_field is None and not any(map(delta.get, chat_decode.REASONING_FIELDS)):
                yield chat_decode.REASONING, "reasoning", more

    def _chunk(self, chunk: JSONValue) -> Iterator[Grown]:
        """Add an item of the content, which is a text or an object."""
        found = {"type": "text", "text": chunk} if isinstance(chunk, str) else object_or_empty(chunk)
        more = found.get("text")
        if (thought := chat_decode.thinking_text(found)) is not None:
            if not self.chunks or not isinstance(self.chunks[-1], Thinking):
                self.chunks.append(Thinking())
            self.chunks[-1].take(found, thought)
            if thought:
                yield chat_decode.CONTENT + len(self.chunks) - 1, "reasoning", thought
        elif found != {"type": "text", "text": more} or not isinstance(more, str):
            self.chunks.append(chunk)
        elif more:
            if not self.chunks or not isinstance(self.chunks[-1], Words):
                self.chunks.append(Words())
            self.chunks[-1].append(more)
            yield chat_decode.CONTENT + len(self.chunks) - 1, "text", more

    def _audio(self, value: Fields) -> Iterator[Grown]:
        data, transcript = text_or_empty(value.get("data")), text_or_empty(value.get("transcript"))
        self.audio |= {name: item for name, item in value.items() if name not in ("data", "transcript")}
        if data:
            self.sounds.append(data)
            yield chat_decode.SOUND, "media", data
        if transcript:
            grown(self.audio, {"transcript": transcript})
            yield chat_decode.TRANSCRIPT, "text", transcript

    def _calls(self, deltas: list[Any]) -> Iterator[Grown]:
        for delta in map(object_or_empty, deltas):
            place = self._place_of(delta)
            if place == len(self.calls):
                index = key_of(delta)
                self.calls.append(Call(index))
                self._latest[index, ANY] = self._latest[index, ""] = place
                self._without_id.append(place)
            call = self.calls[place]
            more = call.take(delta)
            for key in ((call.index, call.id), (None, call.id)):
                self._latest[key] = max(place, self._latest.get(key, place))
            self._latest.setdefault((key_of(delta), ANY), place)  # its next pieces may have this index and no id
            yield chat_decode.CALLS + place, "option_call", more

    def _place_of(self, delta: Fields) -> int:
        """Return the place of the latest call that a delta continues, or the next free place for a new call.

        With an index, a delta continues the call of this index, unless the two have different ids. Without an index, it
        continues the call with its id or a call that has no id. Without index and id, it continues the last call,
        unless it has a name. A delta with a new id begins a call only if it has a name; else see _place_of_nameless.
        """
        index, wire_id = key_of(delta), text_or_empty(delta.get("id"))
        is_named = any(text_or_empty(object_or_empty(delta.get(kind)).get("name")) for kind in ("function", "custom"))
        if index is None and not wire_id:
            return len(self.calls) - bool(self.calls and not is_named)
        place = self._latest.get((index, wire_id or ANY), -1)
        if wire_id:
            place = max(place, self._place_without_id(index))
            if place < 0 and not is_named:
                place = self._place_of_nameless(index, wire_id)
        return place if place >= 0 else len(self.calls)

    def _place_of_nameless(self, index: str | float | None, wire_id: str) -> int:
        """Return the place of the call that a delta with a new id, but without a name, continues; -1 for none.

        That is the latest call at its index, else the call with its id; without an index, the last call.
        """
        if index is None:
            return len(self.calls) - 1
        return self._latest.get((index, ANY), self._latest.get((None, wire_id), -1))

    def _place_without_id(self, index: str | float | None) -> int:
        """Return the place of the latest call that has no id yet and has this index; with None, any index. -1 for
        none.
        """
        if index is not None:
            place = self._latest.get((index, ""), -1)
            return place if place >= 0 and not self.calls[place].id else -1
        while self._without_id and self.calls[self._without_id[-1]].id:
            self._without_id.pop()
        return self._without_id[-1] if self._without_id else -1

    def whole(self) -> dict[str, Any]:
        """Return the choice as in a response that is not streamed."""
        message = {name: settled(once(name, value)) for name, value in self.message.items()}
        if self._details.details:
            message["reasoning_details"] = self._details.joined()
        if self.chunks:
            joined = (each.joined() if isinstance(each, Thinking) else settled(each) for each in self.chunks)
            message["content"] = [{"type": "text", "text": each} if isinstance(each, str) else each for each in joined]
        if self.audio or self.sounds:
            message["audio"] = {**object_or_empty(settled(self.audio)), "data": joined_sound(self.sounds)}
        if self.calls:
            message["tool_calls"] = [call.whole() for call in self.calls]
        return {**object_or_empty(settled(self.found)), "message": message}
