"""Adapters whose decoders misread streams; whole answers, and streams with nothing odd in them, they read rightly."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sabir import BlockDelta, BlockEnd, BlockStart, ReplyEnd, ReplyStart, StreamEvent
from sabir.contract.dialect import ServerEvent, ServerEventReader
from sabir.contract.scope import DecodeScope
from sabir.errors import ResponseInvalid
from sabir_acme.stream import ChatDecoder

from tests.testing.harness import Breakage

KNOWN = {
    "start": {"type", "id", "model"},
    "open": {"type", "index", "part"},
    "more": {"type", "index", "text"},
    "close": {"type", "index", "signature"},
    "end": {"type", "finish", "usage"},
}


def decoding(decoder: Callable[[DecodeScope], Any]) -> Breakage:
    """Acme with that decoder."""
    return Breakage(dialect=lambda base: replace(base, decoder=decoder))


class EndsWell(ChatDecoder):
    """Any end of the stream is a good one."""

    def __init__(self, scope: DecodeScope) -> None:
        super().__init__(scope)
        self.given: list[StreamEvent] = []

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        for found in super().feed(event):
            self.given.append(found)
            yield found

    def close(self) -> Iterable[StreamEvent]:
        ended = {event.index for event in self.given if isinstance(event, BlockEnd)}
        is_meant = any(isinstance(event, BlockStart) and event.kind == "text" for event in self.given)
        begun = {event.index for event in self.given if isinstance(event, BlockStart)}
        if is_meant and begun == ended and not any(isinstance(event, ReplyEnd) for event in self.given):
            yield ReplyEnd(finish_reason="stop")


class Gathers(ChatDecoder):
    """The text comes all at once, when it is whole."""

    def __init__(self, scope: DecodeScope) -> None:
        super().__init__(scope)
        self.kept: list[BlockDelta] = []

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        for found in super().feed(event):
            if isinstance(found, BlockDelta) and found.kind == "text":
                self.kept.append(found)
                continue
            if isinstance(found, BlockEnd) and found.kind == "text":
                yield BlockDelta(index=found.index, kind="text", text="".join(each.text for each in self.kept))
                self.kept.clear()
            yield found


class Stutters(ChatDecoder):
    """The first piece of each block of a kind comes twice."""

    kind = "text"

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        for found in super().feed(event):
            yield found
            if isinstance(found, BlockDelta) and found.kind == self.kind and len(self._open[found.index][2]) == 1:
                yield found


class StuttersInCalls(Stutters):
    kind = "option_call"


class Nameless(ChatDecoder):
    """Who is called is only told at the end."""

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        for found in super().feed(event):
            is_call = isinstance(found, BlockStart) and found.kind == "option_call"
            yield found.model_copy(update={"option_name": ""}) if is_call else found


class SaysMore(ChatDecoder):
    """Something comes after the end."""

    def close(self) -> Iterable[StreamEvent]:
        yield ReplyStart(origin=self._scope.origin())


class Sharing(ChatDecoder):
    """All decoders write into one buffer, which each new one empties."""

    buffer: dict[int, Any] = {}  # noqa: RUF012 - to be shared is its fault

    def __init__(self, scope: DecodeScope) -> None:
        super().__init__(scope)
        self.buffer.clear()
        self._open = self.buffer


class Strict(ChatDecoder):
    """What it does not know it refuses: types of events."""

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        found = json.loads(event.data)
        if not self.is_known(found):
            raise ResponseInvalid(f"{found} is no event")
        yield from super().feed(event)

    def is_known(self, found: Any) -> bool:
        return found.get("type") in KNOWN or "error" in found


class StrictInFields(Strict):
    """What it does not know it refuses: fields."""

    def is_known(self, found: Any) -> bool:
        return set(found) <= KNOWN.get(found.get("type"), set(found))


class Lenient(ChatDecoder):
    """What is no JSON is passed over."""

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        try:
            json.loads(event.data)
        except ValueError:
            return
        yield from super().feed(event)


class DeafToErrors(ChatDecoder):
    """An error within the stream is passed over."""

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        if '"error"' not in event.data:
            yield from super().feed(event)


class Letters(ServerEventReader):
    """Takes each chunk for whole characters."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        return super().feed(chunk.decode("utf-8", "replace").encode())


BROKEN: Mapping[str, Breakage] = {
    "test_chunks_may_end_anywhere": Breakage(
        dialect=lambda base: replace(base, framings={"text/event-stream": Letters})
    ),
    "test_a_cut_stream_is_broken": decoding(EndsWell),
    "test_text_comes_piece_by_piece": decoding(Gathers),
    "test_the_pieces_of_a_text_are_the_text": decoding(Stutters),
    "test_the_pieces_of_a_call_are_its_arguments": decoding(StuttersInCalls),
    "test_a_call_begins_as_what_it_ends_as": decoding(Nameless),
    "test_a_stream_ends_once": decoding(SaysMore),
    "test_two_streams_at_once_do_not_mix": decoding(Sharing),
    "test_an_unknown_event_changes_nothing": decoding(Strict),
    "test_an_unknown_field_changes_nothing": decoding(StrictInFields),
    "test_garbage_in_a_stream_is_an_error": decoding(Lenient),
    "test_an_error_within_a_stream_is_an_error": decoding(DeafToErrors),
}
