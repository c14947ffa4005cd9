"""What a library's documentation leaves to the program, or says that it supports at other APIs only.

A failing cell that one of these rows covers reads "not claimed", with the reason on the page.
"""

from typing import NamedTuple

OPENAI = ("openai.chat", "openai.responses")
ALL = (*OPENAI, "anthropic.messages", "google.generate_content")
UNPAIRED = ("orphan_call", "orphan_result", "late_result", "cut_call")


class Unclaimed(NamedTuple):
    """The histories at some wires for which a library promises nothing."""

    library: str
    histories: tuple[str, ...]
    wires: tuple[str, ...]
    reason: str


ROWS = (
    Unclaimed(
        "langchain", UNPAIRED, ALL,
        "`trim_messages` documents that a history passed to a chat model should be valid, and that a `ToolMessage` can "
        "only appear after an `AIMessage` with a tool call: the program keeps calls and results together",
    ),
    Unclaimed(
        "lm15", UNPAIRED, ALL,
        "the README calls lm15 low-level, for libraries that want their own take: it sends a history as it is, and "
        "promises visible adaptations for settings",
    ),
    Unclaimed(
        "litellm", UNPAIRED, (*OPENAI, "google.generate_content"),
        "the page on message sanitization promises repairs with `modify_params` for Anthropic's models",
    ),
    Unclaimed(
        "pydantic_ai", ("seed",), ("openai.responses", "anthropic.messages"),
        "the documentation of `ModelSettings.seed` lists the APIs that support it, without these",
    ),
    Unclaimed(
        "langchain", ("seed",), ("openai.responses", "anthropic.messages"),
        "`seed` is not one of LangChain's standard parameters; these chat models have no such field",
    ),
    Unclaimed(
        "langchain", ("image_in_result",), ("openai.chat",),
        "langchain-openai's standard tests declare `supports_image_tool_message` for the Responses API only",
    ),
    Unclaimed(
        "langchain", ("stop",), ("openai.responses",),
        "langchain-openai's standard tests mark stop sequences at the Responses API as unsupported",
    ),
)  # fmt: skip


def reason_for(library: str, history: str, wire: str) -> str | None:
    """Return why a library promises nothing for a cell, or None if it does."""
    return next(
        (row.reason for row in ROWS if row.library == library and history in row.histories and wire in row.wires), None
    )
