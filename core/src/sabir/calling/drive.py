"""The driver: it performs a script's actions on a connection, by blocking or in an event loop.

    run_blocking(drive(script, SyncWire(connection)))        await drive(script, Wire(connection))

The driver decides nothing: each wire does one kind of I/O, and the driver sends the outcomes to the script. A sync call
is a coroutine too, but each of its awaits blocks. It starts no event loop, so it works inside a running loop, as in a
notebook. An error or a cancellation closes the open response before it is raised.

Each step ends when the call's clock says so: an event loop cancels the step, and the watchdog ends a blocking step.

CallWatch reports the call to the logger `sabir` and to the telemetry hooks of installed plugins. It does not change the
call, and its failures do not break the call.

    WARNING   one line for each call with losses of another kind than `withheld`
    INFO      an attempt that failed; one line for a call whose losses are all `withheld`
    DEBUG     bodies, redacted: no header values, long base64 cut short
"""

import logging
import random
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from math import ceil, inf
from time import monotonic, sleep
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias

from sabir.base.errors import SabirError, conceal, one_line, printable
from sabir.base.failures import CallTimedOut
from sabir.calling.clock import Clock
from sabir.calling.exchange import (
    Action,
    AttemptFailed,
    Close,
    Emit,
    Head,
    Late,
    Next,
    Open,
    Outcome,
    Pause,
    Result,
    Script,
)
from sabir.calling.watchdog import Guard
from sabir.contract.dialect import Rendering
from sabir.contract.provider import AsyncWireResponse, Connection, WireHead, WireRequest, WireResponse
from sabir.vocabulary.reply import Reply

if TYPE_CHECKING:
    from sabir.hooks.plugins import Hooks

logger = logging.getLogger("sabir")

_numbers = count(1)

LONGEST_RUN = 200
"""The largest number of characters of base64 that a log shows completely."""
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{LONGEST_RUN + 1},}}={{0,2}}")


def redact(body: bytes) -> str:
    """Return a body as text for a log. Base64 of more than 200 characters, as in data URLs, is cut to its first 20 and
    its length; control characters and invalid UTF-8 are replaced.
    """
    text = printable(body.decode("utf-8", errors="replace"))
    return _BASE64.sub(lambda run: f"{run[0][:20]}…({len(run[0])} characters)", text)


def _itself(reply: Any) -> Any:
    return reply


class CallWatch:
    """Reports one call to the log and to the telemetry hooks, with a number that no other call of the process has."""

    def __init__(self, rendering: Rendering, hooks: "Hooks") -> None:
        self._rendering = rendering
        self._hooks = hooks
        self._call = next(_numbers)
        self._attempt = 0

    def tell(self, action: Open | Head | AttemptFailed) -> None:
        """Log a request that is about to be sent (DEBUG), or a failed attempt (INFO), and call the telemetry hook. A
        Head reports the response's headers, which are not logged.
        """
        target = self._rendering.target
        if isinstance(action, Head):
            self._hooks.call_answered(self._rendering, action.status, action.headers, self._attempt, self._call)
        elif isinstance(action, Open):
            self._attempt = action.attempt
            if logger.isEnabledFor(logging.DEBUG):
                request = action.request
                body = redact(request.body)
                logger.debug("%s request %d to %s: %s", target, action.attempt, request.path, body)
            self._hooks.call_started(self._rendering, action.attempt, self._call)
        else:
            error = action.error
            logger.info("%s attempt %d failed: %s: %s", target, action.attempt, type(error).__name__, error)
            self._hooks.call_failed(self._rendering, error, action.attempt, self._call)

    def over(self, script: Script[Result], reply_of: Callable[[Result], Reply] = _itself) -> Script[Result]:
        """Run a script, and report its end: log the losses once, log the reply (DEBUG), and call the telemetry hook.
        `reply_of` returns the reply of what the script returns.
        """
        losses = self._rendering.losses
        try:
            ended = yield from script
            reply = reply_of(ended)
            losses = reply.losses
        except BaseException as error:
            # GeneratorExit means that the driver closed the script: the stream was closed or the call was cancelled.
            self._hooks.call_given_up(self._rendering, None if isinstance(error, GeneratorExit) else error, self._call)
            raise
        finally:
            if losses:
                texts = one_line("; ".join(map(str, losses)), 1000)
                level = logging.INFO if {loss.kind for loss in losses} == {"withheld"} else logging.WARNING
                logger.log(level, "%s lost %d: %s", self._rendering.target, len(losses), texts)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s reply: %s", self._rendering.target, redact(reply.model_dump_json().encode()))
        self._hooks.call_ended(self._rendering, reply, self._call)
        return ended


