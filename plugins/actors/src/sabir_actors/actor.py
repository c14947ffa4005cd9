"""An actor: one message at a time, each validated first, answered once, whatever goes wrong (CH-13, CH-39 … CH-45).

    receive(message) ─▶ validated ─▶ answered before? ─▶ mailbox ─▶ handler ─▶ Response
                            │              │                │          └ raised, or too late ─▶ ErrorResponse
                            └ ERROR        └ that answer    └ full ─▶ ERROR

Heartbeats, status and stop are answered while another message is handled. A handler is a method `on_<type>`.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from sabir.errors import one_line

from sabir_actors import data as typed
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.protocol import AEIOUY, Message, Response, data_of, now, validate_message

if TYPE_CHECKING:
    from sabir_actors.system import ActorSystem

logger = logging.getLogger("sabir.actors")
MAILBOX = 1000
"""Messages that may wait at one actor."""
REMEMBERED = 1000
"""Answers that an actor keeps for messages that are delivered twice; those of a thread are in its journal too."""
LONGEST = 600.0
"""Seconds that a message may take, its wait in the mailbox included."""
Handled: TypeAlias = typed.Data | Mapping[str, Any] | Response
"""What a handler gives: the data of the response, or a whole one."""


class Actor:
    """The base of all actors. A subclass handles messages of a type by a coroutine method `on_<type>`, lower case.

    An ActorError that it raises becomes an ERROR of its code. Any other exception is logged, told to the supervisor,
    and becomes an ERROR; the actor goes on.
    """

    immediate: ClassVar[frozenset[str]] = frozenset({"HEARTBEAT", "STOP"})
    """Types that are handled while another message is."""

    def __init__(
        self, actor_id: str, system: "ActorSystem", *, mailbox: int = MAILBOX, longest: float = LONGEST
    ) -> None:
        self.actor_id = actor_id
        self.system = system
        self.phases: tuple[str, ...] = AEIOUY
        """Phase types that validation allows."""
        self._mailbox, self._longest = mailbox, longest
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._is_stopped = False
        self._began = monotonic()
        self._running: dict[str, asyncio.Task[Response]] = {}
        self._answers: OrderedDict[str, Response] = OrderedDict()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.actor_id}>"

    async def receive(self, message: Message) -> Response:
        """Answer a message; nothing is ever raised but the caller's own cancellation, and the work goes on then."""
        running = self._running.get(message.id)
        if running is None:
            found = self._answers.get(message.id) or self._refusal(message)
            if found is not None:
                return found
            running = asyncio.ensure_future(self._answer(message))
            self._running[message.id] = running
            running.add_done_callback(lambda _: self._running.pop(message.id, None))
        return await asyncio.shield(running)

    def _refusal(self, message: Message) -> Response | None:
        """Why a message is not even taken in; an answer that was given before a restart."""
        try:
            validate_message(message, self.phases)
            if self._is_stopped:
                raise ActorError(ErrorCode.STOPPED, f"actor {self.actor_id} is stopped; send to another")
            if self._waiting >= self._mailbox and message.type not in self.immediate:
                full = (
                    f"{self._waiting} messages wait at actor {self.actor_id}, as many as it takes; send it again later"
                )
                raise ActorError(ErrorCode.MAILBOX_FULL, full, retryable=True)
            return self.answered(message)
        except ActorError as error:
            return message.error(error)

    def answered(self, message: Message) -> Response | None:
        """The answer that a message was given earlier, for actors whose answers outlive them."""
        return None

    async def _answer(self, message: Message) -> Response:
        self.system.log(message)
        self._waiting += 1
        try:
            async with asyncio.timeout(self._longest):
                if message.type in self.immediate:
                    response = await self._handle(message)
                else:
                    async with self._turn:
                        response = await self._handle(message)
        except TimeoutError:
            late = f"{message.type} was not done in {self._longest:g} s at actor {self.actor_id}"
            response = message.error(ActorError(ErrorCode.TIMEOUT, late, retryable=True))
        except ActorError as error:
            response = message.error(error)
        except Exception as error:
            logger.exception("%s %s failed at %s", message.type, message.id, self.actor_id)
            reason = one_line(f"Error processing message: {type(error).__name__}: {error}")
            failure = ActorError(ErrorCode.FAILED, reason)
            response = message.error(failure)
            await self.system.notify_supervisor(self, message, failure)
        finally:
            self._waiting -= 1
        self._answers[message.id] = response
        if len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)
        self.system.log(response)
        return response

    async def _handle(self, message: Message) -> Response:
        if self._is_stopped and message.type != "STOP":
            raise ActorError(ErrorCode.STOPPED, f"actor {self.actor_id} is stopped; send to another")
        name = message.type.lower()
        handler: Callable[[Message], Awaitable[Handled]] | None = getattr(self, f"on_{name}", None)
        if handler is None or not name.isidentifier():
            raise ActorError(ErrorCode.UNKNOWN_TYPE, f"Unknown message type: {message.type}")
        given = await handler(message)
        return given if isinstance(given, Response) else message.response(given)

    async def stop(self) -> None:
        """Take no more messages."""
        if not self._is_stopped:
            self._is_stopped = True
            await self.stopping()

    def abandon(self) -> None:
        """Cancel what is being handled; who waits for it is answered with nothing."""
        for task in list(self._running.values()):
            task.cancel()

    async def drained(self) -> None:
        """Wait until everything that was taken in is answered."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    # What every actor answers

    async def on_heartbeat(self, message: Message) -> Handled:
        """Alive, since when, and how full the mailbox is."""
        uptime = monotonic() - self._began
        return typed.HeartbeatResponse(uptime=uptime, load=max(self._waiting - 1, 0) / self._mailbox)

    async def on_stop(self, message: Message) -> Handled:
        """Take no more messages; what is being handled ends first."""
        await self.stop()
        return typed.StopComplete(actor_id=self.actor_id, stopped_at=now())

    async def on_restart(self, message: Message) -> Handled:
        """Forget what is volatile, and go on under the same id."""
        await self.restarting()
        return typed.RestartComplete(actor_id=self.actor_id, restarted_at=now())

    async def on_error(self, message: Message) -> Handled:
        """An error that another actor tells of."""
        told = data_of(message, typed.ErrorData)
        logger.warning("%s was told of an error: %s", self.actor_id, one_line(told.error_message, 200))
        return typed.ErrorAcknowledged(actor_id=self.actor_id, action_taken="logged")

    async def restarting(self) -> None:
        """What a subclass does when it is restarted."""

    async def stopping(self) -> None:
        """What a subclass does when it is stopped."""
