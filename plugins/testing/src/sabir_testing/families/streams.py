"""Streams: recorded streams, decoded by the dialect: cut in any place, interleaved, and with unknown events."""

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
    """All recorded streams, each with events that the decoder uses; raises ConformanceFailure for a stream without.

    Empty if streaming is declared REFUSED.
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
    """Return the stream. Raises ConformanceFailure if it has no visible events, because the case would
    check nothing.
    """
    kind = stream.scope.content_type or "no content type"
    what = f"the recorded stream of {stream.name!r} ({kind}) holds no event that the kit can play to a decoder"
    remedy = "name the content type and what cuts it in the dialect's `framings`"
    expect(stream.events, f"{what}; {remedy}", shown={"its bytes": stream.body})
    what = f"the decoder makes no block of the {len(stream.events)} events of {stream.name!r}"
    shown = {"the events": [*map(str, stream.events[:5])]}
    expect(any(isinstance(event, BlockEnd) for event in stream.played.events), what, shown=shown)
    return stream


class Block(NamedTuple):
    """One block of a stream: its start, its pieces, its end."""

    stream: Stream
    start: BlockStart
    pieces: tuple[str, ...]
    end: BlockEnd


def blocks(service: Service) -> Iterator[Block]:
    """Yield the blocks of all streams that began and ended."""
    for stream in streams(service):
        events = stream.played.events
        ends = {event.index: event for event in events if isinstance(event, BlockEnd)}
        for start in events:
            if isinstance(start, BlockStart) and start.index in ends:
                pieces = [each.text for each in events if isinstance(each, BlockDelta) and each.index == start.index]
                yield Block(stream, start, tuple(pieces), ends[start.index])


def calls(service: Service) -> list[tuple[Block, OptionCallPayload]]:
    """Return the blocks of calls. Raises ConformanceFailure if there are none, unless options or streaming
    are REFUSED.
    """
    found = [(block, block.end.block) for block in blocks(service) if isinstance(block.end.block, OptionCallPayload)]
    is_refused = REFUSED in map(service.subject.declared, ("options", "streaming"))
    expect(found or is_refused, "no recorded stream holds a call, though `options` is not declared REFUSED")
    return found


def said(reply: Reply | None, *, without: str = "") -> object:
    """Return a reply's content for comparison, without ids and usage; None without a reply. Opaque parts with a text
    may be left out.
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
"""An event that no service sends yet."""
GARBAGE = "%% this is no event of any wire {"
SIZES = (1, 7, 1 << 30)
"""Sizes of a stream's chunks in bytes: borders within events, within characters, and none."""
ERROR_NAMES = ("", "error", "exception")
"""Possible names of an event that reports an error, if a wire's events have names."""


