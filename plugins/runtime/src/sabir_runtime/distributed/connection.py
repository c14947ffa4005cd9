"""One connection to a NATS server, which reconnects until the server was away for `patience` seconds.

    url ──▶ NatsConnection ──publish, subscribe──▶ server           a client that the user passed stays open
                     └ server away for longer than the patience ──▶ every waiting call raises NoServer

nats-py reconnects by itself. A caller sends no request while the server is away, because a buffered request would
arrive late, and twice.
"""

import asyncio
import logging
import math
import re
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import nats.errors
from nats.aio.client import Client, RawCredentials
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from sabir.authoring import one_line

from sabir_runtime.distributed.access import Access, Address, read_addresses, without_secrets
from sabir_runtime.distributed.errors import AccessInvalid, AccessRefused, NoServer
from sabir_runtime.distributed.subjects import INBOXES

Handler: TypeAlias = Callable[[Msg], Awaitable[None]]
Target: TypeAlias = str | Client
"""One URL of a NATS server, several URLs separated by commas, or a connected nats-py client."""

logger = logging.getLogger("sabir.distributed")
RECONNECT_WAIT = 0.1
"""The number of seconds between two attempts to reach a server."""
CLOSES_WITHIN = 0.5
"""How many seconds closing a half-open connection may take."""
_UNBOUNDED = 0
"""nats-py's value for no limit. Its limits would drop messages, and `in_flight` limits the backlog already."""
_LOGIN = re.compile("authorization|authentication", re.IGNORECASE)
_TLS = re.compile("secure connection|tls|certificate", re.IGNORECASE)
_SUBJECT = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"', re.IGNORECASE)


def display_target(target: Target) -> str:
    """Return the URLs of a target for display, without secrets. Raises AccessInvalid if a URL is invalid."""
    return ",".join(each.display_url for each in _addresses_of(target))


def _addresses_of(target: Target) -> tuple[Address, ...]:
    if not isinstance(target, Client):
        return read_addresses(target)
    servers = [f"{url.scheme}://{url.netloc.rpartition('@')[2]}" for url in target.servers]
    return read_addresses(",".join(servers)) if servers else ()


class _Client(Client):
    """A nats-py client that sends its credentials only over TLS if TLS is requested.

    nats-py starts TLS only if the server's first message requires TLS. This message is not encrypted, so an attacker
    in between could change it and read the credentials.
    """

    needs_tls = False

    def _connect_command(self) -> bytes:
        assert self._current_server is not None
        if self.needs_tls and self._current_server.uri.scheme != "wss" and not self._server_info.get("tls_required"):
            raise nats.errors.SecureConnWantedError
        return super()._connect_command()


