"""Streams: the recorded ones, played to the author's decoder cut, interleaved, and with strange events in between.

cassette ──▶ ServerEvents ─┬─ cut after each ──────────▶ StreamBroken, never a reply that looks whole
                           ├─ as they were ────────────▶ pieces as they come; joined they are the whole
                           └─ with one more among them ▶ unknown: no change · garbage, an error: an error
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import ClassVar, NamedTuple

from sabir import BlockDelta, BlockEnd, BlockStart, Reply, ReplyEnd, ReplyStart, StreamEvent
from sabir.authoring import Decoder, DecodeScope, ServerEvent, ServerEventReader
from sabir.errors import CallError
from sabir.reading.incoming import StreamState

from sabir_testing.kit.broken import Broken, expect
from sabir_testing.kit.exchanges import STREAMED, Answered, Service
from sabir_testing.kit.questions import kinds
from sabir_testing.reading.values import leaves, read


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
            what = f"the recorded stream of {answer.name!r} holds no event that the kit can play to a decoder"
            kind = exchange.content_type or "no content type"
            expect(events, f"{what}; expected server-sent events, found {kind}")
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


UNKNOWN = "kit.unknown"
UNKNOWN_EVENT = ServerEvent(json.dumps({"type": UNKNOWN, "kit_note": {"of": [UNKNOWN]}}), UNKNOWN)
"""An event that no service sends yet."""
GARBAGE = ServerEvent("%% this is no event of any wire {")


class StreamCases(Answered):
    """What a decoder makes of the recorded streams, and of others made from them."""

    family: ClassVar[str] = "streams"

    def test_a_cut_stream_is_broken(self, service: Service) -> None:
        """A stream that ends before its terminal marker gives no reply: StreamBroken, with what came in `partial`. A
        decoder that lets any end pass for a good one turns half an answer into a whole one.
        """
        for stream in streams(service):
            whole = said(stream.play().reply)
            for cut in range(len(stream.events)):
                reply = stream.play(stream.events[:cut]).reply
                if reply is None or said(reply) == whole:  # what follows the marker may be missing
                    continue
                what = f"the stream of {stream.name!r}, cut after event {cut} of {len(stream.events)}, gives a reply"
                shown = {"the last event that came": _last(stream, cut), "the reply's text": reply.text}
                raise Broken(f"{what} that ended with {reply.finish_reason!r}; expected StreamBroken", shown=shown)

    def test_text_comes_piece_by_piece(self, service: Service) -> None:
        """Where the service sends its text in several events, the decoder passes each on as it comes, not all of it at
        the end: somebody is watching.
        """
        for stream in streams(service):
            played = stream.play()
            text = played.reply.text if played.reply else ""
            sent = _text_events(stream, text)
            given = sum(any(_is_text(event) for event in step) for step in played.steps)
            what = f"the text of {stream.name!r} comes in {sent} events, and is passed on in {given}"
            expect(sent < 2 or given >= 2, what, shown={"the text": text})

    def test_the_pieces_of_a_text_are_the_text(self, service: Service) -> None:
        """The pieces of a text, a thought or a refusal, joined, are the part that ends the block: whoever watched has
        read what the reply says.
        """
        for stream in streams(service):
            for block in blocks(stream.play()):
                text = getattr(block.end.block, "text", None)
                joined = "".join(block.pieces)
                if text is not None and block.pieces:
                    what = f"the {block.start.kind} of {stream.name!r} ends as {text!r}, but its pieces were {joined!r}"
                    expect(joined == text, what, shown={"its pieces": list(block.pieces)})

    def test_the_pieces_of_a_call_are_its_arguments(self, service: Service) -> None:
        """The pieces of a call's arguments, joined, are the argument text of the call that ends the block."""
        for stream in streams(service):
            for block in blocks(stream.play()):
                call, joined = block.end.block, "".join(block.pieces)
                if call.kind != "option_call" or not block.pieces:
                    continue
                written = call.raw_arguments
                is_equal = joined == written if written is not None else read(joined) == read(call.arguments_json)
                what = f"the call of {call.option_name!r} in {stream.name!r} ends with the arguments"
                what = f"{what} {written or call.arguments_json!r}, but its pieces were {joined!r}"
                expect(is_equal, what, shown={"its pieces": list(block.pieces)})

    def test_a_call_begins_as_what_it_ends_as(self, service: Service) -> None:
        """The start of a call names its option and its id, the same as its end: a watcher shows who is being called
        before the arguments are there.
        """
        for stream in streams(service):
            for block in blocks(stream.play()):
                call = block.end.block
                if call.kind != "option_call":
                    continue
                begun = (block.start.option_name, block.start.invocation_id)
                ended = (call.option_name, call.invocation_id)
                what = f"a call in {stream.name!r} begins as {begun[0]!r} with the id {begun[1]!r}"
                expect(begun == ended, f"{what}, and ends as {ended[0]!r} with the id {ended[1]!r}")

    def test_a_stream_ends_once(self, service: Service) -> None:
        """A decoder begins with one ReplyStart and gives one ReplyEnd, at the terminal marker or at the close; after
        that it gives nothing, whatever the service still sends.
        """
        for stream in streams(service):
            events = stream.decode().events
            names = [event.type for event in events]
            for kind, place in ((ReplyStart, 0), (ReplyEnd, len(events) - 1)):
                found = [at for at, event in enumerate(events) if isinstance(event, kind)]
                where = "the first" if place == 0 else "the last"
                what = f"the decoder's events for {stream.name!r} hold {len(found)} {kind.__name__}"
                expect(found == [place], f"{what}; expected one, as {where}", shown={"its events": names})

    def test_two_streams_at_once_do_not_mix(self, service: Service) -> None:
        """Each stream has a decoder of its own, and decoders share nothing: one process reads many streams at once."""
        found = streams(service)
        for pair in zip(found, [*found[1:], *found[:1]], strict=True):
            decoders = [service.subject.dialect.decoder(each.scope) for each in pair]
            given: list[list[str]] = [[], []]
            for at in range(max(len(each.events) for each in pair)):
                for which, (stream, decoder) in enumerate(zip(pair, decoders, strict=True)):
                    for event in stream.events[at : at + 1]:
                        given[which] += map(_comparable, stream.step(decoder, event))
            for which, (stream, decoder) in enumerate(zip(pair, decoders, strict=True)):
                given[which] += map(_comparable, stream.step(decoder, None))
                alone = list(map(_comparable, stream.decode().events))
                both = enumerate(zip_longest(alone, given[which], fillvalue="nothing"), start=1)
                differing = [(at, events) for at, events in both if events[0] != events[1]]
                other = pair[1 - which].name
                what = f"the stream of {stream.name!r} gives other events while that of {other!r} is read beside it"
                shown = {f"event {at}": f"alone: {one}\nbeside another: {two}" for at, (one, two) in differing[:1]}
                expect(not differing, what, shown=shown)

    def test_an_unknown_event_changes_nothing(self, service: Service) -> None:
        """Services add events without asking. One that the decoder does not know changes neither text nor calls nor the
        end, wherever it comes; it may be kept as an opaque part.
        """
        for stream in streams(service):
            for at in range(len(stream.events)):
                events = (*stream.events[:at], UNKNOWN_EVENT, *stream.events[at:])
                _check_unchanged(stream, events, f"an event of an unknown type before event {at + 1}")

    def test_an_unknown_field_changes_nothing(self, service: Service) -> None:
        """Services add fields to the events that there are. A field that the decoder does not know changes neither text
        nor calls nor the end.
        """
        for stream in streams(service):
            _check_unchanged(stream, tuple(map(_with_field, stream.events)), "an unknown field in every event")

    def test_garbage_in_a_stream_is_an_error(self, service: Service) -> None:
        """An event that is none of the wire's ends the stream in an error: what it stood for is lost, and a reply
        without it would look whole.
        """
        for stream in streams(service):
            events = (*stream.events[:1], GARBAGE, *stream.events[1:])
            reply = stream.play(events).reply
            what = f"{GARBAGE.data!r} as the second event of {stream.name!r} passes without a word"
            expect(reply is None, f"{what}; expected an error", shown={"the reply's text": reply.text if reply else ""})

    def test_an_error_within_a_stream_is_an_error(self, service: Service) -> None:
        """A service that fails in the middle of a stream sends its error as the next event. That ends the stream in the
        error that it reports; it is no event to be passed over, nor garbage.
        """
        for stream in streams(service)[:1]:
            steps = stream.play().steps
            begun = next((at for at, step in enumerate(steps, start=1) if any(map(_is_text, step))), 1)
            for name, body in _failures(service):
                error = stream.play((*stream.events[:begun], ServerEvent(body))).error
                what = f"the error that {name!r} is answered with, sent as an event within a stream, is passed over or"
                what = f"{what} taken for garbage; the stream ends in {type(error).__name__}: {error}"
                is_read = type(error).__name__ not in ("ResponseInvalid", "StreamBroken")
                expect(is_read, what, shown={"the event": body})


