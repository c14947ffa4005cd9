"""One request that has no answer yet: what was said about it, and what to do next.

    send ──▶ Answered · Failed             the end
         ──▶ Busy                          the same again: at once, and it then waits there; later after pauses
         ──▶ Nobody                        the same, until the patience is over ──▶ NoWorkers
         ──▶ Accepted, Alive …             wait on
         ──▶ silence · Released            to another worker, under the same id ──▶ WorkerLost after `attempts`
                 └ seek ──▶ Willing ──▶ send to that one          a queue group may hold dead ones for minutes

A request may so run more than once, when a worker falls silent without being dead; its caller gets one answer.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from sabir_distributed.envelopes import Accepted, Answered, Busy, Ending, Failed, Released, Reply, Willing
from sabir_distributed.errors import NoWorkers, RequestTimedOut, RunnerClosed, WorkerLost
from sabir_distributed.settings import CallSettings

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 1.0
SHORTEST_WAIT = 1e-6
"""Of a request that is sent again: more than no time, however fast the clock ticks."""
BEATS_MISSED = 3
"""A worker is not silent before it missed so many of its own beats."""


@dataclass(frozen=True)
class Nobody:
    """The server's word that no worker listens."""


Said: TypeAlias = Busy | Released | Willing | Nobody
Send: TypeAlias = Callable[["PendingRequest", float], Awaitable[None]]
"""Sends a pending request, of which so many seconds are left."""


class PendingRequest:
    """What was said about one request, and who waits for it."""

    def __init__(self, id: str, context: str, policy: str, settings: CallSettings) -> None:
        self.id = id
        self.context = context
        self.policy = policy
        self.what = f"policy {policy!r} of {context!r}"
        self.sending = 0
        """How often it was sent; what is said about an earlier sending, other than its end, no longer counts."""
        self.given = 0
        """How many workers let it down."""
        self.seeks = False
        """Whether a worker that lives is looked for before it is sent again."""
        self.chosen = ""
        """The worker that it is sent to; empty for any."""
        self.ending: Ending | Exception | None = None
        self.worker = ""
        self._said: Said | None = None
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._ends = self._began + settings.timeout
        self._due = 0.0
        self._pauses = 0
        self._missing_since: float | None = None
        self._silence = settings.silence
        self._waiter: asyncio.Future[None] | None = None

    @property
    def may_run_elsewhere(self) -> bool:
        """Whether a worker may still be at it."""
        return self.sending > 0 and (not self.is_over or self.given > 0)

    @property
    def waited(self) -> float:
        """How long it is on its way; 0 when it is sent for the first time, and more than that afterwards."""
        return max(self._loop.time() - self._began, SHORTEST_WAIT) if self.sending > 1 else 0.0

    @property
    def is_over(self) -> bool:
        """Whether somebody ended it."""
        return self.ending is not None

    def take(self, sending: int, reply: Reply | Nobody | Exception) -> None:
        """Hear what was said about one of its sendings."""
        if isinstance(reply, Answered | Failed | Exception):
            self.ending = self.ending or reply
            self._wake()
        elif isinstance(reply, Busy | Released | Willing | Nobody):
            if sending == self.sending:
                self._said = reply
                self._wake()
        else:
            if isinstance(reply, Accepted):
                self._silence = max(self._settings.silence, BEATS_MISSED * reply.every)
                self._pauses = 0  # it may wait there: it pauses no longer than it must to wait there again
            self.worker = reply.worker
            self._due = self._loop.time() + self._silence

    async def carry(self, send: Send) -> Ending:
        """Send it until somebody ends it, and give that end.

        Raises RequestTimedOut, NoWorkers, WorkerLost, and whatever ended it otherwise.
        """
        while not self.is_over:
            self._said = None
            self.sending += 1
            await send(self, max(self._ends - self._loop.time(), 0.001))
            self._due = max(self._due, self._loop.time() + self._settings.acceptance)
            await self._react(await self._outcome())
        assert self.ending is not None
        if isinstance(self.ending, Exception):
            raise self.ending
        return self.ending

    async def _react(self, said: Said | None) -> None:
        """Pause where nobody took it; count whoever let it down, and look for another."""
        if isinstance(said, Willing):
            self.seeks, self.chosen = False, said.worker
        elif isinstance(said, Busy | Nobody):
            is_missing = isinstance(said, Nobody) and not self.chosen
            self._missing_since = (self._missing_since or self._loop.time()) if is_missing else None
            self._check_patience()
            self.seeks, self.chosen = self.seeks or bool(self.chosen), ""
            if isinstance(said, Nobody) or self.sending > 1:
                self._pauses += 1
                await self._pause()
        elif self.is_over:
            return
        elif self.seeks:
            self.seeks = False  # those who live are full: their queue group says when one is not
        else:
            self._pauses, self._missing_since = 0, None
            self._hand_over()
            self.seeks, self.chosen = True, ""

    async def _outcome(self) -> Said | None:
        """What was said about this sending; None for silence, and where it is ended."""
        while not self.is_over and self._said is None:
            now = self._loop.time()
            if now >= self._ends:
                raise self._timed_out()
            if now >= self._due:
                return None
            await self._wait(min(self._due, self._ends))
        return self._said

    async def _pause(self) -> None:
        length = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._pauses - 1, 20)) * random.uniform(0.5, 1.0)
        until = self._loop.time() + length
        while not self.is_over and self._loop.time() < until:
            if self._loop.time() >= self._ends:
                raise self._timed_out()
            await self._wait(min(until, self._ends))

    async def _wait(self, until: float) -> None:
        self._waiter = self._loop.create_future()
        timer = self._loop.call_at(until, self._wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _hand_over(self) -> None:
        self.given += 1
        if self.given >= self._settings.attempts:
            last = f", the last was {self.worker}" if self.worker else ""
            remedy = "look whether workers die of it, block their event loop, or need more `acceptance` and `silence`"
            raise WorkerLost(f"{self.what}: {self.given} workers in turn fell silent or left{last}; {remedy}")

    def _check_patience(self) -> None:
        since = self._missing_since
        if since is not None and self._loop.time() - since >= self._settings.patience:
            remedy = "start one: sabir worker module:Context --url …"
            raise NoWorkers(f"{self.what}: no worker answers, nor did within {self._settings.patience:g} s; {remedy}")

    def closed(self) -> RunnerClosed:
        """What its caller gets where the runner is closed before it is over."""
        fate = (
            f"{self.worker or 'a worker'} may have run it, and is told to stop" if self.sending else "it was not sent"
        )
        remedy = "close a runner after its last call"
        return RunnerClosed(f"{self.what}: the runner was closed while the call was under way; {fate}; {remedy}")

    def _timed_out(self) -> RequestTimedOut:
        at = f"worker {self.worker} had it" if self.worker else "no worker was known to have it"
        remedy = "give CallSettings(timeout=…) more, or the policy less to do"
        return RequestTimedOut(f"{self.what}: no answer within {self._settings.timeout:g} s; {at}; {remedy}")