class NatsConnection:
    """A connection to a NATS server in one event loop. Created inside of a running loop; `open` connects.

    `label` is the connection's name at the server, and `patience` how many seconds to wait for an unreachable server.
    """

    def __init__(
        self, target: Target, *, label: str, patience: float, inbox: str = INBOXES, access: Access | None = None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._addresses = _addresses_of(target)
        self.target = ",".join(each.display_url for each in self._addresses)
        self._label = label
        self._patience = patience
        self._inbox = inbox
        self._access = access or Access()
        self._client = target if isinstance(target, Client) else _Client()
        self._owned = self._client is not target
        self._up = asyncio.Event()
        self._last_error: Exception | None = None
        self._refusals = 0
        self._refused_subscription: AccessRefused | None = None
        self._is_opening = True
        self.on_refused: Callable[[str, AccessRefused], None] = lambda subject, error: None
        """Called with a lower-case subject that permissions forbid. Not called for a client that the user passed."""
        self._is_ended = False
        self.gone: asyncio.Future[NoServer] = self.loop.create_future()
        """A future whose result is set, to the error for callers, when the connection is closed or lost for good.

        For a client that the user passed, only `close` sets the result.
        """

    @property
    def is_open(self) -> bool:
        """True if the connection can be used, now or when the server is back."""
        return not self.gone.done() and not self._client.is_closed

    @property
    def trouble(self) -> str:
        """The last error since the server was last connected, in one line; "" without an error."""
        return "" if self._last_error is None else self._error_text(self._last_error)

    @property
    def largest(self) -> int:
        """The server's maximum size of a message in bytes."""
        return self._client.max_payload

    async def open(self) -> None:
        """Connect, unless the user passed a client. Raises NoServer if no server is reached within `patience` seconds.

        Raises AccessRefused if the server rejects the login or TLS fails, and AccessInvalid for unusable credentials.
        """
        if self._owned:
            await self._connect()
        self._last_error, self._is_opening = None, False
        self._up.set()

    async def _connect(self) -> None:
        assert isinstance(self._client, _Client)
        login = self._access.login(self._addresses)
        self._client.needs_tls = login.needs_tls
        try:
            await self._client.connect(
                [each.url for each in self._addresses],
                user=login.user,
                password=login.password,
                token=login.token,
                nkeys_seed_str=login.seed,
                user_credentials=None if login.creds is None else RawCredentials(login.creds),
                tls=login.tls,
                name=self._label,
                inbox_prefix=self._inbox,
                reconnect_time_wait=RECONNECT_WAIT,  # type: ignore[arg-type]  # typed int, used as seconds
                max_reconnect_attempts=max(1, math.ceil(self._patience / RECONNECT_WAIT)),
                error_cb=self._on_error,
                disconnected_cb=self._on_disconnected,
                reconnected_cb=self._on_reconnected,
                closed_cb=self._on_closed,
            )
        except (NoServer, asyncio.CancelledError):
            await self._close_half_open()
            raise
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise self._connection_error(error) from None
        except Exception as error:  # from a library that reads keys, so its text may contain a key
            await self._close_half_open()
            remedy = "give an unchanged .creds file, or the seed of an nkey"
            reason = f"the credentials for {self.target} cannot be used: {type(error).__name__}"
            raise AccessInvalid(f"{reason}; {remedy}") from None

    async def _close_half_open(self) -> None:
        """Close a half-open connection.

        Waits at most `CLOSES_WITHIN` seconds, because asyncio never reports the end of a connection whose TLS failed.
        """
        self._is_opening = False
        if self._client.is_connecting:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSES_WITHIN):
                    await self._client.close()

    def _connection_error(self, error: Exception | None) -> NoServer:
        if self._is_ended:
            return NoServer(f"this program closed its connection to NATS at {self.target}; send before closing it")
        refusal = next((each for each in (error, self._last_error) if each is not None and _is_refusal(each)), None)
        if refusal is not None:
            reason = f"the connection to the NATS server at {self.target} was refused: {self._error_text(refusal)}"
            return AccessRefused(f"{reason}; {_remedy_for(refusal)}")
        reason = self.trouble or self._error_text(error or ConnectionError("it was lost"))
        remedy = "start nats-server there, or give the URL of another server"
        return NoServer(f"no NATS server at {self.target} within {self._patience:g} s: {reason}; {remedy}")

    def _error_text(self, error: Exception) -> str:
        return one_line(without_secrets(str(error) or type(error).__name__, self._addresses), 200)

    async def publish(self, subject: str, body: bytes, reply: str = "") -> None:
        """Send a message. Raises NoServer if the connection is closed or lost for good."""
        task = asyncio.current_task()
        earlier_cancellations = task.cancelling() if task else 0
        try:
            await self._client.publish(subject, body, reply)
        except nats.errors.Error as error:
            raise self._connection_error(error) from None
        if task and task.cancelling() > earlier_cancellations:  # nats-py swallows a cancellation while it waits
            raise asyncio.CancelledError

    async def subscribe(self, subject: str, handler: Handler, queue: str = "") -> Subscription:
        """Call `handler` with each message of a subject. Return the subscription.

        With `queue`, the name of a queue group, only one subscriber of the group receives each message. Raises NoServer
        if the connection is closed or lost for good.
        """
        try:
            return await self._client.subscribe(
                subject, queue, cb=handler, pending_msgs_limit=_UNBOUNDED, pending_bytes_limit=_UNBOUNDED
            )
        except nats.errors.Error as error:
            raise self._connection_error(error) from None

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription. Messages that arrived, but were not handled yet, are dropped."""
        with suppress(nats.errors.Error):
            await subscription.unsubscribe()

    async def drain(self, subscription: Subscription) -> None:
        """End a subscription after all messages that the server already sent for it were handled.

        Does the same as nats-py's own `drain`, with nats-py's functions. But nats-py's ping overtakes the message that
        ends the subscription (see `flush`), so messages that the server sends between the two would be dropped.
        """
        with suppress(nats.errors.Error, NoServer):
            await self._client._send_unsubscribe(subscription._id)
            await self.flush()
            await subscription._pending_queue.join()
            await subscription.unsubscribe()

    async def check_subscriptions(self) -> None:
        """Wait until the server knows the subscriptions. If permissions forbid one, close and raise AccessRefused."""
        await self.flush()
        if self._refused_subscription is not None:
            await self.close()
            raise self._refused_subscription

    async def flush(self) -> None:
        """Wait until the server has received everything that was sent, including subscriptions. Raises NoServer.

        nats-py's ping overtakes data that its flusher has not written yet. The flusher writes while the answer to the
        first ping is awaited, so the second ping follows everything that was sent.
        """
        try:
            await self._client.flush()
            await self._client.flush()
        except nats.errors.Error as error:
            raise self._connection_error(error) from None

    def new_inbox(self) -> str:
        """Return a new unique subject, with the inbox prefix, for replies."""
        return self._client.new_inbox()

    async def wait_until_up(self) -> None:
        """Wait until the server is connected. Raises NoServer if the connection is lost for good."""
        while not self._client.is_connected:
            if not self.is_open:
                raise self._connection_error(self._client.last_error)
            waiting = self.loop.create_task(self._up.wait())
            try:
                await asyncio.wait((waiting, self.gone), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if not self._owned:  # the callbacks of a client that the user passed are not set here
                await asyncio.sleep(RECONNECT_WAIT)

    @property
    def is_up(self) -> bool:
        """True if the server is connected now."""
        return self._client.is_connected

    async def close(self) -> None:
        """Close the connection. A client that the user passed stays open.

        Calls that still wait for the server raise NoServer.
        """
        self._is_ended = True
        if self._owned and not self._client.is_closed:
            await self._client.close()
        self._set_gone(None)

    def _set_gone(self, error: Exception | None) -> None:
        if not self.gone.done():
            self.gone.set_result(self._connection_error(error))

    async def _on_error(self, error: Exception) -> None:
        error_text = self._error_text(error)
        logger.debug("nats at %s: %s", self.target, error_text)
        is_subscription, subject = _parse_permission_error(error_text)
        if subject:
            remedy = "grant the user this permission in the server's configuration"
            refused = AccessRefused(f"the NATS server at {self.target} refuses: {error_text}; {remedy}")
            logger.warning("%s", refused)
            self._refused_subscription = self._refused_subscription or (refused if is_subscription else None)
            self.on_refused(subject, refused)
            return
        self._last_error = error
        self._refusals += _is_refusal(error)
        if self._is_opening and self._refusals >= len(self._addresses):  # all servers refused: another try is useless
            raise self._connection_error(error)

    async def _on_disconnected(self) -> None:
        self._up.clear()
        if not self._client.is_closed:
            logger.warning("the connection to the NATS server at %s is lost; reconnecting", self.target)

    async def _on_reconnected(self) -> None:
        self._last_error = None
        self._up.set()
        logger.warning("reconnected to the NATS server at %s", self.target)

    async def _on_closed(self) -> None:
        self._set_gone(self._client.last_error)


def _is_refusal(error: Exception | None) -> bool:
    """Return whether an error is a failed login or failed TLS, so that another attempt is useless."""
    if isinstance(error, ssl.SSLError | nats.errors.SecureConnWantedError | nats.errors.AuthorizationError):
        return True
    return isinstance(error, nats.errors.Error) and bool(_LOGIN.search(str(error)))


def _remedy_for(refusal: Exception) -> str:
    """Return the remedy for an error of the login or of TLS."""
    if isinstance(refusal, ssl.SSLError) or _TLS.search(str(refusal)):
        own = "if the server requires a client certificate, also its file and its key's (NATS_CERT and NATS_KEY)"
        return f"give the file of the CA that signed the server's certificate (ca=…, or NATS_CA), and {own}"
    return "give valid credentials: Access(…), or NATS_CREDS, NATS_NKEY, NATS_TOKEN, or NATS_USER with NATS_PASSWORD"


def _parse_permission_error(error_text: str) -> tuple[bool, str]:
    """Parse a NATS permissions error. Return whether a subscription is forbidden, and the subject in lower case.

    Returns (False, "") for any other error.
    """
    match = _SUBJECT.search(error_text)
    return (False, "") if match is None else (match[1].lower() == "subscription", match[2].lower())
