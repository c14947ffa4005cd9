"""Texts of losses for the user, with the message's position and first words, and with flags for settings.

Loss(message_id="00bc9f38…", path="parts[0]") ──▶ downgraded: message 2 (“What is this?”) parts[0]: …
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import sabir
from sabir.authoring import one_line

from sabir_cli.conversation import describe_call, describe_result
from sabir_cli.failures import explain, in_flags

LONGEST_WORDS = 40
"""Characters of a message's first words."""


def describe_loss(loss: sabir.Loss, messages: Sequence[sabir.Message]) -> str:
    """Return a loss in one line. `messages` are the request's messages in order."""
    positions = (at for at, message in enumerate(messages, start=1) if message.id == loss.message_id)
    position = next(positions, None) if loss.message_id else None
    if position is None:
        return in_flags(str(loss))
    where = f"message {position} ({first_words(messages[position - 1])}) {loss.path}".strip()
    return f"{loss.kind}: {where}: {in_flags(loss.reason)}"


def loss_describer(messages: Sequence[sabir.Message]) -> Callable[[sabir.Loss], str]:
    """Return `describe_loss` for the losses of a request with these messages."""
    return partial(describe_loss, messages=messages)


def first_words(message: sabir.Message) -> str:
    """Return the beginning of a message's text in quotes, or its call, its result, or the kinds of its media."""
    if message.call is not None:
        return one_line(describe_call(message), LONGEST_WORDS)
    if message.result is not None:
        return f"result {one_line(describe_result(message), LONGEST_WORDS)}"
    if message.text.strip():
        return f"“{one_line(message.text, LONGEST_WORDS)}”"
    return ", ".join(dict.fromkeys(getattr(part, "modality", part.kind) for part in message.parts)) or "empty"


def explain_with(error: BaseException, messages: Sequence[sabir.Message]) -> str:
    """Return `explain(error)`, with each loss naming its message by position and first words."""
    text = explain(error)
    losses: Iterable[sabir.Loss] = error.losses if isinstance(error, sabir.RenderingRefused) else ()
    for loss in losses:
        text = text.replace(in_flags(str(loss)), describe_loss(loss, messages))
    return text
