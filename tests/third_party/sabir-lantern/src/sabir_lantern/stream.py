"""Lines of a stream → sabir's events. Each line is one JSON object.

    begin {id, model} ─▶ part {part} ─▶ more {text} … ─▶ note {part} ─▶ part … ─▶ end {finish, usage}

A part ends when the next part begins, or at the end. A call is complete in the line that begins it, because its `args`
are an object. `note` adds fields to the part, such as a thought's seal, and `fail` reports a failure. If the stream
ends without `end`, core raises StreamBroken.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from sabir import BlockDelta, BlockEnd, BlockStart, OptionCallPayload, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import BlockKind, DecodeScope, Fields, ServerEvent, object_or_empty, text_or_empty

from sabir_lantern.decode import read_block, read_end
from sabir_lantern.errors import ERRORS, failure


class SayDecoder:
    """Decodes the lines of one stream."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._begin: Fields = {}
        self._index = -1
        self._part: dict[str, Any] | None = None
        self._kind: BlockKind = "text"
        self._texts: list[str] = []

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Yield sabir's events for one line; nothing for a line of an unknown type.

        Raises ResponseInvalid for a line that is not a JSON object or comes out of order, and the CallError that a line
        reports.
        """
        fields = self._scope.read_object(event.data)
        match fields.get("is"):
            case "begin":
                self._begin = fields
                yield ReplyStart(origin=read_end(fields, self._scope)["origin"])
            case "part":
                yield from self._end_part()
                yield self._begin_part(object_or_empty(fields.get("part")))
            case "more":
                text = text_or_empty(fields.get("text"))
                self._current()
                self._texts.append(text)
                yield BlockDelta(index=self._index, kind=self._kind, text=text)
            case "note":
                self._part = {**self._current(), **object_or_empty(fields.get("part"))}
            case "end":
                yield from self._end_part()
                yield ReplyEnd(**read_end({**self._begin, **fields}, self._scope))
            case "fail":
                raise ERRORS.report(failure(fields), self._scope)

    def close(self) -> Iterable[StreamEvent]:
        """Return no events, because the API sends a line for the end."""
        return ()

    def _current(self) -> Fields:
        """Return the part that has begun. Raises ResponseInvalid if there is none."""
        if self._part is None:
            raise self._scope.invalid_answer("continued a part that has not begun; send the request again")
        return self._part

    def _begin_part(self, part: Fields) -> BlockStart:
        block = read_block(part, self._scope)
        self._index, self._part, self._kind, self._texts = self._index + 1, dict(part), block.kind, []
        if not isinstance(block, OptionCallPayload):
            return BlockStart(index=self._index, kind=block.kind)
        self._part["id"] = block.invocation_id  # a call without an id has a new one, which must not change at its end
        return BlockStart(
            index=self._index, kind=block.kind, invocation_id=block.invocation_id, option_name=block.option_name
        )

    def _end_part(self) -> Iterator[BlockEnd]:
        if self._part is None:
            return
        texts = {"text": text_or_empty(self._part.get("text")) + "".join(self._texts)} if self._texts else {}
        yield BlockEnd(index=self._index, block=read_block({**self._part, **texts}, self._scope))
        self._part = None
