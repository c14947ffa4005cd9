"""Streams that no recording has: blocks of two recorded streams in one, and blocks whose end is missing.

begin · the text of one stream · the calls of another · end ──decoder──▶ each block has an index of its own
begin · a block without the event that ends it · end        ──decoder──▶ the same texts and calls
"""

import re
from collections.abc import Iterator
from itertools import permutations
from typing import Any, ClassVar

from sabir import BlockEnd, BlockStart, OptionCallPayload, Reply, ReplyEnd, StreamEvent
from sabir.authoring import ServerEvent
from sabir.errors import SabirError

from sabir_testing.families.streams import streams
from sabir_testing.kit.decoded_recordings import RecordedStream
from sabir_testing.kit.failures import expect
from sabir_testing.kit.service import AnswerCases, Service
from sabir_testing.kit.service_questions import kinds
from sabir_testing.kit.suite import since_api
from sabir_testing.reading import as_json, compact_json, walk, without_member


@since_api(2)
class FurtherStreamCases(AnswerCases):
    """The test cases of the family `streams` about streams that are composed of recorded ones."""

    family: ClassVar[str] = "streams"

    def test_every_block_has_an_index_of_its_own(self, service: Service) -> None:
        """If a text and a call follow each other in one stream, they are two blocks with two indexes, in their order.
        This is tested with the events of a text and of a call from two recorded streams, if they contain no numbers,
        so that the decoder counts the blocks itself.
        """
        recorded = streams(service)[::-1]
        first_of_kind = {kinds(stream.decoded.reply): stream for stream in recorded if stream.decoded.reply}
        texts_and_calls = [first_of_kind[kind] for kind in (("text",), ("option_call",)) if kind in first_of_kind]
        for one, other in permutations(texts_and_calls, 2):
            if not (events := _joined_events(one, other)):
                continue
            decoded = _decoder_events(other, events)
            indexes = [event.index for event in decoded or () if isinstance(event, BlockStart)]
            what = f"the blocks of a stream with the contents of {one.name!r} and {other.name!r} have the indexes"
            details = {"the stream": "\n".join(event.data for event in events)}
            is_unique = len(set(indexes)) == len(indexes)
            expect(is_unique, f"{what} {indexes}; expected another index for each block", details=details)
            if decoded is not None and one.decoded.reply and other.decoded.reply:
                reply = other.decode_events(events).reply
                expected = (*kinds(one.decoded.reply), *kinds(other.decoded.reply))
                actual = kinds(reply) if reply else "no reply"
                what = f"a stream with the contents of {one.name!r} and {other.name!r} is decoded to {actual}"
                expect(actual == expected, f"{what}; expected {expected}", details=details)

    def test_a_block_whose_end_is_missing_is_in_the_reply(self, service: Service) -> None:
        """If the end marker of a stream arrives while a block has no end, the decoder ends the block: the reply has the
        same texts and as many calls. This is tested without one of the events whose only effect is the end of a block.
        """
        for stream in streams(service):
            for at in _ends_of_blocks(stream):
                decoded = stream.decode_events([*stream.events[:at], *stream.events[at + 1 :]])
                expected, actual = map(_content, (stream.decoded_events.reply, decoded.reply))
                outcome = f"raises {type(decoded.error).__name__} ({decoded.error})" if decoded.error else str(actual)
                what = f"without the event that ends a block, the stream of {stream.name!r} gives {outcome}; expected"
                remedy = "end the open blocks at the API's end marker"
                details = {"the missing event": stream.events[at].data}
                expect(actual == expected, f"{what} {expected}; {remedy}", details=details)

    def test_a_streamed_call_keeps_its_new_id(self, service: Service) -> None:
        """If a stream contains no id of a call, the BlockEnd has the id of the BlockStart, unless the BlockStart has
        none: a decoder that creates an id creates one only. This is tested without the ids in recorded streams.
        """
        for stream in streams(service):
            calls = stream.decoded.reply.option_calls if stream.decoded.reply else ()
            ids = {message.call.invocation_id for message in calls}
            decoded = stream.decode_events([_without_texts(event, ids) for event in stream.events])
            starts = {each.index: each.invocation_id for each in decoded.events if isinstance(each, BlockStart)}
            for end in (each for each in decoded.events if isinstance(each, BlockEnd)):
                if decoded.reply is not None and isinstance(call := end.block, OptionCallPayload):
                    start = starts[end.index]
                    what = f"without the ids of its calls, the stream of {stream.name!r} has a BlockStart with the id"
                    what = f"{what} {start!r}, and its BlockEnd has {call.invocation_id!r}; keep the first id"
                    expect(start in (None, "", call.invocation_id), what)


def _without_texts(event: ServerEvent, texts: set[str]) -> ServerEvent:
    """Return an event without the fields that have one of these texts."""
    document: Any = as_json(event.data)
    leaves = [leaf.path for leaf in walk(document) if leaf.value in texts and not leaf.is_name and leaf.path]
    for path in leaves:
        document = without_member(document, path) if isinstance(path[-1], str) else document
    return event._replace(data=compact_json(document)) if leaves else event


def _joined_events(one: RecordedStream, other: RecordedStream) -> list[ServerEvent]:
    """Return the events of a stream up to its end, and those of another one from its first block. Empty if an event
    with contents has a number, or a digit in its name, because this may be the index of a block.
    """
    end, begin = _position(one, ReplyEnd), _position(other, BlockStart)
    contents = [*one.events[_position(one, BlockStart) : end], *other.events[begin : _position(other, ReplyEnd)]]
    leaves = (leaf.value for event in contents for leaf in walk(as_json(event.data)))
    has_index = any(isinstance(leaf, int | float) for leaf in leaves) or re.search(
        r"\d", "".join(event.event for event in contents)
    )
    return [] if has_index else [*one.events[:end], *other.events[begin:]]


def _position(stream: RecordedStream, kind: type[BlockStart | ReplyEnd]) -> int:
    """Return the position of the first event that the decoder turns into an event of this kind."""
    steps = stream.decoded_events.steps
    return next((at for at, step in enumerate(steps) if any(isinstance(event, kind) for event in step)), len(steps))


def _decoder_events(stream: RecordedStream, events: list[ServerEvent]) -> list[StreamEvent] | None:
    """Return the events of the dialect's decoder itself, without core's checks; None if it refuses the stream."""
    decoder = stream.dialect.decoder(stream.scope)
    try:
        return [decoded for event in events for decoded in decoder.feed(event)]
    except SabirError:
        return None


def _ends_of_blocks(stream: RecordedStream) -> Iterator[int]:
    """Yield the positions of the events that the decoder turns into the end of a block, and into no other event."""
    for at, step in enumerate(stream.decoded_events.steps[: len(stream.events)]):
        if step and all(isinstance(event, BlockEnd) for event in step):
            yield at


def _content(reply: Reply | None) -> tuple[str, str, int] | None:
    return (reply.text, reply.reasoning, len(reply.option_calls)) if reply else None
