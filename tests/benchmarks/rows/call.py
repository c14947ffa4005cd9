"""Whole calls through an in-process transport: rendering, sending, decoding, without a network."""

from tests.benchmarks.goals import ON_ANTHROPIC_SDK, ON_SLOW_SDKS, at_most, faster
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, across, main

ROW = Row(
    name="call",
    title="Whole call",
    what="A history that was never rendered goes out by the HTTP client, whose transport answers in the process.",
    task="call",
    unit="ms CPU a call",
    figure=lambda record: record["cpu"] / 1e6,
    cases=(*across((10, 100, 1000)), *across((5000,), ("openai.chat", "anthropic.messages"))),
    quick=across((10, 1000)),
    curve="sizes",
    pace=Pace(most_seconds=2.0),
    goals=(
        at_most(2, "limit", "≤ 2 × the limit, N=1000", sizes=(1000,)),
        faster(50, ON_SLOW_SDKS, "≥ 50 × faster than all on the openai or google-genai SDK, N=1000", sizes=(1000,)),
        faster(4, ON_ANTHROPIC_SDK, "≥ 4 × faster than all on the anthropic SDK, N=1000", sizes=(1000,)),
    ),
)

if __name__ == "__main__":
    main(ROW)
