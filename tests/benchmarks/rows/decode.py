"""Decoding: the bytes of a text and five calls, to the library's own reply."""

from tests.benchmarks.goals import at_most, faster
from tests.benchmarks.rows.row import Row, across, main

SDKS = {
    "openai.chat": ("openai_sdk",),
    "openai.responses": ("openai_sdk",),
    "anthropic.messages": ("anthropic_sdk",),
    "google.generate_content": ("google_sdk",),
}

ROW = Row(
    name="decode",
    title="Decode text and five calls",
    what="The bytes of an answer become the library's own reply.",
    task="decode",
    unit="µs a reply",
    figure=lambda record: record["cpu"] / 1e3,
    cases=across((0,)),
    curve="bars",
    goals=(
        at_most(2, "limit", "≤ 2 × the limit"),
        faster(5, SDKS, "≥ 5 × faster than the SDK's own objects"),
    ),
)

if __name__ == "__main__":
    main(ROW)
