"""Recorded streams, played to a dialect's decoder event by event, whole or cut or with something put in between.

cassette ──▶ ServerEvents ──changed by a case──▶ Played: the core events, and the reply or the error at the end
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sabir.contract.framing import ServerEvent, ServerEventReader
from sabir.contract.protocols import Decoder
from sabir.contract.scope import DecodeScope
from sabir.errors import CallError
from sabir.reading.incoming import StreamState
from sabir.vocabulary.reply import BlockDelta, BlockEnd, BlockStart, Reply, StreamEvent

from sabir_testing.broken import Broken
from sabir_testing.exchanges import STREAMED, Service
from sabir_testing.questions import kinds


@dataclass(frozen=True)
class Played:
    """What came of a stream: core's events by the wire event that gave them, and the reply or the error."""

    steps: tuple[tuple[StreamEvent, ...], ...]
    reply: Reply | None = None
    error: CallError | None = None

    @property
    def events(self) -> list[StreamEvent]:
        """All of core's events."""
        return [event for step in self.steps for event in step]


@dataclass(frozen=True)
class Stream:
    """A recorded stream."""

    service: Service
    name: str
    scope: DecodeScope
    events: tuple[ServerEvent, ...]

    def play(self, events: Sequence[ServerEvent] | None = None) -> Played:
        """What a reader gets of these events, or of the stream as it was recorded."""
        state = StreamState(self.service.subject.dialect, self.scope)
        steps: list[tuple[StreamEvent, ...]] = []
        try:
            for event in self.events if events is None else events:
                steps.append(tuple(state.feed(as_bytes(event))))
            steps.append(tuple(state.close()))
            return Played(tuple(steps), state.reply())
        except CallError as error:
            return Played(tuple(steps), error=error)

    def decode(self) -> Played:
        """What the decoder itself gives, with nothing of core's between: after its end, too."""
        decoder = self.service.subject.dialect.decoder(self.scope)
        fed = [self.step(decoder, event) for event in self.events]
        return Played((*fed, self.step(decoder, None)))

    def step(self, decoder: Decoder, event: ServerEvent | None) -> tuple[StreamEvent, ...]:
        """What a decoder gives for one event, or for the end; Broken where it raises."""
        try:
            return tuple(decoder.close() if event is None else decoder.feed(event))
        except Exception as error:
            fed = "its end" if event is None else event.data
            what = f"the decoder raises {type(error).__name__} ({error}) in the midst of the stream of {self.name!r}"
            raise Broken(what, shown={"what it was fed": fed}) from None


def streams(service: Service) -> list[Stream]:
    """All recorded streams; none where streaming is declared REFUSED."""
    if service.refused_need("text", STREAMED):
        return []
    found = []
    for answer in service.answers(STREAMED):
        question = answer.asked.question
        rendering = service.subject.rendered(question.messages, question.options, question.settings)
        scope = replace(service.subject.scope(), option_names=rendering.option_names)
        for exchange in answer.exchanges:
            reader = ServerEventReader()
            events = (*reader.feed(exchange.response_body), *reader.close())
            found.append(Stream(service, answer.name, scope, events))
    return found


def as_bytes(event: ServerEvent) -> bytes:
    """An event as it goes over the wire."""
    name = f"event: {event.event}\n" if event.event else ""
    data = "".join(f"data: {line}\n" for line in event.data.split("\n"))
    return f"{name}{data}\n".encode()


class Block(NamedTuple):
    """One block of a stream: its start, its pieces, its end."""

    start: BlockStart
    pieces: tuple[str, ...]
    end: BlockEnd


def blocks(played: Played) -> Iterator[Block]:
    """The blocks that began and ended."""
    events = played.events
    ends = {event.index: event for event in events if isinstance(event, BlockEnd)}
    for start in events:
        if isinstance(start, BlockStart) and start.index in ends:
            pieces = [each.text for each in events if isinstance(each, BlockDelta) and each.index == start.index]
            yield Block(start, tuple(pieces), ends[start.index])


def said(reply: Reply | None, *, without: str = "") -> object:
    """What a reply says, to be compared: not its ids, nor what it cost; opaque parts that hold a text may be left out.

    None for no reply.
    """
    if reply is None:
        return None
    left_out = {
        part
        for message in reply.messages
        for part in message.parts
        if without and part.kind == "opaque" and without in part.model_dump_json()
    }
    kept = [part for message in reply.messages for part in message.parts if part not in left_out]
    calls = [(each.call.option_name, each.call.arguments_json) for each in reply.option_calls]
    return {
        "kinds": list(dict.fromkeys((*(part.kind for part in kept), *(kinds(reply) if not left_out else ())))),
        "texts": [getattr(part, "text", "") for part in kept],
        "calls": calls,
        "finish reason": reply.finish_reason,
        "raw finish reason": reply.raw_finish_reason,
    }
