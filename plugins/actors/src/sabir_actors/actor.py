"""Actor and ActorHost: an actor handles one valid message at a time, and a host delivers messages to actors.

    send_message(message) ─▶ the actor `message.receiver` ─▶ its Response        unknown receiver: dead letter, ERROR

    receive(message) ─▶ answered before? ─▶ validated ─▶ mailbox ─▶ handler ─▶ validated ─▶ Response
                              │                 │           │          └ raised, too late, interrupted ─▶ ErrorResponse
                              └ same answer     └ ERROR     └ full ─▶ ERROR

Heartbeats, status, restart and stop are answered while another message is handled. Each handler runs in its own task.
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
from sabir_actors.errors import ActorError, ErrorCode, HandlerCancelled, HandlerInvalid
from sabir_actors.observers import answer_in_span, log, logger
from sabir_actors.protocol import AEIOUY, AnyMessage, Message, Response, data_of, validate_message
from sabir_actors.resources import SharedResources, close_in_time

THREADS = "threads"
"""The id of the actor of all threads in every system."""
MAILBOX = 1000
"""The default maximum number of unanswered messages at an actor, including the message being handled."""
REMEMBERED = 1000
"""The largest number of responses that an actor remembers for repeated messages, and of failed messages for RETRY."""
CLEANUP = 1.0
"""The maximum number of seconds that an actor waits for an interrupted handler to end."""
HandlerResult: TypeAlias = typed.Data | Mapping[str, Any] | Response
"""A handler's return value: the data of the response, or a complete Response."""


