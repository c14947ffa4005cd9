"""Managers of messages with roles: what one message more costs, however many there are."""

from tests.benchmarks.goals import adds_at_most, grows_at_most
from tests.benchmarks.rows.row import Row, all_together, main
from tests.benchmarks.work import Given

ROW = Row(
    name="append",
    title="Append to a manager with roles",
    what="One instruction is added to a manager of N messages, which then gives all its messages for an adapter; "
    "core's own is one message appended to a list, and a copy of the list. All sizes are interleaved.",
    task="append",
    unit="µs an append",
    figure=lambda record: record["cpu"] / 1e3,
    cases=(Given("in memory", 10), Given("in memory", 100), Given("in memory", 1000)),
    contenders=("bare_append", "sabir_roles"),
    reference="bare_append",
    measure=all_together,
    goals=(
        grows_at_most(1.5, (10, 1000), "constant: at 1,000 messages ≤ 1.5 × at 10"),
        adds_at_most(250, "bare_append", "adds ≤ 250 µs to core's own append"),
    ),
)

if __name__ == "__main__":
    main(ROW)
