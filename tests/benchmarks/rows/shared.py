"""Many callers over one history, whose last messages differ, by one adapter."""

from tests.benchmarks.goals import takes_at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, across, main
from tests.benchmarks.work import AGENTS, CALLERS, PLAIN

LARGE = (1000,)

ROW = Row(
    name="shared",
    title="Callers that share a history",
    what=f"One adapter rendered a history of N messages; {CALLERS} callers each add a message of their own to it, and "
    "render it once, one after the other. The hand loop renders all of it each time.",
    task="shared",
    unit="µs a request",
    figure=lambda record: record["cpu"] / 1e3,
    cases=(*across((100, 1000), talk=AGENTS), *across((100, 1000), talk=PLAIN)),
    quick=(*across(LARGE, talk=AGENTS), *across(LARGE, talk=PLAIN)),
    contenders=("limit", "sabir"),
    reference="limit",
    pace=Pace(rounds=7, most_seconds=2.0),
    goals=(takes_at_most(400, "≤ 400 µs, N=1000", sizes=LARGE),),
)

if __name__ == "__main__":
    main(ROW)
