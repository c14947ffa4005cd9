"""The reference of the public surface: every name of `sabir.__all__` in its group, with signature and meaning."""

from collections.abc import Iterator, Mapping

import sabir
import sabir.errors
from sabir.base import failures as losses
from sabir.calling import calls
from sabir.hooks import builders
from sabir.options import option as options
from sabir.vocabulary import constructors

from tests.docs.sources import Entry, describe, describe_constant, words

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Adapters": (
        "adapter", "ModelAdapter", "Adapter", "fallback", "FallbackAdapter", "MOVES_ON", "Target",
    ),
    "Making messages": (
        "user", "system", "assistant", "image", "audio", "video", "document", "MessageBuilder", "OptionResultBuilder",
    ),
    "Messages": (
        "Message", "PartsPayload", "OptionCallPayload", "OptionResultPayload", "Origin", "TextPart", "Citation",
        "MediaPart", "ReasoningPart", "RefusalPart", "OpaquePart", "UnknownPart", "UnknownPayload", "RUNTIME",
        "group_steps", "Step",
    ),
    "Histories": ("save", "load", "dumps", "dumps_lines", "loads", "schema"),
    "Options": ("option", "Option", "ToolContext", "answer", "answer_sync", "unanswered"),
    "Settings": ("Settings", "Bounds", "ResponseFormat", "RetryPolicy"),
    "Rendering": ("Rendering", "Loss", "dialect", "PureDialect", "DecodedHistory"),
    "Replies and streams": (
        "Reply", "Alternative", "Passed", "Usage", "ReplyStream", "SyncReplyStream", "StreamEvent", "ReplyStart",
        "BlockStart", "BlockDelta", "BlockEnd", "ReplyEnd",
    ),
    "Plugins": (
        "providers", "ProviderStatus", "models", "ModelInfo", "provider", "register", "unregister", "commands",
        "hookimpl",
    ),
}  # fmt: skip
"""Heading → names, in the order in which a reader meets them. The errors are a group of their own."""

WORDS = {
    "Messages": calls, "CallArguments": calls, "Content": constructors, "Source": constructors,
    "MediaSettings": constructors, "OptionLike": options, "Anchor": builders, "MediaDetails": builders,
    "Strict": losses, "LossKind": losses, "Kinds": calls,
}  # fmt: skip
"""Names that signatures use without being public themselves, and where they are defined."""


def error_names() -> list[str]:
    """The public errors, as the tree of errors.py has them."""
    return sorted(sabir.errors.__all__)


def surface() -> str:
    """The generated part of docs/reference/surface.md."""
    return "\n\n".join(f"## {title}\n{_listed(names)}" for title, names in GROUPS.items())


def surface_errors() -> str:
    """The errors' part: one line each."""
    return "\n".join(f"- `{name}`: {describe(name).summary}" for name in error_names())


def surface_words() -> str:
    """What the words mean that signatures use."""
    return "\n".join(line for name, module in WORDS.items() for line in lines_of(describe_constant(name, module)))


def _listed(names: tuple[str, ...]) -> str:
    return "\n".join(line for name in names for line in lines_of(describe(name)))


def lines_of(entry: Entry, indent: str = "") -> Iterator[str]:
    """A list item for an entry, and one below it for each of its members."""
    headings = " or ".join(f"`{heading}`" for heading in entry.heading.split("\n"))
    yield f"{indent}- {headings}" + (f": {entry.summary}" if entry.summary else "")
    for member in entry.members:
        yield from lines_of(member, indent + "  ")


__all__ = ["GROUPS", "WORDS", "error_names", "lines_of", "surface", "surface_errors", "surface_words", "words"]
