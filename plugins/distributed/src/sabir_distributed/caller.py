"""A caller's connection: one inbox for all answers, one place for each request in flight.

    perform ──place──▶ PendingRequest ──request, reply=<inbox>.<id>.<sending>──▶ workers
                             ▲                                                      │
                             └─────────────── one subscription, <inbox>.> ◀─────────┘

An answer to a request that is over finds no pending one and is dropped: nobody gets two.
"""

import asyncio
from contextlib import suppress

from nats.aio.msg import Msg

from sabir_distributed.connection import Connection, Target, logger
from sabir_distributed.envelopes import Alive, Cancelled, Ending, Reply, Request, Sought, decode_reply, encode
from sabir_distributed.errors import AccessRefused, EnvelopeInvalid, NoServer, RequestTimedOut
from sabir_distributed.packing import pack, unpack
from sabir_distributed.pending import Nobody, PendingRequest
from sabir_distributed.settings import CallSettings
from sabir_distributed.subjects import ALIVE, all_of, requests_for, requests_of

NO_RESPONDERS = "503"
"""The server's status for a subject without listeners: https://docs.nats.io/reference/reference-protocols/nats-protocol"""

WORTH_SAYING = 0.1
"""Seconds by which an envelope may overstate the time that is left."""


class CallerConnection:
    """A runner's connection in one event loop."""

    def __init__(self, target: Target, settings: CallSettings) -> None:
        self.connection = Connection(
            target, label="sabir caller", patience=settings.patience, inbox=settings.inbox, access=settings.access
        )
        self._settings = settings
        self._places = asyncio.Semaphore(settings.in_flight)
        self._pending: dict[str, PendingRequest] = {}
        self._inbox = ""
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent, now or when the server is back."""
        return self.connection.is_open

    async def open(self) -> None:
        """Connect and listen; raises NoServer if there is no server."""
        await self.connection.open()
        self._inbox = self.connection.new_inbox()
        self._subscription = await self.connection.subscribe(f"{self._inbox}.>", self._hear)
        await self.connection.check_hears()
        self.connection.on_refused = self._refuse
        self.connection.gone.add_done_callback(self._fail_all)

    async def ask(self, request: Request) -> Ending:
        """Send a request, wait for its end and return that; the envelope limits the time."""
        pending = PendingRequest(request.id, request.context, request.policy, self._settings)
        await self._take_place(pending.what)
        self._pending[request.id] = pending
        try:
            if self._is_closed:
                raise pending.closed()
            return await pending.carry(lambda each, left: self._send(request, each, left))
        except NoServer:
            if self._is_closed:
                raise pending.closed() from None
            raise
        finally:
            self._places.release()
            del self._pending[request.id]
            if pending.may_run_elsewhere:
                await self._cancel(pending)

    async def close(self) -> None:
        """Stop listening and close the connection; waiting callers get RunnerClosed, and the workers are told."""
        self._is_closed = True
        for pending in [each for each in self._pending.values() if not each.is_over]:
            await self._cancel(pending)
        await self.connection.unsubscribe(self._subscription)
        await self.connection.close()

    async def _take_place(self, what: str) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._settings.timeout):
                await self._places.acquire()
        except TimeoutError:
            limit, remedy = self._settings.in_flight, "give CallSettings more `in_flight` or `timeout`, or add workers"
            raise RequestTimedOut(f"{what}: waited in vain for one of {limit} places in flight; {remedy}") from None

    async def _send(self, request: Request, pending: PendingRequest, left: float) -> None:
        if not self.connection.is_up:
            with suppress(TimeoutError):  # the pending request then times out itself
                async with asyncio.timeout(left):
                    await self.connection.until_up()
        reply = f"{self._inbox}.{request.id}.{pending.sending}"
        if pending.seeks:
            await self.connection.publish(all_of(request.context), encode(Sought(id=request.id)), reply)
            return
        if pending.sending > 1 or request.seconds_left - left > WORTH_SAYING:
            request = request.model_copy(update={"seconds_left": left, "waited": pending.waited})
        body = pack(
            encode(request),
            f"request for {pending.what}",
            largest=self.connection.largest,
            compress_above=self._settings.compress_above,
        )
        await self.connection.publish(_subject_of(pending), body, reply)

    async def _cancel(self, pending: PendingRequest) -> None:
        with suppress(NoServer):
            await self.connection.publish(all_of(pending.context), encode(Cancelled(id=pending.id)))

    async def _hear(self, message: Msg) -> None:
        id, _, sending = message.subject[len(self._inbox) + 1 :].partition(".")
        if id == ALIVE:
            self._hear_beat(message)
            return
        pending = self._pending.get(id)
        if pending is not None and sending.isdecimal():
            pending.take(int(sending), _read(message, self._settings.largest))

    def _hear_beat(self, message: Msg) -> None:
        beat = _read(message, self._settings.largest)
        if not isinstance(beat, Alive):
            logger.warning("what came as a worker's beat is none: %s", beat)
            return
        for id in beat.requests:
            if id in self._pending:
                self._pending[id].take(0, beat)

    def _refuse(self, subject: str, error: AccessRefused) -> None:
        """End the requests that may not be sent to a subject: nobody would answer them."""
        for pending in self._pending.values():
            if subject == _subject_of(pending).lower():
                pending.take(0, error)

    def _fail_all(self, gone: asyncio.Future[NoServer]) -> None:
        for pending in self._pending.values():
            pending.take(0, gone.result())


def _subject_of(pending: PendingRequest) -> str:
    """The subject of its request: of any worker, or of the chosen one."""
    meant = pending.context, pending.policy
    return requests_for(pending.chosen, *meant) if pending.chosen else requests_of(*meant)


def _read(message: Msg, largest: int) -> Reply | Nobody | EnvelopeInvalid:
    """The reply of a message; an EnvelopeInvalid if it is unreadable."""
    if message.headers and message.headers.get("Status") == NO_RESPONDERS:
        return Nobody()
    try:
        return decode_reply(unpack(message.data, largest))
    except EnvelopeInvalid as error:
        return error
