"""One connection to NATS: opened within a patience, told when it breaks and when it is back, closed once.

    url ──▶ Connection ──publish, subscribe──▶ server           a client of the user's own is used, and left open
                 └ is away for longer than the patience ──▶ every waiter gets NoServer

nats-py reconnects by itself. Nothing is sent while it does: what it would buffer would arrive late, and twice.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from sabir.errors import one_line

from sabir_distributed.errors import NoServer
from sabir_distributed.subjects import INBOXES

Handler: TypeAlias = Callable[[Msg], Awaitable[None]]
Target: TypeAlias = str | Client
"""URLs with commas between them, or a connected client."""

logger = logging.getLogger("sabir.distributed")
RECONNECT_WAIT = 0.1
"""Seconds between two attempts to reach a server."""
_UNBOUNDED = 0
"""What a subscription holds back is bounded by the requests in flight, not by nats-py's limits, which drop."""


def shown(target: Target) -> str:
    """Where a target leads, without the secrets that a URL may hold."""
    if isinstance(target, Client):
        return shown(",".join(url.geturl() for url in target.servers))
    parted = (url.strip().rpartition("://") for url in target.split(","))
    return ",".join(f"{scheme}{colon}{rest.rpartition('@')[2]}" for scheme, colon, rest in parted)


class Connection:
    """A client of NATS in one event loop."""

    def __init__(self, target: Target, *, label: str, patience: float, inbox: str = INBOXES) -> None:
        self.loop = asyncio.get_running_loop()
        self.target = shown(target)
        self._given = target
        self._label = label
        self._patience = patience
        self._inbox = inbox
        self._client = target if isinstance(target, Client) else Client()
        self._owned = self._client is not target
        self._up = asyncio.Event()
        self._last: Exception | None = None
        self._is_ended = False
        self.gone: asyncio.Future[NoServer] = self.loop.create_future()
        """Done when the connection is over, with the reason."""

    @property
    def is_open(self) -> bool:
        """Whether it can be used, now or when the server is back."""
        return not self.gone.done() and not self._client.is_closed

    @property
    def trouble(self) -> str:
        """What went wrong last while the server is away, in one line; else nothing."""
        return "" if self._last is None else one_line(str(self._last), 200)

    @property
    def largest(self) -> int:
        """The most bytes that the server carries in one message."""
        return self._client.max_payload

    async def open(self) -> None:
        """Connect; NoServer where that does not succeed within the patience."""
        if self._owned:
            await self._connect()
        self._last = None
        self._up.set()

    async def _connect(self) -> None:
        assert isinstance(self._given, str)
        try:
            await self._client.connect(
                [url.strip() for url in self._given.split(",")],
                name=self._label,
                inbox_prefix=self._inbox,
                reconnect_time_wait=RECONNECT_WAIT,  # type: ignore[arg-type]  # typed int, used as seconds
                max_reconnect_attempts=max(1, math.ceil(self._patience / RECONNECT_WAIT)),
                error_cb=self._on_error,
                disconnected_cb=self._on_disconnected,
                reconnected_cb=self._on_reconnected,
                closed_cb=self._on_closed,
            )
        except (nats.errors.Error, OSError, ValueError, TimeoutError) as error:
            raise self._missing(error) from None
        except asyncio.CancelledError:
            await self._client.close()
            raise

    def _missing(self, error: Exception | None) -> NoServer:
        if self._is_ended:
            return NoServer(f"the connection to NATS at {self.target} was closed; send before it is")
        reason = self.trouble or one_line(str(error or "it was lost"), 200)
        remedy = "start nats-server there, or give the URL of one"
        return NoServer(f"no NATS server at {self.target} within {self._patience:g} s: {reason}; {remedy}")

    async def publish(self, subject: str, body: bytes, reply: str = "") -> None:
        """Send a message; NoServer where the connection is over."""
        task = asyncio.current_task()
        asked = task.cancelling() if task else 0
        try:
            await self._client.publish(subject, body, reply)
        except nats.errors.Error as error:
            raise self._missing(error) from None
        if task and task.cancelling() > asked:  # nats-py swallows a cancellation that meets it while it waits
            raise asyncio.CancelledError

    async def subscribe(self, subject: str, handler: Handler, queue: str = "") -> Subscription:
        """Hear what is sent to a subject; of a queue group one member hears each message."""
        try:
            return await self._client.subscribe(
                subject, queue, cb=handler, pending_msgs_limit=_UNBOUNDED, pending_bytes_limit=_UNBOUNDED
            )
        except nats.errors.Error as error:
            raise self._missing(error) from None

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Hear no more."""
        with suppress(nats.errors.Error):
            await subscription.unsubscribe()

    async def drain(self, subscription: Subscription) -> None:
        """Hear no more, after what was sent here already was heard.

        As nats-py's own `drain`, and by its means, but for its ping, which overtakes the word that ends the
        subscription (see `flush`): what the server sends between the two would be dropped unheard.
        """
        with suppress(nats.errors.Error, NoServer):
            await self._client._send_unsubscribe(subscription._id)
            await self.flush()
            await subscription._pending_queue.join()
            await subscription.unsubscribe()

    async def flush(self) -> None:
        """Wait until the server has all that was sent, subscriptions too.

        nats-py's ping overtakes what its flusher has not written yet. The flusher writes while the answer to the first
        ping is awaited, so the second one comes after all that was sent.
        """
        try:
            await self._client.flush()
            await self._client.flush()
        except nats.errors.Error as error:
            raise self._missing(error) from None

    def new_inbox(self) -> str:
        """A subject that nobody else has."""
        return self._client.new_inbox()

    async def until_up(self) -> None:
        """Wait while the server is away; NoServer where it stays away."""
        while not self._client.is_connected:
            if not self.is_open:
                raise self._missing(self._client.last_error)
            waiting = self.loop.create_task(self._up.wait())
            try:
                await asyncio.wait((waiting, self.gone), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if not self._owned:  # its callbacks are its owner's
                await asyncio.sleep(RECONNECT_WAIT)

    @property
    def is_up(self) -> bool:
        """Whether the server is there."""
        return self._client.is_connected

    async def close(self) -> None:
        """End the connection, what was sent first; a client of the user's own stays open."""
        self._is_ended = True
        if self._owned and not self._client.is_closed:
            await self._client.close()
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        if not self.gone.done():
            self.gone.set_result(self._missing(error))

    async def _on_error(self, error: Exception) -> None:
        self._last = error
        logger.debug("nats at %s: %s", self.target, error)

    async def _on_disconnected(self) -> None:
        self._up.clear()
        if not self._client.is_closed:
            logger.warning("the NATS server at %s is away; trying to reach it again", self.target)

    async def _on_reconnected(self) -> None:
        self._last = None
        self._up.set()
        logger.warning("the NATS server at %s is back", self.target)

    async def _on_closed(self) -> None:
        self._end(self._client.last_error)
