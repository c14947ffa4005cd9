"""Stream events of a message → sabir's events. A block's index is its position in the content.

    message_start        ─▶ reply-start, also at the first block event if `message_start` is missing
    content_block_start  ─▶ …-start        content_block_delta ─▶ …-delta        content_block_stop ─▶ …-end
    message_delta        ─▶ no event, but its stop reason and usage are stored for reply-end
    message_stop         ─▶ the ends of blocks that no event ended, then reply-end

The deltas of a block are joined to the block of a response without streaming, which the same functions read (law 8).

Bedrock's older endpoint sends binary frames instead of server-sent events. `frame_event` reads their payload.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sabir import BlockDelta, BlockEnd, BlockStart, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import (
    BlockKind,
    DecodeScope,
    Fields,
    ServerEvent,
    decode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    unknown_fields,
)

from sabir_anthropic.decode import THINKING_TYPES, decode_block, origin_of, raise_reported, read_end
from sabir_anthropic.native import SERVER_CALL_TYPES, native_tool

BLOCK_KINDS: Mapping[str, BlockKind] = {
    "text": "text",
    "tool_use": "option_call",
    **dict.fromkeys(THINKING_TYPES, "reasoning"),
}
"""Type of a block → the kind of its events. For other types, see `_kind_of`."""
SHOWN_KINDS = frozenset(BLOCK_KINDS.values())
"""The kinds of blocks whose texts are events."""
TEXT_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Type of a delta → its field with text to append. Other deltas set fields of the block, except `citations_delta`,
which appends a citation. A field that has a text already is stored in an object under the delta's type.
"""


@dataclass(slots=True)
class _OpenContentBlock:
    """A block that has begun and not ended. `pieces` maps its text fields to the pieces of their texts so far."""

    block: dict[str, Any]
    kind: BlockKind
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def add_delta(self, delta: Fields) -> str:
        """Add a delta. Return the text that it appended, "" for a delta of another type."""
        kind = text_or_empty(delta.get("type"))
        name = TEXT_FIELDS.get(kind)
        if name is not None:
            text = text_or_empty(delta.get(name))
            self.pieces.setdefault(name, []).append(text)
            return text
        if kind == "citations_delta":
            self.block["citations"] = cited = list_or_empty(self.block.get("citations"))
            cited.append(delta.get("citation"))
            return ""
        for name, value in delta.items():  # deltas of other types contain complete fields, such as a signature
            if name == "type" or value is None:
                continue
            has_text = name in self.pieces or bool(text_or_empty(self.block.get(name)))
            if has_text and (name in TEXT_FIELDS.values() or not isinstance(value, str)):
                own = kind or "delta"  # a text that arrived is not replaced
                self.block[own] = {**object_or_empty(self.block.get(own)), name: value}
            else:
                self.block[name] = value
        return ""

    def build(self) -> dict[str, Any]:
        """Return the block as in a response without streaming. An input that is not JSON stays a text."""
        texts = {name: "".join(pieces) for name, pieces in self.pieces.items()}
        arguments = texts.pop("partial_json", "")
        block = self.block | {name: text_or_empty(self.block.get(name)) + text for name, text in texts.items()}
        if arguments.strip():
            try:
                block["input"] = decode_json(arguments)
            except ValueError:
                block["input"] = arguments
        return block