def _last(stream: Stream, cut: int) -> str:
    return stream.events[cut - 1].data if cut else "none"


def _is_text(event: object) -> bool:
    return isinstance(event, BlockDelta) and event.kind == "text" and bool(event.text)


def _text_events(stream: Stream, text: str) -> int:
    """In how many events a text came; 0 where it cannot be found in them piece by piece."""
    position = count = 0
    for event in stream.events:
        piece = next((leaf for leaf in _values(read(event.data)) if text.startswith(leaf, position)), "")
        position, count = position + len(piece), count + bool(piece)
    return count if position == len(text) else 0


def _values(value: object) -> list[str]:
    """The texts of an event, the longest first; a word that is a key too is one of the wire's own."""
    found = leaves(value)
    return sorted({leaf for leaf in found if found.count(leaf) == 1}, key=len, reverse=True)


def _comparable(event: StreamEvent) -> str:
    """An event in one line, without what is made up anew each time."""
    block = getattr(event, "block", None)
    said = getattr(event, "text", None) or getattr(block, "text", None) or getattr(block, "arguments_json", "")
    return f"{event.type} {getattr(event, 'index', '')} {said!r}"


def _check_unchanged(stream: Stream, events: tuple[ServerEvent, ...], what: str) -> None:
    played, expected = stream.play(events), said(stream.play().reply)
    strange = next(event for event, known in zip(events, stream.events, strict=False) if event != known)
    shown: dict[str, object] = {"the event": strange.data}
    if played.error is not None:
        kind = type(played.error).__name__
        raise Broken(f"{what} of {stream.name!r} ends the stream in {kind}: {played.error}", shown=shown)
    found = said(played.reply, without=UNKNOWN)
    shown = {**shown, "without it": expected, "with it": found}
    expect(found == expected, f"{what} of {stream.name!r} changes the reply", shown=shown)


def _with_field(event: ServerEvent) -> ServerEvent:
    found = read(event.data)
    return event._replace(data=json.dumps({**found, "kit_unknown": [1]})) if isinstance(found, Mapping) else event


def _failures(service: Service) -> list[tuple[str, str]]:
    """The bodies of the recorded failures that are JSON objects."""
    bodies = [(name, exchange.response_body) for name, exchange in service.failures()]
    return [(name, body.decode()) for name, body in bodies if isinstance(read(body), Mapping)]
