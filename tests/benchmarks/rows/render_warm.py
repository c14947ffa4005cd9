"""Rendering a history of which all but the last turn was rendered before."""

from tests.benchmarks.goals import gate, takes_at_most
from tests.benchmarks.rows.row import Row, across, main
from tests.benchmarks.work import AGENTS, PLAIN

LARGE = (1000,)

ROW = Row(
    name="render_warm",
    title="Append two messages",
    what="One turn of two messages is appended to N that were rendered before; the hand loop renders them all.",
    task="render_warm",
    unit="µs a request",
    figure=lambda record: record["cpu"] / 1e3,
    cases=(*across((10, 100, 1000, 5000), talk=AGENTS), *across((10, 100, 1000, 5000), talk=PLAIN)),
    quick=(*across(LARGE, talk=AGENTS), *across(LARGE, talk=PLAIN)),
    contenders=("limit", "kept", "sabir"),
    reference="limit",
    curve="sizes",
    goals=(
        takes_at_most(85, "≤ 85 µs, N=1000", sizes=LARGE),
        gate(takes_at_most(100, "≤ 100 µs, N=1000", sizes=LARGE)),
    ),
)

if __name__ == "__main__":
    main(ROW)
