"""Threads: what a phase costs that is recorded."""

from tests.benchmarks.goals import at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="actor_phase",
    title="Phase of a thread",
    what="A thread of six phases from its start to its result, whose model has its reply ready, with a journal in "
    "SQLite and in memory alone; the limit appends to a journal of its own the very rows that such a thread wrote.",
    task="actor_phase",
    unit="µs CPU a phase",
    figure=lambda record: record["cpu"] / 1e3,
    cases=(Given("SQLite", 6), Given("in memory", 6)),
    contenders=("bare_records", "sabir_actors"),
    reference="bare_records",
    column="phases",
    pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
    also=(("µs a phase, with waiting", lambda record: record["wall"] / 1e3),),
    goals=(at_most(1.5, "bare_records", "≤ 1.5 × the journal's own rows"),),
)

if __name__ == "__main__":
    main(ROW)
