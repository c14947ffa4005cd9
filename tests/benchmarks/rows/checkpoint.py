"""Checkpoints: what recording one more message costs, however many there are."""

from tests.benchmarks.goals import at_most, faster, grows_at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, all_together, main
from tests.benchmarks.work import Given

ENDS = (1, 10000)
THAN_A_DUMP = {"SQLite": ("dump",)}

ROW = Row(
    name="checkpoint",
    title="Checkpoint of a message",
    what="One record of one message is appended to a session that holds N, with a journal in SQLite; the limit is one "
    "INSERT of the same text. Beside it, N=1,000 written as one JSON text each time. All sizes are interleaved.",
    task="checkpoint",
    unit="µs CPU a record",
    figure=lambda record: record["cpu"] / 1e3,
    cases=(Given("SQLite", 1), Given("SQLite", 1000), Given("SQLite", 10000)),
    contenders=("bare_row", "sabir_runtime", "dump"),
    reference="bare_row",
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
        faster(100, THAN_A_DUMP, "≥ 100 × fewer bytes written than by a dump, N=1,000", sizes=(1000,), clock="written"),
    ),
)

if __name__ == "__main__":
    main(ROW)
