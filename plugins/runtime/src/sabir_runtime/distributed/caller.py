"""A caller's connection: one inbox for all answers, and one PendingRequest for each call in progress.

    perform ──place──▶ PendingRequest ──request, reply=<inbox>.<id>.<sending>──▶ workers
                             ▲                                                      │
                             └─────────────── one subscription, <inbox>.> ◀─────────┘

The replies to a pending request, and the caller's next step:

    send ──▶ Answered · Failed             return or raise
         ──▶ Busy                          send again: at once, so that a worker queues it; then after pauses
         ──▶ NoSubscriber                  send again, until the patience is over ──▶ NoWorkers
         ──▶ Accepted, Alive …             keep waiting
         ──▶ silence · Released            to another worker, with the same id ──▶ WorkerLost after `attempts`
                 └ seek ──▶ Willing ──▶ send to this worker       a queue group may contain dead workers for minutes

A request may run more than once if a worker stops reporting without being dead, but its caller receives one answer:
answers to finished requests are dropped.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from nats.aio.msg import Msg

from sabir_runtime.distributed import envelopes, errors
from sabir_runtime.distributed.connection import NatsConnection, Target, logger
from sabir_runtime.distributed.settings import CallSettings
from sabir_runtime.distributed.subjects import ALIVE, all_of, requests_for, requests_of

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 1.0
SHORTEST_WAIT = 1e-6
"""The minimum of `waited` for a request that is sent again, because 0 means the first sending."""
BEATS_MISSED = 3
"""A worker counts as silent only after at least this many missed beats."""


@dataclass(frozen=True)
class NoSubscriber:
    """The reply of the NATS server itself that no worker is subscribed to the request's subject."""


WorkerReply: TypeAlias = envelopes.Busy | envelopes.Released | envelopes.Willing | NoSubscriber
Send: TypeAlias = Callable[["PendingRequest", float], Awaitable[None]]
"""A function that sends a pending request, with the number of seconds that its caller still waits."""


