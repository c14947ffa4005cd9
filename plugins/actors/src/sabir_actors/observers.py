"""Observers of actors: logging, and the user's functions `trace`, `watch` and `spans`.

Exceptions of `trace` and `watch`, and of `spans` before a message is handled, are logged and do not affect actors.
"""

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
receives the response. An example is `sabir_otel.message_span`."""
Returned = TypeVar("Returned")


class Observers(TypedDict, total=False):
    """The observer arguments of ActorSystem; None for no observer.

    Exceptions of `trace` and `watch`, and of `spans` before a message is handled, are logged and do not affect actors.

    `trace` is called with each message that an actor receives, and with each response to it, but not for a repeated
    message. `watch` is called with the PROCESS_WITH_AGENT or INVOKE_AGENT message that is being answered and a progress
    event of the agent's run, for each event as it arrives; if you send the message yourself, set its `stream`. `spans`
    is called with each message that an actor handles, and returns a context manager for the handling.
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
        _call_observer("trace", message, trace)


async def answer_in_span(
    message: Message, answer: Callable[[Message], Coroutine[Any, Any, Response]], spans: Spans | None
) -> Response:
    """Return `await answer(message)`. With `spans`, do this inside the context manager that `spans` returns for the
    message, and pass the response to the function that the context manager yields.
    """
    if spans is None:
        return await answer(message)
    with ExitStack() as stack:
        report_response = _call_observer("spans", message, lambda request: stack.enter_context(spans(request)))
        response = await answer(message)
        if report_response is not None:
            report_response(response)
    return response


def _call_observer(name: str, message: Message | Response, observer: Callable[[Any], Returned]) -> Returned | None:
    """Call an observer with a message, and return what it returns. If it raises, log the exception and return None."""
    try:
        return observer(message)
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        logger.warning("%s failed at %s: %s", name, message.type, reason)
        return None