class StreamCases(Answered):
    """The cases of a framing and a decoder, on the recorded streams and on variants of them."""

    family: ClassVar[str] = "streams"

    def test_chunks_may_end_anywhere(self, service: Service) -> None:
        """The decoded events do not depend on where a chunk ends, which may be within an event, a number or a
        character.
        """
        for stream in streams(service):
            expected = said(stream.played.reply)
            for size in SIZES:
                chunks = [stream.body[at : at + size] for at in range(0, len(stream.body), size)]
                found = stream.play(chunks)
                how = f"in chunks of {size} bytes" if size < len(stream.body) else "in one chunk"
                what = f"the stream of {stream.name!r} reads otherwise {how} than event by event"
                shown = {"event by event": expected, how: said(found.reply) or str(found.error)}
                expect(said(found.reply) == expected, what, shown=shown)

    def test_a_cut_stream_is_broken(self, service: Service) -> None:
        """A stream that ends before the API's end marker raises StreamBroken, with the reply so far in `partial`. Every
        stream is cut after each event and within it.
        """
        for stream in streams(service):
            whole, came = said(stream.played.reply), list[bytes]()
            for at, frame in enumerate(stream.frames, start=1):
                for part in (b"", frame.data[: len(frame.data) // 2]):
                    reply = stream.play([*came, part]).reply
                    if reply is None or said(reply) == whole:  # bytes after the marker may be missing
                        continue
                    where = f"{'in' if part else 'before'} event {at} of {len(stream.frames)}"
                    what = f"the stream of {stream.name!r}, cut {where}, gives a reply that ended with"
                    shown = {"what came last": b"".join(came)[-200:] + part, "the reply's text": reply.text}
                    raise ConformanceFailure(f"{what} {reply.finish_reason!r}; expected StreamBroken", shown=shown)
                came.append(frame.data)

    def test_text_comes_piece_by_piece(self, service: Service) -> None:
        """If the service sends a text in several events, the decoder returns each piece when it arrives."""
        for stream in streams(service):
            text = stream.played.reply.text if stream.played.reply else ""
            sent = _text_events(stream, text)
            given = sum(any(_is_text(event) for event in step) for step in stream.played.steps)
            what = f"the text of {stream.name!r} comes in {sent} events, and is passed on in {given}"
            expect(sent < 2 or given >= 2, what, shown={"the text": text})

    def test_the_pieces_of_a_text_are_the_text(self, service: Service) -> None:
        """The pieces of a text, reasoning or refusal, joined, are the text of the part that ends the block."""
        for block in blocks(service):
            text = getattr(block.end.block, "text", None)
            joined = "".join(block.pieces)
            what = f"the {block.start.kind} of {block.stream.name!r} ends as {text!r}, but its pieces were {joined!r}"
            is_whole = text is None or not block.pieces or joined == text
            expect(is_whole, what, shown={"its pieces": list(block.pieces)})

    def test_the_pieces_of_a_call_are_its_arguments(self, service: Service) -> None:
        """The pieces of a call's arguments, joined, are the argument text of the call that ends the block."""
        for block, call in calls(service):
            joined, written = "".join(block.pieces), call.raw_arguments
            is_equal = joined == written if written is not None else read(joined) == read(call.arguments_json)
            what = f"the call of {call.option_name!r} in {block.stream.name!r} ends with the arguments"
            what = f"{what} {written or call.arguments_json!r}, but its pieces were {joined!r}"
            expect(is_equal or not block.pieces, what, shown={"its pieces": list(block.pieces)})

    def test_a_call_begins_as_what_it_ends_as(self, service: Service) -> None:
        """The BlockStart of a call has the same option name and id as its BlockEnd."""
        for block, call in calls(service):
            begun = (block.start.option_name, block.start.invocation_id)
            ended = (call.option_name, call.invocation_id)
            what = f"a call in {block.stream.name!r} begins as {begun[0]!r} with the id {begun[1]!r}"
            expect(begun == ended, f"{what}, and ends as {ended[0]!r} with the id {ended[1]!r}")

    def test_a_stream_ends_once(self, service: Service) -> None:
        """A decoder returns one ReplyStart first and one ReplyEnd last, at the API's end marker or in `close`. It
        returns nothing after that.
        """
        for stream in streams(service):
            events = stream.decode()
            names = [event.type for event in events]
            for kind, place in ((ReplyStart, 0), (ReplyEnd, len(events) - 1)):
                found = [at for at, event in enumerate(events) if isinstance(event, kind)]
                where = "the first" if place == 0 else "the last"
                what = f"the decoder's events for {stream.name!r} hold {len(found)} {kind.__name__}"
                expect(found == [place], f"{what}; expected one, as {where}", shown={"its events": names})

    def test_two_streams_at_once_do_not_mix(self, service: Service) -> None:
        """Two decoders share no state, because a program may read several streams at once."""
        found = streams(service)
        for pair in zip(found, [*found[1:], *found[:1]], strict=True):
            both = [(stream, stream.dialect.decoder(stream.scope), list[StreamEvent]()) for stream in pair]
            for at in range(max(len(each.events) for each in pair)):
                for stream, decoder, given in both:
                    for event in stream.events[at : at + 1]:
                        given.extend(stream.step(decoder, event))
            for stream, decoder, given in both:
                given.extend(stream.step(decoder, None))
            for (stream, _, given), other in zip(both, pair[::-1], strict=True):
                alone, beside = map(_comparable, stream.decode()), map(_comparable, given)
                numbered = enumerate(zip_longest(alone, beside, fillvalue="nothing"), start=1)
                differing = [(at, events) for at, events in numbered if events[0] != events[1]]
                what = (
                    f"the stream of {stream.name!r} gives other events while that of {other.name!r} is read beside it"
                )
                shown = {f"event {at}": f"alone: {one}\nbeside another: {two}" for at, (one, two) in differing[:1]}
                expect(not differing, what, shown=shown)

    def test_an_unknown_event_changes_nothing(self, service: Service) -> None:
        """An unknown event anywhere in a stream changes no text, no call and no end. It may become an opaque part."""
        for stream in filter(_tells_kinds, streams(service)):
            for at in range(len(stream.events)):
                events = (*stream.events[:at], UNKNOWN_EVENT, *stream.events[at:])
                _check_unchanged(stream, events, f"an event of an unknown type before event {at + 1}")

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
            what = f"{GARBAGE!r} as the second event of {stream.name!r} passes without a word"
            expect(reply is None, f"{what}; expected an error", shown={"the reply's text": reply.text if reply else ""})

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
                what = f"the error that {name!r} is answered with, sent as an event within a stream, is passed over or"
                what = f"{what} taken for garbage; the stream ends in {kinds[0]}: {errors[0]}"
                is_read = any(kind not in ("NoneType", "ResponseInvalid", "StreamBroken") for kind in kinds)
                expect(is_read, what, shown={"the event": tried[0].data})


def _is_text(event: object) -> bool:
    return isinstance(event, BlockDelta) and event.kind == "text" and bool(event.text)


def _telling(stream: Stream) -> Iterator[ServerEvent]:
    """Return the events that the decoder uses."""
    return (event for event, step in zip(stream.events, stream.as_cut.steps, strict=False) if step)


def _tells_kinds(stream: Stream) -> bool:
    """Return whether events name their kind, in their name or in an object."""
    return any(event.event or isinstance(read(event.data), Mapping) for event in stream.events)


def _error_events(suite: Suite, stream: Stream, body: str) -> list[ServerEvent]:
    """Events that the service may send for an error in that stream."""
    if (said := suite.error_event(body)) is not None:
        return [said]
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
    """Return the texts of an event, the longest first. A word that is also a key is not one."""
    found = leaves(read(data))
    return sorted({data, *(leaf for leaf in found if found.count(leaf) == 1)}, key=len, reverse=True)


def _comparable(event: StreamEvent) -> str:
    """Return an event in one line, without ids that are created each time."""
    block = getattr(event, "block", None)
    said = getattr(event, "text", None) or getattr(block, "text", None) or getattr(block, "arguments_json", "")
    return f"{event.type} {getattr(event, 'index', '')} {said!r}"


def _check_unchanged(stream: Stream, events: tuple[ServerEvent, ...], what: str) -> None:
    strange = next((event for event, known in zip(events, stream.events, strict=False) if event != known), None)
    if strange is None:
        return
    played, expected = stream.fed(events), said(stream.as_cut.reply)
    shown: dict[str, object] = {"the event": strange.data}
    if played.error is not None:
        kind = type(played.error).__name__
        raise ConformanceFailure(f"{what} of {stream.name!r} ends the stream in {kind}: {played.error}", shown=shown)
    found = said(played.reply, without=UNKNOWN)
    shown = {**shown, "without it": expected, "with it": found}
    expect(found == expected, f"{what} of {stream.name!r} changes the reply", shown=shown)


def _with_field(event: ServerEvent) -> ServerEvent:
    found = read(event.data)
    return event._replace(data=json.dumps({**found, "kit_unknown": [1]})) if isinstance(found, Mapping) else event
