"""Threads: what a process holds of one that waits."""

from tests.benchmarks.rows.row import Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="actor_memory",
    title="Memory of an idle thread",
    what="Bytes that N threads add to a process which has a thousand already, by tracemalloc: created and not started, "
    "without a store; or paused, with a store in SQLite, where what is left is strings that pydantic-core keeps for "
    "reading JSON, so many of a process at most.",
    task="actor_memory",
    unit="bytes a thread",
    figure=lambda record: record["held"] / record["size"],
    cases=(Given("created, in memory", 1000), Given("paused, SQLite", 1000)),
    quick=(Given("created, in memory", 100), Given("paused, SQLite", 100)),
    contenders=("sabir_actors",),
    reference="sabir_actors",
    column="threads",
    goals=(),
)

if __name__ == "__main__":
    main(ROW)
