"""Rendering afresh: messages that were never rendered, to the wire's request."""

from tests.benchmarks.goals import gate, takes_at_most
from tests.benchmarks.interleave import Pace
from tests.benchmarks.rows.row import Row, across, main
from tests.benchmarks.work import AGENTS, GEMINI_3, PLAIN

OPENAI, OTHERS = ("openai.chat", "openai.responses"), ("anthropic.messages", "google.generate_content")
LARGE = (1000,)

ROW = Row(
    name="render",
    title="Render afresh",
    what="A history that was never rendered becomes the wire's messages; peers' mapping alone, without a request.",
    task="render",
    unit="µs a message",
    figure=lambda record: record["cpu"] / record["size"] / 1e3,
    cases=(
        *across((10, 100, 1000), talk=AGENTS),
        *across((10, 100, 1000), talk=PLAIN),
        *across(LARGE, OTHERS[1:], talk=AGENTS, other_model=GEMINI_3),
        *across(LARGE, OTHERS[1:], talk=PLAIN, other_model=GEMINI_3),
    ),
    quick=(
        *across(LARGE, talk=AGENTS),
        *across(LARGE, OTHERS[1:], talk=AGENTS, other_model=GEMINI_3),
        *across(LARGE, talk=PLAIN),
    ),
    curve="sizes",
    pace=Pace(rounds=7, most_seconds=1.5),
    goals=(
        takes_at_most(7, "≤ 7 µs a message for OpenAI's wires, N=1000", sizes=LARGE, wires=OPENAI, by_message=True),
        gate(takes_at_most(8, "≤ 8 µs there", sizes=LARGE, wires=OPENAI, by_message=True)),
        takes_at_most(
            8, "≤ 8 µs a message for Anthropic and Google, N=1000", sizes=LARGE, wires=OTHERS, by_message=True
        ),
        gate(takes_at_most(9.5, "≤ 9.5 µs there", sizes=LARGE, wires=OTHERS, by_message=True)),
    ),
)

if __name__ == "__main__":
    main(ROW)
