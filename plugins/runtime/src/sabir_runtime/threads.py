"""Functions of a person's, called from an event loop: coroutine functions in it, plain ones in threads of core's.

await called(ask, question)      what it gives, or what it raises: no error is lost on the way
started(work)                    the future of what it gives: nobody need wait for it, not even the end of the process
"""

import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from sabir.threads import in_thread

Given = TypeVar("Given")
Answer = TypeVar("Answer")


async def called(function: Callable[[Given], Answer | Awaitable[Answer]], given: Given) -> Answer:
    """What the function gives: a coroutine function is awaited, any other runs in a thread, as options do."""
    answer = function(given) if inspect.iscoroutinefunction(function) else await in_thread(function, given)
    return await answer if isinstance(answer, Awaitable) else answer


def started(work: Callable[[], Answer]) -> "Future[Answer]":
    """The future of what a function gives, which runs in a thread of its own and in the context of its caller."""
    future: Future[Answer] = Future()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="sabir-option", daemon=True).start()
    return future
