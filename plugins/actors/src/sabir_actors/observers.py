"""Observers of actors: logs, a trace, spans. Their errors stop no actor."""

import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeAlias, TypedDict, TypeVar

from sabir.authoring import one_line
from sabir_session import Event

from sabir_actors.protocol import AnyMessage, Message, Response

logger = logging.getLogger("sabir.actors")
Spans: TypeAlias = Callable[[Message], AbstractContextManager[Callable[[Response], None]]]
"""Makes a context around the handling of a message, which receives the response: for example
`sabir_otel.message_span`."""
Told = TypeVar("Told")


class Observers(TypedDict, total=False):
    """Observers of a system; none of them can stop an actor.

    `trace` gets every message and response, `watch` gets events of agents' replies as they arrive, with the message
    that they answer. `spans` makes a context around the handling of each message, in the task that handles it.
    """

    trace: Callable[[AnyMessage], None] | None
    watch: Callable[[Message, Event], None] | None
    spans: Spans | None


def log(message: AnyMessage, trace: Callable[[AnyMessage], None] | None) -> None:
    """Tell of one message on its way; the log has nothing of its contents."""
    logger.info(
        "%s %s from %s to %s (%s)",
        message.type, message.id, message.sender, message.receiver, message.correlation_id,
    )  # fmt: skip
    if trace is not None:
        _told("trace", message, trace)


async def spanned(
    message: Message, answer: Callable[[Message], Coroutine[Any, Any, Response]], spans: Spans | None
) -> Response:
    """What `answer` makes of a message, within the block that `spans` makes for it."""
    if spans is None:
        return await answer(message)
    with ExitStack() as stack:
        tell = _told("spans", message, lambda said: stack.enter_context(spans(said)))
        response = await answer(message)
        if tell is not None:
            tell(response)
    return response


def _told(name: str, message: Message | Response, observer: Callable[[Any], Told]) -> Told | None:
    """An observer's return value; None if it fails, which is logged."""
    try:
        return observer(message)
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        logger.warning("%s failed at %s: %s", name, message.type, reason)
        return None
