"""An actor handles one message at a time, each validated first, and answers each once; a host takes messages to it.

    send_message(message) ─▶ the actor `message.receiver` ─▶ its Response        no such receiver: a dead letter, ERROR

    receive(message) ─▶ answered before? ─▶ validated ─▶ mailbox ─▶ handler ─▶ validated ─▶ Response
                              │                 │           │          └ raised, too late, interrupted ─▶ ErrorResponse
                              └ that answer     └ ERROR     └ full ─▶ ERROR

Heartbeats, status, restart and stop are answered while another message is handled. A handler is a method `on_<type>`.
It runs in a task of its own: a cancellation within it is its error, and only one from outside ends its message.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cached_property
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from itertools import takewhile
from time import monotonic
from typing import Any, ClassVar, TypeAlias, TypeVar

from pydantic import BaseModel
from sabir.authoring import one_line
from sabir_session.state.codec import now

from sabir_actors import data as typed
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.observers import log, logger, spanned
from sabir_actors.protocol import AEIOUY, AnyMessage, Message, Response, data_of, validate_message
from sabir_actors.resources import SharedResources

THREADS = "threads"
"""Id of the actor of threads that every system has."""
MAILBOX = 1000
"""How many messages may wait at one actor."""
REMEMBERED = 1000
"""How many answers an actor keeps for messages delivered twice, and how many failed messages for RETRY; the answers of
a thread are in its journal too."""
CLEANUP = 1.0
"""Seconds that an interrupted handler has to clean up; then the actor continues without waiting for it."""
Handled: TypeAlias = typed.Data | Mapping[str, Any] | Response
"""A handler's result: the data of the response, or a whole response."""


