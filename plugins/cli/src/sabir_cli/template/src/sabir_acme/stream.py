"""Events of a stream → sabir's events. Each event is one JSON object after `data:`, which core has extracted.

    start {id, model} ─▶ open {index, part} ─▶ more {index, text} … ─▶ close {index, …} ─▶ … ─▶ end {finish, usage}

Change: the cases of `feed`. Pieces of several parts may alternate; `index` names the part. `close` contains the part's
remaining fields, and `error` a failure. A part without `close` ends at `end`. If the stream ends without `end`, core
raises StreamBroken. When a part ends, it is read by the functions of decode.py, so that a streamed reply equals the
reply of the same answer without streaming.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sabir import BlockDelta, BlockEnd, BlockStart, OptionCallPayload, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import DecodeScope, KnownPart, ServerEvent, text_or_empty, unknown_fields

from sabir_acme.decode import read_block, read_end
from sabir_acme.errors import ERRORS


class ChatDecoder:
    """Decodes the events of one stream. Core reports exceptions of this class, such as a KeyError for a part that was
    not opened, as an invalid response.
    """

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._start: Mapping[str, Any] = {}
        self._open: dict[int, tuple[dict[str, Any], KnownPart | OptionCallPayload, list[str]]] = {}

    def feed(self, event: ServerEvent) -> Iterable[StreamEvent]:
        """Yield sabir's events for one event of the API; nothing for an event of an unknown type.

        Raises ResponseInvalid for data that is not a JSON object, and the CallError that an event reports.
        """
        fields = self._scope.read_object(event.data)
        index = fields.get("index", 0)
        match fields.get("type"):
            case "start":
                self._start = fields
                yield ReplyStart(origin=read_end(fields, self._scope)["origin"])
            case "open":
                block = read_block(fields["part"], self._scope)
                call = block if isinstance(block, OptionCallPayload) else None
                ids = {"invocation_id": call.invocation_id, "option_name": call.option_name} if call else {}
                part = {**fields["part"], **({"id": call.invocation_id} if call else {})}  # the id may be a new one
                self._open[index] = (part, block, [])
                yield BlockStart(index=index, kind=block.kind, **ids)
            case "more":
                _, block, texts = self._open[index]
                texts.append(text_or_empty(fields.get("text")))
                yield BlockDelta(index=index, kind=block.kind, text=texts[-1])
            case "close":
                yield self._end_block(index, unknown_fields(fields, {"type", "index"}))
            case "end":
                for open_index in tuple(self._open):
                    yield self._end_block(open_index, {})
                yield ReplyEnd(**read_end({**self._start, **fields}, self._scope))
            case _ if "error" in fields:
                raise ERRORS.report(fields["error"], self._scope)

    def close(self) -> Iterable[StreamEvent]:
        """Return no events when the stream closes, because the API sends an event for the end."""
        return ()

    def _end_block(self, index: int, late: Mapping[str, Any]) -> BlockEnd:
        """Return the end of an open part. `late` are the fields that came after its texts."""
        part, block, texts = self._open.pop(index)
        content = {"arguments" if block.kind == "option_call" else "text": "".join(texts)} if texts else {}
        return BlockEnd(index=index, block=read_block({**part, **content, **late}, self._scope))
