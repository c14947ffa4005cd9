"""StoreThread: uses the store of a system in a separate thread, so that a locked database does not block the loop.

    await store_thread(step) ─▶ queue ─▶ the thread: step, step, step … in the order of the calls ─▶ result

All functions that use journals run in this thread, one after another. Only `ThreadActor.view` and `thread_ids` read
journals in the thread of their caller.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeVar

StepResult = TypeVar("StepResult")
IDLE = 1.0
"""The number of seconds without work after which the thread ends. The next call starts a new thread."""


class StoreThread:
    """Runs functions in one OS thread, in the order of the calls. The thread is started when needed, and ends when
    idle.
    """

    def __init__(self) -> None:
        self._steps: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    async def __call__(self, step: Callable[[], StepResult]) -> StepResult:
        """Call `step` in the thread. Return its result or raise its exception.

        The step runs even if the caller is cancelled. A cancelled caller waits for the step, and then raises
        CancelledError. A second cancellation ends the wait.
        """
        future: Future[StepResult] = Future()
        context = copy_context()

        def run() -> None:
            try:
                future.set_result(context.run(step))
            except BaseException as error:
                future.set_exception(error)

        self._steps.put(run)
        self._ensure_started()
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.wait([waiting])
            raise

    def _ensure_started(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run_steps, name="sabir-actors-store", daemon=True)
                self._thread.start()

    def _run_steps(self) -> None:
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
            del run  # releases the objects of this step before the wait for the next
