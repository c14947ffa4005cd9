"""Remote calls: what a bound call costs whose policy runs in another process."""

from tests.benchmarks.goals import at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import NATS, Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="remote",
    title="Call of a remote policy",
    what="A bound call with N observations, the last one new each time, whose policy runs at the one worker, one by "
    "one or 32 at once; the limit sends and answers the same bytes by NATS's own client, and neither reads nor writes "
    "them.",
    task="remote",
    unit="ms a call, with waiting",
    figure=lambda record: record["wall"] / 1e6,
    cases=tuple(Given("one worker", size, NATS, at_once) for size in (1, 10) for at_once in (1, 32)),
    quick=(Given("one worker", 10, NATS), Given("one worker", 10, NATS, 32)),
    contenders=("bare_request", "sabir_distributed"),
    reference="bare_request",
    concurrencies=True,
    pace=Pace(round_seconds=0.2, rounds=15, most_seconds=20.0),
    also=(("ms CPU of the caller a call", lambda record: record["cpu"] / 1e6),),
    goals=tuple(
        at_most(
            1.5, "bare_request", f"≤ 1.5 × a bare NATS request, N={size}", sizes=(size,), clock="wall", concurrency=1
        )
        for size in (1, 10)
    ),
)

if __name__ == "__main__":
    main(ROW)
