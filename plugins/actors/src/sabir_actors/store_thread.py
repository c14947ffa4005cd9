"""StoreThread: uses the store of a system in a separate thread, so that a locked database does not block the loop.

    await store_thread(step) ─▶ queue ─▶ the thread: step, step, step … in the order of the calls ─▶ result

All functions that use journals run in this thread, one after another. Only `ThreadActor.view` and `thread_ids` read
journals in the thread of their caller.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Generic, TypeVar

StepResult = TypeVar("StepResult")
IDLE = 1.0
"""The number of seconds without work after which the thread ends. The next call starts a new thread."""


class _StepCall(Generic[StepResult]):
    """One call of a step, with its result or error. `ended` is done when the step has ended, or was cancelled."""

    step_result: StepResult

    def __init__(self, step: Callable[[], StepResult]) -> None:
        self.error: BaseException | None = None
        self._step, self._context = step, copy_context()
        self._loop = asyncio.get_running_loop()
        self._has_ended = False
        self.ended: asyncio.Future[None] = self._loop.create_future()

    def run(self) -> None:
        """Call the step, in the thread of the steps."""
        try:
            self.step_result = self._context.run(self._step)
        except BaseException as error:
            self.error = error
        with suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._has_ended = True
        if not self.ended.done():
            self.ended.set_result(None)

    async def wait_again(self) -> None:
        """Wait for the end of the step after `ended` was cancelled."""
        if not self._has_ended:
            self.ended = self._loop.create_future()
            await self.ended


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
        call = _StepCall(step)
        self._steps.put(call.run)
        self._ensure_started()
        try:
            await call.ended
        except asyncio.CancelledError:
            await call.wait_again()
            raise
        if call.error is not None:
            raise call.error
        return call.step_result

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
