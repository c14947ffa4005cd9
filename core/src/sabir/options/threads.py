"""Threads for functions that wait: options that are no coroutine functions, and functions that ask people.

    await in_thread(function, …)     its result or exception; the loop goes on meanwhile
    await called(function, asked)    the same, but a coroutine function is awaited
    start_thread(function)           a future of its result, for callers without a loop

They are not the threads of `asyncio.to_thread`, which are few and shared with name look-ups: a function that waits here
delays only functions that are queued here. They are daemon threads: the process ends even if a function does not.
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
"""The most threads that run at once for one event loop; further functions wait, in order, until one has ended."""


def start_thread(function: Callable[[], Given]) -> "Future[Given]":
    """The future of a function's result; it runs in a thread of its own, in the context of its caller."""
    from concurrent.futures import Future  # imported only where threads run

    future: Future[Given] = Future()
    future.set_running_or_notify_cancel()  # it cannot be cancelled: the thread runs on
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(function))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="sabir", daemon=True).start()
    return future


_free: "WeakKeyDictionary[AbstractEventLoop, Semaphore]" = WeakKeyDictionary()
"""How many more threads each loop may start."""


async def in_thread(
    function: Callable[Parameters, Given], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Given:
    """A function's result, run in a thread of its own and in the context of its caller.

    A StopIteration arrives as a RuntimeError: no future can hold it, and the caller would wait for ever
    (https://docs.python.org/3/library/asyncio-future.html#asyncio.Future.set_exception).
    """
    import asyncio  # imported only where a loop runs; waiting callers do not need it

    loop = asyncio.get_running_loop()
    free = _free.setdefault(loop, asyncio.Semaphore(MOST_THREADS))

    def run() -> Given:
        try:
            return function(*arguments, **named)
        except StopIteration as error:
            raise RuntimeError(f"{getattr(function, '__name__', 'a function')} raised StopIteration") from error
        finally:
            with suppress(RuntimeError):  # the loop was closed, so no function waits for the thread
                loop.call_soon_threadsafe(free.release)

    await free.acquire()
    return await asyncio.wrap_future(start_thread(run))


async def called(function: Callable[[Asked], Given | Awaitable[Given]], asked: Asked) -> Given:
    """A function's result: a coroutine function is awaited, any other runs in a thread of its own."""
    answer = function(asked) if inspect.iscoroutinefunction(function) else await in_thread(function, asked)
    return await answer if isinstance(answer, Awaitable) else answer
