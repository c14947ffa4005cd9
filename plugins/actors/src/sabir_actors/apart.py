"""Access to the store of a system in one thread of its own, so that a locked database blocks no heartbeat.

    await apart(step) ─▶ queue ─▶ the thread: step, step, step … in the order of the calls ─▶ result

Everything that uses a thread's journal runs here, therefore one step is never interrupted by another one.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeVar

Given = TypeVar("Given")
IDLE = 1.0
"""Seconds after which the thread ends if there is nothing to do."""


class StoreThread:
    """Runs functions in one thread, in the order of the calls; the thread is started when it is needed."""

    def __init__(self) -> None:
        self._steps: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    async def __call__(self, step: Callable[[], Given]) -> Given:
        """Return the result of a step, or raise its error.

        Every step is done: a caller that is cancelled waits for its step, unless it is cancelled again.
        """
        future: Future[Given] = Future()
        context = copy_context()

        def run() -> None:
            try:
                future.set_result(context.run(step))
            except BaseException as error:
                future.set_exception(error)

        self._steps.put(run)
        self._start()
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.wait([waiting])
            raise

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="sabir-actors-store", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                run = self._steps.get(timeout=IDLE)
            except Empty:
                with self._lock:
                    if self._steps.empty():
                        self._thread = None
                        return
                continue
            run()
            del run  # it refers to a thread of conversation, which ends before this one
