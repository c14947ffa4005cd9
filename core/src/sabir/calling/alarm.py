"""Ends what a task waits for in an event loop when a call's time is over.

As `asyncio.timeout_at`, but one timer serves all waits of a call: it is set once, and looks at the clock when it rings.
A stream that lives moves its end at every event, which so costs no timer.
"""

import asyncio
from math import inf
from time import monotonic

from sabir.calling.clock import Clock


class Alarm:
    """The timer of one call; `clock` says until when. It is the loop's in which its first wait was."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = inf
        self._waiting: asyncio.Task[object] | None = None
        self._cancelled_before = 0
        self._has_rung = False

    def set(self) -> None:
        """The running task waits from now on."""
        self._waiting = task = asyncio.current_task(self._loop)
        if task is not None:
            self._cancelled_before = task.cancelling()
            if self._clock.until < self._rings_at:
                self._start()

    def stop(self, error: BaseException | None = None) -> bool:
        """The task waits no more; whether the alarm ended it with that error, and nobody else did as well."""
        task, self._waiting = self._waiting, None
        if not self._has_rung or task is None:  # as nearly always
            return False
        self._has_rung = False
        return task.uncancel() <= self._cancelled_before and isinstance(error, asyncio.CancelledError)

    def close(self) -> None:
        """Leave no timer behind."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings_at = None, inf

    def _start(self) -> None:
        self.close()
        self._rings_at = self._clock.until
        self._timer = self._loop.call_later(max(self._rings_at - monotonic(), 0), self._ring)

    def _ring(self) -> None:
        self._timer, self._rings_at = None, inf
        if self._waiting is None:
            return  # whoever waits next sets it again
        if self._clock.until > monotonic():
            self._start()
        elif not self._waiting.done():
            self._has_rung = True
            self._waiting.cancel()
