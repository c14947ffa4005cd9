"""Memory: what three adapters hold of one conversation after rendering it, beside the messages themselves."""

from tests.benchmarks.goals import field_at_most
from tests.benchmarks.rows.row import Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="memory",
    title="Memory",
    what="5,000 messages rendered for three dialects: bytes that adapters and renderings hold, by tracemalloc, "
    "over the bytes of the three requests.",
    task="memory",
    unit="× the requests' bytes",
    figure=lambda record: record["held"] / record["json"],
    cases=(Given("three dialects", 5000),),
    quick=(Given("three dialects", 500),),
    contenders=("sabir",),
    reference="sabir",
    goals=(field_at_most(3, "≤ 3 × the bytes of their JSON", lambda record: record["held"] / record["json"]),),
)

if __name__ == "__main__":
    main(ROW)
