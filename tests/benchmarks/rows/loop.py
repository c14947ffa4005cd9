"""A whole agent loop: each turn one call, whose answer is one option call, whose result is appended."""

from tests.benchmarks.goals import ON_ANTHROPIC_SDK, ON_SLOW_SDKS, at_most, faster, field_at_most, turns_ratio
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, across, main

TOO_LONG = {"openai.chat": ("any_llm", "llm"), "google.generate_content": ("langchain", "any_llm")}
"""Wire → whose loop takes longer than a minute there, on the same SDK that others show."""
WIRES = ("openai.chat", "anthropic.messages", "google.generate_content")

ROW = Row(
    name="loop",
    title="Agent loop",
    what="From two messages on, so many turns of two messages each, through an in-process transport.",
    task="loop",
    unit="ms CPU in all",
    figure=lambda record: record["cpu"] / 1e6,
    cases=across((500,), WIRES),
    quick=across((60,), WIRES),
    column="turns",
    reference="kept",
    too_long=TOO_LONG,
    curve="turns",
    pace=Pace(round_seconds=0.2, rounds=5, most_seconds=4.0),
    goals=(
        at_most(3, "kept", "≤ 3 × the kept-prefix limit, 500 turns", sizes=(500,)),
        faster(300, ON_SLOW_SDKS, "≥ 300 × faster than all on those two SDKs, 500 turns", sizes=(500,)),
        faster(10, ON_ANTHROPIC_SDK, "≥ 10 × faster than all on the anthropic SDK, 500 turns", sizes=(500,)),
        field_at_most(2, "turn 500 ≤ 2 × turn 50", turns_ratio),
    ),
)

if __name__ == "__main__":
    main(ROW)