class PendingRequest:
    """One call in progress: how often its request was sent, the replies, and the waiting caller."""

    def __init__(self, id: str, context: str, policy: str, settings: CallSettings) -> None:
        self.id = id
        self.context = context
        self.policy = policy
        self.what = f"policy {policy!r} of {context!r}"
        self.sending = 0
        """How often the request or a search for a worker was sent. Busy, Released, Willing and NoSubscriber for earlier
        sendings are ignored."""
        self.lost_workers = 0
        """How many times a worker did not finish the request."""
        self.seeks_worker = False
        """True if the next sending asks all workers which of them can perform the request."""
        self.chosen_worker = ""
        """The id of the worker that the next sending is for; "" for any worker."""
        self.ending: envelopes.Ending | Exception | None = None
        self.worker = ""
        self._reply: WorkerReply | None = None
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._started_at = self._loop.time()
        self._deadline = self._started_at + settings.timeout
        self._due = 0.0
        self._pauses = 0
        self._missing_since: float | None = None
        self._silence = settings.silence
        self._waiter: asyncio.Future[None] | None = None

    @property
    def may_run_elsewhere(self) -> bool:
        """True if a worker may still be working on the request, so that a Cancelled notice is necessary."""
        return self.sending > 0 and (not self.is_over or self.lost_workers > 0)

    @property
    def waited(self) -> float:
        """The number of seconds since the call began. 0 for the first sending."""
        return max(self._loop.time() - self._started_at, SHORTEST_WAIT) if self.sending > 1 else 0.0

    @property
    def is_over(self) -> bool:
        """True if the request has ended."""
        return self.ending is not None

    def add_reply(self, sending: int, reply: envelopes.Reply | NoSubscriber | Exception) -> None:
        """Store a reply to the sending of this number, and wake the caller if the reply changes the next step."""
        if isinstance(reply, envelopes.Answered | envelopes.Failed | Exception):
            self.ending = self.ending or reply
            self._wake()
        elif isinstance(reply, envelopes.Busy | envelopes.Released | envelopes.Willing | NoSubscriber):
            if sending == self.sending:
                self._reply = reply
                self._wake()
        else:
            if isinstance(reply, envelopes.Accepted):
                self._silence = max(self._settings.silence, BEATS_MISSED * reply.every)
                self._pauses = 0  # the request has waited in a worker's queue, so later pauses begin short again
            self.worker = reply.worker
            self._due = self._loop.time() + self._silence

    async def send_until_ended(self, send: Send) -> envelopes.Ending:
        """Send the request, again if workers are full or lost, and return its last reply: Answered or Failed.

        Raises RequestTimedOut, NoWorkers, WorkerLost, and any other error that ended the request.
        """
        while not self.is_over:
            self._reply = None
            self.sending += 1
            await send(self, max(self._deadline - self._loop.time(), 0.001))
            self._due = max(self._due, self._loop.time() + self._settings.acceptance)
            await self._react(await self._wait_for_reply())
        assert self.ending is not None
        if isinstance(self.ending, Exception):
            raise self.ending
        return self.ending

    async def _react(self, reply: WorkerReply | None) -> None:
        """Prepare the next sending after a reply, or after silence (None).

        Pauses if no worker accepted the request. Counts a lost worker, and searches for another worker. Raises
        NoWorkers or WorkerLost.
        """
        if isinstance(reply, envelopes.Willing):
            self.seeks_worker, self.chosen_worker = False, reply.worker
        elif isinstance(reply, envelopes.Busy | NoSubscriber):
            is_missing = isinstance(reply, NoSubscriber) and not self.chosen_worker
            self._missing_since = (self._missing_since or self._loop.time()) if is_missing else None
            self._check_patience()
            self.seeks_worker, self.chosen_worker = self.seeks_worker or bool(self.chosen_worker), ""
            if isinstance(reply, NoSubscriber) or self.sending > 1:
                self._pauses += 1
                await self._pause()
        elif self.is_over:
            return
        elif self.seeks_worker:
            self.seeks_worker = False  # no living worker has a free place, so the request goes to the queue group again
        else:
            self._pauses, self._missing_since = 0, None
            self._count_lost_worker()
            self.seeks_worker, self.chosen_worker = True, ""

    async def _wait_for_reply(self) -> WorkerReply | None:
        """Wait for a reply to this sending. Return None after silence, and if the request has ended.

        Raises RequestTimedOut.
        """
        while not self.is_over and self._reply is None:
            now = self._loop.time()
            if now >= self._deadline:
                raise self._timeout_error()
            if now >= self._due:
                return None
            await self._wait(min(self._due, self._deadline))
        return self._reply

    async def _pause(self) -> None:
        length = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._pauses - 1, 20)) * random.uniform(0.5, 1.0)
        until = self._loop.time() + length
        while not self.is_over and self._loop.time() < until:
            if self._loop.time() >= self._deadline:
                raise self._timeout_error()
            await self._wait(min(until, self._deadline))

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

    def _count_lost_worker(self) -> None:
        self.lost_workers += 1
        if self.lost_workers >= self._settings.attempts:
            last = f", the last was {self.worker}" if self.worker else ""
            remedy = (
                "check whether the policy ends or blocks its worker, or increase the times `acceptance` and `silence`"
            )
            raise errors.WorkerLost(
                f"{self.what}: {self.lost_workers} workers in turn did not finish it{last}; {remedy}"
            )

    def _check_patience(self) -> None:
        since = self._missing_since
        if since is not None and self._loop.time() - since >= self._settings.patience:
            remedy = "start one with `sabir worker module:Context --url …`"
            raise errors.NoWorkers(
                f"{self.what}: no worker serves it, and none started within {self._settings.patience:g} s; {remedy}"
            )

    def closed_error(self) -> errors.RunnerClosed:
        """Return the error for the caller if the runner is closed before the request ends."""
        fate = (
            f"{self.worker or 'a worker'} may have run it, and was told to stop" if self.sending else "it was not sent"
        )
        remedy = "close a runner after its last call"
        return errors.RunnerClosed(f"{self.what}: the runner was closed during the call; {fate}; {remedy}")

    def _timeout_error(self) -> errors.RequestTimedOut:
        progress = f"worker {self.worker} was working on it" if self.worker else "no worker had accepted it"
        remedy = "increase CallSettings(timeout=…)"
        return errors.RequestTimedOut(
            f"{self.what}: no answer within {self._settings.timeout:g} s; {progress}; {remedy}"
        )


NO_RESPONDERS = "503"
"""The server's status for a subject without subscribers: https://docs.nats.io/reference/reference-protocols/nats-protocol"""

RESEND_TOLERANCE = 0.1
"""How many seconds `seconds_left` in a request may be too high before the request is encoded again."""


