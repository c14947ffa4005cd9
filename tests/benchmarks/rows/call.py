"""Whole calls through an in-process transport: rendering, sending, decoding, without a network."""

from tests.benchmarks.goals import ANTHROPIC, GOOGLE, OPENAI, faster, gate
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, across, main
from tests.benchmarks.work import AGENTS, PLAIN

SLOW = OPENAI | GOOGLE

ROW = Row(
    name="call",
    title="Whole call",
    what="A history that was never rendered goes out by the HTTP client, whose transport answers in the process.",
    task="call",
    unit="ms CPU a call",
    figure=lambda record: record["cpu"] / 1e6,
    cases=(*across((10, 100, 1000), talk=AGENTS), *across((10, 100, 1000), talk=PLAIN)),
    quick=(*across((10, 1000), talk=AGENTS), *across((10, 1000), talk=PLAIN)),
    curve="sizes",
    pace=Pace(most_seconds=2.0),
    goals=(
        gate(faster(4, SLOW, "≥ 4 × faster than the typed calls of OpenAI and Google, N=10", sizes=(10,))),
        gate(faster(18, SLOW, "≥ 18 × faster than those, N=1000", sizes=(1000,))),
        faster(1.1, ANTHROPIC, "≥ 1.1 × faster than Anthropic's typed call, N=10 and 100", sizes=(10, 100)),
        faster(1, ANTHROPIC, "not slower than Anthropic's typed call, N=1000", sizes=(1000,)),
    ),
)

if __name__ == "__main__":
    main(ROW)
