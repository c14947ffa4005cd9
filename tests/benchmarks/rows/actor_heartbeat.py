"""Threads: whether actors answer while a thousand threads are in progress."""

from tests.benchmarks.goals import field_at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="actor_heartbeat",
    title="A thousand threads at once",
    what="N threads of three phases in progress together in one process, in memory, on a model that replies after 2 to "
    "6 seconds; the actor of all threads is sent a heartbeat 10 ms after it answered the last one, until all are over.",
    task="actor_heartbeat",
    unit="µs a heartbeat, median",
    figure=lambda record: record["median"] / 1e3,
    cases=(Given("in memory", 1000),),
    quick=(Given("in memory", 100),),
    contenders=("sabir_actors",),
    reference="sabir_actors",
    column="threads",
    pace=Pace(rounds=3, most_seconds=60.0),
    also=(
        ("µs a heartbeat, 99th percentile", lambda record: record["p99"] / 1e3),
        ("µs a heartbeat, before the threads start", lambda record: record["alone"] / 1e3),
        ("ms CPU a thread", lambda record: record["cpu"] / 1e6),
    ),
    goals=(field_at_most(10, "heartbeat meanwhile ≤ 10 × alone", lambda record: record["median"] / record["alone"]),),
)

if __name__ == "__main__":
    main(ROW)
