"""Chunks of a stream → sabir's events. Every chunk is a full response with the content since the last chunk.

    a text without other fields   ─▶ text-start, -delta …; consecutive texts of one kind are one block
    a text with a signature       ─▶ a separate block, also for an empty text
    a call in pieces              ─▶ option_call-start, -delta … -end; it ends with the piece without `willContinue`
    every other part              ─▶ its start and end at once, also for a call in one piece
    the end of the bytes          ─▶ the ends of the texts, with their citations, then reply-end

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
    unknown_fields,
    without_fields,
)

from sabir_google.decode import Block, cite, origin_of, part_block, parts_of, read_end, read_response
from sabir_google.streamed_calls import GrowingCall, is_piece

_PLAIN = frozenset({"text", "thought"})
_FIELD_NAME = re.compile(r'"([^"\\]*)"\s*:')
FEW_VALUES = 64
MOST_SHAPES = 64
"""The maximum number of remembered sets of field names. A stream usually has fewer than ten."""


@dataclass(slots=True)
class _Growing:
    """A text that may still grow: its first part, and the pieces of its text. `is_plain` says that further texts of its
    kind may be joined to it.
    """

    part: Fields
    kind: BlockKind
    is_plain: bool
    words: list[str]

    def whole(self, scope: DecodeScope) -> Block:
        """Return the block for the text so far."""
        return part_block({**self.part, "text": "".join(self.words)}, scope)


@dataclass(slots=True)
class _Calling:
    """A call whose arguments arrive in pieces: the pieces so far, and the start event of its block."""

    call: GrowingCall
    start: BlockStart

    def whole(self, scope: DecodeScope) -> Block:
        """Return the block for the call so far, with the invocation id of its start event."""
        return part_block(self.call.whole(), scope).model_copy(update={"invocation_id": self.start.invocation_id})


@dataclass(slots=True)
class _Candidate:
    """One candidate while its chunks arrive: its metadata, its blocks, and the last call that arrived in pieces."""

    told: dict[str, Any] = field(default_factory=dict)
    grown: list[Block | _Growing | _Calling] = field(default_factory=list)
    calling: _Calling | None = None

    def take(self, candidate: Fields, scope: DecodeScope) -> Iterator[StreamEvent]:
        """Add the part of a chunk that belongs to this candidate. Yield the events of its blocks."""
        _merge(self.told, candidate, but="content")
        for part in parts_of(candidate):
            yield from self._add(part, scope)

    def _add(self, part: Any, scope: DecodeScope) -> Iterable[StreamEvent]:
        words = object_or_empty(part).get("text")
        if isinstance(words, str) and len(part) == 1:  # the usual case
            return self._grow(part, "text", words, scope) if words else ()
        if is_piece(part) or (self.calling is not None and self.calling.call.is_continued_by(part)):
            return self._call(part, scope)
        block = part_block(part, scope)
        if isinstance(block, TextPart | ReasoningPart):
            return () if ReplyBuilder.is_empty(block) else self._grow(part, block.kind, block.text, scope)
        index = len(self.grown)
        scope.count_blocks()
        self.grown.append(block)
        return BlockStart.unchecked(index, block), BlockEnd(index=index, block=block)

    def _call(self, part: Fields, scope: DecodeScope) -> Iterator[StreamEvent]:
        """Add a piece of a call. Yield the start of a new call, the added argument text, and the end after the last
        piece.
        """
        calling = self.calling
        if calling is None or not calling.call.is_continued_by(part):
            begun = part_block({"functionCall": without_fields(part["functionCall"], "args")}, scope)
            calling = self.calling = _Calling(GrowingCall(scope), BlockStart.unchecked(len(self.grown), begun))
            scope.count_blocks()
            self.grown.append(calling)
            yield calling.start
        index, was_whole, more = calling.start.index, calling.call.is_whole, calling.call.take(part)
        if more:
            yield BlockDelta.unchecked(index, "option_call", more)
        if calling.call.is_whole and not was_whole:
            block = self.grown[index] = calling.whole(scope)
            yield BlockEnd(index=index, block=block)

    def _grow(self, part: Fields, kind: BlockKind, more: str, scope: DecodeScope) -> tuple[StreamEvent, ...]:
        """Add a text to the last block if both have the same kind and no other fields, otherwise begin a new block.
        Return the events.
        """
        is_plain = len(part) == 1 or part.keys() <= _PLAIN
        index = len(self.grown) - 1
        last = self.grown[index] if self.grown else None
        if is_plain and isinstance(last, _Growing) and last.is_plain and last.kind == kind:
            last.words.append(more)
            return (BlockDelta.unchecked(index, kind, more),) if more else ()
        scope.count_blocks()
        self.grown.append(_Growing(part, kind, is_plain, [more]))
        start = BlockStart(index=index + 1, kind=kind)
        return (start, BlockDelta.unchecked(index + 1, kind, more)) if more else (start,)

    def blocks(self, scope: DecodeScope) -> list[Block]:
        """Return all blocks, with their citations."""
        whole = [each.whole(scope) if isinstance(each, _Growing | _Calling) else each for each in self.grown]
        return cite(whole, self.told, scope)


def _merge(held: dict[str, Any], found: Fields, *, but: str = "") -> None:
    """Merge the fields of a chunk into `held`, in place, except the field `but`. Objects are merged field by field,
    other values replaced, and nulls ignored.
    """
    for name, value in unknown_fields(found, (but,)).items():
        if isinstance(value, dict) and isinstance(held.get(name), dict):
            _merge(held[name], value)
        else:
            held[name] = dict(value) if isinstance(value, dict) else value


class GenerateContentDecoder:
    """Decodes the chunks of one stream into sabir's events."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._response: dict[str, Any] = {}
        self._candidates: dict[int, _Candidate] = {}
        self._is_started = False
        self._shapes: set[int] = set()

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield sabir's events for one chunk, possibly none. Only the first candidate's blocks become events.

        Raises ResponseInvalid for an invalid chunk, and the CallError that the chunk reports.
        """
        if event.data.strip() in ("", "[DONE]"):
            return
        found = read_response(event.data, self._scope)
        if not self._is_repeated(event.data):
            self._scope.count_stored_values(event.data)
        _merge(self._response, found, but="candidates")
        if not self._is_started:
            self._is_started = True
            yield ReplyStart(origin=origin_of(found, self._scope))
        for candidate in map(object_or_empty, list_or_empty(found.get("candidates"))):
            index = first_whole_number(candidate.get("index")) or 0
            held = self._candidates.get(index) or self._candidates.setdefault(index, _Candidate())
            for each in held.take(candidate, self._scope):
                if index == next(iter(self._candidates)):  # only the first candidate's blocks become events
                    yield each

    def _is_repeated(self, data: str) -> bool:
        """Return whether a chunk has few values and the same field names as an earlier chunk. Such a chunk replaces
        stored values, so its memory need not be counted.
        """
        names = hash(tuple(_FIELD_NAME.findall(data)))
        if names in self._shapes:
            return not has_more_values(data, FEW_VALUES)
        if len(self._shapes) < MOST_SHAPES:
            self._shapes.add(names)
        return False

    def close(self) -> Iterator[StreamEvent]:
        """Yield the ends of the texts and of the reply when the stream closes. Yield nothing if no chunk contained a
        finish reason or the reason why the prompt was blocked.
        """
        candidates = list(self._candidates.values())
        is_blocked = text_or_empty(object_or_empty(self._response.get("promptFeedback")).get("blockReason"))
        if not any(candidate.told.get("finishReason") for candidate in candidates) and not is_blocked:
            return
        answers = [candidate.blocks(self._scope) for candidate in candidates]
        if candidates:
            for index, grown in enumerate(candidates[0].grown):
                if isinstance(grown, _Growing | _Calling):
                    yield BlockEnd(index=index, block=answers[0][index])
        told = [candidate.told for candidate in candidates]
        yield ReplyEnd(**read_end(self._response, told, answers, self._scope))
