"""Plain functions of a person's, run beside the event loop.

await in_thread(ask, question)      what it returns, or what it raises: no error is lost on the way
"""

from collections.abc import Callable
from typing import TypeVar

Given = TypeVar("Given")
Answer = TypeVar("Answer")


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
