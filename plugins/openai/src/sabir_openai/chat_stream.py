"""Chunks of a Chat Completions stream → events. The chunks are also joined to the body of a response without streaming.

    chunk ─▶ deltas of text, reasoning, refusal, transcript, arguments ─▶ events for the caller
         └─▶ joined body ──read_answer──▶ the end of each block and of the reply, as without streaming (law 8)

The reply ends with `[DONE]`, or when the stream closes cleanly after the finish reason of choice 0. The end of another
choice does not end the reply. If a reply ends with `[DONE]` but without a finish reason, its finish reason is `other`,
and its last call may be cut off (law 12).
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
)

from sabir_openai import chat_decode
from sabir_openai.chat_stream_parts import (
    TEXT_FIELDS,
    StreamedDetails,
    StreamedThinking,
    StreamedToolCall,
    TextPieces,
    add_fields,
    drop_repeats,
    index_key,
    join_audio,
    join_pieces,
)


class ChatDecoder:
    """Decodes the events of one stream into sabir's events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._body: dict[str, Any] = {}
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _StreamedChoice] = {}
        self._open: set[int] = set()
        self._has_begun = False
        self._is_done = False

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield sabir's events for one event of the API, possibly none. Events after the end are ignored.

        Raises ResponseInvalid for data that is not a JSON object or a call without a name, and the CallError that the
        event reports.
        """
        data = event.data.strip()
        if self._is_done or not data:
            return
        if data == "[DONE]":
            yield from self._end_reply()
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
        for choice_chunk in map(object_or_empty, list_or_empty(choices)):
            index = chat_decode.index_of(choice_chunk)
            choice = self._choices.get(index) or self._add_choice(index)
            if not choice.adds_only_text(choice_chunk):
                self._scope.count_stored_values(data)
            for position, kind, text in choice.add(choice_chunk):
                if index != 0:
                    continue
                if position not in self._open:
                    yield from self._start_block(position, kind, text)
                elif text:
                    yield BlockDelta.unchecked(position, kind, text)

    def _add_choice(self, index: int) -> "_StreamedChoice":
        self._scope.count_blocks()
        return self._choices.setdefault(index, _StreamedChoice(index))

    def _start_block(self, position: int, kind: BlockKind, text: str) -> Iterator[StreamEvent]:
        """Yield the start and the content so far of a block of choice 0. Yield nothing for a call without a name."""
        if kind != "option_call":
            yield BlockStart(index=position, kind=kind)
        else:
            call = self._choices[0].calls[position - chat_decode.CALLS]
            if not call.name:
                return
            call.id, text = call.id or f"call_{uuid4().hex}", "".join(call.arguments)
            name = self._scope.option_names.get(call.name, call.name)
            yield BlockStart(index=position, kind=kind, invocation_id=call.id, option_name=name)
        self._open.add(position)
        if text:
            yield BlockDelta.unchecked(position, kind, text)

    def close(self) -> Iterator[StreamEvent]:
        """Yield the ends of all blocks and of the reply when the stream closes. Yield nothing if the reply has ended or
        choice 0 has no finish reason.
        """
        if not self._is_done and (first := self._choices.get(0)) and first.fields.get("finish_reason"):
            yield from self._end_reply()

    def _end_reply(self) -> Iterator[StreamEvent]:
        """Yield the ends of all blocks and of the reply. Yield nothing if the stream contained no choice."""
        if not self._choices:
            return
        self._is_done = True
        response = {**self._body, "choices": [choice.build() for choice in self._choices.values()]}
        blocks, end = chat_decode.read_answer(response, self._scope)
        for position, block in blocks:
            if position not in self._open:
                yield BlockStart.unchecked(position, block)
            yield BlockEnd(index=position, block=block)
        yield ReplyEnd(**end)


AddedText = tuple[int, BlockKind, str]
"""A block's position, its kind and the text that was added."""
ANY_ID = None
"""The id in keys of `_StreamedChoice._latest` that are looked up without an id."""
_REPEATED_FIELDS = ("index", "delta", "message", "text")
"""Fields of a chunk's choice that are its delta, or that repeat the text so far."""


