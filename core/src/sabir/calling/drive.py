"""The driver: it performs a script's actions on a connection, waiting or in an event loop.

    waited(drive(script, SyncWire(connection)))        await drive(script, Wire(connection))

Nothing is decided here: each wire knows one kind of I/O, and the driver hands its answers to the script. A sync call
is a coroutine too, but each of its awaits blocks: it starts no loop, so it works inside a running loop, as in a
notebook. An error or a cancellation closes the open response before it is raised.

Each step ends when the call's clock says so: an event loop cancels it, and the watchdog ends one that blocks.

CallWatch reports the call, to the logger `sabir` and to the telemetry hooks of installed plugins. It changes nothing of
the call and cannot break it.

    WARNING   one line for each call with losses
    INFO      an attempt that failed; a call whose losses are all `withheld`
    DEBUG     bodies, redacted: no header values, long base64 cut short
"""

import logging
import random
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from math import ceil, inf
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias

from sabir.base.errors import SabirError, conceal, one_line, printable
from sabir.base.failures import CallTimedOut
from sabir.calling.clock import Clock
from sabir.calling.exchange import Action, Close, Emit, Failed, Head, Late, Next, Open, Outcome, Pause, Result, Script
from sabir.calling.watchdog import Guard
from sabir.contract.dialect import Rendering
from sabir.contract.provider import Connection, WireHead, WireRequest
from sabir.vocabulary.reply import Reply

if TYPE_CHECKING:
    from sabir.hooks.plugins import Hooks

logger = logging.getLogger("sabir")

_numbers = count(1)

LONGEST_RUN = 200
"""The most characters of base64 that a log shows whole."""
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{LONGEST_RUN + 1},}}={{0,2}}")


def redact(body: bytes) -> str:
    """A body as a log may show it: data URLs and other long base64 cut to their first characters."""
    text = printable(body.decode("utf-8", errors="replace"))
    return _BASE64.sub(lambda run: f"{run[0][:20]}…({len(run[0])} characters)", text)


class CallWatch:
    """Watches one call: logs it, and tells the telemetry hooks, under a number that no other call has."""

    def __init__(self, rendering: Rendering, hooks: "Hooks") -> None:
        self._rendering = rendering
        self._hooks = hooks
        self._call = next(_numbers)

    def tell(self, action: Open | Failed) -> None:
        """Report that a request is about to be sent, or that an attempt failed."""
        target = self._rendering.target
        if isinstance(action, Open):
            if logger.isEnabledFor(logging.DEBUG):
                request = action.request
                body = redact(request.body)
                logger.debug("%s request %d to %s: %s", target, action.attempt, request.path, body)
            self._hooks.call_started(self._rendering, action.attempt, self._call)
        else:
            error = action.error
            logger.info("%s attempt %d failed: %s: %s", target, action.attempt, type(error).__name__, error)
            self._hooks.call_failed(self._rendering, error, action.attempt, self._call)

    def over(self, script: Script[Reply]) -> Script[Reply]:
        """The same script; logs its losses once when it ends, however it ends, and tells the hooks of its end."""
        losses = self._rendering.losses
        try:
            reply = yield from script
            losses = reply.losses
        except BaseException as error:
            # GeneratorExit: the driver closed the script, because the stream was closed or the call was cancelled.
            self._hooks.call_given_up(self._rendering, None if isinstance(error, GeneratorExit) else error, self._call)
            raise
        finally:
            if losses:
                shown = one_line("; ".join(map(str, losses)), 1000)
                level = logging.INFO if {loss.kind for loss in losses} == {"withheld"} else logging.WARNING
                logger.log(level, "%s lost %d: %s", self._rendering.target, len(losses), shown)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s reply: %s", self._rendering.target, redact(reply.model_dump_json().encode()))
        self._hooks.call_ended(self._rendering, reply, self._call)
        return reply


Watch: TypeAlias = Callable[[Open | Failed], None]
"""Called for every request before it is sent, and for every attempt that failed."""


class Done(NamedTuple, Generic[Result]):
    """A script's result."""

    result: Result


class Performer(Protocol):
    """The interface of an object that performs the actions of a Script, such as sending a request or reading bytes.
    Implemented by core and by Relay.
    """

    async def perform(self, action: Action) -> Outcome:
        """Perform one action and return its outcome, as documented for the action's class. An exception is raised
        inside the script.
        """

    async def close(self) -> None:
        """Close the open response or stream."""


