"""Delays of a scripted answer: until a test opens a gate, or for seconds that pass without waiting.

    program ── request ──▶ Gate ── reached ──▶ the test checks the program's state ── open() ──▶ answer

A gate works for sync and async calls. A gate that is not opened within its `patience` fails the test instead of
blocking it.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from sabir.errors import CallTimedOut, SettingsInvalid

Sleep: TypeAlias = Callable[[float], Awaitable[object] | None]
"""A function that is called with the seconds of a delay, such as `asyncio.sleep`, `time.sleep` or a fake one."""


NOT_REACHED = "no call of the program arrived at the Gate"
NOT_OPENED = "the test did not call Gate.open()"


class ScriptMismatch(AssertionError):
    """Raised if a program and its script do not match: too many requests, too few, or other requests than expected.

    It is an AssertionError and not a SabirError, so that a program that catches sabir's errors does not catch it.
    """


class Gate:
    """Delays a scripted answer until the test opens the gate. An open gate stays open. Pass it to `delayed` or `reply`.

    A call waits at most `patience` seconds for `open`, and a test at most `patience` seconds in `reached` or
    `reached_sync`. A longer wait raises ScriptMismatch.
    """

    def __init__(self, patience: float = 10.0) -> None:
        self._patience = patience
        self._reached: Future[None] = Future()
        self._opened: Future[None] = Future()

    def __repr__(self) -> str:
        """Return whether the gate is open."""
        return f"<Gate, {'open' if self._opened.done() else 'closed'}>"

    def open(self) -> None:
        """Open the gate, so that the answer continues. May be called from any thread or task."""
        _resolve(self._opened)

    async def reached(self) -> None:
        """Wait until a call has arrived at the gate; return at once if one arrived before. Raises ScriptMismatch if
        none arrives in time.
        """
        await self._wait_for(self._reached, NOT_REACHED)

    def reached_sync(self) -> None:
        """Sync version of `reached`, for a program that runs in another thread."""
        self._wait_for_sync(self._reached, NOT_REACHED, self._patience)

    async def wait(self) -> None:
        """Wait until the gate is open. The scripted answer calls this. Raises ScriptMismatch if the test does not open
        the gate in time.
        """
        _resolve(self._reached)
        await self._wait_for(self._opened, NOT_OPENED)

    def wait_sync(self) -> None:
        """Sync version of `wait`."""
        _resolve(self._reached)
        self._wait_for_sync(self._opened, NOT_OPENED, self._patience)

    async def _wait_for(self, future: Future[None], failure: str) -> None:
        await asyncio.wait(
            [asyncio.wrap_future(future)], timeout=self._patience
        )  # a cancelled wait does not cancel the future
        self._wait_for_sync(future, failure, 0)

    def _wait_for_sync(self, future: Future[None], failure: str, patience: float) -> None:
        try:
            future.result(patience)
        except TimeoutError:
            remedy = "run the program in its own task or thread, so that the test can call Gate.open() meanwhile"
            raise ScriptMismatch(f"{failure} within {self._patience:g} s; {remedy}") from None


@dataclass(frozen=True, slots=True)
class Wait:
    """A delay within an answer. If one delay in seconds is longer than the request's timeout, the call ends, as with a
    vendor's client.
    """

    until: Gate | float

    async def perform(self, timeout: float | None, sleep: Sleep | None) -> None:
        """Wait in an event loop. Raises CallTimedOut if the request's timeout is shorter than a delay in seconds, and
        ScriptMismatch if a Gate is not opened in time.
        """
        if isinstance(self.until, Gate):
            await self.until.wait()
        elif (pause := self._start_sleep(self.until, timeout, sleep)) is not None:
            await pause

    def perform_sync(self, timeout: float | None, sleep: Sleep | None) -> None:
        """Sync version of `perform`. Raises SettingsInvalid if `sleep` is an async function."""
        if isinstance(self.until, Gate):
            self.until.wait_sync()
        elif (pause := self._start_sleep(self.until, timeout, sleep)) is not None:
            if inspect.iscoroutine(pause):
                pause.close()
            what = "sleep= of the ScriptedAdapter is an async function, but the program made a sync call"
            raise SettingsInvalid(f"{what}; pass a sync function such as time.sleep")

    def _start_sleep(self, seconds: float, timeout: float | None, sleep: Sleep | None) -> Awaitable[object] | None:
        if timeout is not None and seconds > timeout:
            raise CallTimedOut(f"no answer within {timeout:g} s; the scripted answer is delayed by {seconds:g} s")
        pause = None if sleep is None else sleep(seconds)
        return pause if inspect.isawaitable(pause) else None


def _resolve(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)
