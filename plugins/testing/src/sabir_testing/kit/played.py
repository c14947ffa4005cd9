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

from sabir import Reply, StreamEvent, TextPart
from sabir.authoring import Decoder, DecodeScope, Dialect, JSONValue, Part, ServerEvent
from sabir.errors import CallError
from sabir.reading.incoming import StreamState

from sabir_testing.cassettes import RecordedExchange, exchanges
from sabir_testing.kit.broken import ConformanceFailure
from sabir_testing.kit.exchanges import STREAMED, WHOLE, Service
from sabir_testing.kit.suite import AdapterUnderTest


class Frame(NamedTuple):
    """Bytes of a stream up to where events are whole, and those events."""

    data: bytes
    events: tuple[ServerEvent, ...]


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
    scope: DecodeScope
    name: str = ""
    body: bytes = b""

    @cached_property
    def frames(self) -> list[Frame]:
        """Its bytes, cut behind each event; what follows the last, or is completed by the end, stands by itself.

        ConformanceFailure where the dialect's framing cannot read them.
        """
        framing, found, start = self.dialect.framing(self.scope.content_type), list[Frame](), 0
        try:
            for end in range(1, len(self.body) + 1):
                if events := framing.feed(self.body[end - 1 : end]):
                    found.append(Frame(self.body[start:end], tuple(events)))
                    start = end
            last = Frame(self.body[start:], tuple(framing.close()))
        except Exception as error:
            what = f"the framing raises {type(error).__name__} ({error}) in the stream of {self.name!r}"
            raise ConformanceFailure(what) from None
        return [*found, last] if any(last) else found

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
        """What a reader gets where these chunks come."""
        return _played(self.dialect, self.scope, chunks)

    def fed(self, events: Sequence[ServerEvent]) -> Played:
        """What a reader gets where the framing gives these events."""
        own = {each.name: getattr(self.dialect, each.name) for each in fields(Dialect)}
        as_given = Dialect(**{**own, "framings": {"": lambda: _Cut(iter(events))}})
        return _played(as_given, self.scope, [b" "] * len(events))

    def decode(self) -> list[StreamEvent]:
        """What the decoder itself gives, with nothing of core's between: after its end, too."""
        decoder = self.dialect.decoder(self.scope)
        return [found for event in (*self.events, None) for found in self.step(decoder, event)]

    def step(self, decoder: Decoder, event: ServerEvent | None) -> tuple[StreamEvent, ...]:
        """What a decoder gives for one event, or for the end; ConformanceFailure where it raises."""
        try:
            return tuple(decoder.close() if event is None else decoder.feed(event))
        except Exception as error:
            given = "its end" if event is None else event.data
            what = f"the decoder raises {type(error).__name__} ({error}) in the midst of the stream of {self.name!r}"
            raise ConformanceFailure(what, shown={"what it was fed": given}) from None


def _played(dialect: Dialect, scope: DecodeScope, chunks: Iterable[bytes]) -> Played:
    steps: list[tuple[StreamEvent, ...]] = []
    try:
        state = StreamState(dialect, scope)
        for chunk in chunks:
            steps.append(tuple(state.feed(chunk)))
        steps.append(tuple(state.close()))
        return Played(tuple(steps), state.reply())
    except CallError as error:
        return Played(tuple(steps), error=error)


def own_replies(subject: AdapterUnderTest) -> tuple[Reply, ...]:
    """The replies that hold messages, of all recordings in the order of their names; none where nothing is recorded."""
    if subject.suite.asks_live:
        return tuple(reply for answer in Service(subject).answers(WHOLE) for reply in answer.replies)
    read = (_read(subject, name, each) for name, each in recorded(subject))
    return tuple(reply for reply in read if reply is not None and reply.messages)


def own_parts(subject: AdapterUnderTest) -> tuple[Part, ...]:
    """The parts that only the provider itself can read (a block, a thought, a text with state), each once."""
    parts = (part for reply in own_replies(subject) for message in reply.messages for part in message.parts)
    bound = [part for part in parts if part.kind in ("opaque", "reasoning") or (part.kind == "text" and _is_own(part))]
    return tuple(dict.fromkeys((*bound, *subject.suite.blocks)))


def _is_own(part: TextPart) -> bool:
    return part.state_json is not None or bool(part.citations)


def own_bodies(subject: AdapterUnderTest, *, refused: bool = False) -> list[JSONValue]:
    """The recorded answers that are JSON, or the recorded refusals, as JSON; none where nothing is recorded."""
    found: list[JSONValue] = []
    for name, each in recorded(subject):
        if (each.status >= 400) is refused and (refused or not _is_stream(name, each)):
            with suppress(ValueError):
                found.append(json.loads(each.response_body))
    return found


def longest_stream(subject: AdapterUnderTest) -> Stream | None:
    """The longest stream among a suite's recordings; None if there is none."""
    found = [(name, each) for name, each in recorded(subject, f"*{STREAMED}") if each.status == 200]
    if not found:
        return None
    name, longest = max(found, key=lambda each: len(each[1].response_body))
    return Stream(subject.dialect, _scope(subject, longest), name, longest.response_body)


def recorded(subject: AdapterUnderTest, names: str = "*") -> Iterator[tuple[str, RecordedExchange]]:
    """The recorded exchanges, each with the name of its cassette; of the cassettes with such `names` alone."""
    folder = subject.suite.cassettes
    for path in sorted(folder.glob(f"{names}.yaml")) if folder else ():
        yield from ((path.stem, each) for each in exchanges(path))


def _is_stream(name: str, exchange: RecordedExchange) -> bool:
    return name.endswith(STREAMED) or exchange.is_stream


def _scope(subject: AdapterUnderTest, exchange: RecordedExchange) -> DecodeScope:
    return replace(subject.scope(), content_type=exchange.headers.get("content-type", ""))


def _read(subject: AdapterUnderTest, name: str, exchange: RecordedExchange) -> Reply | None:
    """The reply that an exchange is; None where it is none, as an error or the count of a request's tokens."""
    if exchange.status >= 400:
        return None
    try:
        if _is_stream(name, exchange):
            return Stream(subject.dialect, _scope(subject, exchange)).play([exchange.response_body]).reply
        return subject.dialect.decode(exchange.response_body, subject.scope())
    except Exception:  # no answer to a question, or a fault that other cases tell of
        return None
