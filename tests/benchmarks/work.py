"""The work that every contender does; what a contender imports of all this.

    given ─▶ conversation, OPTIONS, MODELS ─▶ the contender ─▶ what `normalised` and `found` compare
             reply, reply_with_calls, stream: what a server answers

Nothing but the standard library, so that it runs in every contender's environment.
"""

from tests.benchmarks.answers import (
    answered,
    found,
    reasoning_item,
    reply,
    reply_text,
    reply_that_says,
    reply_with_calls,
    stream,
    stream_text,
    streamed,
)
from tests.benchmarks.conversations import (
    AGENTS,
    ASKED,
    BATCH,
    CALLERS,
    GEMINI_3,
    MAX_TOKENS,
    MODELS,
    OPTIONS,
    PATHS,
    PHASES,
    PLAIN,
    STEPS,
    STREAM_PATHS,
    THREADS,
    WIRES,
    Entry,
    Given,
    adapted,
    arguments,
    call,
    compact,
    conversation,
    entries_of,
    last_messages,
    result,
    start,
    stored,
    turns,
)
from tests.benchmarks.facts import Fact, expected, normalised, refused_ids

__all__ = [
    "AGENTS", "ASKED", "BATCH", "CALLERS", "GEMINI_3", "MAX_TOKENS", "MODELS", "OPTIONS", "PATHS", "PHASES", "PLAIN",
    "STEPS", "STREAM_PATHS", "THREADS", "WIRES", "Entry", "Fact", "Given", "adapted", "answered", "arguments", "call",
    "compact", "conversation", "entries_of", "expected", "found", "last_messages", "normalised", "reasoning_item",
    "refused_ids", "reply", "reply_text", "reply_that_says", "reply_with_calls", "result", "start", "stored", "stream",
    "stream_text", "streamed", "turns",
]  # fmt: skip
