"""Functions of a person's, called from an event loop: coroutine functions in it, plain ones beside it.

await called(ask, question)      what it gives, or what it raises: no error is lost on the way
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

Given = TypeVar("Given")
Answer = TypeVar("Answer")


async def called(function: Callable[[Given], Answer | Awaitable[Answer]], given: Given) -> Answer:
    """What the function gives: a coroutine function is awaited, any other runs in a thread, as options do."""
    answer = function(given) if inspect.iscoroutinefunction(function) else await in_thread(function, given)
    return await answer if isinstance(answer, Awaitable) else answer


async def in_thread(function: Callable[[Given], Answer], given: Given) -> Answer:
    """What the function makes of what is given to it, in a thread of its own.

    A StopIteration arrives as a RuntimeError: no future can hold it, and whoever waits would wait for good
    (https://docs.python.org/3/library/asyncio-future.html#asyncio.Future.set_exception).
    """
    import asyncio  # loaded where a loop runs

    def run() -> Answer:
        try:
            return function(given)
        except StopIteration as error:
            raise RuntimeError(f"{getattr(function, '__name__', 'a function')} raised StopIteration") from error

    return await asyncio.to_thread(run)
