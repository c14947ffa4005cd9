"""The driver: it performs a script's actions on a connection, waiting or in an event loop.

    waited(drive(script, SyncWire(connection)))        await drive(script, Wire(connection))

Nothing is decided here: each wire knows one kind of I/O, and the driver hands its answers to the script. A waiting call
is a coroutine too, but each of its awaits blocks: it starts no loop, so it works inside a running loop, as in a
notebook. An error or a cancellation closes the open response before it is raised. The wires check the call's clock.
"""

import logging
import random
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from math import inf
from time import monotonic, sleep
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias

from sabir.base.errors import SabirError, conceal
from sabir.calling.clock import Clock
from sabir.calling.exchange import Action, Close, Emit, Failed, Head, Late, Next, Open, Outcome, Pause, Result, Script
from sabir.contract.provider import Connection, WireHead, WireRequest

logger = logging.getLogger("sabir")

Watch: TypeAlias = Callable[[Open | Failed], None]
"""Called for every request before it is sent, and for every attempt that failed."""


class Done(NamedTuple, Generic[Result]):
    """A script's result."""

    result: Result


class Raised(NamedTuple):
    """An exception raised by an action; a failure of the wire is translated to the library's own error."""

    error: Exception


class Performer(Protocol):
    """An object that performs a script's actions."""

    async def perform(self, action: Action) -> Outcome | Raised:
        """Perform an action; the answer that its class documents, or the exception that it raised."""

    async def close(self) -> None:
        """Close the open response or stream."""


def unwatched(action: Open | Failed) -> None:
    """The Watch that does nothing."""


class _Wire:
    """The base of both wires: holds the open response, calls the watch, and checks the call's clock."""

    _answer: WireHead | None = None

    def __init__(self, connection: Connection, watch: Watch = unwatched, clock: Clock | None = None) -> None:
        self._connection = connection
        self._watch = watch
        self._clock = clock or Clock()
        self._held = AsyncExitStack()

    async def perform(self, action: Action) -> Outcome | Raised:
        """Perform an action; the answer that its class documents, or the exception that it raised."""
        try:
            if type(action) is Next:
                if action.had_event:
                    self._clock.hear()
                outcome: Outcome = await self._next()
            elif isinstance(action, Open):
                self._answer = await self._send(self._request(action))
                outcome = Head(self._answer.status, self._answer.headers)
            else:
                return await self._perform(action)
            if outcome is not None:  # a whole answer is taken, however late it ends
                self._clock.check()
            return outcome
        except Exception as error:
            translated = None if isinstance(error, SabirError) else self._connection.translate(error)
            if translated is None:
                return Raised(error)
            translated.__cause__ = error
            return Raised(translated)

    async def close(self) -> None:
        """Close the open response, if there is one; a failure to close is logged and not raised."""
        held, self._held = self._held, AsyncExitStack()
        try:
            await held.aclose()
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
                self._watch(action)
        return None

    def _request(self, action: Open) -> WireRequest:
        """Call the watch; the request to send. A retry's timeout is at most the time that the call has left."""
        self._watch(action)
        self._clock.begin()
        request = action.request
        if (
            action.attempt == 1
            or request.timeout is None
            or (left := self._clock.longest_read(streaming=request.streaming)) >= request.timeout
        ):
            return request
        return replace(request, timeout=max(round(left, 1), 0.1))

    @abstractmethod
    async def _send(self, request: WireRequest) -> WireHead: ...

    @abstractmethod
    async def _next(self) -> bytes | None: ...

    @abstractmethod
    async def _sleep(self, seconds: float) -> None: ...


class SyncWire(_Wire):
    """Performs actions by waiting for them."""

    _chunks: Iterator[bytes] = iter(())

    async def _send(self, request: WireRequest) -> WireHead:
        response = self._connection.open_sync(request)
        self._held.callback(response.close)
        self._chunks = chunks = iter(response.chunks())
        if isinstance(chunks, Generator):
            self._held.callback(chunks.close)
        return response

    async def _next(self) -> bytes | None:
        return next(self._chunks, None)

    async def _sleep(self, seconds: float) -> None:
        sleep(seconds)


class Wire(_Wire):
    """Performs actions in an event loop; each wait ends when the call's time is over."""

    _chunks: AsyncIterator[bytes]

    async def _send(self, request: WireRequest) -> WireHead:
        response = await self._within(self._connection.open(request))
        self._held.push_async_callback(response.aclose)
        self._chunks = chunks = aiter(response.chunks())
        if isinstance(chunks, AsyncGenerator):
            self._held.push_async_callback(chunks.aclose)
        return response

    async def _next(self) -> bytes | None:
        return await self._within(anext(self._chunks, None))

    async def _sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)

    async def _within(self, waiting: Awaitable[Result]) -> Result:
        if self._clock.until == inf:
            return await waiting
        import asyncio  # imported only where a loop runs; waiting calls do not need it

        timer = asyncio.timeout(max(self._clock.until - monotonic(), 0))
        try:
            async with timer:
                return await waiting
        except TimeoutError as error:
            if timer.expired():
                raise self._clock.late() from error
            raise


async def drive(script: Script[Result], wire: Performer) -> Emit | Done[Result]:
    """Start a script, or go on after its last Emit, until it emits or is done; raises the script's errors."""
    answer: Outcome | Raised = None
    try:
        while True:
            step = script.throw(answer.error) if isinstance(answer, Raised) else script.send(answer)
            if isinstance(step, Emit):
                return step
            answer = await wire.perform(step)
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
