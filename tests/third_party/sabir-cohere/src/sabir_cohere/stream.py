"""A v2 chat stream's events → core events, and at the end the very body that the same answer has at once.

    event ─▶ deltas of text, thoughts, plan, arguments ─▶ events for whoever watches
         └─▶ message so far ──read_blocks──▶ the blocks' ends and the reply's (law 8: fold = whole)

The terminal marker is message-end. https://docs.cohere.com/docs/streaming
"""

from collections.abc import Iterator
from typing import Any

from sabir import BlockDelta, BlockEnd, BlockStart, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import (
    BlockKind,
    DecodeScope,
    Fields,
    JSONValue,
    ServerEvent,
    first_whole_number,
    object_or_empty,
    text_or_empty,
)

from sabir_cohere.decode import CALLS, CONTENT, PLAN, read_blocks, read_ending
from sabir_cohere.errors import ERRORS

_KINDS: dict[str, BlockKind] = {"text": "text", "thinking": "reasoning"}


class ChatDecoder:
    """One stream's wire events → core events. What fits nowhere is an error, which core reports."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._id: JSONValue = None
        self._plan, self._citations = "", list[Any]()
        self._content: dict[int, dict[str, Any]] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._open: set[int] = set()

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """Core events of one wire event; raises the CallError that an error stands for."""
        found = {} if event.data.strip() in ("", "[DONE]") else self._scope.read_object(event.data)
        delta, index = object_or_empty(found.get("delta")), first_whole_number(found.get("index")) or 0
        message = object_or_empty(delta.get("message"))
        if error := delta.get("error") or found.get("error") or found.get("message"):
            raise ERRORS.report(error, self._scope)
        match found.get("type"):
            case "message-start":
                self._id = found.get("id")
                yield ReplyStart(origin=self._scope.origin(None, text_or_empty(self._id)))
            case "tool-plan-delta" if more := text_or_empty(message.get("tool_plan")):
                self._plan += more
                yield from self._grow(BlockStart(index=PLAN, kind="reasoning"), more)
            case "content-start" | "content-delta":
                yield from self._take_content(index, object_or_empty(message.get("content")))
            case "tool-call-start" | "tool-call-delta":
                yield from self._take_call(index, object_or_empty(message.get("tool_calls")))
            case "citation-start":
                self._citations.append(message.get("citations"))
            case "message-end":
                yield from self._end(delta)

    def _take_content(self, index: int, found: Fields) -> Iterator[StreamEvent]:
        """A block begins with its type and what it has beside its text, which comes in the field of the type's name."""
        block = self._content.setdefault(index, {})
        kind = text_or_empty(found.get("type") or block.get("type"))
        more = text_or_empty(found.get(kind))
        block |= {**found, kind: text_or_empty(block.get(kind)) + more} if kind in found else found
        yield from self._grow(BlockStart(index=CONTENT + index, kind=_KINDS.get(kind, "opaque")), more)

    def _take_call(self, index: int, found: Fields) -> Iterator[StreamEvent]:
        """A call begins with its id and name; its arguments' text grows."""
        call, function = self._calls.setdefault(index, {}), object_or_empty(found.get("function"))
        name, more = text_or_empty(call.get("name") or function.get("name")), text_or_empty(function.get("arguments"))
        begun = self._scope.read_call(text_or_empty(call.get("id") or found.get("id")), name, None)
        call |= {"id": begun.invocation_id, "name": name, "arguments": call.get("arguments", "") + more}
        ids = {"invocation_id": begun.invocation_id, "option_name": begun.option_name}
        yield from self._grow(BlockStart(index=CALLS + index, kind="option_call", **ids), more)

    def _grow(self, start: BlockStart, more: str) -> Iterator[StreamEvent]:
        """More of a block, which starts now if it has not yet."""
        if start.index not in self._open:
            self._open.add(start.index)
            yield start
        if more:
            yield BlockDelta(index=start.index, kind=start.kind, text=more)

    def _end(self, delta: Fields) -> Iterator[StreamEvent]:
        content = [block for _, block in sorted(self._content.items())]
        calls = [{"id": call["id"], "function": call} for _, call in sorted(self._calls.items())]
        message = {"content": content, "tool_plan": self._plan, "tool_calls": calls, "citations": self._citations}
        for place, block in read_blocks(message, self._scope):
            yield BlockEnd(index=place, block=block)
        yield ReplyEnd(**read_ending({"id": self._id, **delta, "message": message}, self._scope))

    def close(self) -> tuple[StreamEvent, ...]:
        """Nothing is due: message-end ends everything."""
        return ()
