"""A whole agent loop: each turn one call, whose answer is one option call, whose result is appended."""

from tests.benchmarks.goals import ANTHROPIC, GOOGLE, OPENAI, faster, field_at_most, gate, turns_ratio
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, across, main
from tests.benchmarks.work import AGENTS, PLAIN

WIRES = ("openai.chat", "anthropic.messages", "google.generate_content")
LONG = (500,)

ROW = Row(
    name="loop",
    title="Agent loop",
    what="From two messages on, so many turns of two messages each, through an in-process transport. As agents have "
    "it, two replies of five bring reasoning, and the user shows an image after five turns. That loop, and 500 turns, "
    "are of sabir, the SDKs and the limits alone: libraries on an SDK take what it takes, a minute and more.",
    task="loop",
    unit="ms CPU in all",
    figure=lambda record: record["cpu"] / 1e6,
    cases=(*across((100, *LONG), WIRES, talk=AGENTS), *across((100, *LONG), WIRES, talk=PLAIN)),
    quick=(*across((60,), WIRES, talk=AGENTS), *across((60,), WIRES, talk=PLAIN)),
    column="turns",
    curve="turns",
    pace=Pace(round_seconds=0.2, rounds=5, most_seconds=4.0),
    goals=(
        gate(
            faster(
                320, {"openai.chat": OPENAI["openai.chat"]}, "≥ 320 × faster than OpenAI's SDK, 500 turns", sizes=LONG
            )
        ),
        gate(faster(11, ANTHROPIC, "≥ 11 × faster than Anthropic's SDK, 500 turns", sizes=LONG)),
        gate(faster(290, GOOGLE, "≥ 290 × faster than Google's SDK, 500 turns", sizes=LONG)),
        field_at_most(2, "turn 500 ≤ 2 × turn 50", turns_ratio),
    ),
)

if __name__ == "__main__":
    main(ROW)
