"""Streaming: a reply of two thousand events from a server on this machine, folded to the whole reply."""

from tests.benchmarks.goals import at_most, faster
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import STUB, Row, across, main

ROW = Row(
    name="stream",
    title="Stream",
    what="Two thousand server-sent events, each a chunk of its own, become one reply; CPU of the client's process.",
    task="stream",
    unit="µs CPU an event",
    figure=lambda record: record["cpu"] / 1e3,
    cases=across((2000,), url=STUB),
    quick=across((500,), url=STUB),
    column="events",
    curve="bars",
    pace=Pace(rounds=7, most_seconds=2.0),
    goals=(
        at_most(1.5, "limit", "≤ 1.5 × the limit"),
        faster(
            5,
            {"openai.chat": ("openai_sdk",), "openai.responses": ("openai_sdk",)},
            "≥ 5 × faster than the openai SDK",
        ),
        faster(1.3, {"anthropic.messages": ("anthropic_sdk",)}, "≥ 1.3 × faster than the anthropic SDK"),
    ),
)

if __name__ == "__main__":
    main(ROW)
