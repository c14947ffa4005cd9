"""Threads for functions that wait: options that are no coroutine functions, and people.

    await in_thread(function, …)     what it returns or raises; the loop goes on meanwhile
    await called(function, asked)    the same, but a coroutine function is awaited
    Threads().start(function)        the future of it, for who has no loop

They are not those of `asyncio.to_thread`, which name look-ups share and of which there are few: who waits in one holds
up nothing but those behind it here. They are daemon threads: the process ends though a function does not.
"""

import inspect
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from concurrent.futures import Future

Parameters = ParamSpec("Parameters")
Asked = TypeVar("Asked")
Given = TypeVar("Given")

MOST_THREADS = 512
"""So many run at once for one event loop; what comes then waits, in order, until one has ended."""
IDLE = 5.0
"""Seconds for which a thread that has nothing to do is kept."""


class Threads:
    """Daemon threads, begun at need, used again, and ended when idle: `MOST_THREADS` at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._alive = self._idle = self._waiting = 0

    def start(self, function: Callable[[], Given]) -> "Future[Given]":
        """The future of what a function gives, run in the context of its caller."""
        from concurrent.futures import Future  # loaded where threads run

        future: Future[Given] = Future()
        context = copy_context()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(context.run(function))
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._alive < MOST_THREADS:
                Thread(target=self._run, name="sabir", daemon=True).start()
                self._alive += 1
            else:
                self._waiting += 1
            self._work.put(run)
        return future

    def _run(self) -> None:
        while True:
            try:
                self._work.get(timeout=IDLE)()
            except Empty:
                with self._lock:
                    if self._idle:  # else work is about to come for the last of those that were
                        self._idle -= 1
                        self._alive -= 1
                        return
                continue
            with self._lock:
                if self._waiting:
                    self._waiting -= 1
                else:
                    self._idle += 1


# One for each loop: a process that was forked has none of its parent's threads, and makes a loop of its own.
_threads: "WeakKeyDictionary[AbstractEventLoop, Threads]" = WeakKeyDictionary()


async def in_thread(
    function: Callable[Parameters, Given], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Given:
    """What a function gives, run in a thread of its own and in the context of its caller.

    A StopIteration arrives as a RuntimeError: no future can hold it, and whoever waits would wait for good
    (https://docs.python.org/3/library/asyncio-future.html#asyncio.Future.set_exception).
    """
    import asyncio  # loaded where a loop runs; those who wait need none of it

    def run() -> Given:
        try:
            return function(*arguments, **named)
        except StopIteration as error:
            raise RuntimeError(f"{getattr(function, '__name__', 'a function')} raised StopIteration") from error

    loop = asyncio.get_running_loop()
    threads = _threads.get(loop)
    if threads is None:
        threads = _threads[loop] = Threads()
    return await asyncio.wrap_future(threads.start(run))


async def called(function: Callable[[Asked], Given | Awaitable[Given]], asked: Asked) -> Given:
    """What a function gives: a coroutine function is awaited, any other runs in a thread of its own."""
    answer = function(asked) if inspect.iscoroutinefunction(function) else await in_thread(function, asked)
    return await answer if isinstance(answer, Awaitable) else answer