class Actor:
    """The base class of actors. A subclass handles messages of an upper-case type TYPE in an async method `on_type`.

    A handler returns the response's data, or a Response. If it raises ActorError, the sender receives an ERROR with
    this code. Any other Exception, or invalid data, is logged, reported to a supervisor, and answered with FAILED.
    `mailbox` is the maximum number of unanswered messages; another message gets the ERROR MAILBOX_FULL, unless its type
    is in `immediate`. `longest` is the time limit of one message in seconds, including its wait in the mailbox, by
    default `RestartPolicy.timeout`.

    >>> import asyncio
    >>> from sabir_actors import Actor, ActorSystem, Message
    >>> class Greeter(Actor):
    ...     async def on_greet(self, message):
    ...         return {"text": f"Hello, {message.data['name']}!"}
    >>> async def main():
    ...     async with ActorSystem() as system:
    ...         system.add(Greeter("greeter", system))
    ...         return await system.send_message(Message(type="GREET", data={"name": "Ada"}, receiver="greeter"))
    >>> asyncio.run(main()).data["text"]
    'Hello, Ada!'
    """

    immediate: ClassVar[frozenset[str]] = frozenset({"HEARTBEAT", "STOP", "RESTART"})
    """Message types that are handled at once, even while another message is being handled."""

    def __init__(
        self, actor_id: str, system: "ActorHost", *, mailbox: int = MAILBOX, longest: float | None = None
    ) -> None:
        self.actor_id = actor_id
        self.system = system
        self.phases: tuple[str, ...] = AEIOUY
        """The phase names that are valid as `phase_type` in messages to this actor."""
        self._mailbox, self._longest = mailbox, system.restarts.timeout if longest is None else longest
        self._turn_lock = asyncio.Lock()
        self._is_stopped = False
        self._stop_task: asyncio.Task[None] | None = None
        self._started_at = monotonic()
        self._running: dict[str, asyncio.Task[Response]] = {}
        self._handlers: dict[str, asyncio.Future[HandlerResult]] = {}
        """Id of a message → its running handler, in order of their start."""
        self._may_begin = asyncio.Event()
        """Cleared during a restart, so that no handler of a waiting message starts."""
        self._may_begin.set()
        self._restarting = 0
        """The number of RESTARTs that are being handled."""
        self._interruptions: dict[str, ActorError] = {}
        """Id of an interrupted message → the error of its response."""
        self._answers: OrderedDict[str, Response] = OrderedDict()
        self._failed: OrderedDict[str, Message] = OrderedDict()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.actor_id}>"

    def _request(
        self, message_type: str, fields: Mapping[str, Any], receiver: str, correlation_id: str | None, **envelope: Any
    ) -> Message:
        """Return a message from this actor to the actor `receiver`. `fields` is its data."""
        return Message(
            type=message_type,
            data=fields,
            sender=self.actor_id,
            receiver=receiver,
            correlation_id=correlation_id,
            **envelope,
        )

    async def receive(self, message: Message) -> Response:
        """Handle a message and return its response, an ErrorResponse for errors.

        If the actor is handling a message with this id, or answered it recently, return the response to that message.
        The ERROR RECORDING_FAILED, and refusals of a message on its arrival (its data is invalid, the actor is stopped,
        the mailbox is full), are not remembered, so these messages can be sent again.
        """
        running = self._running.get(message.id)
        if running is None:
            if (earlier_response := self._answers.get(message.id)) is not None:
                return earlier_response
            self.system.log(message)
            if (refusal := self._refuse_early(message)) is not None:
                self.system.log(refusal)
                return refusal
            running = asyncio.ensure_future(self.system.answer_in_span(message, self._answer_message))
            self._running[message.id] = running
            time_limit = running.get_loop().call_later(self._longest, self._interrupt_late, message)
            running.add_done_callback(lambda _: self._end_message(message.id, time_limit))
        return await asyncio.shield(running)

    def _end_message(self, message_id: str, time_limit: asyncio.TimerHandle) -> None:
        time_limit.cancel()
        del self._running[message_id]

    def _refuse_early(self, message: Message) -> Response | None:
        """Return the ERROR for an invalid message, a stopped actor or a full mailbox; None if nothing is wrong."""
        try:
            validate_message(message, self.phases)
            self._check_not_stopped()
            waiting = len(self._running)
            if waiting >= self._mailbox and message.type not in self.immediate:
                full = f"actor {self.actor_id} has {waiting} messages, its maximum; send the message again later"
                raise ActorError(ErrorCode.MAILBOX_FULL, full, retryable=True)
        except ActorError as error:
            return message.error(error)
        return None

    def _check_not_stopped(self) -> None:
        if self._is_stopped:
            raise ActorError(ErrorCode.STOPPED, f"actor {self.actor_id} is stopped; send to another actor")

    async def _answer_message(self, message: Message) -> Response:
        try:
            response = await self._respond(message)
        except asyncio.CancelledError:
            error = self._interruptions.get(message.id)
            if error is None:
                raise
            response = message.error(error)
        self._interruptions.pop(message.id, None)
        if response.is_error and message.type != "RETRY":
            _remember(self._failed, message.id, message)
        # The ERROR RECORDING_FAILED is not remembered, so that the same message can be sent again.
        if response.data.get("error_code") != ErrorCode.RECORDING_FAILED:
            _remember(self._answers, message.id, response)
        self.system.log(response)
        return response

    async def _respond(self, message: Message) -> Response:
        """Return the handler's response, or the ERROR for its exception."""
        if message.id in self._interruptions:
            raise asyncio.CancelledError
        try:
            return await self._handle_in_turn(message)
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

    async def _handle_in_turn(self, message: Message) -> Response:
        """Wait for the messages before this one, and return the handler's response. Immediate messages do not wait."""
        if message.type in self.immediate:
            return await self._handle(message)
        async with self._turn_lock:
            await self._may_begin.wait()
            self._check_not_stopped()
            return await self._handle(message)

    async def _handle(self, message: Message) -> Response:
        name = f"on_{message.type.lower()}"
        handler: Callable[[Message], Awaitable[HandlerResult]] | None = getattr(self, name, None)
        if handler is None or message.type != message.type.upper():
            raise ActorError(ErrorCode.UNKNOWN_TYPE, f"Unknown message type: {message.type}")
        return self._build_response(message, await self._run_handler(message, handler))

    async def _run_handler(
        self, message: Message, handler: Callable[[Message], Awaitable[HandlerResult]]
    ) -> HandlerResult:
        """Run a handler in its own task. A cancellation of the present task interrupts the handler."""
        work = asyncio.ensure_future(handler(message))
        self._handlers[message.id] = work
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            work.cancel()
            work.add_done_callback(_ignore_result)
            await asyncio.wait([work], timeout=CLEANUP)
            if not work.done():
                logger.warning("a handler of %s at %s does not end; not waiting for it", message.type, self.actor_id)
            elif message.id in self._interruptions and not work.cancelled() and work.exception() is None:
                return work.result()  # the handler returned although it was interrupted
            raise
        finally:
            del self._handlers[message.id]
        if work.cancelled():
            raise HandlerCancelled("the handler, or a task that it awaits, was cancelled, but not by the actor")
        return work.result()

    def _build_response(self, message: Message, result: object) -> Response:
        """Return the response for a handler's result. Raises HandlerInvalid if the result is not valid."""
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
        """Accept no more messages, and return at once. The running handler finishes, and then `stopping` is called.
        Waiting messages get the ERROR STOPPED. Use `drained` to wait for the end.
        """
        if self._stop_task is None:
            self._is_stopped = True
            self._stop_task = asyncio.ensure_future(self._finish_stop())

    async def _finish_stop(self) -> None:
        async with self._turn_lock:
            try:
                await self.stopping()
            except (Exception, asyncio.CancelledError) as error:
                logger.warning("actor %s failed while stopping: %s", self.actor_id, one_line(f"{error!r}"))

    def interrupt(self, *message_ids: str) -> None:
        """Interrupt the unanswered messages with these ids; without ids, all unanswered messages.

        Their senders receive an ERROR (STOPPED), unless the handler returns a response although it is interrupted.
        """
        for message_id in message_ids or tuple(self._running):
            reason = f"the message {message_id} was interrupted at actor {self.actor_id} before it was done"
            self._interrupt(message_id, ActorError(ErrorCode.STOPPED, reason))

    def _interrupt(self, message_id: str, error: ActorError) -> None:
        """Interrupt a message, and answer it with this error."""
        task = self._running.get(message_id)
        if task is not None and not task.done() and message_id not in self._interruptions:
            self._interruptions[message_id] = error
            work = task.get_coro()
            if not iscoroutine(work) or getcoroutinestate(work) != CORO_CREATED:
                task.cancel()  # a task that has not begun checks `_interruptions` itself

    def _interrupt_late(self, message: Message) -> None:
        """Interrupt a message that was not handled within the time limit."""
        reason = f"{message.type} was not handled within {self._longest:g} s by actor {self.actor_id}"
        self._interrupt(message.id, ActorError(ErrorCode.TIMEOUT, reason, retryable=True))

    async def drained(self, within: float | None = None) -> None:
        """Wait until all messages are answered and a stop that began is complete.

        After `within` seconds, interrupt the messages and the stop; None means no limit.
        """
        until = None if within is None else monotonic() + within
        while self._running:
            late = until is not None and monotonic() >= until
            if late:
                self.interrupt()
            await asyncio.wait(list(self._running.values()), timeout=CLEANUP if late else _seconds_until(until))
        if self._stop_task is not None:
            await asyncio.wait([self._stop_task], timeout=_seconds_until(until))
            if not self._stop_task.done():
                logger.warning("actor %s does not stop in time; interrupting it", self.actor_id)
                self._stop_task.cancel()
                await asyncio.wait([self._stop_task], timeout=CLEANUP)

    async def on_heartbeat(self, message: Message) -> HandlerResult:
        """Handle HEARTBEAT: return the actor's uptime in seconds, and how full its mailbox is (0 to 1)."""
        uptime, others = monotonic() - self._started_at, len(self._running) - 1
        return typed.HeartbeatResponse(uptime=uptime, load=min(others / self._mailbox, 1.0))

    async def on_stop(self, message: Message) -> HandlerResult:
        """Handle STOP: accept no more messages. The running handler finishes, and waiting messages receive an ERROR."""
        self._check_addressed(message)
        await self.stop()
        return typed.StopComplete(actor_id=self.actor_id, stopped_at=now())

    async def on_restart(self, message: Message) -> HandlerResult:
        """Handle RESTART: call `restarting`. Before that, wait at most `RestartPolicy.patience` seconds for the
        handlers that began earlier, and interrupt those that do not end.
        """
        self._check_addressed(message)
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
        """Wait for the handlers that began before the handler of this message, and interrupt late ones."""
        earlier = list(takewhile(lambda each: each != message_id, self._handlers))
        handlers = [self._handlers[each] for each in earlier]
        if handlers:
            await asyncio.wait(handlers, timeout=self.system.restarts.patience)
        for each in (each for each in earlier if each in self._handlers):
            reason = f"the message {each} was interrupted by a RESTART of actor {self.actor_id}; send RETRY"
            self._interrupt(each, ActorError(ErrorCode.STOPPED, reason, retryable=True))
        late = [work for work in handlers if not work.done()]
        if late:
            await asyncio.wait(late, timeout=CLEANUP)

    async def on_error(self, message: Message) -> HandlerResult:
        """Handle ERROR: log an error that another actor reports."""
        report = data_of(message, typed.ErrorData)
        logger.warning("%s received an error: %s", self.actor_id, one_line(report.error_message, 200))
        return typed.ErrorAcknowledged(actor_id=self.actor_id, action_taken="logged")

    async def on_retry(self, message: Message) -> HandlerResult:
        """Handle RETRY: handle a message again that failed at this actor, and return its new response."""
        retry = data_of(message, typed.Retry)
        original = self._failed.get(retry.original_message_id)
        if original is None:
            reason = f"no message {retry.original_message_id} failed at this actor; send the request as a new message"
            raise ActorError(ErrorCode.UNKNOWN_MESSAGE, reason)
        if retry.attempt > retry.max_attempts:
            reason = f"attempt {retry.attempt} exceeds max_attempts={retry.max_attempts}"
            raise ActorError(ErrorCode.RETRIES_EXHAUSTED, reason)
        response = await self._handle(original)
        if not response.is_error:
            self._failed.pop(original.id, None)
        return response

    async def restarting(self) -> None:
        """Discard the actor's state at a restart. Does nothing; override it if needed."""

    async def stopping(self) -> None:
        """Close the actor's resources after its last message. Does nothing; override it if needed."""

    def _check_addressed(self, message: Message) -> None:
        addressee = data_of(message, typed.ActorReason).actor_id
        if addressee != self.actor_id:
            reason = (
                f"{message.type} is for actor {addressee!r}, but reached {self.actor_id!r}; set receiver={addressee!r}"
            )
            raise ActorError(ErrorCode.INVALID_MESSAGE, reason)