class MessagesDecoder:
    """Decodes the events of one stream into sabir's events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._message: dict[str, Any] = {}
        self._open_blocks: dict[int, _OpenContentBlock] = {}
        self._is_started = False
        self._is_ended = False
        self._readers: Mapping[str, Callable[[Fields], Iterable[StreamEvent]]] = {
            "content_block_start": self._read_block_start,
            "content_block_delta": self._read_block_delta,
            "content_block_stop": self._read_block_stop,
            "message_delta": self._read_message_delta,
            "message_stop": self._read_message_stop,
        }

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield sabir's events for one event of the API, possibly none. Events after the end are ignored.

        Raises the CallError that the event reports, and ResponseInvalid for data that is not a JSON object or a block
        with a wrong index.
        """
        data = event.data.strip()
        if self._is_ended or not data:
            return
        fields = self._scope.read_object(data)
        raise_reported(fields, self._scope)
        name = text_or_empty(fields.get("type")) or event.event
        reader = self._readers.get(name)
        # Events that this decoder ignores, such as `ping` and future types, do not begin a message.
        if not self._is_started and (reader or name == "message_start"):
            self._is_started = True
            self._message = dict(object_or_empty(fields.get("message")))
            yield ReplyStart(origin=origin_of(self._message, self._scope))
        if object_or_empty(fields.get("delta")).get("type") not in TEXT_FIELDS:
            self._scope.count_stored_values(data)
        if reader:
            yield from reader(fields)

    def close(self) -> tuple[StreamEvent, ...]:
        """Return no events, because only `message_stop` ends the reply."""
        return ()

    def _read_block_start(self, event: Fields) -> Iterator[StreamEvent]:
        """Open a block and yield its start. A block that names another model changes the origin of the reply."""
        block = dict(object_or_empty(event.get("content_block")))
        kind = _kind_of(block)
        index, name = self._block_index(event), text_or_empty(block.get("name"))
        ids = {"invocation_id": text_or_empty(block.get("id")), "option_name": self._scope.option_names.get(name, name)}
        if model := object_or_empty(block.get("to")).get("model"):  # another model continues the answer
            self._message["model"] = model
        self._open_blocks[index] = _OpenContentBlock(block, kind)
        yield BlockStart(index=index, kind=kind, **(ids if kind == "option_call" else {}))

    def _block_index(self, event: Fields) -> int:
        """Return the index of an event's block. Raises ResponseInvalid if it is not a whole number of at least 0."""
        index = event.get("index")
        if type(index) is not int or index < 0:
            raise self._scope.invalid_answer(f"streamed a block at the index {index!r}; send the request again")
        return index

    def _open_block(self, event: Fields) -> tuple[int, _OpenContentBlock]:
        """Return the index of an event's block, and the block. Raises ResponseInvalid if the block is not open."""
        index = self._block_index(event)
        if index not in self._open_blocks:
            problem = f"streamed more of block {index}, which is not open"
            raise self._scope.invalid_answer(f"{problem}; send the request again")
        return index, self._open_blocks[index]

    def _read_block_delta(self, event: Fields) -> tuple[StreamEvent, ...]:
        index, block = self._open_block(event)
        text = block.add_delta(object_or_empty(event.get("delta")))
        return (BlockDelta.unchecked(index, block.kind, text),) if text and block.kind in SHOWN_KINDS else ()

    def _read_block_stop(self, event: Fields) -> Iterator[StreamEvent]:
        index, block = self._open_block(event)
        del self._open_blocks[index]
        yield BlockEnd(index=index, block=decode_block(block.build(), self._scope))

    def _read_message_delta(self, event: Fields) -> tuple[StreamEvent, ...]:
        """Store the fields of a `message_delta`. Usage figures are totals; a missing figure keeps its earlier value."""
        delta, usage = object_or_empty(event.get("delta")), object_or_empty(event.get("usage"))
        totals = {**object_or_empty(self._message.get("usage")), **unknown_fields(usage, ())}
        self._message |= unknown_fields(event, ("type", "delta")) | unknown_fields(delta, ()) | {"usage": totals}
        return ()

    def _read_message_stop(self, event: Fields) -> Iterator[StreamEvent]:
        for index in sorted(self._open_blocks):
            yield from self._read_block_stop({"index": index})
        self._is_ended = True
        yield ReplyEnd(**read_end(self._message, self._scope))


def _kind_of(block: Fields) -> BlockKind:
    """Return the kind of a block's events: from BLOCK_KINDS, or for the vendor's own tools, or "opaque"."""
    kind = text_or_empty(block.get("type"))
    if known := BLOCK_KINDS.get(kind):
        return known
    if not native_tool(block):
        return "opaque"
    return "native_call" if kind in SERVER_CALL_TYPES else "native_result"


def frame_event(headers: Mapping[str, str], payload: bytes) -> ServerEvent | None:
    """Return the event in a frame: the base64 content of its payload, or an error event for the exception or error that
    the headers name. None for any other frame.
    """
    try:
        fields = object_or_empty(decode_json(payload))
        if isinstance(fields.get("bytes"), str):
            return ServerEvent(base64.b64decode(fields["bytes"], validate=True).decode("utf-8", "replace"))
    except ValueError:
        fields = {"message": payload.decode("utf-8", "replace")}
    kind = headers.get(":exception-type") or headers.get(":error-code")
    return ServerEvent(json.dumps({"error": {"type": kind, **fields}})) if kind else None
