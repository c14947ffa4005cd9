"""Calls to a server on this machine, ten messages each: how many a second, one by one and 32 at once."""

from tests.benchmarks.goals import faster
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import STUB, Row, across, main

WIRES = ("openai.chat", "anthropic.messages", "google.generate_content")

ROW = Row(
    name="loopback",
    title="Calls through a loopback stub",
    what="Ten messages a call, to a server on this machine that answers at once; 1 waiting client, or 32 async calls.",
    task="loopback",
    unit="requests a second",
    figure=lambda record: 1e9 / record["wall"],
    cases=(*across((10,), WIRES, STUB), *across((10,), WIRES, STUB, 32)),
    quick=(*across((10,), WIRES[:1], STUB), *across((10,), WIRES[:1], STUB, 32)),
    concurrencies=True,
    curve="bars",
    pace=Pace(rounds=7, most_seconds=2.0),
    goals=(
        faster(0.7, dict.fromkeys(WIRES, ("limit",)), "≥ 0.7 × raw httpx2's requests a second", clock="wall"),
        faster(3, {"openai.chat": ("openai_sdk",)}, "≥ 3 × the openai SDK's typed call", clock="wall"),
    ),
)

if __name__ == "__main__":
    main(ROW)
