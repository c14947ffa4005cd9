"""Threads: what more workers bring, where the work is waiting."""

from tests.benchmarks.goals import grows_at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import POSTGRES, Row, all_together, main
from tests.benchmarks.work import Given

ROW = Row(
    name="actor_workers",
    title="Workers of threads",
    what="96 threads of two phases, whose model replies after 0.5 s, on N workers, each of which runs 8 threads at "
    "once. They share one Postgres, and the cores with it; a further process starts the threads. All are interleaved.",
    task="actor_workers",
    unit="threads a second",
    figure=lambda record: 1e9 / record["each"],
    cases=(Given("Postgres", 1, POSTGRES), Given("Postgres", 4, POSTGRES)),
    contenders=("sabir_workers",),
    reference="sabir_workers",
    column="workers",
    measure=all_together,
    pace=Pace(rounds=3, most_seconds=60.0),
    goals=(grows_at_most(1 / 3, (1, 4), "four workers ≥ 3 × one: a thread takes ≤ 1/3 of the time", field="each"),),
)

if __name__ == "__main__":
    main(ROW)