Watch: TypeAlias = Callable[[Open | Head | AttemptFailed], None]
"""A function that is called for every request before it is sent, for the headers of every response, and for every
attempt that failed.
"""


class Done(NamedTuple, Generic[Result]):
    """The end of a script, with its result. Returned by `drive`."""

    result: Result


class Performer(Protocol):
    """The interface of an object that performs the actions of a Script, such as sending a request or reading bytes.
    Core's wires and Relay have this interface.
    """

    async def perform(self, action: Action) -> Outcome:
        """Perform one action and return its outcome, as documented for the action's class. If this method raises, the
        exception is raised inside the script.
        """

    async def close(self) -> None:
        """Close the open response or stream."""


class _Wire:
    """The base class of SyncWire and Wire: stores the open response, calls the watch, and checks the call's clock."""

    _answer: WireHead | None = None
    _is_open = False
    """Whether a response is open, which `close` must close."""

    def __init__(self, connection: Connection, watch: Watch | None = None, clock: Clock | None = None) -> None:
        self._connection = connection
        self._watch = watch
        self._clock = clock or Clock()

    async def perform(self, action: Action) -> Outcome:
        """Perform an action. Exceptions that `Connection.translate` knows are raised as sabir's errors."""
        try:
            if type(action) is Next:
                if action.had_event:
                    self._clock.note_event()
                self._clock.check()
                chunk = await self._read_chunk()
                if chunk is not None:  # the end of a body is accepted even if it is late
                    self._clock.check()
                return chunk
            if isinstance(action, Open):
                self._answer = answer = await self._send_request(self._prepare_request(action))
                self._clock.check()
                if answer.status < 300:
                    self._clock.open()
                head = Head(answer.status, answer.headers)
                if self._watch:
                    self._watch(head)
                return head
            return await self._perform_other(action)
        except Exception as error:
            translated = None if isinstance(error, SabirError) else self._connection.translate(error)
            if translated is None:
                raise
            if isinstance(translated, CallTimedOut) and monotonic() > self._clock.until:
                translated = self._clock.late()  # the SDK's own timeout came first, and its error names no setting
            raise translated from error

    async def close(self) -> None:
        """Close the open response, if there is one. An exception while closing is logged and not raised."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._clock.close()
            await self._within(self._close_response())
        except Exception as error:
            logger.debug("closing a response failed: %r", error)

    async def _perform_other(self, action: Action) -> Outcome:
        match action:
            case Pause(shortest, longest):
                if (seconds := random.uniform(shortest, longest)) >= self._clock.left:
                    return Late()
                await self._sleep(seconds)
            case Close():
                await self.close()
            case AttemptFailed(error):
                # Secrets that were sent with the request are removed from the error before the watch gets it.
                conceal(error, getattr(self._answer, "secrets", ()))
                if self._watch:
                    self._watch(action)
        return None

    def _prepare_request(self, action: Open) -> WireRequest:
        """Call the watch and return the request to send. For a retry, reduce the time limits to the time that is left.

        The `timeout` of a streamed request is not reduced, because it also limits the reads between two events.
        """
        if self._watch:
            self._watch(action)
        self._clock.begin()
        request = action.request
        if action.attempt == 1 or request.opening is None:
            return request
        # Rounded, because some SDKs send the limit as a header, and the headers of each limit are cached.
        left = max(ceil(self._clock.left * 10), 1) / 10
        is_longer = request.timeout is not None and left < request.timeout and not request.streaming
        return replace(request, opening=left, timeout=left if is_longer else request.timeout)

    @abstractmethod
    async def _send_request(self, request: WireRequest) -> WireHead: ...

    @abstractmethod
    async def _read_chunk(self) -> bytes | None: ...

    @abstractmethod
    async def _close_response(self) -> None:
        """Close the response, also if closing the iterator over its bytes fails."""

    @abstractmethod
    async def _sleep(self, seconds: float) -> None: ...

    @abstractmethod
    async def _within(self, step: Awaitable[Result]) -> Result:
        """Await a step and return its result. Raises CallTimedOut if the clock's time ends before the step."""


