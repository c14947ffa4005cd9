"""Writes the table of docs/reference/limits.md: `python -m tests.servers.limits`.

    each attack, at 16 times its size ─▶ a child process with default bounds ─▶ highest memory, seconds, how it ended
    each slow server ─▶ the same with timeout=1                                 the worst of all wires, two of them sync

The figures are measured, so the page is not compared with a new run; test_limits.py compares the names of its rows.
"""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from sabir_testing.loopback import head

from tests.servers.attacks import ATTACKS, BOUND, CHAT, GEMINI, MESSAGES, MIB, ORDINARY, RESPONSES, WIRES, Attack
from tests.servers.measuring import METHODS, Measured, Method, Outcome
from tests.servers.slow import BODIES, HEADS, STREAMS, Pieces, Slow

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "limits.md"
DEFAULT = 64 * MIB
TIMEOUT = 1
RECORDINGS = {
    CHAT: "openai.chat.jsonl.gz",
    RESPONSES: "openai.responses.jsonl.gz",
    MESSAGES: "anthropic.messages.jsonl.gz",
    GEMINI: "gemini.generateContent.jsonl.gz",
}
LARGEST = "the largest recorded reply"
SLOW = {
    **{f"head: {name}": ("complete", pieces) for name, pieces in HEADS.items()},
    **{f"body: {name}": ("complete", pieces) for name, pieces in BODIES.items()},
    **{f"stream: {name}": ("stream", pieces) for name, pieces in STREAMS.items()},
}


def packed(plain: bytes, *, streamed: bool, status: int = 200) -> bytes:
    packing = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    start = head(status, "text/event-stream" if streamed else "application/json", content_encoding="gzip")
    return start + packing.compress(plain) + packing.flush()


def recorded(wire: str) -> bytes:
    """The largest whole reply that the vendor's service returned, where recordings are at hand; else nothing."""
    folder = os.environ.get("SABIR_VENDOR_CASSETTES")
    if not folder:
        return b""
    with gzip.open(Path(folder) / RECORDINGS[wire]) as lines:
        exchanges = (json.loads(line) for line in lines)
        return max((json.dumps(each["response"]).encode() for each in exchanges if each["status"] == 200), key=len)


class Row:
    """The worst outcomes of one kind of response."""

    def __init__(self, name: str) -> None:
        self.name, self.sent, self.plain, self.peak, self.seconds = name, 0, 0, 0, 0.0
        self.errors: set[str] = set()

    def add(self, outcome: Outcome, sent: int, plain: int) -> None:
        self.sent, self.plain = max(self.sent, sent), max(self.plain, plain)
        self.peak, self.seconds = max(self.peak, outcome.peak), max(self.seconds, outcome.seconds)
        self.errors.add(outcome.error or "a reply")

    def __str__(self) -> str:
        ended = ", ".join(sorted(self.errors))
        size = f"{self.sent / 1000:,.0f} kB | {self.plain / MIB:.1f} MiB" if self.plain else "endless | endless"
        return f"| {self.name} | {size} | {self.peak / MIB:.0f} MiB | {self.seconds:.1f} | {ended} |"


class Table:
    """Measures rows with the default bounds."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured

    def attack(self, name: str, attack: Attack) -> Row:
        row, status = Row(name), 400 if "error" in name else 200
        for wire in WIRES:
            size = attack.size * (DEFAULT // BOUND) if name in ATTACKS else attack.size
            if plain := attack.build(wire, size):
                self._try(row, wire, plain, streamed=attack.streamed, status=status)
        return row

    def largest(self) -> Row:
        row = Row(LARGEST)
        for wire in WIRES:
            if plain := recorded(wire):
                self._try(row, wire, plain, streamed=False)
        return row

    def slow(self, name: str, method: str, pieces: Pieces) -> Row:
        row = Row(name)
        for wire, way in zip(WIRES, (method, f"{method}_sync") * 2, strict=True):
            with Slow(pieces) as server:
                outcome = self._measured.call(server.url, wire, way, {}, TIMEOUT, idle=TIMEOUT)  # type: ignore[arg-type]
            row.add(outcome._replace(peak=outcome.peak - self._measured.usual_peak(wire, way)), 0, 0)
        return row

    def _try(self, row: Row, wire: str, plain: bytes, *, streamed: bool, status: int = 200) -> None:
        response = packed(plain, streamed=streamed, status=status)
        is_sync = WIRES.index(wire) % 2
        method: Method = METHODS[2 * streamed + is_sync]
        row.add(self._measured.measure(response, wire, method, {}), len(response), len(plain))

    def rows(self) -> Iterator[Row]:
        for name, attack in (ATTACKS | ORDINARY).items():
            yield self.attack(name, attack)
        yield self.largest()
        for name, (method, pieces) in SLOW.items():
            yield self.slow(name, method, pieces)


def main() -> None:
    lines = []
    with Measured() as measured:
        for row in Table(measured).rows():
            print(row, flush=True)
            lines.append(f"{row}\n")
    page = PAGE.read_text("utf-8")
    table = re.compile(r"(?<=--: \| --: \| --: \| --: \| --- \|\n)(\|.*\n)*")
    PAGE.write_text(table.sub(lambda _: "".join(lines), page, count=1), "utf-8")


if __name__ == "__main__":
    main()