class CallerConnection:
    """A DistributedRunner's connection in one event loop, with all its calls in progress."""

    def __init__(self, target: Target, settings: CallSettings) -> None:
        self.connection = NatsConnection(
            target, label="sabir caller", patience=settings.patience, inbox=settings.inbox, access=settings.access
        )
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.in_flight)
        self._pending: dict[str, PendingRequest] = {}
        self._inbox = ""
        self._is_closed = False

    async def open(self) -> None:
        """Connect, and subscribe to the inbox. Raises NoServer, AccessRefused or AccessInvalid."""
        await self.connection.open()
        self._inbox = self.connection.new_inbox()
        self._subscription = await self.connection.subscribe(f"{self._inbox}.>", self._on_message)
        await self.connection.check_subscriptions()
        self.connection.on_refused = self._fail_forbidden
        self.connection.gone.add_done_callback(self._fail_all)

    async def ask(self, request: envelopes.Request) -> envelopes.Ending:
        """Send a request, again if workers are full or lost, and return its last reply: Answered or Failed.

        Waits for a free place while `in_flight` requests are in progress. Raises RequestTimedOut, NoWorkers,
        WorkerLost, NoServer, RunnerClosed, PayloadTooLarge or EnvelopeInvalid.
        """
        pending = PendingRequest(request.id, request.context, request.policy, self._settings)
        await self._acquire_slot(pending.what)
        self._pending[request.id] = pending
        try:
            if self._is_closed:
                raise pending.closed_error()
            return await pending.send_until_ended(
                lambda each, seconds_left: self._send_request(request, each, seconds_left)
            )
        except errors.NoServer:
            if self._is_closed:
                raise pending.closed_error() from None
            raise
        finally:
            self._slots.release()
            del self._pending[request.id]
            if pending.may_run_elsewhere:
                await self._send_cancelled(pending)

    async def close(self) -> None:
        """Cancel all requests in progress at the workers, and close. The waiting callers receive RunnerClosed."""
        self._is_closed = True
        for pending in [each for each in self._pending.values() if not each.is_over]:
            await self._send_cancelled(pending)
        await self.connection.unsubscribe(self._subscription)
        await self.connection.close()

    async def _acquire_slot(self, what: str) -> None:
        try:
            async with asyncio.timeout(self._settings.timeout):
                await self._slots.acquire()
        except TimeoutError:
            limit, remedy = (
                self._settings.in_flight,
                "increase `in_flight` or `timeout` in CallSettings, or add workers",
            )
            raise errors.RequestTimedOut(
                f"{what}: the call was not sent, because {limit} other calls of the runner were in progress; {remedy}"
            ) from None

    async def _send_request(self, request: envelopes.Request, pending: PendingRequest, seconds_left: float) -> None:
        if not self.connection.is_up:
            with suppress(TimeoutError):  # the pending request then times out itself
                async with asyncio.timeout(seconds_left):
                    await self.connection.wait_until_up()
        reply = f"{self._inbox}.{request.id}.{pending.sending}"
        if pending.seeks_worker:
            await self.connection.publish(
                all_of(request.context), envelopes.encode(envelopes.Sought(id=request.id)), reply
            )
            return
        if pending.sending > 1 or request.seconds_left - seconds_left > RESEND_TOLERANCE:
            request = request.model_copy(update={"seconds_left": seconds_left, "waited": pending.waited})
        body = envelopes.pack(
            envelopes.encode(request),
            f"request for {pending.what}",
            largest=self.connection.largest,
            compress_above=self._settings.compress_above,
        )
        await self.connection.publish(_subject_of(pending), body, reply)

    async def _send_cancelled(self, pending: PendingRequest) -> None:
        with suppress(errors.NoServer):
            await self.connection.publish(all_of(pending.context), envelopes.encode(envelopes.Cancelled(id=pending.id)))

    async def _on_message(self, message: Msg) -> None:
        id, _, sending = message.subject[len(self._inbox) + 1 :].partition(".")
        pending = self._pending.get(id)
        if id == ALIVE:
            beat = _read_reply(message, self._settings.largest)
            if not isinstance(beat, envelopes.Alive):
                logger.warning("received an invalid beat of a worker: %s", beat)
                return
            for each in filter(None, map(self._pending.get, beat.requests)):
                each.add_reply(0, beat)
        elif pending is not None and sending.isdecimal():
            pending.add_reply(int(sending), _read_reply(message, self._settings.largest))

    def _fail_forbidden(self, subject: str, error: errors.AccessRefused) -> None:
        """End the requests whose subject the server's permissions forbid."""
        for pending in self._pending.values():
            if subject == _subject_of(pending).lower():
                pending.add_reply(0, error)

    def _fail_all(self, lost_connection: asyncio.Future[errors.NoServer]) -> None:
        for pending in self._pending.values():
            pending.add_reply(0, lost_connection.result())


def _subject_of(pending: PendingRequest) -> str:
    """Return the subject of a request: for any worker, or for the chosen worker."""
    address = pending.context, pending.policy
    return requests_for(pending.chosen_worker, *address) if pending.chosen_worker else requests_of(*address)


def _read_reply(message: Msg, largest: int) -> envelopes.Reply | NoSubscriber | errors.EnvelopeInvalid:
    """Return the reply in a message. For an unreadable message, return an EnvelopeInvalid instead of raising it."""
    if message.headers and message.headers.get("Status") == NO_RESPONDERS:
        return NoSubscriber()
    try:
        return envelopes.decode_reply(envelopes.unpack(message.data, largest))
    except errors.EnvelopeInvalid as error:
        return error