class SyncWire(_Wire):
    """Performs actions by blocking the thread. The watchdog ends a step that takes too long."""

    _response: WireResponse
    _chunks: Iterator[bytes] = iter(())

    def __init__(self, connection: Connection, watch: Watch | None = None, clock: Clock | None = None) -> None:
        super().__init__(connection, watch, clock)
        self._guard = Guard(self._clock)

    async def _send_request(self, request: WireRequest) -> WireHead:
        with self._guard:
            self._response = response = self._connection.open_sync(request)
        self._is_open, self._chunks = True, iter(())
        self._chunks = iter(response.chunks())
        return response

    async def _read_chunk(self) -> bytes | None:
        with self._guard:
            return next(self._chunks, None)

    async def _close_response(self) -> None:
        try:
            if isinstance(self._chunks, Generator):
                self._chunks.close()
        finally:
            self._response.close()

    async def _sleep(self, seconds: float) -> None:
        sleep(seconds)

    async def _within(self, step: Awaitable[Result]) -> Result:
        with self._guard:
            return await step


class Wire(_Wire):
    """Performs actions in an event loop, which cancels a step that takes too long."""

    _response: AsyncWireResponse
    _chunks: AsyncIterator[bytes] | None = None

    async def _send_request(self, request: WireRequest) -> WireHead:
        self._response = response = await self._within(self._connection.open(request))
        self._is_open, self._chunks = True, None
        self._chunks = aiter(response.chunks())
        return response

    async def _read_chunk(self) -> bytes | None:
        assert self._chunks is not None
        return await self._within(anext(self._chunks, None))

    async def _close_response(self) -> None:
        try:
            if isinstance(self._chunks, AsyncGenerator):
                await self._chunks.aclose()
        finally:
            await self._response.aclose()

    async def _sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)

    async def _within(self, step: Awaitable[Result]) -> Result:
        running = step.__await__()
        try:
            awaited = next(running)  # most steps end here, because their bytes have arrived, and need no timer
        except StopIteration as ended:
            result: Result = ended.value
            return result
        if self._clock.until == inf:
            return await _resume(running, awaited)
        import asyncio  # imported only where a loop runs; sync calls do not need it

        timer = asyncio.timeout(max(self._clock.until - monotonic(), 0))
        try:
            async with timer:
                return await _resume(running, awaited)
        except TimeoutError as error:
            if timer.expired():
                raise self._clock.late() from error
            raise


@coroutine
def _resume(running: Generator[Any, Any, Result], awaited: Any) -> Generator[Any, Any, Result]:
    """Continue an awaitable that waits for `awaited`, which is the event loop's own object, and return its result."""
    try:
        while True:
            try:
                sent = yield awaited
            except BaseException as error:
                awaited = running.throw(error)
            else:
                awaited = running.send(sent)
    except StopIteration as ended:
        result: Result = ended.value
        return result


async def drive(script: Script[Result], wire: Performer) -> Emit | Done[Result]:
    """Run a script up to its next Emit or its end. Return the Emit, or Done with the result. Raises the script's
    errors.

    Call again after an Emit to continue. After an error, the script and the response are closed.
    """
    go_on: Callable[[], Action] = partial(script.send, None)
    try:
        while not isinstance(action := go_on(), Emit):
            try:
                go_on = partial(script.send, await wire.perform(action))
            except Exception as error:
                go_on = partial(script.throw, error)
        return action
    except StopIteration as stop:
        return Done(stop.value)
    except BaseException:
        script.close()
        await wire.close()
        raise


async def result_of(script: Script[Result], wire: Performer) -> Result:
    """Run a script without Emit to its end, and return its result."""
    step = await drive(script, wire)
    assert not isinstance(step, Emit)
    return step.result


def run_blocking(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine whose awaits all block, without an event loop, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    raise AssertionError("the coroutine waits for an event loop")
