"""Actors and threads."""

from tests.benchmarks.goals import at_most, field_at_most, grows_at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import POSTGRES, Row, all_together
from tests.benchmarks.work import Given

ROWS = (
    Row(
        name="actor_message",
        title="Message to an actor",
        what="A request that is made, validated, handled by a simple actor and answered, through its system; the "
        "limit is two bare asyncio queues, and the same request and response, each validated once when it is "
        "made.",
        unit="µs a message",
        cases=(Given("in memory", 0),),
        contenders=("bare_queues", "sabir_actors"),
        goals=(at_most(2, "bare_queues", "≤ 2 × two bare asyncio queues and one validation each way"),),
    ),
    Row(
        name="actor_heartbeat",
        title="A thousand threads at once",
        what="N threads of three phases in progress together in one process, in memory, on a model that replies after"
        " 2 to 6 seconds; the actor of all threads is sent a heartbeat 10 ms after it answered the last one, "
        "until all are over.",
        unit="µs a heartbeat, median",
        figure=lambda record: record["median"] / 1e3,
        cases=(Given("in memory", 1000),),
        quick=(Given("in memory", 100),),
        contenders=("sabir_actors",),
        column="threads",
        pace=Pace(rounds=3, most_seconds=60.0),
        also=(
            ("µs a heartbeat, 99th percentile", lambda record: record["p99"] / 1e3),
            ("µs a heartbeat, before the threads start", lambda record: record["alone"] / 1e3),
            ("ms CPU a thread", lambda record: record["cpu"] / 1e6),
        ),
        goals=(
            field_at_most(10, "heartbeat meanwhile ≤ 10 × alone", lambda record: record["median"] / record["alone"]),
        ),
    ),
    Row(
        name="actor_phase",
        title="Phase of a thread",
        what="A thread of six phases from its start to its result, whose model has its reply ready, with a journal in"
        " SQLite and in memory alone; the limit appends to a journal of its own the very rows that such a thread"
        " wrote.",
        unit="µs CPU a phase",
        cases=(Given("SQLite", 6), Given("in memory", 6)),
        contenders=("bare_records", "sabir_actors"),
        column="phases",
        pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
        also=(("µs a phase, with waiting", lambda record: record["wall"] / 1e3),),
        goals=(at_most(1.5, "bare_records", "≤ 1.5 × the journal's own rows"),),
    ),
    Row(
        name="actor_workers",
        title="Workers of threads",
        what="96 threads of two phases, whose model replies after 0.5 s, on N workers, each of which runs 8 threads "
        "at once. They share one Postgres, and the cores with it; a further process starts the threads. All are "
        "interleaved.",
        unit="threads a second",
        figure=lambda record: 1e9 / record["each"],
        cases=(Given("Postgres", 1, POSTGRES), Given("Postgres", 4, POSTGRES)),
        contenders=("sabir_workers",),
        column="workers",
        measure=all_together,
        pace=Pace(rounds=3, most_seconds=60.0),
        goals=(grows_at_most(1 / 3, (1, 4), "four workers ≥ 3 × one: a thread takes ≤ 1/3 of the time", field="each"),),
    ),
    Row(
        name="actor_memory",
        title="Memory of an idle thread",
        what="Bytes that N threads add to a process which has a thousand already, by tracemalloc: created and not "
        "started, without a store; or paused, with a store in SQLite, where what is left is strings that "
        "pydantic-core keeps for reading JSON, so many of a process at most.",
        unit="bytes a thread",
        figure=lambda record: record["held"] / record["size"],
        cases=(Given("created, in memory", 1000), Given("paused, SQLite", 1000)),
        quick=(Given("created, in memory", 100), Given("paused, SQLite", 100)),
        contenders=("sabir_actors",),
        column="threads",
    ),
)
