"""What a call takes beyond its rendering, beside raw httpx2."""

from tests.benchmarks.goals import adds_at_most, gate
from tests.benchmarks.rows.row import STUB, Row, across, main
from tests.benchmarks.work import PLAIN

ROW = Row(
    name="send",
    title="Call beyond its rendering",
    what="A rendering of N messages, which was made before, goes to a server on this machine by the client that the "
    "plugin makes: the whole of `send`, less what decoding takes of an answer that just came; with decoding; and the "
    "connection alone, from bytes to bytes. Beside it the same bytes, ready made, posted by httpx2, which gives bytes "
    "too.",
    task="send",
    unit="µs CPU beyond rendering and decoding",
    figure=lambda record: record["sending"] / 1e3,
    cases=across((10,), url=STUB, talk=PLAIN),
    contenders=("sabir", "raw"),
    reference="raw",
    also=(
        ("µs CPU beyond rendering", lambda record: record["beyond"] / 1e3),
        ("µs CPU of the connection alone", lambda record: record["posting"] / 1e3),
    ),
    goals=(gate(adds_at_most(0, "raw", "not more than raw httpx2", clock="sending")),),
)

if __name__ == "__main__":
    main(ROW)