class Actor:
    """The base of all actors. A subclass handles messages of a type by a coroutine method `on_<type>`, lower case.

    An ActorError that it raises becomes an ERROR of its code. Any other exception is logged, reported to the
    supervisor, and becomes an ERROR; the actor continues. So does a cancellation that comes from the handler itself,
    and a response whose data does not fit its type. The envelope of a response is that of the answer to its message.
    """

    immediate: ClassVar[frozenset[str]] = frozenset({"HEARTBEAT", "STOP", "RESTART"})
    """Types that are handled at once, even while another message is handled."""

    def __init__(
        self, actor_id: str, system: "ActorHost", *, mailbox: int = MAILBOX, longest: float | None = None
    ) -> None:
        self.actor_id = actor_id
        self.system = system
        self.phases: tuple[str, ...] = AEIOUY
        """Phase types that validation allows."""
        self._mailbox, self._longest = mailbox, system.restarts.timeout if longest is None else longest
        self._turn = asyncio.Lock()
        self._is_stopped = False
        self._ending: asyncio.Task[None] | None = None
        self._began = monotonic()
        self._running: dict[str, asyncio.Task[Response]] = {}
        self._handlers: dict[str, asyncio.Future[Handled]] = {}
        """Id of a message → its running handler, in the order in which they began."""
        self._may_begin = asyncio.Event()
        """Set unless the actor is restarting: no waiting message begins then."""
        self._may_begin.set()
        self._restarting = 0
        """How many RESTARTs are being handled."""
        self._given_up: dict[str, ActorError] = {}
        """Id of an interrupted message → the error that answers it."""
        self._answers: OrderedDict[str, Response] = OrderedDict()
        self._failed: OrderedDict[str, Message] = OrderedDict()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.actor_id}>"

    def _request(
        self, message_type: str, said: Mapping[str, Any], receiver: str, correlation_id: str | None, **envelope: Any
    ) -> Message:
        """A message from this actor to another."""
        return Message(
            type=message_type,
            data=said,
            sender=self.actor_id,
            receiver=receiver,
            correlation_id=correlation_id,
            **envelope,
        )

    async def receive(self, message: Message) -> Response:
        """Answer a message; raises only the caller's own cancellation, after which the work continues."""
        running = self._running.get(message.id)
        if running is None:
            found = self._answers.get(message.id)
            if found is not None:
                return found
            self.system.log(message)
            refusal = self._refusal(message)
            if refusal is not None:
                self.system.log(refusal)
                return refusal
            running = asyncio.ensure_future(self.system.spanned(message, self._answer))
            self._running[message.id] = running
            reason = f"{message.type} was not done in {self._longest:g} s at actor {self.actor_id}"
            error = ActorError(ErrorCode.TIMEOUT, reason, retryable=True)
            late = running.get_loop().call_later(self._longest, self._give_up, message.id, error)
            running.add_done_callback(lambda _: self._done(message.id, late))
        return await asyncio.shield(running)

    def _done(self, message_id: str, late: asyncio.TimerHandle) -> None:
        late.cancel()
        del self._running[message_id]

    def _refusal(self, message: Message) -> Response | None:
        """The response to a message that is refused before it is queued; None for others."""
        try:
            validate_message(message, self.phases)
            self._check_works()
            waiting = len(self._running)
            if waiting >= self._mailbox and message.type not in self.immediate:
                full = f"{waiting} messages wait at actor {self.actor_id}, as many as it takes; send it again later"
                raise ActorError(ErrorCode.MAILBOX_FULL, full, retryable=True)
        except ActorError as error:
            return message.error(error)
        return None

    def _check_works(self) -> None:
        if self._is_stopped:
            raise ActorError(ErrorCode.STOPPED, f"actor {self.actor_id} is stopped; send to another")

    async def _answer(self, message: Message) -> Response:
        try:
            response = await self._outcome(message)
        except asyncio.CancelledError:
            error = self._given_up.get(message.id)
            if error is None:
                raise
            response = message.error(error)
        self._given_up.pop(message.id, None)
        if response.is_error and message.type != "RETRY":
            _keep(self._failed, message.id, message)
        if response.data.get("error_code") != ErrorCode.RECORDING_FAILED:  # nothing was done: a retry may help
            _keep(self._answers, message.id, response)
        self.system.log(response)
        return response

    async def _outcome(self, message: Message) -> Response:
        """The handler's response, or the ERROR for its exception."""
        if message.id in self._given_up:
            raise asyncio.CancelledError
        try:
            return await self._in_turn(message)
        except ActorError as error:
            return message.error(error)
        except (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError):
            raise
        except BaseException as error:
            if isinstance(error, BaseExceptionGroup) and error.subgroup((KeyboardInterrupt, SystemExit)):
                raise
            reason = one_line(f"Error processing message: {type(error).__name__}: {error}")
            logger.error("%s %s failed at %s: %s", message.type, message.id, self.actor_id, reason)
            logger.debug("%s %s failed", message.type, message.id, exc_info=True)
            failure = ActorError(ErrorCode.FAILED, reason)
            await self.system.notify_supervisor(self, message, failure)
            return message.error(failure)

    async def _in_turn(self, message: Message) -> Response:
        """The handler's response, once it is this message's turn."""
        if message.type in self.immediate:
            return await self._handle(message)
        async with self._turn:
            await self._may_begin.wait()
            self._check_works()
            return await self._handle(message)

    async def _handle(self, message: Message) -> Response:
        name = f"on_{message.type.lower()}"
        handler: Callable[[Message], Awaitable[Handled]] | None = getattr(self, name, None)
        if handler is None or message.type != message.type.upper():
            raise ActorError(ErrorCode.UNKNOWN_TYPE, f"Unknown message type: {message.type}")
        return self._checked(message, await self._performed(message, handler))

    async def _performed(self, message: Message, handler: Callable[[Message], Awaitable[Handled]]) -> Handled:
        """Run a handler in a task of its own; a cancellation of the present task interrupts the handler.

        Raises HandlerCancelled if the handler, or a task that it waits for, was cancelled otherwise.
        """
        work = asyncio.ensure_future(handler(message))
        self._handlers[message.id] = work
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            work.cancel()
            work.add_done_callback(_ignore_result)
            await asyncio.wait([work], timeout=CLEANUP)
            if not work.done():
                logger.warning("a handler of %s at %s does not end; nobody waits", message.type, self.actor_id)
            elif message.id in self._given_up and not work.cancelled() and work.exception() is None:
                return work.result()  # it was done nevertheless
            raise
        finally:
            del self._handlers[message.id]
        if work.cancelled():
            raise HandlerCancelled("the handler, or a task that it waits for, was cancelled, and not by its caller")
        return work.result()

    def _checked(self, message: Message, result: object) -> Response:
        """Return the response of a handler's result; raise HandlerInvalid if its data does not fit its type."""
        if isinstance(result, Response):
            response = message.answered_by(result)
        elif isinstance(result, Mapping):
            response = message.response(result)
        elif isinstance(result, BaseModel) and not isinstance(result, Message):
            response = message.response(result.model_dump(mode="json"))
        else:
            raise HandlerInvalid(f"the handler returned a {type(result).__name__}; return data or a Response")
        try:
            validate_message(response, self.phases)
        except ActorError as error:
            raise HandlerInvalid(f"the handler's response is invalid: {error}") from None
        return response

    async def stop(self) -> None:
        """Take no more messages; messages being handled are finished, then the actor calls `stopping`."""
        if self._ending is None:
            self._is_stopped = True
            self._ending = asyncio.ensure_future(self._end())

    async def _end(self) -> None:
        async with self._turn:
            try:
                await self.stopping()
            except (Exception, asyncio.CancelledError) as error:
                logger.warning("actor %s did not end well: %s", self.actor_id, one_line(f"{error!r}"))

    def abandon(self, *message_ids: str) -> None:
        """Interrupt the messages being handled, or only these; their senders get an ERROR (STOPPED)."""
        for message_id in message_ids or tuple(self._running):
            reason = f"the message {message_id} was given up at actor {self.actor_id} before it was done"
            self._give_up(message_id, ActorError(ErrorCode.STOPPED, reason))

    def _give_up(self, message_id: str, error: ActorError) -> None:
        """Interrupt a message, and answer it with that error."""
        task = self._running.get(message_id)
        if task is not None and not task.done() and message_id not in self._given_up:
            self._given_up[message_id] = error
            work = task.get_coro()
            if not iscoroutine(work) or getcoroutinestate(work) != CORO_CREATED:
                task.cancel()  # a task that has not begun checks this itself

    async def drained(self, within: float | None = None) -> None:
        """Wait until all accepted messages are answered, and a stopped actor has finished stopping.

        After `within` seconds, if given, the messages and `stopping` are interrupted.
        """
        until = None if within is None else monotonic() + within
        while self._running:
            late = until is not None and monotonic() >= until
            if late:
                self.abandon()
            await asyncio.wait(list(self._running.values()), timeout=CLEANUP if late else _left(until))
        if self._ending is not None:
            await asyncio.wait([self._ending], timeout=_left(until))
            if not self._ending.done():
                logger.warning("actor %s does not end; it is interrupted", self.actor_id)
                self._ending.cancel()
                await asyncio.wait([self._ending], timeout=CLEANUP)

    # What every actor answers

    async def on_heartbeat(self, message: Message) -> Handled:
        """Report that it is alive, since when, and how full the mailbox is."""
        uptime, others = monotonic() - self._began, len(self._running) - 1
        return typed.HeartbeatResponse(uptime=uptime, load=min(others / self._mailbox, 1.0))

    async def on_stop(self, message: Message) -> Handled:
        """Take no more messages; those being handled are finished, waiting ones get an ERROR."""
        self._check_meant(message)
        await self.stop()
        return typed.StopComplete(actor_id=self.actor_id, stopped_at=now())

    async def on_restart(self, message: Message) -> Handled:
        """Discard volatile state, and continue under the same id.

        Messages that are being handled may end within the policy's `patience`; then they are interrupted. No waiting
        message begins before the restart is complete.
        """
        self._check_meant(message)
        self._restarting += 1
        self._may_begin.clear()
        try:
            await self._interrupt_before(message.id)
            await self.restarting()
        finally:
            self._restarting -= 1
            if not self._restarting:
                self._may_begin.set()
        return typed.RestartComplete(actor_id=self.actor_id, restarted_at=now())

    async def _interrupt_before(self, message_id: str) -> None:
        """Wait for the handlers that began before a message's; interrupt those that do not end."""
        earlier = list(takewhile(lambda each: each != message_id, self._handlers))
        handlers = [self._handlers[each] for each in earlier]
        if handlers:
            await asyncio.wait(handlers, timeout=self.system.restarts.patience)
        for each in (each for each in earlier if each in self._handlers):
            reason = f"the message {each} was interrupted by a RESTART of actor {self.actor_id}; send it again"
            self._give_up(each, ActorError(ErrorCode.STOPPED, reason, retryable=True))
        late = [work for work in handlers if not work.done()]
        if late:
            await asyncio.wait(late, timeout=CLEANUP)

    async def on_error(self, message: Message) -> Handled:
        """Handle an error that another actor reports."""
        told = data_of(message, typed.ErrorData)
        logger.warning("%s was told of an error: %s", self.actor_id, one_line(told.error_message, 200))
        return typed.ErrorAcknowledged(actor_id=self.actor_id, action_taken="logged")

    async def on_retry(self, message: Message) -> Handled:
        """Handle a message again that failed here; the response has the original's type."""
        again = data_of(message, typed.Retry)
        original = self._failed.get(again.original_message_id)
        if original is None:
            reason = f"no message {again.original_message_id} failed here; send it anew"
            raise ActorError(ErrorCode.UNKNOWN_MESSAGE, reason)
        if again.attempt > again.max_attempts:
            reason = f"attempt {again.attempt} of {again.max_attempts}: no further one is made"
            raise ActorError(ErrorCode.RETRIES_EXHAUSTED, reason)
        response = await self._handle(original)
        if not response.is_error:
            self._failed.pop(original.id, None)
        return response

    async def restarting(self) -> None:
        """A subclass's actions at a restart."""

    async def stopping(self) -> None:
        """A subclass's actions after it was stopped and no message is being handled."""

    def _check_meant(self, message: Message) -> None:
        meant = data_of(message, typed.ActorReason).actor_id
        if meant != self.actor_id:
            reason = f"{message.type} is about actor {meant!r} and came to {self.actor_id!r}; send it to that actor"
            raise ActorError(ErrorCode.INVALID_MESSAGE, reason)


