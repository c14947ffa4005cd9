"""Streams played to a dialect, in its own framing: bytes in any chunks, or events that were cut already.

body ──frames──▶ bytes behind each of which an event is whole ──play──▶ core's events, frame by frame, and the reply
                 └ events, some of them changed ──────────────fed───▶ the same, event by event
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

from sabir import Reply, StreamEvent
from sabir.authoring import Decoder, DecodeScope, Dialect, Framing, ServerEvent
from sabir.errors import CallError
from sabir.reading.incoming import StreamState

from sabir_testing.kit.broken import Broken


class Frame(NamedTuple):
    """Bytes of a stream up to where events are whole, and those events."""

    data: bytes
    events: tuple[ServerEvent, ...]


def frames(framing: Framing, body: bytes) -> list[Frame]:
    """A stream cut behind each of its events; what follows the last, or is completed by the end, stands by itself."""
    found, start = list[Frame](), 0
    for end in range(1, len(body) + 1):
        if events := framing.feed(body[end - 1 : end]):
            found.append(Frame(body[start:end], tuple(events)))
            start = end
    last = Frame(body[start:], tuple(framing.close()))
    return [*found, last] if any(last) else found


@dataclass(frozen=True)
class Played:
    """What came of a stream: core's events by the chunk that gave them, and the reply or the error."""

    steps: tuple[tuple[StreamEvent, ...], ...]
    reply: Reply | None = None
    error: CallError | None = None

    @property
    def events(self) -> list[StreamEvent]:
        """All of core's events."""
        return [event for step in self.steps for event in step]


def play(dialect: Dialect, scope: DecodeScope, chunks: Iterable[bytes]) -> Played:
    """What a reader gets of a stream that comes in these chunks; `scope` says its content type."""
    steps: list[tuple[StreamEvent, ...]] = []
    try:
        state = StreamState(dialect, scope)
        for chunk in chunks:
            steps.append(tuple(state.feed(chunk)))
        steps.append(tuple(state.close()))
        return Played(tuple(steps), state.reply())
    except CallError as error:
        return Played(tuple(steps), error=error)


def fed(dialect: Dialect, scope: DecodeScope, events: Sequence[ServerEvent]) -> Played:
    """As `play`, of events that no framing has to cut any more."""
    own = {each.name: getattr(dialect, each.name) for each in fields(Dialect)}
    as_given = Dialect(**{**own, "framings": {"": lambda: _Cut(iter(events))}})
    return play(as_given, scope, [b" "] * len(events))


class _Cut:
    """A framing that is told its events: each chunk is the next of them."""

    was_invalid = False
    kept = 0

    def __init__(self, events: Iterator[ServerEvent]) -> None:
        self._events = events

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The next event."""
        return [next(self._events)]

    def close(self) -> list[ServerEvent]:
        """None is left."""
        return []


@dataclass(frozen=True)
class Stream:
    """A stream as the provider's connection gave it; `scope` says its content type."""

    dialect: Dialect
    name: str
    scope: DecodeScope
    body: bytes

    @cached_property
    def frames(self) -> list[Frame]:
        """Its bytes, cut behind each event; Broken where the dialect's framing cannot read them."""
        try:
            return frames(self.dialect.framing(self.scope.content_type), self.body)
        except Exception as error:
            raise Broken(
                f"the framing raises {type(error).__name__} ({error}) in the stream of {self.name!r}"
            ) from None

    @cached_property
    def events(self) -> tuple[ServerEvent, ...]:
        """What the framing gives of it."""
        return tuple(event for frame in self.frames for event in frame.events)

    @cached_property
    def played(self) -> Played:
        """What a reader gets of it, frame by frame."""
        return self.play(frame.data for frame in self.frames)

    @cached_property
    def as_cut(self) -> Played:
        """What a reader gets of its events, one by one."""
        return self.fed(self.events)

    def play(self, chunks: Iterable[bytes]) -> Played:
        """What a reader gets of it in other chunks."""
        return play(self.dialect, self.scope, chunks)

    def fed(self, events: Sequence[ServerEvent]) -> Played:
        """What a reader gets where the framing gives these events."""
        return fed(self.dialect, self.scope, events)

    def decode(self) -> Played:
        """What the decoder itself gives, with nothing of core's between: after its end, too."""
        decoder = self.dialect.decoder(self.scope)
        given = [self.step(decoder, event) for event in self.events]
        return Played((*given, self.step(decoder, None)))

    def step(self, decoder: Decoder, event: ServerEvent | None) -> tuple[StreamEvent, ...]:
        """What a decoder gives for one event, or for the end; Broken where it raises."""
        try:
            return tuple(decoder.close() if event is None else decoder.feed(event))
        except Exception as error:
            given = "its end" if event is None else event.data
            what = f"the decoder raises {type(error).__name__} ({error}) in the midst of the stream of {self.name!r}"
            raise Broken(what, shown={"what it was fed": given}) from None
