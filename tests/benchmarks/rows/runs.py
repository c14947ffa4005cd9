"""What outlives a call: managers, policies, checkpoints, durable and remote calls."""

from tests.benchmarks.goals import adds_at_most, at_most, faster, grows_at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import NATS, Row, all_together
from tests.benchmarks.work import Given

ENDS = (1, 10000)
THAN_A_DUMP = {"SQLite": ("dump",)}

ROWS = (
    Row(
        name="append",
        title="Append to a manager with roles",
        what="One instruction is added to a manager of N messages, which then gives all its messages for an adapter; "
        "core's own is one message appended to a list, and a copy of the list. All sizes are interleaved.",
        unit="µs an append",
        cases=(Given("in memory", 10), Given("in memory", 100), Given("in memory", 1000)),
        contenders=("bare_append", "sabir_roles"),
        measure=all_together,
        goals=(
            grows_at_most(1.5, (10, 1000), "constant: at 1,000 messages ≤ 1.5 × at 10"),
            adds_at_most(250, "bare_append", "adds ≤ 250 µs to core's own append"),
        ),
    ),
    Row(
        name="policy",
        title="Call of a policy in memory",
        what="A bound policy that chooses a ready text, called by the untraced runner in memory; the limit awaits the"
        " same coroutine function.",
        unit="µs a call",
        cases=(Given("no options", 10), Given("three options", 10)),
        contenders=("limit", "sabir_runtime"),
        goals=(adds_at_most(2, "limit", "adds ≤ 2 µs to a plain await of the same coroutine function"),),
    ),
    Row(
        name="checkpoint",
        title="Checkpoint of a message",
        what="One record of one message is appended to a session that holds N, with a journal in SQLite; the limit is"
        " one INSERT of the same text. Beside it, N=1,000 written as one JSON text each time. All sizes are "
        "interleaved.",
        unit="µs CPU a record",
        cases=(Given("SQLite", 1), Given("SQLite", 1000), Given("SQLite", 10000)),
        contenders=("bare_row", "sabir_runtime", "dump"),
        curve="sizes",
        measure=all_together,
        pace=Pace(rounds=15, most_seconds=20.0),
        also=(
            ("µs a record, with waiting", lambda record: record["wall"] / 1e3),
            ("bytes kept for a record", lambda record: record["bytes"]),
            ("bytes written for a record", lambda record: record["written"]),
        ),
        goals=(
            at_most(1.5, "bare_row", "≤ 1.5 × one bare row"),
            grows_at_most(1.2, ENDS, "constant: at 10,000 records ≤ 1.2 × at 1"),
            grows_at_most(1.05, ENDS, "constant: bytes kept, at 10,000 ≤ 1.05 × at 1", field="bytes"),
            faster(100, THAN_A_DUMP, "≥ 100 × less time than a dump, N=1,000", sizes=(1000,)),
            faster(
                100, THAN_A_DUMP, "≥ 100 × fewer bytes written than by a dump, N=1,000", sizes=(1000,), clock="written"
            ),
        ),
    ),
    Row(
        name="durable_step",
        title="Call in a durable run",
        what="A bound call in a run on SQLite, whose policy chooses a ready text; the limit is the engine's own step,"
        " which gives the same text.",
        unit="ms a call, with waiting",
        figure=lambda record: record["wall"] / 1e6,
        cases=(Given("SQLite", 10),),
        contenders=("bare_step", "sabir_durable"),
        pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
        also=(("ms CPU a call", lambda record: record["cpu"] / 1e6),),
        goals=(at_most(1.2, "bare_step", "≤ 1.2 × the engine's own step", clock="wall"),),
    ),
    Row(
        name="remote",
        title="Call of a remote policy",
        what="A bound call with N observations, the last one new each time, whose policy runs at the one worker, one "
        "by one or 32 at once; the limit sends and answers the same bytes by NATS's own client, and neither "
        "reads nor writes them.",
        unit="ms a call, with waiting",
        figure=lambda record: record["wall"] / 1e6,
        cases=tuple(Given("one worker", size, NATS, at_once) for size in (1, 10) for at_once in (1, 32)),
        quick=(Given("one worker", 10, NATS), Given("one worker", 10, NATS, 32)),
        contenders=("bare_request", "sabir_distributed"),
        concurrencies=True,
        pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
        also=(("ms CPU of the caller a call", lambda record: record["cpu"] / 1e6),),
        goals=tuple(
            at_most(
                1.5,
                "bare_request",
                f"≤ 1.5 × a bare NATS request, N={size}",
                sizes=(size,),
                clock="wall",
                concurrency=1,
            )
            for size in (1, 10)
        ),
    ),
    Row(
        name="throughput",
        title="Ten thousand remote calls",
        what="Bound calls with ten messages each, 32 at once, whose policy runs at four workers, all on the same "
        "cores as the caller; the limit sends and answers the same bytes by NATS's own client.",
        unit="requests a second",
        figure=lambda record: 1e9 / record["wall"],
        cases=(Given("four workers", 10000, NATS, 32),),
        quick=(Given("four workers", 1000, NATS, 32),),
        contenders=("bare_request", "sabir_distributed"),
        column="calls",
        pace=Pace(rounds=5, most_seconds=60.0),
        also=(
            ("ms until the reply, median", lambda record: record["median"] / 1e6),
            ("ms until the reply, 99th percentile", lambda record: record["p99"] / 1e6),
        ),
    ),
)
