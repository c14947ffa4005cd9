"""Framings that read recorded streams rightly, and others wrongly.

BROKEN     case → a fault that this case alone stops      FAULTS     (case, the fault) → a further fault of its kind
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from sabir.contract.dialect import ServerEvent, ServerEventReader
from sabir.errors import ResponseInvalid

from tests.testing.harness import Breakage

Lines = Callable[[str], list[str]]


def framed(framing: Callable[[], object]) -> Breakage:
    """Acme with another framing."""
    return Breakage(dialect=lambda base: replace(base, framings={"text/event-stream": framing}))


class Blocks(ServerEventReader):
    """Reads the text of complete events, whose lines end where `lines` says."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self.lines, self.waiting = lines, b""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        *blocks, self.waiting = (self.waiting + chunk).split(b"\n\n")
        self.kept = len(self.waiting)
        return [event for block in blocks for event in self.events(block)]

    def events(self, block: bytes) -> list[ServerEvent]:
        """One event for each line of data, as a reader of lines has them."""
        text = block.decode("utf-8", "replace")
        self.was_invalid = self.was_invalid or "\ufffd" in text
        lines = [line.removeprefix("data: ") for line in self.lines(text) if line.startswith("data: ")]
        return [ServerEvent(line) for line in lines]

    def close(self) -> list[ServerEvent]:
        return []


def at_line_feeds(text: str) -> list[str]:
    """As the protocol has it."""
    return text.split("\n")


def ends_at(letter: str) -> Lines:
    """Lines end at LF and at one more character."""
    return lambda text: text.replace(letter, "\n").split("\n")


class Careless(ServerEventReader):
    """Invalid bytes are left out."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        return [event._replace(data=event.data.replace("\ufffd", "")) for event in super().feed(chunk)]


class Strict(ServerEventReader):
    """Invalid bytes end the stream."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        events = super().feed(chunk)
        if self.was_invalid:
            raise ResponseInvalid("a stream contains invalid bytes")
        return events


class Skipping(ServerEventReader):
    """An event with an invalid byte is left out."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        return [event for event in super().feed(chunk) if "\ufffd" not in event.data]


class Silent(ServerEventReader):
    """Invalid bytes are not reported."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        events = super().feed(chunk)
        self.was_invalid = False
        return events


class Unbounded(ServerEventReader):
    """It does not count what it stores."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        events = super().feed(chunk)
        self.kept = 0
        return events


class CountsLines(ServerEventReader):
    """It counts stored pieces, not bytes."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        events = super().feed(chunk)
        self.kept = int(self.kept > 0)
        return events


ENDS = "test_a_framing_ends_events_only_where_the_service_does"
BYTES = "test_a_broken_byte_costs_one_character"
COUNTED = "test_an_incomplete_event_is_counted"

BROKEN: Mapping[str, Breakage] = {
    ENDS: framed(partial(Blocks, str.splitlines)),
    BYTES: framed(Careless),
    COUNTED: framed(Unbounded),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (ENDS, "U+2028 ends a line"): framed(partial(Blocks, ends_at("\u2028"))),
    (ENDS, "U+2029 ends a line"): framed(partial(Blocks, ends_at("\u2029"))),
    (ENDS, "U+0085 ends a line"): framed(partial(Blocks, ends_at("\x85"))),
    (BYTES, "the event is lost"): framed(Skipping),
    (BYTES, "the stream is refused"): framed(Strict),
    (BYTES, "it is not reported"): framed(Silent),
    (COUNTED, "pieces are counted"): framed(CountsLines),
}
"""(Case, the fault) → an adapter that the case stops."""
