"""Histories at rest: reading ten thousand messages."""

from tests.benchmarks.goals import at_most
from tests.benchmarks.rows.row import Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="history",
    title="Read a history",
    what="10,000 stored messages become messages; the limit is one pydantic validation by models of the same shape.",
    task="history",
    unit="µs a message",
    figure=lambda record: record["cpu"] / record["size"] / 1e3,
    cases=(Given("at rest", 10000),),
    quick=(Given("at rest", 1000),),
    contenders=("limit", "sabir"),
    reference="limit",
    goals=(at_most(2, "limit", "≤ 2 × one pydantic validation of the same JSON"),),
)

if __name__ == "__main__":
    main(ROW)
