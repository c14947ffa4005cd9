"""One request without an answer yet: the replies about it, and the next step.

    send ──▶ Answered · Failed             the end
         ──▶ Busy                          send again: at once, and it then waits there; later after pauses
         ──▶ Nobody                        send again, until the patience is over ──▶ NoWorkers
         ──▶ Accepted, Alive …             wait on
         ──▶ silence · Released            to another worker, under the same id ──▶ WorkerLost after `attempts`
                 └ seek ──▶ Willing ──▶ send to that one          a queue group may hold dead ones for minutes

So a request may run more than once if a worker falls silent without being dead; its caller gets one answer.
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
"""The least waited time of a request that is sent again: more than 0 on any clock."""
BEATS_MISSED = 3
"""A worker counts as silent only after it missed this many of its beats."""


@dataclass(frozen=True)
class Nobody:
    """The server's reply that no worker listens."""


Said: TypeAlias = Busy | Released | Willing | Nobody
Send: TypeAlias = Callable[["PendingRequest", float], Awaitable[None]]
"""Sends a pending request with that many seconds left."""


class PendingRequest:
    """The replies about one request, and its waiting caller."""

    def __init__(self, id: str, context: str, policy: str, settings: CallSettings) -> None:
        self.id = id
        self.context = context
        self.policy = policy
        self.what = f"policy {policy!r} of {context!r}"
        self.sending = 0
        """How often it was sent; replies to an earlier sending do not count, except its end."""
        self.given = 0
        """How many workers failed it."""
        self.seeks = False
        """Whether to look for a living worker before it is sent again."""
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
        """Whether a worker may still work on it."""
        return self.sending > 0 and (not self.is_over or self.given > 0)

    @property
    def waited(self) -> float:
        """Seconds since its first sending; 0 at the first sending, and more afterwards."""
        return max(self._loop.time() - self._began, SHORTEST_WAIT) if self.sending > 1 else 0.0

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.ending is not None

    def take(self, sending: int, reply: Reply | Nobody | Exception) -> None:
        """Take a reply to one of its sendings."""
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
                self._pauses = 0  # it may wait there, so the pauses start again
            self.worker = reply.worker
            self._due = self._loop.time() + self._silence

    async def carry(self, send: Send) -> Ending:
        """Send it until it ends, and return that end.

        Raises RequestTimedOut, NoWorkers, WorkerLost, and any other error that ended it.
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
        """Pause if nobody took it; count a worker that failed it, and look for another."""
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
            self.seeks = False  # the living workers are full: their queue group shows when one is free
        else:
            self._pauses, self._missing_since = 0, None
            self._hand_over()
            self.seeks, self.chosen = True, ""

    async def _outcome(self) -> Said | None:
        """The reply to this sending; None for silence, and if the request has ended."""
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
        """The error for its caller if the runner is closed before it ends."""
        fate = (
            f"{self.worker or 'a worker'} may have run it, and is told to stop" if self.sending else "it was not sent"
        )
        remedy = "close a runner after its last call"
        return RunnerClosed(f"{self.what}: the runner was closed while the call was under way; {fate}; {remedy}")

    def _timed_out(self) -> RequestTimedOut:
        at = f"worker {self.worker} had it" if self.worker else "no worker was known to have it"
        remedy = "give CallSettings(timeout=…) more, or the policy less to do"
        return RequestTimedOut(f"{self.what}: no answer within {self._settings.timeout:g} s; {at}; {remedy}")