def _ignore_result(work: "asyncio.Future[Any]") -> None:
    """Retrieve the exception of an abandoned handler, so that asyncio does not log it."""
    with suppress(asyncio.CancelledError):
        work.exception()


def _seconds_until(until: float | None) -> float | None:
    """Return the number of seconds until a time; None for no limit."""
    return None if until is None else max(0.0, until - monotonic())


Entry = TypeVar("Entry")


def _remember(entries: OrderedDict[str, Entry], key: str, entry: Entry) -> None:
    """Add a value at the end, and remove the oldest value if there are more than REMEMBERED."""
    entries[key] = entry
    entries.move_to_end(key)
    if len(entries) > REMEMBERED:
        entries.popitem(last=False)


class ActorHost(SharedResources):
    """Finds actors by id, delivers messages, and has the resources that actors share. Base class of ActorSystem."""

    @cached_property
    def _actors(self) -> dict[str, Actor]:
        """Id → actor, in the order of their addition."""
        return {}

    _stop_deadline: float | None = None
    """The time at which a stopping system interrupts running handlers; None before the stop."""

    def add(self, actor: Actor) -> None:
        """Add an actor. Raises ActorError (INVALID_CONFIG) if another actor has its id."""
        if self._actors.setdefault(actor.actor_id, actor) is not actor:
            raise ActorError(ErrorCode.INVALID_CONFIG, f"an actor {actor.actor_id!r} already exists; use another id")

    def remove(self, actor_id: str) -> None:
        """Remove an actor without stopping it. An unknown id is ignored."""
        self._actors.pop(actor_id, None)

    def actors(self) -> tuple[str, ...]:
        """Return the ids of all actors, in the order of their addition."""
        return tuple(self._actors)

    def get_actor(self, actor_id: str) -> Actor:
        """Return the actor with this id. Raises ActorError (UNKNOWN_ACTOR) for an unknown id."""
        actor = self._actors.get(actor_id)
        if actor is None:
            raise ActorError(ErrorCode.UNKNOWN_ACTOR, f"no actor has the id {actor_id!r}; see system.actors()")
        return actor

    async def send_message(self, message: Message) -> Response:
        """Send a message to the actor `message.receiver`, and return the response when it arrives.

        Failures are returned as an ErrorResponse, also an unknown receiver (UNKNOWN_ACTOR). Only a message without a
        receiver raises ActorError (INVALID_MESSAGE).
        """
        if not message.receiver:
            raise ActorError(ErrorCode.INVALID_MESSAGE, "Message must have a receiver; set receiver= to an actor's id")
        try:
            actor = self.get_actor(message.receiver)
        except ActorError as error:
            self.add_dead_letter(message)
            return message.error(error)
        return await actor.receive(message)

    def add_dead_letter(self, message: AnyMessage) -> None:
        """Add a message for an unknown receiver to `dead_letters`, and log a warning."""
        self.dead_letters.append(message)
        logger.warning("no receiver for %s %s to %s", message.type, message.id, message.receiver)

    def log(self, message: AnyMessage) -> None:
        """Log a message's type, id and addresses, not its contents, and pass the message to the `trace` function."""
        log(message, self._trace)

    async def answer_in_span(
        self, message: Message, answer: Callable[[Message], Coroutine[Any, Any, Response]]
    ) -> Response:
        """Return `await answer(message)`, within the context manager that `spans` returns for the message."""
        return await answer_in_span(message, answer, self._spans)

    async def notify_supervisor(self, actor: Actor, message: Message, error: ActorError) -> Response | None:
        """Report an actor's error to the supervisor, and return its response.

        Return None, and report nothing, if there is no supervisor, or if it is `actor` or the sender of `message`.
        """
        if self.supervisor_id not in self._actors or self.supervisor_id in (actor.actor_id, message.sender):
            return None
        details = {"message_id": message.id, "message_type": message.type, "retryable": error.retryable}
        report = {"actor_id": actor.actor_id, "error_message": str(error), "error_code": error.code.value, **details}
        notification = actor._request("ERROR_NOTIFICATION", report, self.supervisor_id, message.correlation_id)
        return await self.send_message(notification)

    async def stop(self) -> None:
        """Stop the running threads, close the queue, stop the actors in reverse order, and close the adapters.

        Interrupt the handlers of threads at once, and other running handlers after `RestartPolicy.leaving` seconds in
        total. Log a handler that does not end even then.
        """
        self._stop_deadline = monotonic() + self.restarts.leaving
        await self.stop_actor(THREADS)  # first, because its runs wait for other actors
        if self.queue is not None:
            await close_in_time(self.queue.aclose(), "the queue", self._seconds_left() + CLEANUP)
        for actor_id in reversed(self.actors()):
            if not self._seconds_left():
                break
            await self.stop_actor(actor_id)
        await asyncio.gather(*map(self.stop_actor, self.actors()))
        await close_in_time(self.adapters.aclose(), "the adapters", self._seconds_left() + CLEANUP)

    async def stop_actor(self, actor_id: str) -> None:
        """Stop and remove one actor, if it exists. Its handlers get at most `RestartPolicy.leaving` seconds."""
        actor = self._actors.get(actor_id)
        if actor is not None:
            await actor.stop()
            await actor.drained(self._seconds_left())
            self.remove(actor_id)

    def _seconds_left(self) -> float:
        """Return the number of seconds that running handlers still have."""
        return self.restarts.leaving if self._stop_deadline is None else max(0.0, self._stop_deadline - monotonic())
