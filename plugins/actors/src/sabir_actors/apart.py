"""StoreThread: uses the store of a system in a separate thread, so that a locked database does not block the loop.

    await apart(step) ─▶ queue ─▶ the thread: step, step, step … in the order of the calls ─▶ result

All uses of journals run in this thread, one after another.
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
"""The number of idle seconds after which the thread ends."""


class StoreThread:
    """Runs functions in one thread, in the order of the calls. The thread is started when needed."""

    def __init__(self) -> None:
        self._steps: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    async def __call__(self, step: Callable[[], Given]) -> Given:
        """Call `step` in the thread, and return its result or raise its error.

        A step that was added always runs. A cancelled caller waits for its step, unless it is cancelled a second time.
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
            del run  # it refers to objects that should be released before the next step
