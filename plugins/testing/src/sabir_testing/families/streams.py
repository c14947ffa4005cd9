"""Streams: how the dialect decodes recorded streams that are cut, read in parallel, or contain unknown events."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import ClassVar, NamedTuple

from sabir import BlockDelta, BlockEnd, BlockStart, OptionCallPayload, Reply, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import ServerEvent

from sabir_testing.kit.broken import ConformanceFailure, expect
from sabir_testing.kit.exchanges import STREAMED, Answered, Service
from sabir_testing.kit.played import Stream
from sabir_testing.kit.questions import REFUSED, kinds
from sabir_testing.kit.suite import Suite
from sabir_testing.reading import leaves, read


def streams(service: Service) -> list[Stream]:
    """Return all recorded streams; [] if the suite declares streaming REFUSED.

    Raises ConformanceFailure for a stream without events that the decoder uses.
    """
    if service.refused_need("text", STREAMED):
        return []
    return service.subject.once(streams, lambda: [_seen(stream) for stream in _streams(service)])


def _streams(service: Service) -> Iterator[Stream]:
    for answer in service.answers(STREAMED):
        question, subject = answer.question, service.subject
        rendering = subject.rendered(question.messages, question.options, question.settings)
        for exchange in answer.exchanges:
            kind = exchange.headers.get("content-type", "")
            scope = replace(subject.scope(), option_names=rendering.option_names, content_type=kind)
            yield Stream(subject.dialect, scope, answer.name, exchange.response_body)


def _seen(stream: Stream) -> Stream:
    """Return the stream. Raises ConformanceFailure if the framing finds no events in it, or the decoder no blocks.

    Otherwise the case would check nothing.
    """
    kind = stream.scope.content_type or "no content type"
    what = f"the dialect's framing finds no events in the recorded stream of {stream.name!r} ({kind})"
    remedy = "add a framing for this content type to Dialect.framings"
    expect(stream.events, f"{what}; {remedy}", shown={"the stream": stream.body})
    count = len(stream.events)
    what = f"the decoder returns no BlockEnd for the {count} events of the recorded stream of {stream.name!r}"
    shown = {"the first events": [*map(str, stream.events[:5])]}
    expect(any(isinstance(event, BlockEnd) for event in stream.played.events), what, shown=shown)
    return stream


class Block(NamedTuple):
    """One block of a decoded stream: its start, the texts of its deltas, and its end."""

    stream: Stream
    start: BlockStart
    pieces: tuple[str, ...]
    end: BlockEnd


def blocks(service: Service) -> Iterator[Block]:
    """Yield the blocks of all recorded streams that have a start and an end."""
    for stream in streams(service):
        events = stream.played.events
        ends = {event.index: event for event in events if isinstance(event, BlockEnd)}
        for start in events:
            if isinstance(start, BlockStart) and start.index in ends:
                pieces = [each.text for each in events if isinstance(each, BlockDelta) and each.index == start.index]
                yield Block(stream, start, tuple(pieces), ends[start.index])


def calls(service: Service) -> list[tuple[Block, OptionCallPayload]]:
    """Return the blocks that are calls, each with its call.

    Raises ConformanceFailure if there are none, unless the suite declares options or streaming REFUSED.
    """
    pairs = [(block, block.end.block) for block in blocks(service) if isinstance(block.end.block, OptionCallPayload)]
    is_refused = REFUSED in map(service.subject.declared, ("options", "streaming"))
    what = "no recorded stream is decoded to a reply with an option call, although the suite does not declare 'options'"
    expect(pairs or is_refused, f"{what} REFUSED; decode the calls, or record streams that contain calls")
    return pairs


def said(reply: Reply | None, *, without: str = "") -> object:
    """Return a reply's content for comparison, without ids and usage; None without a reply.

    Opaque parts that contain the text `without` are left out, if it is not "".
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


UNKNOWN = "kit.unknown"
UNKNOWN_EVENT = ServerEvent(json.dumps({"type": UNKNOWN, "kit_note": {"of": [UNKNOWN]}}), UNKNOWN)
"""An event of a type that no service sends."""
GARBAGE = "%% this is not an event of any API {"
SIZES = (1, 7, 1 << 30)
"""Sizes of chunks in bytes: chunks that end within characters, within events, and one chunk for the complete stream."""
ERROR_NAMES = ("", "error", "exception")
"""Names that an event which reports an error may have, if the API's events have names."""


