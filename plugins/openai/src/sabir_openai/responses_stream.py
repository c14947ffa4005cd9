"""Stream events of a response → core events. A block's index is its item's place, then its place in the item.

    response.created           ─▶ reply-start
    response.…delta            ─▶ …-delta, after a …-start if the block is new
    response.output_item.done  ─▶ …-end of every block of the item: the whole item decides
    response.completed         ─▶ the ends of blocks that no item ended, then reply-end; incomplete and failed alike

Every other event only repeats content of a finished item; items that only the final response has are read from there
(law 8). Reasoning is read from its item's end, as the vendor's documentation requires: the encrypted content of an
earlier event may be incomplete.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sabir import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    ReasoningPart,
    RefusalPart,
    ReplyEnd,
    ReplyStart,
    StreamEvent,
    TextPart,
)
from sabir.authoring import BlockKind, DecodeScope, Fields, ServerEvent, fields, items, text, without

from sabir_openai.chat_decode import Block
from sabir_openai.responses_decode import PARAGRAPH, is_finished, item_blocks, origin_of, raise_reported, read_end

WIDTH = 1000
"""The number of block places reserved for one output item."""

DELTAS: Mapping[str, tuple[BlockKind, str]] = {
    "response.output_text.delta": ("text", "content_index"),
    "response.refusal.delta": ("refusal", "content_index"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary_index"),
    "response.reasoning_text.delta": ("reasoning", "content_index"),
    "response.function_call_arguments.delta": ("option_call", ""),
}
"""Event → the kind of its block, and the field with the block's place in its item."""
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
ANNOUNCED: Mapping[str, BlockKind] = {"reasoning": "reasoning", "function_call": "option_call"}
"""Items with one block, which begins when the item is added."""


@dataclass(slots=True)
class _Growing:
    """A block that has begun and not ended; `passage` is the place of its last delta."""

    start: BlockStart
    texts: list[str] = field(default_factory=list)
    passage: tuple[object, ...] | None = None

    def whole(self, scope: DecodeScope) -> Block:
        """The block so far, for a response whose final event does not contain it."""
        so_far = "".join(self.texts)
        if self.start.kind == "option_call":
            return scope.read_call(self.start.invocation_id, self.start.option_name, so_far)
        if self.start.kind == "reasoning":
            return ReasoningPart(text=so_far)
        return RefusalPart(text=so_far) if self.start.kind == "refusal" else TextPart(text=so_far)


class ResponsesDecoder:
    """One stream's wire events → core events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._places: dict[str, int] = {}
        self._last_place = -1
        self._growing: dict[int, _Growing] = {}
        self._done: set[int] = set()
        self._blocks: list[Block] = []
        self._lacks_places = False
        self._is_started = False
        self._is_ended = False
        self._readers: Mapping[str, Callable[[Fields], Iterable[StreamEvent]]] = {
            "response.output_item.added": self._added,
            "response.output_item.done": self._done_item,
            **dict.fromkeys(DELTAS, self._grown),
            **dict.fromkeys(TERMINAL, self._ended),
        }

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Core events of one wire event; raises the CallError that it reports."""
        data = event.data.strip()
        if self._is_ended or data in ("", "[DONE]"):
            return
        found = self._scope.read_object(data)
        name, response = text(found.get("type")) or event.event, fields(found.get("response"))
        is_flat = name == "error" and "error" not in found
        raise_reported({"error": without(found, "type")} if is_flat else response or found, self._scope)
        found["type"] = name
        if not self._is_started:  # the first event, of any type, begins the reply
            self._is_started = True
            yield ReplyStart(origin=origin_of(response, self._scope))
        if name not in DELTAS:
            self._scope.count_kept(data)
        if reader := self._readers.get(name):
            yield from reader(found)

    def close(self) -> tuple[StreamEvent, ...]:
        """No events: the terminal event has ended the reply."""
        return ()

    def _added(self, found: Fields) -> Iterator[StreamEvent]:
        item, index = fields(found.get("item")), self._place(found) * WIDTH
        kind, name = ANNOUNCED.get(text(item.get("type"))), text(item.get("name"))
        if kind is not None:
            ids = {"invocation_id": text(item.get("call_id")), "option_name": self._scope.option_names.get(name, name)}
            yield from self._begun(BlockStart(index=index, kind=kind, **ids))

    def _place(self, found: Fields) -> int:
        """The place of an event's item: the event's own field, else the order in which the items' ids appeared."""
        item = fields(found.get("item"))
        key = text(found.get("item_id")) or text(item.get("id")) or text(item.get("call_id"))
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

    def _grown(self, found: Fields) -> tuple[StreamEvent, ...]:
        (kind, within), more = DELTAS[found["type"]], text(found.get("delta"))
        part = found.get(within)
        index = self._place(found) * WIDTH + (part if kind in ("text", "refusal") and isinstance(part, int) else 0)
        begun = self._begun(BlockStart(index=index, kind=kind)) if more and kind != "option_call" else ()
        block = self._growing.get(index)
        if block is None or block.start.kind != kind or not more:
            return begun
        before, block.passage = block.passage, (found["type"], part)
        more = PARAGRAPH + more if block.texts and before != block.passage else more
        block.texts.append(more)
        return (*begun, BlockDelta.of(index, kind, more))

    def _done_item(self, found: Fields) -> Iterator[StreamEvent]:
        place = self._place(found)
        if place not in self._done:
            item = found.get("item")
            for index, block in enumerate(item_blocks(item, self._scope), place * WIDTH):
                yield from self._done_block(index, block, is_finished(item))
            self._done.add(place)
            self._last_place = max(self._last_place, place)

    def _done_block(self, index: int, block: Block, mark: bool | None = None) -> Iterator[StreamEvent]:
        """Yield the end of a block, with the wire's mark on its item; its start too if it had none."""
        yield from self._begun(BlockStart.of(index, block))
        self._blocks.append(block)
        self._growing.pop(index, None)
        yield BlockEnd(index=index, block=block, is_finished=mark)

    def _ended(self, found: Fields) -> Iterator[StreamEvent]:
        response = fields(found.get("response"))
        for position, item in enumerate(items(response.get("output"))):
            yield from self._done_item({"output_index": None if self._lacks_places else position, "item": item})
        for index, block in sorted(self._growing.items()):
            yield from self._done_block(index, block.whole(self._scope))
        self._is_ended = True
        yield ReplyEnd(**read_end(response, self._blocks, self._scope))
