"""Drivers: they perform a script's actions on a connection, waiting or in an event loop.

    drive_sync(script, SyncWire(connection))        await drive(script, Wire(connection))

Nothing is decided here: each wire knows one kind of I/O, and the drivers hand its answers to the script. No loop is
started, so that the waiting kind works inside a running loop, as in a notebook. An error or a cancellation closes
the open response on its way out.
"""

import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Generic, NamedTuple, Protocol, TypeAlias

from sabir.contracts import AsyncWireResponse, Connection, WireResponse
from sabir.errors import SabirError
from sabir.exchange import Action, Close, Emit, Failed, Head, Next, Open, Outcome, Pause, Read, Result, Script

logger = logging.getLogger("sabir")

Watch: TypeAlias = Callable[[Open | Failed], None]
"""Told of every request before it is sent, and of every attempt that failed."""


class Done(NamedTuple, Generic[Result]):
    """A script's result."""

    result: Result


class Raised(NamedTuple):
    """What performing an action raised, as the library's error where it is the wire's."""

    error: Exception


_PAUSES = (Emit, Done)
"""Where a driver stops, and hands over to its caller."""


class SyncPerformer(Protocol):
    """Whatever performs a script's actions by waiting for them."""

    def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class Performer(Protocol):
    """Whatever performs a script's actions in an event loop."""

    async def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
        ...

    async def close(self) -> None:
        """Close what is open."""
        ...


class SyncWire:
    """Performs actions by waiting for them; holds the open response."""

    def __init__(self, connection: Connection, watch: Watch | None = None) -> None:
        self._connection = connection
        self._watch = watch
        self._response: WireResponse | None = None
        self._chunks: Iterator[bytes] = iter(())

    def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
        try:
            return next(self._chunks, None) if type(action) is Next else self._perform(action)
        except Exception as error:
            return _translated(self._connection, error)

    def _perform(self, action: Action) -> Outcome:
        match action:
            case Read():
                return b"".join(self._chunks)
            case Open(request):
                _tell(self._watch, action)
                self._response = response = self._connection.open_sync(request)
                self._chunks = iter(response.chunks())
                return Head(response.status, response.headers)
            case Pause():
                time.sleep(_between(action))
            case Close():
                self.close()
            case Failed():
                _tell(self._watch, action)
        return None

    def close(self) -> None:
        """Close the open response, if there is one; a failure of that is no concern of the call's."""
        response, self._response = self._response, None
        chunks, self._chunks = self._chunks, iter(())
        try:
            try:
                if isinstance(chunks, Generator):
                    chunks.close()
            finally:
                if response is not None:
                    response.close()
        except Exception as error:
            logger.debug("closing a response failed: %r", error)


class Wire:
    """Performs actions in an event loop; holds the open response."""

    def __init__(self, connection: Connection, watch: Watch | None = None) -> None:
        self._connection = connection
        self._watch = watch
        self._response: AsyncWireResponse | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
        try:
            return await self._perform(action)
        except Exception as error:
            return _translated(self._connection, error)

    async def _perform(self, action: Action) -> Outcome:
        match action:
            case Next():
                return None if self._chunks is None else await anext(self._chunks, None)
            case Read():
                return b"" if self._chunks is None else b"".join([chunk async for chunk in self._chunks])
            case Open(request):
                _tell(self._watch, action)
                self._response = response = await self._connection.open(request)
                self._chunks = aiter(response.chunks())
                return Head(response.status, response.headers)
            case Pause():
                import asyncio  # loaded where a loop runs; those who wait need none of it

                await asyncio.sleep(_between(action))
            case Close():
                await self.close()
            case Failed():
                _tell(self._watch, action)
        return None

    async def close(self) -> None:
        """Close the open response, if there is one; a failure of that is no concern of the call's."""
        response, self._response = self._response, None
        chunks, self._chunks = self._chunks, None
        try:
            try:
                if isinstance(chunks, AsyncGenerator):
                    await chunks.aclose()
            finally:
                if response is not None:
                    await response.aclose()
        except Exception as error:
            logger.debug("closing a response failed: %r", error)


def _between(pause: Pause) -> float:
    return random.uniform(pause.shortest, pause.longest)


def _tell(watch: Watch | None, action: Open | Failed) -> None:
    if watch is not None:
        watch(action)


def _translated(connection: Connection, error: Exception) -> Raised:
    if isinstance(error, SabirError):
        return Raised(error)
    translated = connection.translate(error)
    if translated is None:
        return Raised(error)
    translated.__cause__ = error
    return Raised(translated)


def resume(script: Script[Result], answer: Outcome | Raised) -> Action | Done[Result]:
    """Start a script, or tell it what came of its last action; its next action, or its result."""
    try:
        return script.throw(answer.error) if isinstance(answer, Raised) else script.send(answer)
    except StopIteration as stop:
        return Done(stop.value)


def drive_sync(script: Script[Result], wire: SyncPerformer) -> Emit | Done[Result]:
    """Start a script, or go on after its last Emit, until it emits or is done; raises what it raises."""
    try:
        step = resume(script, None)
        while not isinstance(step, _PAUSES):
            step = resume(script, wire.perform(step))
        return step
    except BaseException:
        script.close()
        wire.close()
        raise


async def drive(script: Script[Result], wire: Performer) -> Emit | Done[Result]:
    """Start a script, or go on after its last Emit, until it emits or is done; raises what it raises."""
    try:
        step = resume(script, None)
        while not isinstance(step, _PAUSES):
            step = resume(script, await wire.perform(step))
        return step
    except BaseException:
        script.close()
        await wire.close()
        raise


def result_of(step: Emit | Done[Result]) -> Result:
    """The result of a script that emits nothing."""
    assert not isinstance(step, Emit)
    return step.result
