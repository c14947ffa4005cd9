"""Arguments of calls that wrappers can read more than once."""

from sabir import Message, Option, Rendering
from sabir.authoring import CallArguments, Messages, as_messages


def repeatable(messages: Messages, how: CallArguments) -> tuple[list[Message], CallArguments]:
    """Return arguments that can be read more than once: lists instead of iterators."""
    if "options" in how:
        how["options"] = Option.all_of(how["options"] or ())
    return as_messages(messages), how


def repeatable_or_rendering(
    messages: Messages | Rendering, how: CallArguments
) -> tuple[list[Message] | Rendering, CallArguments]:
    """Return a rendering with `how` unchanged. For other messages, return the result of `repeatable`."""
    return (messages, how) if isinstance(messages, Rendering) else repeatable(messages, how)
