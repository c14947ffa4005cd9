"""Rendering afresh: messages that were never rendered, to the wire's request."""

from tests.benchmarks.goals import at_most, faster
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, across, main
from tests.benchmarks.work import WIRES

ROW = Row(
    name="render",
    title="Render afresh",
    what="A history that was never rendered becomes the wire's messages; peers' mapping alone, without a request.",
    task="render",
    unit="µs a message",
    figure=lambda record: record["cpu"] / record["size"] / 1e3,
    cases=across((10, 100, 1000, 5000)),
    quick=across((10, 1000)),
    curve="sizes",
    pace=Pace(rounds=7, most_seconds=1.5),
    goals=(
        at_most(5, "limit", "≤ 5 × the hand loop, N=1000, every dialect", sizes=(1000,)),
        faster(
            1, dict.fromkeys(WIRES, ("mirascope",)), "not slower than mirascope's mapping alone, N=1000", sizes=(1000,)
        ),
    ),
)

if __name__ == "__main__":
    main(ROW)
