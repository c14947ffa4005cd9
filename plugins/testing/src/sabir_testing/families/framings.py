"""Framings: how the bytes of a stream are divided into events, whatever characters and bytes are in them.

U+2028, U+2029, U+0085 in a text     are characters, not the end of a line
a byte that is not UTF-8             becomes U+FFFD, and its event is not lost
an event that is not complete yet    counts in `kept`, so that core can refuse endless events
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, ClassVar

from sabir_testing.families.streams import SIZES, streams
from sabir_testing.kit.decoded_recordings import RecordedStream
from sabir_testing.kit.failures import expect
from sabir_testing.kit.service import AnswerCases, Service
from sabir_testing.kit.suite import since_api
from sabir_testing.reading import documents, group_fragments, is_framed, replace, set_text, walk

SEPARATORS = "kit-a\u2028kit-b\u2029kit-c\x85kit-d"
"""A text with characters at which `str.splitlines` divides a text, and JSON and server-sent events do not."""
BROKEN, BROKEN_BYTES, MENDED = b"kit-broken", b"kit-\xff-broken", "kit-\ufffd-broken"
SHORTEST_FRAME = 40
"""The length of an event in bytes from which `kept` is checked."""


@since_api(2)
class FramingCases(AnswerCases):
    """The test cases of the family `streams` about framings. Texts are changed in streams that are not binary."""

    family: ClassVar[str] = "streams"

    def test_a_framing_ends_events_only_where_the_service_does(self, service: Service) -> None:
        """The characters U+2028, U+2029 and U+0085 in a text do not end an event, wherever chunks end. Divide bytes at
        `\\n`; `str.splitlines` divides at these characters, too.
        """
        for stream, body, text in _with_inserted(service, SEPARATORS):
            for size in SIZES:
                decoded = stream.decode_chunks(_chunks(body, size))
                actual = decoded.reply.text if decoded.reply else str(decoded.error)
                what = f"a text with U+2028, U+2029 and U+0085 in the stream of {stream.name!r}, in chunks of {size}"
                what = f"{what} bytes, is decoded to {actual!r}; expected {text!r}"
                expect(actual == text, what, details={"the stream": body})

    def test_a_broken_byte_costs_one_character(self, service: Service) -> None:
        """A byte that is not UTF-8 becomes U+FFFD, its event is decoded, and a loss reports it."""
        for stream, body, text in _with_inserted(service, BROKEN.decode()):
            broken, expected = body.replace(BROKEN, BROKEN_BYTES), text.replace(BROKEN.decode(), MENDED)
            for size in SIZES:
                decoded = stream.decode_chunks(_chunks(broken, size))
                actual = decoded.reply.text if decoded.reply else str(decoded.error)
                what = f"a text with an invalid byte in the stream of {stream.name!r}, in chunks of {size} bytes, is"
                what = f"{what} decoded to {actual!r}; expected {expected!r}"
                expect(actual == expected, what, details={"the stream": broken})
                losses = decoded.reply.losses if decoded.reply else ()
                what = (
                    f"an invalid byte in the stream of {stream.name!r} is not in the reply's losses; set `was_invalid`"
                )
                expect(losses, f"{what} of the framing", details={"the stream": broken})

    def test_an_incomplete_event_is_counted(self, service: Service) -> None:
        """`kept` of a framing is about the number of bytes that it stores for an event that is not complete. Without
        it, an endless event would fill the memory.
        """
        for stream in streams(service):
            frame = max(stream.frames, key=lambda frame: len(frame.data))
            if len(frame.data) < SHORTEST_FRAME:
                continue
            framing = stream.dialect.framing(stream.scope.content_type)
            framing.feed(frame.data[:-2])
            what = (
                f"after {len(frame.data) - 2} bytes of an event of the stream of {stream.name!r}, `kept` of the framing"
            )
            what = f"{what} is {framing.kept}; expected about the number of bytes that it stores"
            expect(framing.kept >= len(frame.data) // 2, what, details={"the incomplete event": frame.data[:-2]})


def _chunks(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def _with_inserted(service: Service, inserted: str) -> Iterator[tuple[RecordedStream, bytes, str]]:
    """Yield each stream with its body, in which the reply's text has a further text after its first piece, and the
    complete text then. Streams are left out if they are binary, or if their text cannot be located.
    """
    for stream in streams(service):
        text = stream.decoded.reply.text if stream.decoded.reply else ""
        written = stream.body.decode("utf-8", "replace")
        if not text or is_framed(written):
            continue
        parsed = documents(written)
        values: list[Any] = [deepcopy(document.value) for document in parsed]
        groups = group_fragments(values)
        group = next((each for each in groups if "".join(fragment.text for fragment in each) == text), None)
        if group is None:
            continue
        first = next(fragment for fragment in group if fragment.text)
        changed_text = first.text + inserted + text[len(first.text) :]
        for document in values:
            for leaf in list(walk(document)):
                if leaf.value == text and not leaf.is_name:  # repetitions of the complete text, and a single piece
                    set_text(document, leaf.path, changed_text)
        if first.text != text:
            set_text(values[first.document], first.path, first.text + inserted)
        yield stream, replace(written, list(zip(parsed, values, strict=True))).encode(), changed_text