class _StreamedChoice:
    """One choice of the reply while its chunks arrive."""

    def __init__(self, index: int) -> None:
        self.fields: dict[str, Any] = {"index": index}
        self.message_fields: dict[str, Any] = {}
        self.content: list[Any] = []
        """Items of the content: texts and reasoning that may still grow, and other items unchanged."""
        self.audio: dict[str, Any] = {}
        self.audio_pieces: list[str] = []
        self.calls: list[StreamedToolCall] = []
        self._latest: dict[tuple[str | float | None, str | None], int] = {}
        """(index, id) → the position of the latest such call. There are also keys with ANY_ID as id, with None as
        index, and with "" as id for calls that began without an id.
        """
        self._without_id: list[int] = []
        self._reasoning_field: str | None = None
        self._details = StreamedDetails()

    @staticmethod
    def adds_only_text(chunk: Fields) -> bool:
        """Return whether a chunk only adds text to the choice, so that its memory need not be counted separately."""
        if chunk.get("logprobs"):
            return False
        for name, value in object_or_empty(chunk.get("delta", chunk)).items():
            if name not in TEXT_FIELDS or not (value is None or isinstance(value, str)):
                return False
        return True

    def add(self, chunk: Fields) -> Iterator[AddedText]:
        """Add the part of a chunk that belongs to this choice. Yield each block that grew, with the added text."""
        self._replace_fields(chunk)
        delta = self._delta_of(chunk)
        for name, value in delta.items():
            if value is None or name == "role":
                continue
            match name:
                case "content":
                    for part in value if isinstance(value, list) else [value]:
                        if added := self._add_content_part(part):
                            yield added
                case "audio" if isinstance(value, dict):
                    yield from self._add_audio(value)
                case "tool_calls" if isinstance(value, list):
                    yield from self._add_tool_calls(value)
                case "reasoning_details" if isinstance(value, list):
                    yield from self._add_reasoning_details(value, delta)
                case "function_call" if isinstance(value, dict):
                    earlier = dict(object_or_empty(self.message_fields.get(name)))
                    self.message_fields[name] = add_fields(earlier, object_or_empty(value))
                case _ if isinstance(value, str):
                    yield from self._add_text_field(name, value)
                case _:
                    add_fields(self.message_fields, {name: value})

    def _replace_fields(self, chunk: Fields) -> None:
        """Store the fields of a choice besides its delta. Log probabilities are added to those of earlier chunks."""
        for name, value in chunk.items():
            if name == "logprobs" and value is not None:
                self.fields[name] = add_fields(dict(object_or_empty(self.fields.get(name))), object_or_empty(value))
            elif name not in _REPEATED_FIELDS and value is not None:
                self.fields[name] = value

    def _delta_of(self, chunk: Fields) -> Fields:
        """Return the `delta` of a chunk. Without `delta`, return the `message`, or {} if earlier chunks had content."""
        has_begun = self.message_fields or self.content or self.calls
        return object_or_empty(chunk.get("delta") if "delta" in chunk or has_begun else chunk.get("message"))

    def _add_text_field(self, name: str, text: str) -> Iterator[AddedText]:
        """Append to a text field of the message. Yield the added text of a refusal, or of the first reasoning field."""
        if not isinstance(self.message_fields.get(name), TextPieces):
            self.message_fields[name] = TextPieces()
        self.message_fields[name].append(text)
        if name == "refusal" and text:
            yield chat_decode.REFUSAL, "refusal", text
        if name in chat_decode.REASONING_FIELDS and text and self._reasoning_field in (None, name):
            self._reasoning_field = name
            yield chat_decode.REASONING, "reasoning", text

    def _add_reasoning_details(self, pieces: list[Any], delta: Fields) -> Iterator[AddedText]:
        """Add pieces of `reasoning_details`. Yield their text as reasoning if no other field contains the reasoning."""
        for piece in map(object_or_empty, pieces):
            self._details.add(piece)
            text = chat_decode.detail_text(piece)
            if text and self._reasoning_field is None and not any(map(delta.get, chat_decode.REASONING_FIELDS)):
                yield chat_decode.REASONING, "reasoning", text

    def _add_content_part(self, part: JSONValue) -> AddedText | None:
        """Add an item of the content, which is a text or an object. Return the text that a block grew by."""
        text = part if isinstance(part, str) else None
        if text is None:
            fields = object_or_empty(part)
            if (thinking := chat_decode.thinking_text(fields)) is not None:
                return self._add_thinking(fields, thinking)
            text = fields.get("text")
            if fields != {"type": "text", "text": text} or not isinstance(text, str):
                self.content.append(part)
                return None
        if not text:
            return None
        if not self.content or not isinstance(self.content[-1], TextPieces):
            self.content.append(TextPieces())
        self.content[-1].append(text)
        return chat_decode.CONTENT + len(self.content) - 1, "text", text

    def _add_thinking(self, fields: Fields, text: str) -> AddedText | None:
        """Append to the last content item if that is thinking too, otherwise begin an item. Return the added text."""
        if not self.content or not isinstance(self.content[-1], StreamedThinking):
            self.content.append(StreamedThinking())
        self.content[-1].add(fields, text)
        return (chat_decode.CONTENT + len(self.content) - 1, "reasoning", text) if text else None

    def _add_audio(self, audio: Fields) -> Iterator[AddedText]:
        """Append to the sound and its transcript, and yield both additions."""
        data, transcript = text_or_empty(audio.get("data")), text_or_empty(audio.get("transcript"))
        self.audio |= {name: value for name, value in audio.items() if name not in ("data", "transcript")}
        if data:
            self.audio_pieces.append(data)
            yield chat_decode.AUDIO, "media", data
        if transcript:
            add_fields(self.audio, {"transcript": transcript})
            yield chat_decode.TRANSCRIPT, "text", transcript

    def _add_tool_calls(self, deltas: list[Any]) -> Iterator[AddedText]:
        """Add the deltas of option calls to their calls, and yield the added argument text of each."""
        for delta in map(object_or_empty, deltas):
            position = self._call_position(delta)
            if position == len(self.calls):
                index = index_key(delta)
                self.calls.append(StreamedToolCall(index))
                self._latest[index, ANY_ID] = self._latest[index, ""] = position
                self._without_id.append(position)
            call = self.calls[position]
            text = call.add(delta)
            for key in ((call.index, call.id), (None, call.id)):
                self._latest[key] = max(position, self._latest.get(key, position))
            # The next pieces of this call may have this index and no id.
            self._latest.setdefault((index_key(delta), ANY_ID), position)
            yield chat_decode.CALLS + position, "option_call", text

    def _call_position(self, delta: Fields) -> int:
        """Return the position of the latest call that a delta continues, or the next free position for a new call.

        With an index, a delta continues the call of this index, unless the two have different ids. Without an index, it
        continues the call with its id or a call that has no id. Without index and id, it continues the last call,
        unless it has a name. A delta with a new id begins a call if it has a name; otherwise, `_nameless_call_position`
        decides.
        """
        index, wire_id = index_key(delta), text_or_empty(delta.get("id"))
        is_named = any(text_or_empty(object_or_empty(delta.get(kind)).get("name")) for kind in ("function", "custom"))
        if index is None and not wire_id:
            return len(self.calls) - bool(self.calls and not is_named)
        position = self._latest.get((index, wire_id or ANY_ID), -1)
        if wire_id:
            position = max(position, self._call_position_without_id(index))
            if position < 0 and not is_named:
                position = self._nameless_call_position(index, wire_id)
        return position if position >= 0 else len(self.calls)

    def _nameless_call_position(self, index: str | float | None, wire_id: str) -> int:
        """Return the position of the call that a delta with a new id, but without a name, continues. -1 if there is no
        such call.

        The delta continues the latest call with its index, or else the call with its id. Without an index, it continues
        the last call.
        """
        if index is None:
            return len(self.calls) - 1
        return self._latest.get((index, ANY_ID), self._latest.get((None, wire_id), -1))

    def _call_position_without_id(self, index: str | float | None) -> int:
        """Return the position of the latest call that has no id yet and has this index. With None, the index does not
        matter. -1 if there is no such call.
        """
        if index is not None:
            position = self._latest.get((index, ""), -1)
            return position if position >= 0 and not self.calls[position].id else -1
        while self._without_id and self.calls[self._without_id[-1]].id:
            self._without_id.pop()
        return self._without_id[-1] if self._without_id else -1

    def build(self) -> dict[str, Any]:
        """Return the choice as in a response that is not streamed."""
        message = {name: join_pieces(drop_repeats(name, value)) for name, value in self.message_fields.items()}
        if self._details.details:
            message["reasoning_details"] = self._details.build()
        if self.content:
            parts = (part.build() if isinstance(part, StreamedThinking) else join_pieces(part) for part in self.content)
            message["content"] = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
        if self.audio or self.audio_pieces:
            message["audio"] = {**object_or_empty(join_pieces(self.audio)), "data": join_audio(self.audio_pieces)}
        if self.calls:
            message["tool_calls"] = [call.build() for call in self.calls]
        return {**object_or_empty(join_pieces(self.fields)), "message": message}
