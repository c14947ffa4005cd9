"""The work that every contender does; what a contender imports of all this.

    given ─▶ conversation, OPTIONS, MODELS ─▶ the contender ─▶ what `normalised` and `found` compare
             reply, reply_with_calls, stream: what a server answers

Nothing but the standard library, so that it runs in every contender's environment.
"""

from tests.benchmarks.answers import (
    answered,
    found,
    reply,
    reply_text,
    reply_with_calls,
    stream,
    stream_text,
    streamed,
)
from tests.benchmarks.conversations import (
    ASKED,
    BATCH,
    MAX_TOKENS,
    MODELS,
    OPTIONS,
    PATHS,
    STEPS,
    STREAM_PATHS,
    WIRES,
    Entry,
    Given,
    arguments,
    call,
    compact,
    conversation,
    result,
    start,
    stored,
)
from tests.benchmarks.facts import Fact, expected, normalised

__all__ = [
    "ASKED", "BATCH", "MAX_TOKENS", "MODELS", "OPTIONS", "PATHS", "STEPS", "STREAM_PATHS", "WIRES", "Entry", "Fact",
    "Given", "answered", "arguments", "call", "compact",
    "conversation", "expected", "found", "normalised", "reply", "reply_text", "reply_with_calls", "result", "start",
    "stored", "stream", "stream_text", "streamed",
]  # fmt: skip
