"""Decoded recordings: streams that are decoded from bytes or events, and the recorded or live replies of a suite.

body ──frames──▶ bytes, each up to the end of an event ──decode_chunks──▶ core's events by frame, and the reply
                 └ events, perhaps changed ──────────────decode_events──▶ core's events by event, and the reply

cassettes/*.yaml ─▶ responses without errors ─▶ dialect.decode, or its decoder ─▶ replies
a suite with `asks_live` ─────────────────────▶ the answers to its questions ───▶ replies
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

from sabir import Reply, StreamEvent
from sabir.authoring import Decoder, DecodeScope, Dialect, JSONValue, Part, ServerEvent
from sabir.errors import CallError
from sabir.reading.incoming import StreamState

from sabir_testing.cassettes import RecordedExchange, exchanges
from sabir_testing.kit.asking import STREAMED, WHOLE
from sabir_testing.kit.failures import ConformanceFailure
from sabir_testing.kit.service import Service
from sabir_testing.kit.suite import AdapterUnderTest


class Frame(NamedTuple):
    """Bytes of a stream up to the end of an event, and the events that these bytes complete."""

    data: bytes
    events: tuple[ServerEvent, ...]


@dataclass(frozen=True)
class DecodedStream:
    """The result of decoding a stream: core's events for each chunk and for the end, and the reply or the error."""

    steps: tuple[tuple[StreamEvent, ...], ...]
    reply: Reply | None = None
    error: CallError | None = None

    @property
    def events(self) -> list[StreamEvent]:
        """All of core's events, in order."""
        return [event for step in self.steps for event in step]


class _FixedFraming:
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
class RecordedStream:
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
    def decoded(self) -> DecodedStream:
        """The result of decoding the body, one frame after another."""
        return self.decode_chunks(frame.data for frame in self.frames)

    @cached_property
    def decoded_events(self) -> DecodedStream:
        """The result of decoding the events, one after another."""
        return self.decode_events(self.events)

    def decode_chunks(self, chunks: Iterable[bytes]) -> DecodedStream:
        """Decode these chunks instead of the body and return the result."""
        return _decode_chunks(self.dialect, self.scope, chunks)

    def decode_events(self, events: Sequence[ServerEvent]) -> DecodedStream:
        """Decode these events instead of the body's and return the result."""
        dialect_fields = {each.name: getattr(self.dialect, each.name) for each in fields(Dialect)}
        with_events = Dialect(**{**dialect_fields, "framings": {"": lambda: _FixedFraming(iter(events))}})
        return _decode_chunks(with_events, self.scope, [b" "] * len(events))

    def decoder_events(self) -> list[StreamEvent]:
        """Return all events of the dialect's decoder itself, without core's checks, and with the events of `close`."""
        decoder = self.dialect.decoder(self.scope)
        return [decoded for event in (*self.events, None) for decoded in self.feed(decoder, event)]

    def feed(self, decoder: Decoder, event: ServerEvent | None) -> tuple[StreamEvent, ...]:
        """Return the decoder's events for one event of the stream, or for its end (None). Raises ConformanceFailure if
        the decoder raises.
        """
        try:
            return tuple(decoder.close() if event is None else decoder.feed(event))
        except Exception as error:
            argument = "(none: close())" if event is None else event.data
            method = "close()" if event is None else "feed()"
            what = f"{method} of the decoder raises {type(error).__name__} ({error}) for the recorded stream of"
            raise ConformanceFailure(f"{what} {self.name!r}", details={"the event": argument}) from None


def _decode_chunks(dialect: Dialect, scope: DecodeScope, chunks: Iterable[bytes]) -> DecodedStream:
    steps: list[tuple[StreamEvent, ...]] = []
    try:
        state = StreamState(dialect, scope)
        for chunk in chunks:
            steps.append(tuple(state.feed(chunk)))
        steps.append(tuple(state.close()))
        return DecodedStream(tuple(steps), state.reply())
    except CallError as error:
        return DecodedStream(tuple(steps), error=error)


def own_replies(subject: AdapterUnderTest) -> tuple[Reply, ...]:
    """Return the recorded replies with messages, in the order of the cassettes' names; () without recordings. For a
    suite with `asks_live`, return the replies to its questions.
    """
    if subject.suite.asks_live:
        return tuple(reply for answer in Service(subject).answers(WHOLE) for reply in answer.replies)
    read = (_decode_reply(subject, name, each) for name, each in recorded_exchanges(subject))
    return tuple(reply for reply in read if reply is not None and reply.messages)


_BOUND_KINDS = ("native_call", "native_result", "opaque", "reasoning")


def own_parts(subject: AdapterUnderTest) -> tuple[Part, ...]:
    """Return the parts that only the provider itself can read, each once: opaque parts, calls and results of its own
    tools, reasoning, texts with state or citations, and the suite's `blocks`.
    """
    parts = (part for reply in own_replies(subject) for message in reply.messages for part in message.parts)
    bound = [part for part in parts if part.kind in _BOUND_KINDS or _is_annotated(part)]
    return tuple(dict.fromkeys((*bound, *subject.suite.blocks)))


def _is_annotated(part: Part) -> bool:
    return part.kind == "text" and (part.state_json is not None or bool(part.citations))


def own_bodies(subject: AdapterUnderTest, *, refused: bool = False) -> list[JSONValue]:
    """Return the JSON bodies of the recorded complete responses, or with `refused` of the error responses."""
    bodies: list[JSONValue] = []
    for name, each in recorded_exchanges(subject):
        if (each.status >= 400) is refused and (refused or not _is_stream(name, each)):
            with suppress(ValueError):
                bodies.append(json.loads(each.response_body))
    return bodies


def longest_stream(subject: AdapterUnderTest) -> RecordedStream | None:
    """Return the longest stream among a suite's recordings; None if there is none."""
    responses = [(name, each) for name, each in recorded_exchanges(subject, f"*{STREAMED}") if each.status == 200]
    if not responses:
        return None
    name, longest = max(responses, key=lambda each: len(each[1].response_body))
    return RecordedStream(subject.dialect, _response_scope(subject, longest), name, longest.response_body)


def recorded_exchanges(subject: AdapterUnderTest, names: str = "*") -> Iterator[tuple[str, RecordedExchange]]:
    """Yield the recorded exchanges, each with the name of its cassette; nothing if the suite has no `cassettes`.
    `names` is a glob pattern for these names.
    """
    folder = subject.suite.cassettes
    for path in sorted(folder.glob(f"{names}.yaml")) if folder else ():
        yield from ((path.stem, each) for each in exchanges(path))


def _is_stream(name: str, exchange: RecordedExchange) -> bool:
    return name.endswith(STREAMED) or exchange.is_stream


def _response_scope(subject: AdapterUnderTest, exchange: RecordedExchange) -> DecodeScope:
    return replace(subject.scope(), content_type=exchange.headers.get("content-type", ""))


def _decode_reply(subject: AdapterUnderTest, name: str, exchange: RecordedExchange) -> Reply | None:
    """Return the decoded reply of an exchange; None for an error or another response, such as a count of tokens."""
    if exchange.status >= 400:
        return None
    try:
        if _is_stream(name, exchange):
            stream = RecordedStream(subject.dialect, _response_scope(subject, exchange))
            return stream.decode_chunks([exchange.response_body]).reply
        return subject.dialect.decode(exchange.response_body, subject.scope())
    except Exception:  # not a reply, or a fault that other cases report
        return None