class HandlerCancelled(Exception):
    """A handler's own cancellation."""


class HandlerInvalid(Exception):
    """A handler's result is not a valid response."""


def _ignore_result(work: "asyncio.Future[Any]") -> None:
    """Retrieve the exception of a handler that nobody waits for, so that asyncio does not log it."""
    with suppress(asyncio.CancelledError):
        work.exception()


def _left(until: float | None) -> float | None:
    """Return the seconds until a time, None for no limit."""
    return None if until is None else max(0.0, until - monotonic())


Kept = TypeVar("Kept")


def _keep(kept: OrderedDict[str, Kept], key: str, value: Kept) -> None:
    """Keep a value, of REMEMBERED the latest."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)


class ActorHost(SharedResources):
    """Holds actors: it has their shared resources, finds them, and delivers messages to them."""

    @cached_property
    def _actors(self) -> dict[str, Actor]:
        """Id → actor, in the order in which they were added."""
        return {}

    _leaves_at: float | None = None
    """The time at which messages that are being handled are interrupted, once the system stops."""

    def add(self, actor: Actor) -> None:
        """Add an actor; raises ActorError if another has its id."""
        if self._actors.setdefault(actor.actor_id, actor) is not actor:
            raise ActorError(ErrorCode.INVALID_CONFIG, f"an actor {actor.actor_id!r} is here already; give another id")

    def remove(self, actor_id: str) -> None:
        """Remove an actor."""
        self._actors.pop(actor_id, None)

    def actors(self) -> tuple[str, ...]:
        """Ids of all actors, in the order in which they were added."""
        return tuple(self._actors)

    def get_actor(self, actor_id: str) -> Actor:
        """The actor of that id; raises ActorError (UNKNOWN_ACTOR) if there is none."""
        found = self._actors.get(actor_id)
        if found is None:
            raise ActorError(ErrorCode.UNKNOWN_ACTOR, f"no actor {actor_id!r} is here; see system.actors()")
        return found

    async def send_message(self, message: Message) -> Response:
        """Deliver a message to its receiver; returns the response, an ErrorResponse if the receiver is unknown.

        Raises ActorError, a ValueError, for a message without a receiver.
        """
        if not message.receiver:
            raise ActorError(ErrorCode.INVALID_MESSAGE, "Message must have a receiver; set receiver= to an actor's id")
        try:
            actor = self.get_actor(message.receiver)
        except ActorError as error:
            self.bury(message)
            return message.error(error)
        return await actor.receive(message)

    def bury(self, message: AnyMessage) -> None:
        """Keep and count a message without a receiver."""
        self.dead_letters.append(message)
        self.dead_count += 1
        logger.warning("no receiver for %s %s to %s", message.type, message.id, message.receiver)

    def log(self, message: AnyMessage) -> None:
        """Tell of one message on its way; the log has nothing of its contents."""
        log(message, self._trace)

    async def spanned(self, message: Message, answer: Callable[[Message], Coroutine[Any, Any, Response]]) -> Response:
        """What `answer` makes of a message, within the block that `spans` makes for it."""
        return await spanned(message, answer, self._spans)

    async def notify_supervisor(self, actor: Actor, message: Message, error: ActorError) -> Response | None:
        """Report an actor's error to the supervisor; returns its answer, None if there is no supervisor."""
        if self.supervisor_id not in self._actors or self.supervisor_id in (actor.actor_id, message.sender):
            return None
        details = {"message_id": message.id, "message_type": message.type, "retryable": error.retryable}
        said = {"actor_id": actor.actor_id, "error_message": str(error), "error_code": error.code.value, **details}
        told = actor._request("ERROR_NOTIFICATION", said, self.supervisor_id, message.correlation_id)
        return await self.send_message(told)

    async def stop(self) -> None:
        """Stop every actor, the latest first, and close their adapters.

        Messages that are being handled may end within the policy's `leaving` seconds; then all that are left are
        interrupted. What does not end within a second after that is left behind, and logged.
        """
        self._leaves_at = monotonic() + self.restarts.leaving
        await self.let_go(THREADS)  # its runs wait for the others
        if self.queue is not None:
            await self._bounded(self.queue.aclose(), "the queue")
        for actor_id in reversed(self.actors()):
            if not self._seconds_left():
                break
            await self.let_go(actor_id)
        await asyncio.gather(*map(self.let_go, self.actors()))
        await self._bounded(self.adapters.aclose(), "the adapters")

    async def let_go(self, actor_id: str) -> None:
        """Stop one actor, wait until it has answered its messages, and remove it.

        Messages that are being handled may end within the policy's `leaving` seconds; then they are interrupted.
        """
        actor = self._actors.get(actor_id)
        if actor is not None:
            await actor.stop()
            await actor.drained(self._seconds_left())
            self.remove(actor_id)

    def _seconds_left(self) -> float:
        """Return the seconds that messages may still take."""
        return self.restarts.leaving if self._leaves_at is None else max(0.0, self._leaves_at - monotonic())

    async def _bounded(self, closing: Coroutine[Any, Any, object], name: str) -> None:
        """Close a resource; interrupt the closing when the time of leaving is over."""
        task = asyncio.ensure_future(closing)
        try:
            await asyncio.wait([task], timeout=self._seconds_left() + CLEANUP)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            task.result()
            return
        task.cancel()
        logger.warning("%s did not close in %g s; it is left behind", name, self.restarts.leaving)
