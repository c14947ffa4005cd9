"""Policies: what a runner in memory adds to a call of one."""

from tests.benchmarks.goals import adds_at_most
from tests.benchmarks.rows.row import Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="policy",
    title="Call of a policy in memory",
    what="A bound policy that chooses a ready text, called by the untraced runner in memory; the limit awaits the same "
    "coroutine function.",
    task="policy",
    unit="µs a call",
    figure=lambda record: record["cpu"] / 1e3,
    cases=(Given("no options", 10), Given("three options", 10)),
    contenders=("limit", "sabir_runtime"),
    reference="limit",
    goals=(adds_at_most(2, "limit", "adds ≤ 2 µs to a plain await of the same coroutine function"),),
)

if __name__ == "__main__":
    main(ROW)
