"""Chunks of a stream → sabir's events. Every chunk is a full response with the content since the last chunk.

    a text without other fields   ─▶ text-start, -delta …; consecutive texts of one kind are one block
    a text with a signature       ─▶ a separate block, also for an empty text
    a call in pieces              ─▶ option_call-start, -delta … -end; it ends with the piece without `willContinue`
    other parts, complete calls   ─▶ start and end at once
    the end of the bytes          ─▶ calls that only the metadata reports, the ends of texts and search results, with
                                     citations and sources, and of unfinished calls, then reply-end

The reply is complete if a chunk contained a finish reason or the reason why the prompt was blocked. Later chunks may
still have text, metadata and usage, so the reply ends where the bytes end. Usage and metadata that a later chunk does
not contain keep their earlier values.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sabir import BlockDelta, BlockEnd, BlockStart, ReasoningPart, ReplyEnd, ReplyStart, StreamEvent, TextPart
from sabir.authoring import (
    BlockKind,
    DecodeScope,
    Fields,
    ReplyBuilder,
    ServerEvent,
    first_whole_number,
    has_more_values,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_google.decode import DecodedPart, add_metadata, decode_part, origin_of, parts_of, read_end, read_response
from sabir_google.native import is_search
from sabir_google.streamed_calls import StreamedFunctionCall, is_piece

_PLAIN = frozenset({"text", "thought"})
_FIELD_NAME = re.compile(r'"([^"\\]*)"\s*:')
FEW_VALUES = 64
"""The largest number of JSON values of a chunk that may count as repeated."""
MAX_SHAPES = 64
"""The maximum number of remembered sets of field names. A stream usually has fewer than ten."""


@dataclass(slots=True)
class _OpenText:
    """A text that may still grow: its first part, and the pieces of its text. `is_plain` means that further texts of
    the same kind are appended.
    """

    part: Fields
    kind: BlockKind
    is_plain: bool
    pieces: list[str]

    def build(self, scope: DecodeScope) -> DecodedPart:
        """Return the block for the text so far."""
        return decode_part({**self.part, "text": "".join(self.pieces)}, scope)


@dataclass(slots=True)
class _OpenCall:
    """A call whose arguments arrive in pieces: the pieces so far, and the start event of its block."""

    call: StreamedFunctionCall
    start: BlockStart

    def build(self, scope: DecodeScope) -> DecodedPart:
        """Return the block for the call so far, with the invocation id of its start event."""
        return decode_part(self.call.build(), scope).model_copy(update={"invocation_id": self.start.invocation_id})


@dataclass(slots=True)
class _StreamedCandidate:
    """One candidate while its chunks arrive: its metadata, its blocks, and the last call that arrives in pieces."""

    metadata: dict[str, Any] = field(default_factory=dict)
    blocks: list[DecodedPart | _OpenText | _OpenCall] = field(default_factory=list)
    last_call: _OpenCall | None = None

    def add_part(self, part: Any, scope: DecodeScope) -> Iterable[StreamEvent]:
        """Add one part of a chunk. Return the events of its block."""
        text = object_or_empty(part).get("text")
        if isinstance(text, str) and len(part) == 1:  # the usual case
            return self._add_text(part, "text", text, scope) if text else ()
        if is_piece(part) or (self.last_call is not None and self.last_call.call.is_continued_by(part)):
            return self._add_call_piece(part, scope)
        block = decode_part(part, scope)
        if isinstance(block, TextPart | ReasoningPart):
            return () if ReplyBuilder.is_empty(block) else self._add_text(part, block.kind, block.text, scope)
        index = len(self.blocks)
        scope.count_blocks()
        self.blocks.append(block)
        start = BlockStart.unchecked(index, block)
        return (start,) if is_search(block) else (start, BlockEnd(index=index, block=block))

    def _add_call_piece(self, part: Fields, scope: DecodeScope) -> Iterator[StreamEvent]:
        """Add a piece of a call. Yield the start of a new call, the added argument text, and the end after the last
        piece.
        """
        open_call = self.last_call
        if open_call is None or not open_call.call.is_continued_by(part):
            empty_block = decode_part({"functionCall": without_fields(part["functionCall"], "args")}, scope)
            start = BlockStart.unchecked(len(self.blocks), empty_block)
            open_call = self.last_call = _OpenCall(StreamedFunctionCall(scope), start)
            scope.count_blocks()
            self.blocks.append(open_call)
            yield open_call.start
        index, was_complete, text = open_call.start.index, open_call.call.is_complete, open_call.call.add(part)
        if text:
            yield BlockDelta.unchecked(index, "option_call", text)
        if open_call.call.is_complete and not was_complete:
            block = self.blocks[index] = open_call.build(scope)
            yield BlockEnd(index=index, block=block)

    def _add_text(self, part: Fields, kind: BlockKind, text: str, scope: DecodeScope) -> tuple[StreamEvent, ...]:
        """Add a text to the last block if both have the same kind and no other fields, otherwise begin a new block.
        Return the events.
        """
        is_plain = len(part) == 1 or part.keys() <= _PLAIN
        index = len(self.blocks) - 1
        last = self.blocks[index] if self.blocks else None
        if is_plain and isinstance(last, _OpenText) and last.is_plain and last.kind == kind:
            last.pieces.append(text)
            return (BlockDelta.unchecked(index, kind, text),) if text else ()
        scope.count_blocks()
        self.blocks.append(_OpenText(part, kind, is_plain, [text]))
        start = BlockStart(index=index + 1, kind=kind)
        return (start, BlockDelta.unchecked(index + 1, kind, text)) if text else (start,)

    def build_blocks(self, scope: DecodeScope) -> list[DecodedPart]:
        """Return all blocks, with their citations and sources, after the calls that only the metadata reports."""
        blocks = [each.build(scope) if isinstance(each, _OpenText | _OpenCall) else each for each in self.blocks]
        return add_metadata(blocks, self.metadata, scope)


def _is_plain_text(part: Any) -> bool:
    return type(part) is dict and part.keys() <= _PLAIN and type(part.get("text")) is str


def _merge_fields(target: dict[str, Any], chunk: Fields, *, without: str = "") -> bool:
    """Merge the fields of a chunk into `target`, except the field `without`. Objects are merged field by field, other
    values are replaced, and nulls are ignored.

    Return whether `target` got a new field or another array or object, so that it needs more memory.
    """
    has_grown = False
    for name, value in chunk.items():
        earlier = target.get(name)
        if value is None or value == earlier or name == without:
            continue
        if type(value) is dict and type(earlier) is dict:
            has_grown = _merge_fields(earlier, value) or has_grown
        else:
            target[name] = dict(value) if type(value) is dict else value
            has_grown = has_grown or earlier is None or type(value) is list or type(value) is dict
    return has_grown


class GenerateContentDecoder:
    """Decodes the chunks of one stream into sabir's events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._response: dict[str, Any] = {}
        self._candidates: dict[int, _StreamedCandidate] = {}
        self._first: _StreamedCandidate | None = None
        self._is_started = False
        self._shapes: set[int] = set()

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield sabir's events for one chunk, possibly none. Only the first candidate's blocks become events.

        Raises ResponseInvalid for an invalid chunk, and the CallError that the chunk reports.
        """
        if event.data.strip() in ("", "[DONE]"):
            return
        response = read_response(event.data, self._scope)
        has_grown = _merge_fields(self._response, response, without="candidates")
        arrived: list[tuple[_StreamedCandidate, list[Any]]] = []
        for candidate in map(object_or_empty, list_or_empty(response.get("candidates"))):
            state, parts = self._candidate_of(candidate), parts_of(candidate, self._scope)
            has_grown = _merge_fields(state.metadata, candidate, without="content") or has_grown
            has_grown = has_grown or not all(map(_is_plain_text, parts))
            arrived.append((state, parts))
        if has_grown and not self._is_repeated(event.data):
            self._scope.count_stored_values(event.data)
        if not self._is_started:
            self._is_started = True
            yield ReplyStart(origin=origin_of(response, self._scope))
        for state, parts in arrived:
            for part in parts:
                for each in state.add_part(part, self._scope):
                    if state is self._first:  # only the first candidate's blocks become events
                        yield each

    def _candidate_of(self, candidate: Fields) -> _StreamedCandidate:
        """Return the candidate with this index, a new one for a new index. The first one becomes `_first`."""
        index = first_whole_number(candidate.get("index")) or 0
        state = self._candidates.get(index)
        if state is None:
            state = self._candidates[index] = _StreamedCandidate()
            self._first = self._first or state
        return state

    def _is_repeated(self, data: str) -> bool:
        """Return whether a chunk has few values and the same field names as an earlier chunk.

        Such a chunk replaces stored values, so its memory need not be counted.
        """
        names = hash(tuple(_FIELD_NAME.findall(data)))
        if names in self._shapes:
            return not has_more_values(data, FEW_VALUES)
        if len(self._shapes) < MAX_SHAPES:
            self._shapes.add(names)
        return False

    def close(self) -> Iterator[StreamEvent]:
        """Yield the ends of the texts, of unfinished calls and of the reply when the stream closes. Yield nothing if no
        chunk contained a finish reason or the reason why the prompt was blocked.
        """
        candidates = list(self._candidates.values())
        is_blocked = text_or_empty(object_or_empty(self._response.get("promptFeedback")).get("blockReason"))
        if not any(candidate.metadata.get("finishReason") for candidate in candidates) and not is_blocked:
            return
        answers = [candidate.build_blocks(self._scope) for candidate in candidates]
        if candidates:
            added = len(answers[0]) - len(candidates[0].blocks)  # calls that only the metadata reports come first
            for index, reported in enumerate(answers[0][:added], -added):
                yield BlockStart.unchecked(index, reported)
                yield BlockEnd(index=index, block=reported)
            for index, block in enumerate(candidates[0].blocks):
                if isinstance(block, _OpenText | _OpenCall) or is_search(block):
                    yield BlockEnd(index=index, block=answers[0][index + added])
        metadata = [candidate.metadata for candidate in candidates]
        yield ReplyEnd(**read_end(self._response, metadata, answers, self._scope))
