"""Streams played to a dialect, in its own framing; and the answers of the author's provider, decoded or asked for now.

body ──frames──▶ bytes behind each of which an event is whole ──play──▶ core's events, frame by frame, and the reply
                 └ events, some of them changed ──────────────fed───▶ the same, event by event

cassettes/*.yaml ─▶ answers that are no errors ─▶ dialect.decode, or its decoder ─▶ replies
a suite that says `asks_live` ─────────────────▶ the answers to its questions ────▶ replies
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

from sabir import Message, Reply, StreamEvent
from sabir.authoring import Decoder, DecodeScope, Dialect, Framing, JSONValue, Part, ServerEvent
from sabir.errors import CallError
from sabir.reading.incoming import StreamState

from sabir_testing.cassettes import RecordedExchange, exchanges
from sabir_testing.kit.broken import Broken
from sabir_testing.kit.exchanges import STREAMED, WHOLE, Service
from sabir_testing.kit.suite import Subject, Suite


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
            what = f"the framing raises {type(error).__name__} ({error}) in the stream of {self.name!r}"
            raise Broken(what) from None

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

    def decode(self) -> list[StreamEvent]:
        """What the decoder itself gives, with nothing of core's between: after its end, too."""
        decoder = self.dialect.decoder(self.scope)
        return [found for event in (*self.events, None) for found in self.step(decoder, event)]

    def step(self, decoder: Decoder, event: ServerEvent | None) -> tuple[StreamEvent, ...]:
        """What a decoder gives for one event, or for the end; Broken where it raises."""
        try:
            return tuple(decoder.close() if event is None else decoder.feed(event))
        except Exception as error:
            given = "its end" if event is None else event.data
            what = f"the decoder raises {type(error).__name__} ({error}) in the midst of the stream of {self.name!r}"
            raise Broken(what, shown={"what it was fed": given}) from None


def own_replies(subject: Subject) -> tuple[Reply, ...]:
    """The replies that hold messages, of all recordings in the order of their names; none where nothing is recorded."""
    if subject.suite.asks_live:
        return tuple(reply for answer in Service(subject).answers(WHOLE) for reply in answer.replies)
    read = (_read(subject, each, is_stream=is_stream) for is_stream, each in _recorded(subject.suite))
    return tuple(reply for reply in read if reply is not None and reply.messages)


def own_messages(subject: Subject) -> tuple[Message, ...]:
    """Every message of those replies."""
    return tuple(message for reply in own_replies(subject) for message in reply.messages)


def own_parts(subject: Subject) -> tuple[Part, ...]:
    """The parts that only the provider itself can read, each once."""
    found = (part for message in own_messages(subject) for part in message.parts if is_bound(part))
    return tuple(dict.fromkeys((*found, *subject.suite.blocks)))


def own_bodies(subject: Subject, *, refused: bool = False) -> list[JSONValue]:
    """The recorded answers that are JSON, or the recorded refusals, as JSON; none where nothing is recorded."""
    found: list[JSONValue] = []
    for is_stream, each in _recorded(subject.suite):
        if (each.status >= 400) is refused and not (is_stream and each.status < 400):
            with suppress(ValueError):
                found.append(json.loads(each.response_body))
    return found


def is_bound(part: Part) -> bool:
    """Whether a part is its maker's own: a block, a thought, a text with state or citations."""
    if part.kind in ("opaque", "reasoning"):
        return True
    return part.kind == "text" and (part.state_json is not None or bool(part.citations))


def _recorded(suite: Suite) -> Iterator[tuple[bool, RecordedExchange]]:
    """The recorded exchanges, and whether each is a stream."""
    for path in sorted(suite.cassettes.glob("*.yaml")) if suite.cassettes else ():
        yield from ((path.stem.endswith(STREAMED) or each.is_stream, each) for each in exchanges(path))


def _read(subject: Subject, exchange: RecordedExchange, *, is_stream: bool) -> Reply | None:
    """The reply that an exchange is; None where it is none, as an error or the count of a request's tokens."""
    body, scope = exchange.response_body, subject.scope()
    try:
        if exchange.status >= 400 or not is_stream:
            return None if exchange.status >= 400 else subject.dialect.decode(body, scope)
        scope = replace(scope, content_type=exchange.headers.get("content-type", ""))
        return play(subject.dialect, scope, [body]).reply
    except Exception:  # no answer to a question, or a fault that other cases tell of
        return None
