"""Streams: how the dialect decodes recorded streams that are cut, read in parallel, or contain unknown events."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import ClassVar, NamedTuple

from sabir import BlockDelta, BlockEnd, BlockStart, OptionCallPayload, Reply, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import ServerEvent

from sabir_testing.kit.asking import STREAMED
from sabir_testing.kit.capabilities import REFUSED
from sabir_testing.kit.decoded_recordings import RecordedStream
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.service import AnswerCases, Service
from sabir_testing.kit.service_questions import kinds
from sabir_testing.kit.suite import Suite
from sabir_testing.reading import as_json, leaves


def streams(service: Service) -> list[RecordedStream]:
    """Return the streams of all questions that were answered; [] if the suite declares streaming REFUSED.

    Raises ConformanceFailure if there are none, and for a stream without events that the decoder uses.
    """
    if service.refused_need("text", STREAMED):
        return []
    return service.subject.once(streams, lambda: [_check_usable(stream) for stream in _recorded_streams(service)])


def _recorded_streams(service: Service) -> Iterator[RecordedStream]:
    for answer in service.answers(STREAMED):
        question, subject = answer.question, service.subject
        rendering = subject.must_render(question.messages, question.options, question.settings)
        for exchange in answer.exchanges:
            kind = exchange.headers.get("content-type", "")
            scope = replace(subject.scope(), option_names=rendering.option_names, content_type=kind)
            yield RecordedStream(subject.dialect, scope, answer.name, exchange.response_body)


def _check_usable(stream: RecordedStream) -> RecordedStream:
    """Return the stream. Raises ConformanceFailure if the framing finds no events in it, or the decoder no blocks.

    Otherwise the case would check nothing.
    """
    kind = stream.scope.content_type or "no content type"
    what = f"the dialect's framing finds no events in the recorded stream of {stream.name!r} ({kind})"
    remedy = "add a framing for this content type to Dialect.framings"
    expect(stream.events, f"{what}; {remedy}", details={"the stream": stream.body})
    count = len(stream.events)
    what = f"the decoder returns no BlockEnd for the {count} events of the recorded stream of {stream.name!r}"
    details = {"the first events": [*map(str, stream.events[:5])]}
    expect(any(isinstance(event, BlockEnd) for event in stream.decoded.events), what, details=details)
    return stream


class StreamedBlock(NamedTuple):
    """One block of a decoded stream: its start, the texts of its deltas, and its end."""

    stream: RecordedStream
    start: BlockStart
    pieces: tuple[str, ...]
    end: BlockEnd


def streamed_blocks(service: Service) -> Iterator[StreamedBlock]:
    """Yield the blocks of all recorded streams that have a start and an end."""
    for stream in streams(service):
        events = stream.decoded.events
        ends = {event.index: event for event in events if isinstance(event, BlockEnd)}
        for start in events:
            if isinstance(start, BlockStart) and start.index in ends:
                pieces = [each.text for each in events if isinstance(each, BlockDelta) and each.index == start.index]
                yield StreamedBlock(stream, start, tuple(pieces), ends[start.index])


def call_blocks(service: Service) -> list[tuple[StreamedBlock, OptionCallPayload]]:
    """Return the blocks that are calls, each with its call.

    Raises ConformanceFailure if there are none, unless the suite declares options or streaming REFUSED.
    """
    ends = [(block, block.end.block) for block in streamed_blocks(service)]
    pairs = [(block, call) for block, call in ends if isinstance(call, OptionCallPayload)]
    is_refused = REFUSED in map(service.subject.declared, ("options", "streaming"))
    what = "no recorded stream is decoded to a reply with an option call, although the suite does not declare 'options'"
    expect(pairs or is_refused, f"{what} REFUSED; decode the calls, or record streams that contain calls")
    return pairs


def reply_content(reply: Reply | None, *, without: str = "") -> object:
    """Return a reply's content for comparison, without ids and usage; None without a reply.

    Opaque parts that contain the text `without` are left out, if it is not "".
    """
    if reply is None:
        return None
    left_out = {
        part
        for message in reply.messages
        for part in message.parts
        if without and part.kind in ("native_call", "native_result", "opaque") and without in part.model_dump_json()
    }
    parts = [part for message in reply.messages for part in message.parts if part not in left_out]
    calls = [(each.call.option_name, each.call.arguments_json) for each in reply.option_calls]
    return {
        "kinds": list(dict.fromkeys((*(part.kind for part in parts), *(kinds(reply) if not left_out else ())))),
        "texts": [getattr(part, "text", "") for part in parts],
        "calls": calls,
        "finish reason": reply.finish_reason,
        "raw finish reason": reply.raw_finish_reason,
    }


UNKNOWN = "kit.unknown"
UNKNOWN_EVENT = ServerEvent(json.dumps({"type": UNKNOWN, "kit_note": {"of": [UNKNOWN]}}), UNKNOWN)
"""An event of a type that no service sends."""
GARBAGE = "%% this is not an event of any API {"
SIZES = (1, 7, 1 << 30)
"""Sizes of chunks in bytes: chunks that end within characters, within events, and one chunk for the complete stream."""
ERROR_NAMES = ("", "error", "exception")
"""Names that an event which reports an error may have, if the API's events have names."""


