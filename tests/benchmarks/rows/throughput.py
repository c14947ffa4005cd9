"""Remote calls in numbers: four workers, ten thousand calls."""

from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import NATS, Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="throughput",
    title="Ten thousand remote calls",
    what="Bound calls with ten messages each, 32 at once, whose policy runs at four workers, all on the same cores as "
    "the caller; the limit sends and answers the same bytes by NATS's own client.",
    task="throughput",
    unit="requests a second",
    figure=lambda record: 1e9 / record["wall"],
    cases=(Given("four workers", 10000, NATS, 32),),
    quick=(Given("four workers", 1000, NATS, 32),),
    contenders=("bare_request", "sabir_distributed"),
    reference="bare_request",
    column="calls",
    pace=Pace(rounds=5, most_seconds=60.0),
    also=(
        ("ms until the reply, median", lambda record: record["median"] / 1e6),
        ("ms until the reply, 99th percentile", lambda record: record["p99"] / 1e6),
    ),
    goals=(),
)

if __name__ == "__main__":
    main(ROW)
