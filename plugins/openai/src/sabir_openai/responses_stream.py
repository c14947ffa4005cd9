"""Stream events of a response → sabir's events. A block's index is its item's output_index * INDEX_STEP + its position.

    the first event            ─▶ reply-start
    response.…delta            ─▶ …-delta, after a …-start if the block is new
    response.output_item.done  ─▶ …-end of every block of the item, with the most complete text of all its events
    response.completed         ─▶ the ends of the other blocks, then reply-end; also incomplete and failed

The final response may contain the text of an item that ended without text, and the arguments of a call. So the blocks
of such items and of all calls end with the final response. If two events disagree on a text, the reply has a loss. The
state of reasoning is read from the item's end, as the vendor's documentation requires: the encrypted content of an
earlier event may be incomplete.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sabir import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    Loss,
    OptionCallPayload,
    ReasoningPart,
    RefusalPart,
    ReplyEnd,
    ReplyStart,
    StreamEvent,
    TextPart,
)
from sabir.authoring import (
    BlockKind,
    DecodeScope,
    Fields,
    ServerEvent,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_openai.chat_decode import DecodedContent
from sabir_openai.responses_decode import PARAGRAPH, decode_item, is_finished, origin_of, raise_reported, read_end
from sabir_openai.responses_stream_items import (
    DELTAS,
    DONE,
    PARTS_DONE,
    Passage,
    StreamedItem,
    awaits_final_response,
    choose_text,
    complete_item,
    passage_of,
    texts_of,
)

_TEXT_PARTS: Mapping[str, type[TextPart | ReasoningPart | RefusalPart]] = {
    "text": TextPart,
    "reasoning": ReasoningPart,
    "refusal": RefusalPart,
}
_RESTORED = ("message", "reasoning", "custom_tool_call")
"""Types of items that become blocks if their texts were streamed, even if no event contains the complete item. Option
calls become blocks even without text.
"""
INDEX_STEP = 1000
"""The number of block indices that are reserved for one output item."""
TERMINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed")
"""Types of events that contain the final response and end the reply."""
ANNOUNCED_KINDS: Mapping[str, BlockKind] = {"reasoning": "reasoning", "function_call": "option_call"}
"""Type of an item whose only block begins as soon as the item is added → the kind of the block."""


@dataclass(slots=True)
class _OpenBlock:
    """A block that has begun and not ended. `passage` is the passage of its last delta."""

    start: BlockStart
    texts: list[str] = field(default_factory=list)
    passage: Passage | None = None


class ResponsesDecoder:
    """Decodes the events of one stream into sabir's events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._indices: dict[str, int] = {}
        self._last_index = -1
        self._open_blocks: dict[int, _OpenBlock] = {}
        self._streamed_items: dict[int, StreamedItem] = {}
        """Output index of an item whose blocks have not ended → the texts of its events."""
        self._waiting_items: dict[int, Fields] = {}
        """Output index → an item that has ended, but whose blocks wait for the final response."""
        self._ended_items: dict[int, Mapping[Passage, str]] = {}
        """Output index of an item whose blocks have ended → its texts, to compare with the final response."""
        self._losses: dict[str, Loss] = {}
        """Path of a passage → the loss for events that contain different texts for this passage."""
        self._blocks: list[DecodedContent] = []
        self._lacks_indices = False
        self._is_started = False
        self._is_ended = False
        self._readers: Mapping[str, Callable[[Fields], Iterable[StreamEvent]]] = {
            "response.output_item.added": self._read_item_added,
            "response.output_item.done": self._read_item_done,
            **dict.fromkeys(DELTAS, self._read_delta),
            **dict.fromkeys((*DONE, *PARTS_DONE), self._read_complete_text),
            **dict.fromkeys(TERMINAL_EVENTS, self._read_terminal_event),
        }

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield sabir's events for one event of the API, possibly none. Events after the terminal event are ignored.

        Raises ResponseInvalid for data that is not a JSON object, and the CallError that an event reports.
        """
        data = event.data.strip()
        if self._is_ended or data in ("", "[DONE]"):
            return
        fields = self._scope.read_object(data)
        name, response = text_or_empty(fields.get("type")) or event.event, object_or_empty(fields.get("response"))
        is_flat = name == "error" and "error" not in fields
        raise_reported({"error": without_fields(fields, "type")} if is_flat else response or fields, self._scope)
        fields["type"] = name
        if not self._is_started:  # the first event, of any type, begins the reply
            self._is_started = True
            yield ReplyStart(origin=origin_of(response, self._scope))
        if name not in DELTAS:
            self._scope.count_stored_values(data)
        if reader := self._readers.get(name):
            yield from reader(fields)

    def close(self) -> tuple[StreamEvent, ...]:
        """Return no events, because only a terminal event ends the reply."""
        return ()

    def _read_item_added(self, event: Fields) -> Iterator[StreamEvent]:
        item, output_index = object_or_empty(event.get("item")), self._output_index(event)
        if output_index not in self._ended_items:
            self._streamed_item(output_index).announce(item)
        yield from self._start_announced_block(output_index, item)

    def _start_announced_block(self, output_index: int, item: Fields) -> tuple[StreamEvent, ...]:
        """Start the block of a reasoning item or an option call, unless it has begun already. Return the events."""
        kind, name = ANNOUNCED_KINDS.get(text_or_empty(item.get("type"))), text_or_empty(item.get("name"))
        if kind is None:
            return ()
        call_id, name = text_or_empty(item.get("call_id")), self._scope.option_names.get(name, name)
        index = output_index * INDEX_STEP
        return self._start_block(BlockStart(index=index, kind=kind, invocation_id=call_id, option_name=name))

    def _output_index(self, event: Fields) -> int:
        """Return the `output_index` of an event. If the field is missing, number the items in the order in which their
        ids appear.
        """
        item = object_or_empty(event.get("item"))
        key = text_or_empty(event.get("item_id")) or text_or_empty(item.get("id")) or text_or_empty(item.get("call_id"))
        output_index = event.get("output_index")
        if not isinstance(output_index, int):
            self._lacks_indices = True
            output_index = self._indices.get(key, self._last_index + 1)
        if key:
            self._last_index = max(self._last_index, self._indices.setdefault(key, output_index))
        return output_index

    def _start_block(self, start: BlockStart) -> tuple[StreamEvent, ...]:
        """Open a block and return its start event. Return nothing if the block is open or its item has ended."""
        if start.index in self._open_blocks or start.index // INDEX_STEP in self._ended_items:
            return ()
        self._open_blocks[start.index] = _OpenBlock(start)
        return (start,)

    def _streamed_item(self, output_index: int) -> StreamedItem:
        """Return the StreamedItem with this output index. Create it if needed."""
        if (streamed := self._streamed_items.get(output_index)) is None:
            self._scope.count_blocks()
            streamed = self._streamed_items[output_index] = StreamedItem()
        return streamed

    def _read_delta(self, event: Fields) -> tuple[StreamEvent, ...]:
        """Append the text of a delta to its passage. Return the events of the block in which the text appears."""
        target, text, output_index = DELTAS[event["type"]], text_or_empty(event.get("delta")), self._output_index(event)
        if not text or output_index in self._ended_items or output_index in self._waiting_items:
            return ()
        passage, kind = passage_of(event, target), target.kind
        pieces = self._streamed_item(output_index).pieces
        if passage not in pieces:
            self._scope.count_blocks()
            pieces[passage] = []
        pieces[passage].append(text)
        if kind is None:
            return ()
        index = output_index * INDEX_STEP + (passage.position if kind in ("text", "refusal") else 0)
        is_new = kind != "option_call" and index not in self._open_blocks
        start = self._start_block(BlockStart(index=index, kind=kind)) if is_new else ()
        block = self._open_blocks.get(index)
        if block is None or block.start.kind != kind:
            return start
        earlier, block.passage = block.passage, passage
        text = PARAGRAPH + text if block.texts and earlier != passage else text
        block.texts.append(text)
        return (*start, BlockDelta.unchecked(index, kind, text))

    def _read_complete_text(self, event: Fields) -> tuple[StreamEvent, ...]:
        """Store the complete text of a passage, because other events may lack it. Ignore texts of unknown items."""
        name, output_index = event["type"], event.get("output_index")
        if not isinstance(output_index, int):
            output_index = self._indices.get(text_or_empty(event.get("item_id")))
        if output_index is not None and output_index not in self._ended_items:
            if position := PARTS_DONE.get(name):
                self._streamed_item(output_index).add_part(event, event.get(position))
            else:
                self._streamed_item(output_index).add_text(event, DONE[name])
        return ()

    def _read_item_done(self, event: Fields) -> Iterator[StreamEvent]:
        """End the blocks of an item. If the final response may complete the item, store the item until then."""
        output_index = self._output_index(event)
        if output_index in self._ended_items:
            return
        item, waiting = object_or_empty(event.get("item")), self._waiting_items.pop(output_index, {})
        item, conflicts = complete_item(item, waiting, self._streamed_item(output_index))
        self._report_conflicts(output_index, conflicts)
        if awaits_final_response(item):
            self._waiting_items[output_index] = item
            yield from self._start_announced_block(output_index, item)
        else:
            yield from self._end_item(output_index, item)

    def _end_item(self, output_index: int, item: Fields) -> Iterator[StreamEvent]:
        """End the blocks of a complete item, and remember its texts for the comparison with the final response."""
        self._streamed_items.pop(output_index, None)
        blocks = decode_item(item, self._scope) if item else []
        for index, block in enumerate(blocks, output_index * INDEX_STEP):
            yield from self._end_block(index, block, is_finished(item))
        self._ended_items[output_index] = _comparable_texts(item)
        self._last_index = max(self._last_index, output_index)

    def _report_conflicts(self, output_index: int, conflicts: Iterable[Passage]) -> None:
        """Report the passages for which two events contain different texts."""
        for passage in conflicts:
            reason = "the events of the stream contain different texts for this field; the reply contains one of them"
            path = f"output[{output_index}].{passage}"
            self._losses[path] = Loss(kind="dropped", path=path, reason=reason)

    def _end_block(self, index: int, block: DecodedContent, is_complete: bool | None = None) -> Iterator[StreamEvent]:
        """Yield the end of a block, and before it the start if the block has not begun. `is_complete` says whether
        the model finished an option call; None if that is not known.
        """
        open_block = self._open_blocks.get(index)
        if open_block is not None and open_block.start.kind != block.kind:
            index += INDEX_STEP // 2  # the block that began at this index is another block, which ends with the reply
        yield from self._start_block(BlockStart.unchecked(index, block))
        self._blocks.append(block)
        self._open_blocks.pop(index, None)
        yield BlockEnd(index=index, block=block, is_finished=is_complete)

    def _read_terminal_event(self, event: Fields) -> Iterator[StreamEvent]:
        """End all blocks and the reply. Texts that differ from the final response are losses."""
        response = object_or_empty(event.get("response"))
        for position, item in enumerate(map(object_or_empty, list_or_empty(response.get("output")))):
            output_index = self._output_index({"output_index": None if self._lacks_indices else position, "item": item})
            if (sent := self._ended_items.get(output_index)) is None:
                yield from self._end_final_item(output_index, item)
            else:
                self._report_conflicts(output_index, _unsent_passages(_comparable_texts(item), sent))
        for output_index, item in sorted(self._waiting_items.items()):
            yield from self._end_item(output_index, complete_item(item, {}, self._streamed_item(output_index))[0])
        for output_index, streamed in sorted(self._streamed_items.items()):
            yield from self._end_unfinished(output_index, streamed)
        for index, open_block in sorted(self._open_blocks.items()):
            part = _TEXT_PARTS[open_block.start.kind](text="".join(open_block.texts))
            yield from self._end_block(index, part)
        self._is_ended = True
        end = read_end(response, self._blocks, self._scope)
        end["losses"] = (*end["losses"], *self._losses.values())
        yield ReplyEnd(**end)

    def _end_final_item(self, output_index: int, final: Fields) -> Iterator[StreamEvent]:
        """End an item of the final response, completed with the texts of earlier events."""
        earlier = self._waiting_items.pop(output_index, {})
        item, conflicts = complete_item(final, earlier, self._streamed_item(output_index))
        self._report_conflicts(output_index, conflicts)
        if encrypted := earlier.get("encrypted_content"):
            item["encrypted_content"] = encrypted  # the final response encrypts the same reasoning differently
        yield from self._end_item(output_index, item)

    def _end_unfinished(self, output_index: int, streamed: StreamedItem) -> Iterator[StreamEvent]:
        """End an option call or an item of a type in _RESTORED that no event contains completely. Ignore other items.

        The blocks have no state, so that they are sent back as new items.
        """
        item = streamed.build()
        if item.get("type") == "function_call" or (item.get("type") in _RESTORED and texts_of(item)):
            for index, block in enumerate(decode_item(item, self._scope), output_index * INDEX_STEP):
                yield from self._end_block(index, _without_state(block))


def _without_state(block: DecodedContent) -> DecodedContent:
    if isinstance(block, TextPart | ReasoningPart | RefusalPart):
        return _TEXT_PARTS[block.kind](text=block.text)
    return block.model_copy(update={"state_json": None}) if isinstance(block, OptionCallPayload) else block


def _comparable_texts(item: Fields) -> Mapping[Passage, str]:
    """Return the texts of an item, to compare with the final response. {} for an image, to save memory."""
    return {} if item.get("type") == "image_generation_call" else texts_of(item)


def _unsent_passages(final: Mapping[Passage, str], sent: Mapping[Passage, str]) -> Iterator[Passage]:
    """Yield the passages whose text in the final response is not the text that was sent to the caller."""
    for passage, value in final.items():
        text_sent = sent.get(passage, "")
        best, disagrees = choose_text(value, text_sent, is_json=passage.field == "arguments")
        if disagrees or best != text_sent:
            yield passage