class StreamCases(AnswerCases):
    """The test cases of the family `streams`, on the recorded streams and on variants of them."""

    family: ClassVar[str] = "streams"

    def test_chunks_may_end_anywhere(self, service: Service) -> None:
        """The decoded reply does not depend on where a chunk ends, which may be within an event, a number or a
        character.
        """
        for stream in streams(service):
            expected = reply_content(stream.decoded.reply)
            for size in SIZES:
                chunks = [stream.body[at : at + size] for at in range(0, len(stream.body), size)]
                decoded = stream.decode_chunks(chunks)
                how = f"in chunks of {size} bytes" if size < len(stream.body) else "in one chunk"
                what = f"the stream of {stream.name!r}, received {how}, is decoded to another reply than if each event"
                content = reply_content(decoded.reply)
                details = {"one chunk for each event": expected, how: content or str(decoded.error)}
                expect(content == expected, f"{what} is one chunk", details=details)

    def test_a_cut_stream_is_broken(self, service: Service) -> None:
        """A stream that ends before the API's end marker raises an error, usually StreamBroken, and gives no complete
        reply. Every stream is cut before and within each event.
        """
        for stream in streams(service):
            complete, received = reply_content(stream.decoded.reply), list[bytes]()
            for at, frame in enumerate(stream.frames, start=1):
                for part in (b"", frame.data[: len(frame.data) // 2]):
                    reply = stream.decode_chunks([*received, part]).reply
                    if reply is None or reply_content(reply) == complete:  # bytes after the marker may be missing
                        continue
                    where = f"{'in' if part else 'before'} event {at} of {len(stream.frames)}"
                    what = f"the stream of {stream.name!r}, cut {where}, is decoded to a complete reply (finish reason"
                    what = f"{what} {reply.finish_reason!r}); expected StreamBroken, because the end marker is missing"
                    details = {"the last bytes": b"".join(received)[-200:] + part, "the reply's text": reply.text}
                    raise ConformanceFailure(what, details=details)
                received.append(frame.data)

    def test_text_comes_piece_by_piece(self, service: Service) -> None:
        """If the service sends a text in several events, the decoder returns deltas for at least two of them."""
        for stream in streams(service):
            text = stream.decoded.reply.text if stream.decoded.reply else ""
            sent = _count_text_events(stream, text)
            deltas = sum(any(_is_text_delta(event) for event in step) for step in stream.decoded.steps)
            what = f"the service sends the text of {stream.name!r} in {sent} events, but the decoder returns deltas for"
            what = f"{what} {deltas} of them; return a BlockDelta for each piece"
            expect(sent < 2 or deltas >= 2, what, details={"the text": text})

    def test_the_pieces_of_a_text_are_the_text(self, service: Service) -> None:
        """The pieces of a text, reasoning or refusal, joined, are the text of the part that ends the block. A block may
        also have no pieces.
        """
        for block in streamed_blocks(service):
            text = getattr(block.end.block, "text", None)
            joined = "".join(block.pieces)
            what = f"in the stream of {block.stream.name!r}, the BlockEnd of a {block.start.kind} part has the text"
            what = f"{what} {text!r}, but its BlockDeltas joined are {joined!r}; expected the same text"
            is_whole = text is None or not block.pieces or joined == text
            expect(is_whole, what, details={"the BlockDeltas": list(block.pieces)})

    def test_the_pieces_of_a_call_are_its_arguments(self, service: Service) -> None:
        """The pieces of a call's arguments, joined, are the `raw_arguments` of the call that ends the block or, if
        these are None, JSON of its arguments. A block may also have no pieces.
        """
        for block, call in call_blocks(service):
            joined, written = "".join(block.pieces), call.raw_arguments
            is_equal = joined == written if written is not None else as_json(joined) == as_json(call.arguments_json)
            what = f"in the stream of {block.stream.name!r}, the BlockEnd of the call of {call.option_name!r} has the"
            what = f"{what} arguments {written or call.arguments_json!r}, but its BlockDeltas joined are {joined!r}"
            what = f"{what}; expected the same text"
            expect(is_equal or not block.pieces, what, details={"the BlockDeltas": list(block.pieces)})

    def test_a_call_begins_as_what_it_ends_as(self, service: Service) -> None:
        """The BlockStart of a call has the same option name and id as its BlockEnd."""
        for block, call in call_blocks(service):
            start = (block.start.option_name, block.start.invocation_id)
            end = (call.option_name, call.invocation_id)
            what = f"in the stream of {block.stream.name!r}, the BlockStart of a call has the option name {start[0]!r}"
            what = f"{what} and the id {start[1]!r}, but its BlockEnd {end[0]!r} and {end[1]!r}; expected the same"
            expect(start == end, what)

    def test_a_stream_ends_once(self, service: Service) -> None:
        """A decoder returns one ReplyStart first and one ReplyEnd last, at the API's end marker or in `close`. It
        returns nothing after that.
        """
        for stream in streams(service):
            events = stream.decoder_events()
            names = [event.type for event in events]
            for kind, place in ((ReplyStart, 0), (ReplyEnd, len(events) - 1)):
                positions = [at for at, event in enumerate(events) if isinstance(event, kind)]
                where = "first" if place == 0 else "last"
                what = f"the decoder returns {len(positions)} {kind.__name__} events for the stream of {stream.name!r}"
                what = f"{what}; expected exactly one, as the {where} event"
                expect(positions == [place], what, details={"the decoder's events": names})

    def test_two_streams_at_once_do_not_mix(self, service: Service) -> None:
        """Two decoders share no state, because a program may read several streams at once."""
        recorded = streams(service)
        for pair in zip(recorded, [*recorded[1:], *recorded[:1]], strict=True):
            both = [(stream, stream.dialect.decoder(stream.scope), list[StreamEvent]()) for stream in pair]
            for at in range(max(len(each.events) for each in pair)):
                for stream, decoder, decoded in both:
                    for event in stream.events[at : at + 1]:
                        decoded.extend(stream.feed(decoder, event))
            for stream, decoder, decoded in both:
                decoded.extend(stream.feed(decoder, None))
            for (stream, _, decoded), other in zip(both, pair[::-1], strict=True):
                alone, parallel = map(_describe_event, stream.decoder_events()), map(_describe_event, decoded)
                numbered = enumerate(zip_longest(alone, parallel, fillvalue="nothing"), start=1)
                differing = [(at, events) for at, events in numbered if events[0] != events[1]]
                what = f"the decoder returns different events for the stream of {stream.name!r} if another decoder"
                what = f"{what} reads the stream of {other.name!r} at the same time; decoders must not share state"
                details = {f"event {at}": f"alone: {one}\nin parallel: {two}" for at, (one, two) in differing[:1]}
                expect(not differing, what, details=details)

    def test_an_unknown_event_changes_nothing(self, service: Service) -> None:
        """An unknown event anywhere in a stream changes no text, no call and no end. It may become an opaque part. This
        is tested if the events have names or are JSON objects.
        """
        for stream in filter(_has_typed_events, streams(service)):
            for at in range(len(stream.events)):
                events = (*stream.events[:at], UNKNOWN_EVENT, *stream.events[at:])
                _check_unchanged(stream, events, f"an event of an unknown type, inserted before event {at + 1},")

    def test_an_unknown_field_changes_nothing(self, service: Service) -> None:
        """An unknown field in events that are JSON objects changes no text, no call and no end."""
        for stream in streams(service):
            _check_unchanged(stream, tuple(map(_add_unknown_field, stream.events)), "an unknown field in every event")

    def test_garbage_in_a_stream_is_an_error(self, service: Service) -> None:
        """An event that does not follow the API format, received as the second one, ends the stream with an error. This
        is tested if the API's events are JSON objects.
        """
        for stream in streams(service):
            pairs = zip(stream.events, stream.decoded_events.steps, strict=False)
            decoded = (event for event, step in pairs if step and isinstance(as_json(event.data), Mapping))
            model_event = next(decoded, None)
            if model_event is None:
                continue
            garbage = model_event._replace(data=GARBAGE)
            reply = stream.decode_events((*stream.events[:1], garbage, *stream.events[1:])).reply
            what = f"the decoder ignores the invalid event {GARBAGE!r}, inserted as the second event of {stream.name!r}"
            expect(reply is None, f"{what}; raise an error", details={"the reply's text": reply.text if reply else ""})

    def test_an_error_within_a_stream_is_an_error(self, service: Service) -> None:
        """An error event in the middle of a stream raises the error that it reports, not ResponseInvalid or
        StreamBroken. The suite's `error_event` defines how such an event looks.
        """
        for stream in streams(service)[:1]:
            steps = stream.decoded_events.steps
            begun = next((at for at, step in enumerate(steps, start=1) if any(map(_is_text_delta, step))), 1)
            refusals = [(name, each.response_body) for name, each in service.failures()]
            for name, body in refusals:
                if not (tried := error_events(service.suite, stream, body.decode("utf-8", "replace"))):
                    continue  # a body that is not a JSON object, which the suite cannot express as an event
                errors = [stream.decode_events((*stream.events[:begun], event)).error for event in tried]
                kinds = [type(error).__name__ for error in errors]
                result = "raises nothing" if errors[0] is None else f"raises {kinds[0]} ({errors[0]})"
                what = f"the decoder {result} for an event with the recorded error body of {name!r} in the middle of a"
                what = f"{what} stream; raise the error that the event reports, or describe such events in the suite's"
                is_read = any(kind not in ("NoneType", "ResponseInvalid", "StreamBroken") for kind in kinds)
                expect(is_read, f"{what} error_event", details={"the event": tried[0].data})


def _is_text_delta(event: object) -> bool:
    return isinstance(event, BlockDelta) and event.kind == "text" and bool(event.text)


def _has_typed_events(stream: RecordedStream) -> bool:
    """Return whether the events of a stream have a name or are JSON objects, so that they can have a type."""
    return any(event.event or isinstance(as_json(event.data), Mapping) for event in stream.events)


def error_events(suite: Suite, stream: RecordedStream, body: str) -> list[ServerEvent]:
    """Return the events that the service may send in a stream to report an error with this body. Empty for a body that
    is not a JSON object, unless the suite's `error_event` returns an event.
    """
    if (event := suite.error_event(body)) is not None:
        who, kind = type(suite).__name__, type(event).__name__
        what = f"{who}.error_event returns a value of the type {kind}; return a ServerEvent(data, name), or None"
        expect(isinstance(event, ServerEvent), what)
        return [event]
    if not isinstance(as_json(body), Mapping):
        return []
    names = ERROR_NAMES if any(event.event for event in stream.events) else ERROR_NAMES[:1]
    return [ServerEvent(body, name) for name in names]


def _count_text_events(stream: RecordedStream, text: str) -> int:
    """Return the number of events with a piece of text; 0 if the pieces cannot be found."""
    position = count = 0
    for event in stream.events:
        piece = next((leaf for leaf in _event_texts(event.data) if text.startswith(leaf, position)), "")
        position, count = position + len(piece), count + bool(piece)
    return count if position == len(text) else 0


def _event_texts(data: str) -> list[str]:
    """Return the texts of an event, the longest first, without texts that occur twice, such as the name of a field."""
    every = leaves(as_json(data))
    return sorted({data, *(leaf for leaf in every if every.count(leaf) == 1)}, key=len, reverse=True)


def _describe_event(event: StreamEvent) -> str:
    """Return an event in one line, without ids that are created each time."""
    block = getattr(event, "block", None)
    content = getattr(event, "text", None) or getattr(block, "text", None) or getattr(block, "arguments_json", "")
    return f"{event.type} {getattr(event, 'index', '')} {content!r}"


def _check_unchanged(stream: RecordedStream, events: tuple[ServerEvent, ...], change: str) -> None:
    """Raise ConformanceFailure unless the changed events give the same reply as the stream. `change` describes them."""
    changed_event = next((event for event, known in zip(events, stream.events, strict=False) if event != known), None)
    if changed_event is None:
        return
    decoded, expected = stream.decode_events(events), reply_content(stream.decoded_events.reply)
    details: dict[str, object] = {"the event": changed_event.data}
    if decoded.error is not None:
        what = f"the decoder raises {type(decoded.error).__name__} ({decoded.error}) for {change} of {stream.name!r}"
        raise ConformanceFailure(f"{what}; ignore what is unknown", details=details)
    reply = reply_content(decoded.reply, without=UNKNOWN)
    what = f"the decoded reply changes because of {change} of {stream.name!r}; ignore what is unknown"
    expect(reply == expected, what, details={**details, "the reply without it": expected, "the reply with it": reply})


def _add_unknown_field(event: ServerEvent) -> ServerEvent:
    value = as_json(event.data)
    return event._replace(data=json.dumps({**value, "kit_unknown": [1]})) if isinstance(value, Mapping) else event
