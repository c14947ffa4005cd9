"""Actors: what a message and its answer cost within a process."""

from tests.benchmarks.goals import at_most
from tests.benchmarks.rows.row import Row, main
from tests.benchmarks.work import Given

ROW = Row(
    name="actor_message",
    title="Message to an actor",
    what="A request that is made, validated, handled by a simple actor and answered, through its system; the limit is "
    "two bare asyncio queues, and the same request and response, each validated once when it is made.",
    task="actor_message",
    unit="µs a message",
    figure=lambda record: record["cpu"] / 1e3,
    cases=(Given("in memory", 0),),
    contenders=("bare_queues", "sabir_actors"),
    reference="bare_queues",
    goals=(at_most(2, "bare_queues", "≤ 2 × two bare asyncio queues and one validation each way"),),
)

if __name__ == "__main__":
    main(ROW)
