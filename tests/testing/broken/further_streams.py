"""Decoders that read recorded streams, and misread streams whose blocks no recording has.

BROKEN     case → a fault that this case alone stops
SOUND in test_kit.py has the adapter `unnumbered` without its fault
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from sabir import BlockEnd, BlockStart, StreamEvent
from sabir.contract.dialect import ServerEvent
from sabir.contract.scope import DecodeScope
from sabir.errors import ResponseInvalid
from sabir_acme.decode import read_block
from sabir_acme.stream import ChatDecoder

from tests.testing.broken.replies import folder
from tests.testing.broken.streams import decoding
from tests.testing.harness import TEMPLATE, Breakage

INDEX = "test_every_block_has_an_index_of_its_own"
OPEN = "test_a_block_whose_end_is_missing_is_in_the_reply"
IDS = "test_a_streamed_call_keeps_its_new_id"
STREAMS = ("text_streamed.yaml", "option_call_streamed.yaml")


class Strict(ChatDecoder):
    """A block that is open at the end marker is an error."""

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        if self._open and self._scope.read_object(event.data).get("type") == "end":
            raise ResponseInvalid("a part has no end")
        yield from super().feed(event)


class Renaming(ChatDecoder):
    """A call without an id has one when it begins and another one when it ends."""

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        fields = self._scope.read_object(event.data)
        yield from super().feed(event)
        if fields.get("type") == "open" and "id" not in fields["part"]:
            part, block, texts = self._open[fields["index"]]
            self._open[fields["index"]] = ({name: part[name] for name in part if name != "id"}, block, texts)


class Counting(ChatDecoder):
    """Counts the parts itself: each event has a whole part, without an index. `is_counted` says whether every part
    counts, or calls only.
    """

    def __init__(self, scope: DecodeScope, *, is_counted: bool) -> None:
        super().__init__(scope)
        self.is_counted, self.blocks = is_counted, 0

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        fields = self._scope.read_object(event.data)
        if "whole" not in fields:
            yield from super().feed(event)
            return
        block = read_block(fields["whole"], self._scope)
        is_call = block.kind == "option_call"
        ids = {"invocation_id": block.invocation_id, "option_name": block.option_name} if is_call else {}
        yield BlockStart(index=self.blocks, kind=block.kind, **ids)
        yield BlockEnd(index=self.blocks, block=block)
        self.blocks += self.is_counted or is_call


def unnumbered(*, is_counted: bool) -> Breakage:
    """Acme whose streams have whole parts, without numbers."""
    dialect = decoding(partial(Counting, is_counted=is_counted)).dialect
    return Breakage(dialect=dialect, attributes={"cassettes": _with_whole_parts()})


def _with_whole_parts() -> Path:
    """Return a copy of the template's cassettes in which two streams have an event for each part."""
    copy = folder("unnumbered", "text.yaml", lambda cassette: cassette)
    for name in STREAMS:
        cassette = yaml.safe_load((TEMPLATE / "tests" / "cassettes" / name).read_text("utf-8"))
        body = cassette["interactions"][0]["response"]["body"]
        events = [json.loads(event.removeprefix("data: ")) for event in body["string"].split("\n\n") if event]
        changed = (events[0], *map(_whole_event, _whole_parts(events)), events[-1])
        body["string"] = "".join(f"data: {json.dumps(event)}\n\n" for event in changed)
        path = copy / name
        path.unlink()
        path.write_text(yaml.safe_dump(cassette, sort_keys=False), "utf-8")
    return copy


def _whole_event(part: Any) -> Any:
    return {"type": "part", "whole": part}


def _whole_parts(events: list[Any]) -> Iterator[Any]:
    for opened in (event for event in events if event["type"] == "open"):
        field = "arguments" if opened["part"]["type"] == "call" else "text"
        pieces = [each["text"] for each in events if each["type"] == "more" and each["index"] == opened["index"]]
        yield {**opened["part"], field: "".join(pieces)}


BROKEN: Mapping[str, Breakage] = {
    INDEX: unnumbered(is_counted=False),
    OPEN: decoding(Strict),
    IDS: decoding(Renaming),
}
