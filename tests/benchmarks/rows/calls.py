"""Calls, whole: in the process, and to a server on this machine."""

from tests.benchmarks.goals import ANTHROPIC, GOOGLE, OPENAI, at_most, faster, field_at_most, gate, turns_ratio
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import STUB, Row, across
from tests.benchmarks.work import AGENTS, PLAIN

SLOW = OPENAI | GOOGLE
WIRES = ("openai.chat", "anthropic.messages", "google.generate_content")
LONG = (500,)

ROWS = (
    Row(
        name="call",
        title="Whole call",
        what="A history that was never rendered goes out by the HTTP client, whose transport answers in the process.",
        unit="ms CPU a call",
        figure=lambda record: record["cpu"] / 1e6,
        cases=(*across((10, 100, 1000), talk=AGENTS), *across((10, 100, 1000), talk=PLAIN)),
        quick=(*across((10, 1000), talk=AGENTS), *across((10, 1000), talk=PLAIN)),
        curve="sizes",
        pace=Pace(most_seconds=2.0),
        goals=(
            gate(faster(4, SLOW, "≥ 4 × faster than the typed calls of OpenAI and Google, N=10", sizes=(10,))),
            gate(faster(18, SLOW, "≥ 18 × faster than those, N=1000", sizes=(1000,))),
            faster(1.1, ANTHROPIC, "≥ 1.1 × faster than Anthropic's typed call, N=10 and 100", sizes=(10, 100)),
            faster(1, ANTHROPIC, "not slower than Anthropic's typed call, N=1000", sizes=(1000,)),
        ),
    ),
    Row(
        name="loop",
        title="Agent loop",
        what="From two messages on, so many turns of two messages each, through an in-process transport. As agents "
        "have it, two replies of five bring reasoning, and the user shows an image after five turns. That loop, "
        "and 500 turns, are of sabir, the SDKs and the limits alone: libraries on an SDK take what it takes, a "
        "minute and more.",
        unit="ms CPU in all",
        figure=lambda record: record["cpu"] / 1e6,
        cases=(*across((100, *LONG), WIRES, talk=AGENTS), *across((100, *LONG), WIRES, talk=PLAIN)),
        quick=(*across((60,), WIRES, talk=AGENTS), *across((60,), WIRES, talk=PLAIN)),
        column="turns",
        curve="turns",
        pace=Pace(round_seconds=0.2, rounds=5, most_seconds=4.0),
        goals=(
            gate(
                faster(320, {"openai.chat": ("openai_sdk",)}, "≥ 320 × faster than OpenAI's SDK, 500 turns", sizes=LONG)
            ),
            gate(faster(11, ANTHROPIC, "≥ 11 × faster than Anthropic's SDK, 500 turns", sizes=LONG)),
            gate(faster(290, GOOGLE, "≥ 290 × faster than Google's SDK, 500 turns", sizes=LONG)),
            field_at_most(2, "turn 500 ≤ 2 × turn 50", turns_ratio),
        ),
    ),
    Row(
        name="loopback",
        title="Calls through a loopback stub",
        what="Ten messages a call, to a server on this machine that answers at once; 1 waiting client, or 32 async "
        "calls.",
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
    ),
    Row(
        name="stream",
        title="Stream",
        what="Two thousand server-sent events, each a chunk of its own, become one reply; CPU of the client's process.",
        unit="µs CPU an event",
        cases=across((2000,), url=STUB),
        quick=across((500,), url=STUB),
        column="events",
        curve="bars",
        pace=Pace(rounds=7, most_seconds=2.0),
        goals=(
            at_most(1.5, "limit", "≤ 1.5 × the limit"),
            faster(5, OPENAI, "≥ 5 × faster than the openai SDK"),
            faster(1.3, {"anthropic.messages": ("anthropic_sdk",)}, "≥ 1.3 × faster than the anthropic SDK"),
        ),
    ),
)
