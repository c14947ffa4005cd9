"""Texts of losses for the user. They name a message by its position and first words, and settings by their flags.

Loss(message_id="00bc9f38…", path="parts[0]") ──▶ downgraded: message 2 (“What is this?”) parts[0]: …
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import sabir
from sabir.authoring import one_line

from sabir_cli.conversation import describe_call, describe_result
from sabir_cli.failures import explain, in_flags

LONGEST_WORDS = 40
"""Maximum length of a message's first words in characters."""


def describe_loss(loss: sabir.Loss, messages: Sequence[sabir.Message]) -> str:
    """Return a loss as a text in one line. `messages` are the messages of the request, in order. If one of them is the
    loss's message, the text names its position (from 1) and first words.
    """
    positions = (at for at, message in enumerate(messages, start=1) if message.id == loss.message_id)
    position = next(positions, None) if loss.message_id else None
    if position is None:
        return in_flags(str(loss))
    location = f"message {position} ({first_words(messages[position - 1])}) {loss.path}".strip()
    return f"{loss.kind}: {location}: {in_flags(loss.reason)}"


def loss_describer(messages: Sequence[sabir.Message]) -> Callable[[sabir.Loss], str]:
    """Return a function of a loss only: `describe_loss` with these messages, the messages of a request."""
    return partial(describe_loss, messages=messages)


def first_words(message: sabir.Message) -> str:
    """Return a short text that identifies a message: its call, its result, the beginning of its text in quotes, or the
    kinds of its parts.
    """
    if message.call is not None:
        return one_line(describe_call(message), LONGEST_WORDS)
    if message.result is not None:
        return f"result {one_line(describe_result(message), LONGEST_WORDS)}"
    if message.text.strip():
        return f"“{one_line(message.text, LONGEST_WORDS)}”"
    return ", ".join(dict.fromkeys(getattr(part, "modality", part.kind) for part in message.parts)) or "empty"


def explain_with(error: BaseException, messages: Sequence[sabir.Message]) -> str:
    """Return `explain(error)`. In a RenderingRefused, each loss names its message by position and first words.

    `messages` are the messages of the request, in order.
    """
    text = explain(error)
    losses: Iterable[sabir.Loss] = error.losses if isinstance(error, sabir.RenderingRefused) else ()
    for loss in losses:
        text = text.replace(in_flags(str(loss)), describe_loss(loss, messages))
    return text
