"""Threads for functions that wait: options that are no coroutine functions, and people.

    await in_thread(function, …)     what it returns or raises; the loop goes on meanwhile
    await called(function, asked)    the same, but a coroutine function is awaited
    start_thread(function)           the future of it, for who has no loop

They are not those of `asyncio.to_thread`, which name look-ups share and of which there are few: who waits in one holds
up nothing but those behind it here. They are daemon threads: the process ends though a function does not.
"""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Semaphore
    from concurrent.futures import Future

Parameters = ParamSpec("Parameters")
Asked = TypeVar("Asked")
Given = TypeVar("Given")

MOST_THREADS = 512
"""So many run at once for one event loop; what comes then waits, in order, until one has ended."""


def start_thread(function: Callable[[], Given]) -> "Future[Given]":
    """The future of what a function gives, run in a thread of its own and in the context of its caller."""
    from concurrent.futures import Future  # loaded where threads run

    future: Future[Given] = Future()
    future.set_running_or_notify_cancel()  # it runs on, whoever waits for it no more
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(function))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="sabir", daemon=True).start()
    return future


_free: "WeakKeyDictionary[AbstractEventLoop, Semaphore]" = WeakKeyDictionary()
"""How many threads each loop may begin yet."""


async def in_thread(
    function: Callable[Parameters, Given], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Given:
    """What a function gives, run in a thread of its own and in the context of its caller.

    A StopIteration arrives as a RuntimeError: no future can hold it, and whoever waits would wait for good
    (https://docs.python.org/3/library/asyncio-future.html#asyncio.Future.set_exception).
    """
    import asyncio  # loaded where a loop runs; those who wait need none of it

    loop = asyncio.get_running_loop()
    free = _free.setdefault(loop, asyncio.Semaphore(MOST_THREADS))

    def run() -> Given:
        try:
            return function(*arguments, **named)
        except StopIteration as error:
            raise RuntimeError(f"{getattr(function, '__name__', 'a function')} raised StopIteration") from error
        finally:
            with suppress(RuntimeError):  # nobody waits behind it in a loop that was closed
                loop.call_soon_threadsafe(free.release)

    await free.acquire()
    return await asyncio.wrap_future(start_thread(run))


async def called(function: Callable[[Asked], Given | Awaitable[Given]], asked: Asked) -> Given:
    """What a function gives: a coroutine function is awaited, any other runs in a thread of its own."""
    answer = function(asked) if inspect.iscoroutinefunction(function) else await in_thread(function, asked)
    return await answer if isinstance(answer, Awaitable) else answer
