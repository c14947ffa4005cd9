"""Stream events of a response → sabir's events. A block's index is its item's place * WIDTH + its place in the item.

    response.created           ─▶ reply-start
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

from sabir_openai.chat_decode import Block
from sabir_openai.responses_decode import PARAGRAPH, is_finished, item_blocks, origin_of, raise_reported, read_end
from sabir_openai.responses_stream_items import (
    DELTAS,
    DONE,
    PARTS_DONE,
    Passage,
    Streamed,
    completed,
    is_open,
    more_complete,
    passage_of,
    texts_of,
)

_TEXT_PARTS: Mapping[str, type[TextPart | ReasoningPart | RefusalPart]] = {
    "text": TextPart,
    "reasoning": ReasoningPart,
    "refusal": RefusalPart,
}
_RESTORED = ("message", "reasoning", "custom_tool_call")
"""Types of items that become blocks even if no event contains the complete item, provided that their texts were
streamed. Option calls do so even without text.
"""
WIDTH = 1000
"""The number of block places reserved for one output item."""

TERMINAL = ("response.completed", "response.incomplete", "response.failed")
ANNOUNCED: Mapping[str, BlockKind] = {"reasoning": "reasoning", "function_call": "option_call"}
"""Type of an item whose only block begins when the item is added → the kind of the block."""


@dataclass(slots=True)
class _Growing:
    """A block that has begun and not ended; `passage` is the passage of its last delta."""

    start: BlockStart
    texts: list[str] = field(default_factory=list)
    passage: Passage | None = None


class ResponsesDecoder:
    """Decodes the events of one stream into sabir's events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._places: dict[str, int] = {}
        self._last_place = -1
        self._growing: dict[int, _Growing] = {}
        self._streamed: dict[int, Streamed] = {}
        """Place of an item whose blocks have not ended → the texts of its events."""
        self._open: dict[int, Fields] = {}
        """Place → an item that ended, but whose blocks wait for the final response."""
        self._done: dict[int, Mapping[Passage, str]] = {}
        """Place of an item whose blocks ended → its texts, to compare with the final response."""
        self._losses: dict[str, Loss] = {}
        """Path of a passage → the loss that two events disagree on its text."""
        self._blocks: list[Block] = []
        self._lacks_places = False
        self._is_started = False
        self._is_ended = False
        self._readers: Mapping[str, Callable[[Fields], Iterable[StreamEvent]]] = {
            "response.output_item.added": self._added,
            "response.output_item.done": self._done_item,
            **dict.fromkeys(DELTAS, self._grown),
            **dict.fromkeys((*DONE, *PARTS_DONE), self._repeated),
            **dict.fromkeys(TERMINAL, self._ended),
        }

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield sabir's events for one event of the API, possibly none. Events after the terminal event are ignored.

        Raises ResponseInvalid for data that is not a JSON object, and the CallError that an event reports.
        """
        data = event.data.strip()
        if self._is_ended or data in ("", "[DONE]"):
            return
        found = self._scope.read_object(data)
        name, response = text_or_empty(found.get("type")) or event.event, object_or_empty(found.get("response"))
        is_flat = name == "error" and "error" not in found
        raise_reported({"error": without_fields(found, "type")} if is_flat else response or found, self._scope)
        found["type"] = name
        if not self._is_started:  # the first event, of any type, begins the reply
            self._is_started = True
            yield ReplyStart(origin=origin_of(response, self._scope))
        if name not in DELTAS:
            self._scope.count_stored_values(data)
        if reader := self._readers.get(name):
            yield from reader(found)

    def close(self) -> tuple[StreamEvent, ...]:
        """Return no events, because only a terminal event ends the reply."""
        return ()

    def _added(self, found: Fields) -> Iterator[StreamEvent]:
        item, place = object_or_empty(found.get("item")), self._place(found)
        if place not in self._done:
            self._sources(place).announce(item)
        yield from self._announced(place, item)

    def _announced(self, place: int, item: Fields) -> tuple[StreamEvent, ...]:
        """Return the start of the block of a reasoning item or an option call; nothing for other items or if the block
        has begun already.
        """
        kind, name = ANNOUNCED.get(text_or_empty(item.get("type"))), text_or_empty(item.get("name"))
        if kind is None:
            return ()
        ids = {
            "invocation_id": text_or_empty(item.get("call_id")),
            "option_name": self._scope.option_names.get(name, name),
        }
        return self._begun(BlockStart(index=place * WIDTH, kind=kind, **ids))

    def _place(self, found: Fields) -> int:
        """Return the place of an event's item: the event's `output_index`. Without that field, the place in the order
        in which the ids of items appeared.
        """
        item = object_or_empty(found.get("item"))
        key = text_or_empty(found.get("item_id")) or text_or_empty(item.get("id")) or text_or_empty(item.get("call_id"))
        place = found.get("output_index")
        if not isinstance(place, int):
            self._lacks_places = True
            place = self._places.get(key, self._last_place + 1)
        if key:
            self._last_place = max(self._last_place, self._places.setdefault(key, place))
        return place

    def _begun(self, start: BlockStart) -> tuple[StreamEvent, ...]:
        if start.index in self._growing or start.index // WIDTH in self._done:
            return ()
        self._growing[start.index] = _Growing(start)
        return (start,)

    def _sources(self, place: int) -> Streamed:
        """Return the texts of the item at a place; create them if needed."""
        if (streamed := self._streamed.get(place)) is None:
            self._scope.count_blocks()
            streamed = self._streamed[place] = Streamed()
        return streamed

    def _grown(self, found: Fields) -> tuple[StreamEvent, ...]:
        source, more, place = DELTAS[found["type"]], text_or_empty(found.get("delta")), self._place(found)
        if not more or place in self._done or place in self._open:
            return ()
        passage, kind = passage_of(found, source), source.kind
        pieces = self._sources(place).pieces
        if passage not in pieces:
            self._scope.count_blocks()
            pieces[passage] = []
        pieces[passage].append(more)
        if kind is None:
            return ()
        index = place * WIDTH + (passage.position if kind in ("text", "refusal") else 0)
        begun = self._begun(BlockStart(index=index, kind=kind)) if kind != "option_call" else ()
        block = self._growing.get(index)
        if block is None or block.start.kind != kind:
            return begun
        before, block.passage = block.passage, passage
        more = PARAGRAPH + more if block.texts and before != passage else more
        block.texts.append(more)
        return (*begun, BlockDelta.unchecked(index, kind, more))

    def _repeated(self, found: Fields) -> tuple[StreamEvent, ...]:
        """Store the complete text of a passage, which other events may lack. Ignore the text of an unknown item."""
        name, place = found["type"], found.get("output_index")
        if not isinstance(place, int):
            place = self._places.get(text_or_empty(found.get("item_id")))
        if place is not None and place not in self._done:
            if position := PARTS_DONE.get(name):
                self._sources(place).finish_part(found, found.get(position))
            else:
                self._sources(place).finish(found, DONE[name])
        return ()

    def _done_item(self, found: Fields) -> Iterator[StreamEvent]:
        """End an item's blocks, unless the final response may complete it."""
        place = self._place(found)
        if place in self._done:
            return
        item, conflicts = completed(object_or_empty(found.get("item")), self._open.pop(place, {}), self._sources(place))
        self._report(place, conflicts)
        if is_open(item):
            self._open[place] = item
            yield from self._announced(place, item)
        else:
            yield from self._end_item(place, item)

    def _end_item(self, place: int, item: Fields) -> Iterator[StreamEvent]:
        self._streamed.pop(place, None)
        blocks = item_blocks(item, self._scope) if item else []
        for index, block in enumerate(blocks, place * WIDTH):
            yield from self._done_block(index, block, is_finished(item))
        self._done[place] = _comparable(item)
        self._last_place = max(self._last_place, place)

    def _report(self, place: int, conflicts: Iterable[Passage]) -> None:
        """Report the passages on which two sources disagree."""
        for passage in conflicts:
            reason = "the events of the stream contain different texts for it; the reply contains one of them"
            path = f"output[{place}].{passage}"
            self._losses[path] = Loss(kind="dropped", path=path, reason=reason)

    def _done_block(self, index: int, block: Block, mark: bool | None = None) -> Iterator[StreamEvent]:
        """Yield the end of a block, and before it the start if the block has not begun. `mark` says whether the model
        finished an option call; None if that is not known.
        """
        growing = self._growing.get(index)
        if growing is not None and growing.start.kind != block.kind:
            index += WIDTH // 2  # the block that began at this index is another block, which ends with the reply
        yield from self._begun(BlockStart.unchecked(index, block))
        self._blocks.append(block)
        self._growing.pop(index, None)
        yield BlockEnd(index=index, block=block, is_finished=mark)

    def _ended(self, found: Fields) -> Iterator[StreamEvent]:
        response = object_or_empty(found.get("response"))
        for position, item in enumerate(map(object_or_empty, list_or_empty(response.get("output")))):
            place = self._place({"output_index": None if self._lacks_places else position, "item": item})
            if (sent := self._done.get(place)) is None:
                yield from self._complete(place, item)
            else:
                self._report(place, _unsent(_comparable(item), sent))
        for place, item in sorted(self._open.items()):
            yield from self._end_item(place, completed(item, {}, self._sources(place))[0])
        for place, streamed in sorted(self._streamed.items()):
            yield from self._end_unfinished(place, streamed)
        for index, growing in sorted(self._growing.items()):
            part = _TEXT_PARTS[growing.start.kind](text="".join(growing.texts))
            yield from self._done_block(index, part)
        self._is_ended = True
        end = read_end(response, self._blocks, self._scope)
        end["losses"] = (*end["losses"], *self._losses.values())
        yield ReplyEnd(**end)

    def _complete(self, place: int, final: Fields) -> Iterator[StreamEvent]:
        """End an item of the final response, completed with the texts of earlier events."""
        earlier = self._open.pop(place, {})
        item, conflicts = completed(final, earlier, self._sources(place))
        self._report(place, conflicts)
        if encrypted := earlier.get("encrypted_content"):
            item["encrypted_content"] = encrypted  # the final response encrypts the same reasoning differently
        yield from self._end_item(place, item)

    def _end_unfinished(self, place: int, streamed: Streamed) -> Iterator[StreamEvent]:
        """End an item that no event contains completely. Its blocks get no state, so that they are sent back as new
        items. An item of another type than those of _RESTORED and option calls is ignored.
        """
        item = streamed.item()
        if item.get("type") == "function_call" or (item.get("type") in _RESTORED and texts_of(item)):
            for index, block in enumerate(item_blocks(item, self._scope), place * WIDTH):
                yield from self._done_block(index, _without_state(block))


def _without_state(block: Block) -> Block:
    if isinstance(block, TextPart | ReasoningPart | RefusalPart):
        return _TEXT_PARTS[block.kind](text=block.text)
    return block.model_copy(update={"state_json": None}) if isinstance(block, OptionCallPayload) else block


def _comparable(item: Fields) -> Mapping[Passage, str]:
    """Return the texts of an item, to compare with the final response. {} for an image, which needs too much memory."""
    return {} if item.get("type") == "image_generation_call" else texts_of(item)


def _unsent(final: Mapping[Passage, str], sent: Mapping[Passage, str]) -> Iterator[Passage]:
    """Yield the passages whose text in the final response is longer or different from the text in `sent`."""
    for passage, value in final.items():
        text_sent = sent.get(passage, "")
        best, disagrees = more_complete(value, text_sent, is_json=passage.field == "arguments")
        if disagrees or best != text_sent:
            yield passage
