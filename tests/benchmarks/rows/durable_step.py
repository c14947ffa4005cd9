"""Durable calls: what a bound call costs within a durable run."""

from tests.benchmarks.goals import at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="durable_step",
    title="Call in a durable run",
    what="A bound call in a run on SQLite, whose policy chooses a ready text; the limit is the engine's own step, "
    "which gives the same text.",
    task="durable_step",
    unit="ms a call, with waiting",
    figure=lambda record: record["wall"] / 1e6,
    cases=(Given("SQLite", 10),),
    contenders=("bare_step", "sabir_durable"),
    reference="bare_step",
    pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
    also=(("ms CPU a call", lambda record: record["cpu"] / 1e6),),
    goals=(at_most(1.2, "bare_step", "≤ 1.2 × the engine's own step", clock="wall"),),
)

if __name__ == "__main__":
    main(ROW)
