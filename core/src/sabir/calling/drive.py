"""The driver: it performs a script's actions on a connection, waiting or in an event loop.

    waited(drive(script, SyncWire(connection)))        await drive(script, Wire(connection))

Nothing is decided here: each wire knows one kind of I/O, and the driver hands its answers to the script. What waits is
a coroutine too, each of whose awaits blocks: no loop is started, so that it works inside a running loop, as in a
notebook. An error or a cancellation closes the open response on its way out. The wires look at the call's clock.
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
"""Told of every request before it is sent, and of every attempt that failed."""


class Done(NamedTuple, Generic[Result]):
    """A script's result."""

    result: Result


class Raised(NamedTuple):
    """What performing an action raised, as the library's error where it is the wire's."""

    error: Exception


class Performer(Protocol):
    """Whatever performs a script's actions."""

    async def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""

    async def close(self) -> None:
        """Close what is open."""


def unwatched(action: Open | Failed) -> None:
    """Nobody is told."""


class _Wire:
    """What both kinds of wire share: they hold the open response, tell who watches, and look at the call's clock."""

    _answer: WireHead | None = None

    def __init__(self, connection: Connection, watch: Watch = unwatched, clock: Clock | None = None) -> None:
        self._connection = connection
        self._watch = watch
        self._clock = clock or Clock()
        self._held = AsyncExitStack()

    async def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
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
            if outcome is not None:  # what is whole is taken, however late it ends
                self._clock.check()
            return outcome
        except Exception as error:
            translated = None if isinstance(error, SabirError) else self._connection.translate(error)
            if translated is None:
                return Raised(error)
            translated.__cause__ = error
            return Raised(translated)

    async def close(self) -> None:
        """Close the open response, if there is one; a failure of that is no concern of the call's."""
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
                # What the request's sender alone knows is taken from the error before anyone is told.
                conceal(error, getattr(self._answer, "secrets", ()))
                self._watch(action)
        return None

    def _request(self, action: Open) -> WireRequest:
        """What is sent, having told who watches: a repetition waits no longer than the call has left."""
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
    """Performs actions in an event loop; what it waits for ends when the call's time is over."""

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
        import asyncio  # loaded where a loop runs; those who wait need none of it

        timer = asyncio.timeout(max(self._clock.until - monotonic(), 0))
        try:
            async with timer:
                return await waiting
        except TimeoutError as error:
            if timer.expired():
                raise self._clock.late() from error
            raise


async def drive(script: Script[Result], wire: Performer) -> Emit | Done[Result]:
    """Start a script, or go on after its last Emit, until it emits or is done; raises what it raises."""
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
    """What a coroutine gives that needs no event loop: each of its awaits blocks."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    raise AssertionError("it waits for an event loop")
