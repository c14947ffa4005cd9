"""What sending takes, beside raw httpx2."""

from tests.benchmarks.goals import adds_at_most, gate
from tests.benchmarks.rows.row import STUB, Row, across, main
from tests.benchmarks.work import PLAIN

ROW = Row(
    name="send",
    title="Send what is rendered",
    what="A rendering of N messages goes to a server on this machine by the connection that the plugin makes, and the "
    "answer's bytes are read, as by httpx2 with the same bytes; then by the adapter, which decodes the answer too.",
    task="send",
    unit="µs CPU from bytes to bytes",
    figure=lambda record: record["sending"] / 1e3,
    cases=across((10,), url=STUB, talk=PLAIN),
    contenders=("sabir", "raw"),
    reference="raw",
    also=(("µs CPU from rendering to reply", lambda record: record["replying"] / 1e3),),
    goals=(gate(adds_at_most(0, "raw", "not more than raw httpx2", clock="sending")),),
)

if __name__ == "__main__":
    main(ROW)
