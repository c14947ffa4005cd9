"""Observers of actors: logging, the functions `trace`, `watch` and `spans`. Their errors are logged and ignored."""

import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeAlias, TypedDict, TypeVar

from sabir.authoring import one_line
from sabir_session import Event

from sabir_actors.protocol import AnyMessage, Message, Response

logger = logging.getLogger("sabir.actors")
Spans: TypeAlias = Callable[[Message], AbstractContextManager[Callable[[Response], None]]]
"""A function that returns a context manager for the handling of a message. The context manager yields a function that
is called with the response. An example is `sabir_otel.message_span`."""
Told = TypeVar("Told")


class Observers(TypedDict, total=False):
    """The observer arguments of ActorSystem. An error of an observer is logged and does not affect actors.

    `trace` is called with every message and response. `watch` is called with the events of agents' replies as they
    arrive, together with the message that is being answered. `spans` returns a context manager for the handling of each
    message.
    """

    trace: Callable[[AnyMessage], None] | None
    watch: Callable[[Message, Event], None] | None
    spans: Spans | None


def log(message: AnyMessage, trace: Callable[[AnyMessage], None] | None) -> None:
    """Log a message's type, id and addresses, never its contents, and pass the message to `trace`."""
    logger.info(
        "%s %s from %s to %s (%s)",
        message.type, message.id, message.sender, message.receiver, message.correlation_id,
    )  # fmt: skip
    if trace is not None:
        _told("trace", message, trace)


async def spanned(
    message: Message, answer: Callable[[Message], Coroutine[Any, Any, Response]], spans: Spans | None
) -> Response:
    """Return `answer(message)`, called in the context that `spans` returns for the message."""
    if spans is None:
        return await answer(message)
    with ExitStack() as stack:
        tell = _told("spans", message, lambda said: stack.enter_context(spans(said)))
        response = await answer(message)
        if tell is not None:
            tell(response)
    return response


def _told(name: str, message: Message | Response, observer: Callable[[Any], Told]) -> Told | None:
    """Call an observer and return its value. Log an error and return None."""
    try:
        return observer(message)
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        logger.warning("%s failed at %s: %s", name, message.type, reason)
        return None
