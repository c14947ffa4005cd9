"""Threads for functions that wait: options that are no coroutine functions, and people.

    await in_thread(function, …)     what it returns or raises; the loop goes on meanwhile

They are not those of `asyncio.to_thread`, which name look-ups share and of which there are few: who waits in one holds
up nothing but those behind it here.
"""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from concurrent.futures import ThreadPoolExecutor

Parameters = ParamSpec("Parameters")
Given = TypeVar("Given")

MOST_THREADS = 512
"""So many run at once for one event loop; what comes then waits, in order, until one has ended."""

# One for each loop: a process that was forked has none of its parent's threads, and makes a loop of its own.
_threads: "WeakKeyDictionary[AbstractEventLoop, ThreadPoolExecutor]" = WeakKeyDictionary()


async def in_thread(
    function: Callable[Parameters, Given], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Given:
    """What a function gives, run in a thread of its own and in the context of its caller.

    A StopIteration arrives as a RuntimeError: no future can hold it, and whoever waits would wait for good
    (https://docs.python.org/3/library/asyncio-future.html#asyncio.Future.set_exception).
    """
    import asyncio  # loaded where a loop runs; those who wait need none of it
    from concurrent.futures import ThreadPoolExecutor

    def run() -> Given:
        try:
            return function(*arguments, **named)
        except StopIteration as error:
            raise RuntimeError(f"{getattr(function, '__name__', 'a function')} raised StopIteration") from error

    loop = asyncio.get_running_loop()
    threads = _threads.get(loop)
    if threads is None:
        threads = _threads[loop] = ThreadPoolExecutor(MOST_THREADS, "sabir")
    return await loop.run_in_executor(threads, partial(copy_context().run, run))