class _Wire:
    """The base of both wires: holds the open response, calls the watch, and checks the call's clock."""

    _answer: WireHead | None = None

    def __init__(self, connection: Connection, watch: Watch | None = None, clock: Clock | None = None) -> None:
        self._connection = connection
        self._watch = watch
        self._clock = clock or Clock()
        self._opened: AsyncExitStack | None = None

    async def perform(self, action: Action) -> Outcome:
        """Perform an action; a failure of the wire raises the library's own error."""
        try:
            if type(action) is Next:
                if action.had_event:
                    self._clock.hear()
                self._clock.check()
                chunk = await self._next()
                if chunk is not None:  # the end of a body is accepted even if it is late
                    self._clock.check()
                return chunk
            if isinstance(action, Open):
                self._opened = AsyncExitStack()
                self._answer = answer = await self._send(self._request(action), self._opened)
                self._clock.check()
                if answer.status < 300:
                    self._clock.open()
                return Head(answer.status, answer.headers)
            return await self._perform(action)
        except Exception as error:
            translated = None if isinstance(error, SabirError) else self._connection.translate(error)
            if translated is None:
                raise
            if isinstance(translated, CallTimedOut) and monotonic() > self._clock.until:
                translated = self._clock.late()  # the SDK's own timeout came first, and its error names no setting
            raise translated from error

    async def close(self) -> None:
        """Close the open response, if there is one; a failure to close is logged and not raised."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        try:
            self._clock.close()
            await self._within(opened.aclose())
        except Exception as error:
            logger.debug("closing a response failed: %r", error)

    async def _perform(self, action: Action) -> Outcome:
        match action:
            case Pause(shortest, longest):
                if (seconds := random.uniform(shortest, longest)) >= self._clock.left:
                    return Late()
                await self._sleep(seconds)
            case Close():
                await self.close()
            case Failed(error):
                # Secrets that were sent with the request are removed from the error before the watch gets it.
                conceal(error, getattr(self._answer, "secrets", ()))
                if self._watch:
                    self._watch(action)
        return None

    def _request(self, action: Open) -> WireRequest:
        """Call the watch and return the request to send. A retry's limits are at most the time that is left.

        The timeout of a stream stays as it is, because it also bounds the reads between two events.
        """
        if self._watch:
            self._watch(action)
        self._clock.begin()
        request = action.request
        if action.attempt == 1 or request.opening is None:
            return request
        left = max(ceil(self._clock.left * 10), 1) / 10  # rounded: some SDKs send it, and one head is kept for each
        is_longer = request.timeout is not None and left < request.timeout and not request.streaming
        return replace(request, opening=left, timeout=left if is_longer else request.timeout)

    @abstractmethod
    async def _send(self, request: WireRequest, opened: AsyncExitStack) -> WireHead: ...

    @abstractmethod
    async def _next(self) -> bytes | None: ...

    @abstractmethod
    async def _sleep(self, seconds: float) -> None: ...

    @abstractmethod
    async def _within(self, step: Awaitable[Result]) -> Result:
        """Await a step. Raises CallTimedOut when the clock's time is over."""


class SyncWire(_Wire):
    """Performs actions by blocking; the watchdog ends a step that is late."""

    _chunks: Iterator[bytes] = iter(())

    def __init__(self, connection: Connection, watch: Watch | None = None, clock: Clock | None = None) -> None:
        super().__init__(connection, watch, clock)
        self._guard = Guard(self._clock)

    async def _send(self, request: WireRequest, opened: AsyncExitStack) -> WireHead:
        with self._guard:
            response = self._connection.open_sync(request)
        opened.callback(response.close)
        self._chunks = chunks = iter(response.chunks())
        if isinstance(chunks, Generator):
            opened.callback(chunks.close)
        return response

    async def _next(self) -> bytes | None:
        with self._guard:
            return next(self._chunks, None)

    async def _sleep(self, seconds: float) -> None:
        sleep(seconds)

    async def _within(self, step: Awaitable[Result]) -> Result:
        with self._guard:
            return await step


class Wire(_Wire):
    """Performs actions in an event loop, which cancels a step that is late."""

    _chunks: AsyncIterator[bytes]

    async def _send(self, request: WireRequest, opened: AsyncExitStack) -> WireHead:
        response = await self._within(self._connection.open(request))
        opened.push_async_callback(response.aclose)
        self._chunks = chunks = aiter(response.chunks())
        if isinstance(chunks, AsyncGenerator):
            opened.push_async_callback(chunks.aclose)
        return response

    async def _next(self) -> bytes | None:
        return await self._within(anext(self._chunks, None))

    async def _sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)

    async def _within(self, step: Awaitable[Result]) -> Result:
        if self._clock.until == inf:
            return await step
        import asyncio  # imported only where a loop runs; sync calls do not need it

        timer = asyncio.timeout(max(self._clock.until - monotonic(), 0))
        try:
            async with timer:
                return await step
        except TimeoutError as error:
            if timer.expired():
                raise self._clock.late() from error
            raise


async def drive(script: Script[Result], wire: Performer) -> Emit | Done[Result]:
    """Start a script, or go on after its last Emit, until it emits or is done; raises the script's errors."""
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
    """The result of a script that emits nothing."""
    step = await drive(script, wire)
    assert not isinstance(step, Emit)
    return step.result


def waited(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that needs no event loop, because each of its awaits blocks."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    raise AssertionError("it waits for an event loop")
