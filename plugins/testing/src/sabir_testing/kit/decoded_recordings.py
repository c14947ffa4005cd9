"""Decoded recordings: streams that are decoded from bytes or events, and the recorded or live replies of a suite.

body ──frames──▶ bytes, each up to the end of an event ──play──▶ core's events, frame by frame, and the reply
                 └ events, some of them changed ─────────fed───▶ core's events, event by event, and the reply

cassettes/*.yaml ─▶ responses without errors ─▶ dialect.decode, or its decoder ─▶ replies
a suite with `asks_live` ─────────────────────▶ the answers to its questions ───▶ replies
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
from sabir_testing.kit.reports import ConformanceFailure
from sabir_testing.kit.service import STREAMED, WHOLE, Service
from sabir_testing.kit.suite import AdapterUnderTest


class Frame(NamedTuple):
    """Bytes of a stream up to the end of an event, and the events that these bytes complete."""

    data: bytes
    events: tuple[ServerEvent, ...]


@dataclass(frozen=True)
class Played:
    """The result of decoding a stream: core's events for each chunk, and the reply or the error."""

    steps: tuple[tuple[StreamEvent, ...], ...]
    reply: Reply | None = None
    error: CallError | None = None

    @property
    def events(self) -> list[StreamEvent]:
        """All of core's events, in order."""
        return [event for step in self.steps for event in step]


class _Cut:
    """A framing that returns predefined events, one for each chunk."""

    was_invalid = False
    kept = 0

    def __init__(self, events: Iterator[ServerEvent]) -> None:
        self._events = events

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the next event."""
        return [next(self._events)]

    def close(self) -> list[ServerEvent]:
        """Return no events."""
        return []


@dataclass(frozen=True)
class Stream:
    """The body of a streamed response, and the dialect and the scope to decode it. The scope has the content type."""

    dialect: Dialect
    scope: DecodeScope
    name: str = ""
    body: bytes = b""

    @cached_property
    def frames(self) -> list[Frame]:
        """The body, divided after each event. Bytes after the last event are a frame of their own.

        Raises ConformanceFailure if the dialect's framing raises.
        """
        framing, frames, start = self.dialect.framing(self.scope.content_type), list[Frame](), 0
        try:
            for end in range(1, len(self.body) + 1):
                if events := framing.feed(self.body[end - 1 : end]):
                    frames.append(Frame(self.body[start:end], tuple(events)))
                    start = end
            last = Frame(self.body[start:], tuple(framing.close()))
        except Exception as error:
            what = f"the dialect's framing raises {type(error).__name__} ({error}) for the recorded stream of"
            raise ConformanceFailure(f"{what} {self.name!r}") from None
        return [*frames, last] if any(last) else frames

    @cached_property
    def events(self) -> tuple[ServerEvent, ...]:
        """The events that the dialect's framing returns for the body."""
        return tuple(event for frame in self.frames for event in frame.events)

    @cached_property
    def played(self) -> Played:
        """The result of decoding the body, one frame after another."""
        return self.play(frame.data for frame in self.frames)

    @cached_property
    def as_cut(self) -> Played:
        """The result of decoding the events, one after another."""
        return self.fed(self.events)

    def play(self, chunks: Iterable[bytes]) -> Played:
        """Decode these chunks instead of the body and return the result."""
        return _played(self.dialect, self.scope, chunks)

    def fed(self, events: Sequence[ServerEvent]) -> Played:
        """Decode these events instead of the body's and return the result."""
        own = {each.name: getattr(self.dialect, each.name) for each in fields(Dialect)}
        with_events = Dialect(**{**own, "framings": {"": lambda: _Cut(iter(events))}})
        return _played(with_events, self.scope, [b" "] * len(events))

    def decode(self) -> list[StreamEvent]:
        """Return all events of the dialect's decoder itself, without core's checks, and with the events of `close`."""
        decoder = self.dialect.decoder(self.scope)
        return [decoded for event in (*self.events, None) for decoded in self.step(decoder, event)]

    def step(self, decoder: Decoder, event: ServerEvent | None) -> tuple[StreamEvent, ...]:
        """Return the decoder's events for one event of the stream, or for its end (None). Raises ConformanceFailure if
        the decoder raises.
        """
        try:
            return tuple(decoder.close() if event is None else decoder.feed(event))
        except Exception as error:
            argument = "(none: close())" if event is None else event.data
            method = "close()" if event is None else "feed()"
            what = f"{method} of the decoder raises {type(error).__name__} ({error}) for the recorded stream of"
            raise ConformanceFailure(f"{what} {self.name!r}", shown={"the event": argument}) from None


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
    """Return the recorded replies with messages, in the order of the cassettes' names; () without recordings."""
    if subject.suite.asks_live:
        return tuple(reply for answer in Service(subject).answers(WHOLE) for reply in answer.replies)
    read = (_read(subject, name, each) for name, each in recorded(subject))
    return tuple(reply for reply in read if reply is not None and reply.messages)


def own_parts(subject: AdapterUnderTest) -> tuple[Part, ...]:
    """Return the parts that only the provider itself can read, each once: opaque parts, reasoning, texts with state or
    citations, and the suite's `blocks`.
    """
    parts = (part for reply in own_replies(subject) for message in reply.messages for part in message.parts)
    bound = [part for part in parts if part.kind in ("opaque", "reasoning") or (part.kind == "text" and _is_own(part))]
    return tuple(dict.fromkeys((*bound, *subject.suite.blocks)))


def _is_own(part: TextPart) -> bool:
    return part.state_json is not None or bool(part.citations)


def own_bodies(subject: AdapterUnderTest, *, refused: bool = False) -> list[JSONValue]:
    """Return the JSON bodies of the recorded complete responses, or with `refused` of the error responses."""
    bodies: list[JSONValue] = []
    for name, each in recorded(subject):
        if (each.status >= 400) is refused and (refused or not _is_stream(name, each)):
            with suppress(ValueError):
                bodies.append(json.loads(each.response_body))
    return bodies


def longest_stream(subject: AdapterUnderTest) -> Stream | None:
    """Return the longest stream among a suite's recordings; None if there is none."""
    responses = [(name, each) for name, each in recorded(subject, f"*{STREAMED}") if each.status == 200]
    if not responses:
        return None
    name, longest = max(responses, key=lambda each: len(each[1].response_body))
    return Stream(subject.dialect, _scope(subject, longest), name, longest.response_body)


def recorded(subject: AdapterUnderTest, names: str = "*") -> Iterator[tuple[str, RecordedExchange]]:
    """Yield the recorded exchanges, each with the name of its cassette. `names` is a glob pattern for these names."""
    folder = subject.suite.cassettes
    for path in sorted(folder.glob(f"{names}.yaml")) if folder else ():
        yield from ((path.stem, each) for each in exchanges(path))


def _is_stream(name: str, exchange: RecordedExchange) -> bool:
    return name.endswith(STREAMED) or exchange.is_stream


def _scope(subject: AdapterUnderTest, exchange: RecordedExchange) -> DecodeScope:
    return replace(subject.scope(), content_type=exchange.headers.get("content-type", ""))


def _read(subject: AdapterUnderTest, name: str, exchange: RecordedExchange) -> Reply | None:
    """Return the decoded reply of an exchange; None for an error or another response, such as a count of tokens."""
    if exchange.status >= 400:
        return None
    try:
        if _is_stream(name, exchange):
            return Stream(subject.dialect, _scope(subject, exchange)).play([exchange.response_body]).reply
        return subject.dialect.decode(exchange.response_body, subject.scope())
    except Exception:  # not a reply, or a fault that other cases report
        return None