class StreamCases(Answered):
    """The test cases of the family `streams`, on the recorded streams and on variants of them."""

    family: ClassVar[str] = "streams"

    def test_chunks_may_end_anywhere(self, service: Service) -> None:
        """The decoded reply does not depend on where a chunk ends, which may be within an event, a number or a
        character.
        """
        for stream in streams(service):
            expected = said(stream.played.reply)
            for size in SIZES:
                chunks = [stream.body[at : at + size] for at in range(0, len(stream.body), size)]
                decoded = stream.play(chunks)
                how = f"in chunks of {size} bytes" if size < len(stream.body) else "in one chunk"
                what = f"the stream of {stream.name!r}, received {how}, is decoded to another reply than if each event"
                shown = {"one chunk for each event": expected, how: said(decoded.reply) or str(decoded.error)}
                expect(said(decoded.reply) == expected, f"{what} is one chunk", shown=shown)

    def test_a_cut_stream_is_broken(self, service: Service) -> None:
        """A stream that ends before the API's end marker raises StreamBroken, with the reply so far in `partial`. Every
        stream is cut after each event and within it.
        """
        for stream in streams(service):
            whole, received = said(stream.played.reply), list[bytes]()
            for at, frame in enumerate(stream.frames, start=1):
                for part in (b"", frame.data[: len(frame.data) // 2]):
                    reply = stream.play([*received, part]).reply
                    if reply is None or said(reply) == whole:  # bytes after the marker may be missing
                        continue
                    where = f"{'in' if part else 'before'} event {at} of {len(stream.frames)}"
                    what = f"the stream of {stream.name!r}, cut {where}, is decoded to a complete reply (finish reason"
                    what = f"{what} {reply.finish_reason!r}); expected StreamBroken, because the end marker is missing"
                    shown = {"the last bytes": b"".join(received)[-200:] + part, "the reply's text": reply.text}
                    raise ConformanceFailure(what, shown=shown)
                received.append(frame.data)

    def test_text_comes_piece_by_piece(self, service: Service) -> None:
        """If the service sends a text in several events, the decoder returns each piece when it arrives."""
        for stream in streams(service):
            text = stream.played.reply.text if stream.played.reply else ""
            sent = _text_events(stream, text)
            deltas = sum(any(_is_text(event) for event in step) for step in stream.played.steps)
            what = f"the service sends the text of {stream.name!r} in {sent} events, but the decoder returns deltas for"
            what = f"{what} {deltas} of them; return a BlockDelta for each piece"
            expect(sent < 2 or deltas >= 2, what, shown={"the text": text})

    def test_the_pieces_of_a_text_are_the_text(self, service: Service) -> None:
        """The pieces of a text, reasoning or refusal, joined, are the text of the part that ends the block."""
        for block in blocks(service):
            text = getattr(block.end.block, "text", None)
            joined = "".join(block.pieces)
            what = f"in the stream of {block.stream.name!r}, the BlockEnd of a {block.start.kind} part has the text"
            what = f"{what} {text!r}, but its BlockDeltas joined are {joined!r}; expected the same text"
            is_whole = text is None or not block.pieces or joined == text
            expect(is_whole, what, shown={"the BlockDeltas": list(block.pieces)})

    def test_the_pieces_of_a_call_are_its_arguments(self, service: Service) -> None:
        """The pieces of a call's arguments, joined, are the argument text of the call that ends the block."""
        for block, call in calls(service):
            joined, written = "".join(block.pieces), call.raw_arguments
            is_equal = joined == written if written is not None else read(joined) == read(call.arguments_json)
            what = f"in the stream of {block.stream.name!r}, the BlockEnd of the call of {call.option_name!r} has the"
            what = f"{what} arguments {written or call.arguments_json!r}, but its BlockDeltas joined are {joined!r}"
            what = f"{what}; expected the same text"
            expect(is_equal or not block.pieces, what, shown={"the BlockDeltas": list(block.pieces)})

    def test_a_call_begins_as_what_it_ends_as(self, service: Service) -> None:
        """The BlockStart of a call has the same option name and id as its BlockEnd."""
        for block, call in calls(service):
            begun = (block.start.option_name, block.start.invocation_id)
            ended = (call.option_name, call.invocation_id)
            what = f"in the stream of {block.stream.name!r}, the BlockStart of a call has the option name {begun[0]!r}"
            what = f"{what} and the id {begun[1]!r}, but its BlockEnd {ended[0]!r} and {ended[1]!r}; expected the same"
            expect(begun == ended, what)

    def test_a_stream_ends_once(self, service: Service) -> None:
        """A decoder returns one ReplyStart first and one ReplyEnd last, at the API's end marker or in `close`. It
        returns nothing after that.
        """
        for stream in streams(service):
            events = stream.decode()
            names = [event.type for event in events]
            for kind, place in ((ReplyStart, 0), (ReplyEnd, len(events) - 1)):
                positions = [at for at, event in enumerate(events) if isinstance(event, kind)]
                where = "first" if place == 0 else "last"
                what = f"the decoder returns {len(positions)} {kind.__name__} events for the stream of {stream.name!r}"
                what = f"{what}; expected exactly one, as the {where} event"
                expect(positions == [place], what, shown={"the decoder's events": names})

    def test_two_streams_at_once_do_not_mix(self, service: Service) -> None:
        """Two decoders share no state, because a program may read several streams at once."""
        recorded = streams(service)
        for pair in zip(recorded, [*recorded[1:], *recorded[:1]], strict=True):
            both = [(stream, stream.dialect.decoder(stream.scope), list[StreamEvent]()) for stream in pair]
            for at in range(max(len(each.events) for each in pair)):
                for stream, decoder, decoded in both:
                    for event in stream.events[at : at + 1]:
                        decoded.extend(stream.step(decoder, event))
            for stream, decoder, decoded in both:
                decoded.extend(stream.step(decoder, None))
            for (stream, _, decoded), other in zip(both, pair[::-1], strict=True):
                alone, parallel = map(_comparable, stream.decode()), map(_comparable, decoded)
                numbered = enumerate(zip_longest(alone, parallel, fillvalue="nothing"), start=1)
                differing = [(at, events) for at, events in numbered if events[0] != events[1]]
                what = f"the decoder returns different events for the stream of {stream.name!r} if another decoder"
                what = f"{what} reads the stream of {other.name!r} at the same time; decoders must not share state"
                shown = {f"event {at}": f"alone: {one}\nin parallel: {two}" for at, (one, two) in differing[:1]}
                expect(not differing, what, shown=shown)

    def test_an_unknown_event_changes_nothing(self, service: Service) -> None:
        """An unknown event anywhere in a stream changes no text, no call and no end. It may become an opaque part."""
        for stream in filter(_tells_kinds, streams(service)):
            for at in range(len(stream.events)):
                events = (*stream.events[:at], UNKNOWN_EVENT, *stream.events[at:])
                _check_unchanged(stream, events, f"an event of an unknown type, inserted before event {at + 1},")

    def test_an_unknown_field_changes_nothing(self, service: Service) -> None:
        """An unknown field in an event changes no text, no call and no end."""
        for stream in streams(service):
            _check_unchanged(stream, tuple(map(_with_field, stream.events)), "an unknown field in every event")

    def test_garbage_in_a_stream_is_an_error(self, service: Service) -> None:
        """An event that does not follow the API format ends the stream with an error. This is tested if the API's
        events are JSON objects.
        """
        for stream in streams(service):
            like = next((event for event in _telling(stream) if isinstance(read(event.data), Mapping)), None)
            if like is None:
                continue
            reply = stream.fed((*stream.events[:1], like._replace(data=GARBAGE), *stream.events[1:])).reply
            what = f"the decoder ignores the invalid event {GARBAGE!r}, inserted as the second event of {stream.name!r}"
            shown = {"the reply's text": reply.text if reply else ""}
            expect(reply is None, f"{what}; raise an error", shown=shown)

    def test_an_error_within_a_stream_is_an_error(self, service: Service) -> None:
        """An error event in the middle of a stream raises the error that it reports. The suite's `error_event` defines
        how such an event looks.
        """
        for stream in streams(service)[:1]:
            steps = stream.as_cut.steps
            begun = next((at for at, step in enumerate(steps, start=1) if any(map(_is_text, step))), 1)
            refusals = [(name, each.response_body) for name, each in service.failures()]
            for name, body in [(name, body.decode()) for name, body in refusals if isinstance(read(body), Mapping)]:
                tried = _error_events(service.suite, stream, body)
                errors = [stream.fed((*stream.events[:begun], event)).error for event in tried]
                kinds = [type(error).__name__ for error in errors]
                result = "raises nothing" if errors[0] is None else f"raises {kinds[0]} ({errors[0]})"
                what = f"the decoder {result} for an event with the recorded error body of {name!r} in the middle of a"
                what = f"{what} stream; raise the error that the event reports, or describe such events in the suite's"
                is_read = any(kind not in ("NoneType", "ResponseInvalid", "StreamBroken") for kind in kinds)
                expect(is_read, f"{what} error_event", shown={"the event": tried[0].data})


def _is_text(event: object) -> bool:
    return isinstance(event, BlockDelta) and event.kind == "text" and bool(event.text)


def _telling(stream: Stream) -> Iterator[ServerEvent]:
    """Return the events for which the decoder returns something."""
    return (event for event, step in zip(stream.events, stream.as_cut.steps, strict=False) if step)


def _tells_kinds(stream: Stream) -> bool:
    """Return whether the events of a stream have a name or are JSON objects, so that they can have a type."""
    return any(event.event or isinstance(read(event.data), Mapping) for event in stream.events)


def _error_events(suite: Suite, stream: Stream, body: str) -> list[ServerEvent]:
    """Return the events that the service may send in a stream to report an error with this body."""
    if (event := suite.error_event(body)) is not None:
        return [event]
    names = ERROR_NAMES if any(event.event for event in stream.events) else ERROR_NAMES[:1]
    return [ServerEvent(body, name) for name in names]


def _text_events(stream: Stream, text: str) -> int:
    """Return the number of events with a piece of text; 0 if the pieces cannot be found."""
    position = count = 0
    for event in stream.events:
        piece = next((leaf for leaf in _values(event.data) if text.startswith(leaf, position)), "")
        position, count = position + len(piece), count + bool(piece)
    return count if position == len(text) else 0


def _values(data: str) -> list[str]:
    """Return the texts of an event, the longest first, without texts that occur twice, such as the name of a field."""
    every = leaves(read(data))
    return sorted({data, *(leaf for leaf in every if every.count(leaf) == 1)}, key=len, reverse=True)


def _comparable(event: StreamEvent) -> str:
    """Return an event in one line, without ids that are created each time."""
    block = getattr(event, "block", None)
    content = getattr(event, "text", None) or getattr(block, "text", None) or getattr(block, "arguments_json", "")
    return f"{event.type} {getattr(event, 'index', '')} {content!r}"


def _check_unchanged(stream: Stream, events: tuple[ServerEvent, ...], change: str) -> None:
    """Raise ConformanceFailure unless the changed events give the same reply as the stream. `change` describes them."""
    strange = next((event for event, known in zip(events, stream.events, strict=False) if event != known), None)
    if strange is None:
        return
    played, expected = stream.fed(events), said(stream.as_cut.reply)
    shown: dict[str, object] = {"the event": strange.data}
    if played.error is not None:
        what = f"the decoder raises {type(played.error).__name__} ({played.error}) for {change} of {stream.name!r}"
        raise ConformanceFailure(f"{what}; ignore what is unknown", shown=shown)
    reply = said(played.reply, without=UNKNOWN)
    shown = {**shown, "the reply without it": expected, "the reply with it": reply}
    what = f"the decoded reply changes because of {change} of {stream.name!r}; ignore what is unknown"
    expect(reply == expected, what, shown=shown)


def _with_field(event: ServerEvent) -> ServerEvent:
    value = read(event.data)
    return event._replace(data=json.dumps({**value, "kit_unknown": [1]})) if isinstance(value, Mapping) else event
