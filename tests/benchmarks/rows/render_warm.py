"""Rendering a history of which all but the last turn was rendered before."""

from tests.benchmarks.goals import at_most
from tests.benchmarks.rows.row import Row, across, main

ROW = Row(
    name="render_warm",
    title="Render warm",
    what="One turn of two messages is appended to N that were rendered before; the hand loop renders them all.",
    task="render_warm",
    unit="µs a request",
    figure=lambda record: record["cpu"] / 1e3,
    cases=across((10, 100, 1000, 5000)),
    quick=across((10, 1000)),
    contenders=("limit", "kept", "sabir"),
    curve="sizes",
    goals=(at_most(0.2, "limit", "≤ 0.2 × the hand loop, N=1000", sizes=(1000,)),),
)

if __name__ == "__main__":
    main(ROW)
