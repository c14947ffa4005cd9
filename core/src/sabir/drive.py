"""Drivers: they perform a script's actions on a connection, waiting or in an event loop.

    drive_sync(script, SyncWire(connection))        await drive(script, Wire(connection))

Nothing is decided here: each wire knows one kind of I/O, and the drivers hand its answers to the script. No loop is
started, so that the waiting kind works inside a running loop, as in a notebook. An error or a cancellation closes
the open response on its way out. The wires look at the call's clock: it goes by their `Patience`.
"""

import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from dataclasses import replace
from io import BytesIO
from time import sleep
from typing import Generic, NamedTuple, Protocol, TypeAlias

from sabir.clock import Clock, Patience
from sabir.contracts import AsyncWireResponse, Connection, WireRequest, WireResponse
from sabir.errors import SabirError
from sabir.exchange import Action, Close, Emit, Failed, Head, Late, Next, Open, Outcome, Pause, Read, Result, Script

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
_ENDLESS = Patience()


class SyncPerformer(Protocol):
    """Whatever performs a script's actions by waiting for them."""

    def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""

    def close(self) -> None:
        """Close what is open."""


class Performer(Protocol):
    """Whatever performs a script's actions in an event loop."""

    async def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""

    async def close(self) -> None:
        """Close what is open."""


class SyncWire:
    """Performs actions by waiting for them; holds the open response."""

    def __init__(self, connection: Connection, watch: Watch | None = None, patience: Patience = _ENDLESS) -> None:
        self._connection = connection
        self._watch = watch
        self._clock = Clock(patience)
        self._response: WireResponse | None = None
        self._chunks: Iterator[bytes] = iter(())

    def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
        try:
            if type(action) is not Next:
                return self._perform(action)
            if action.had_event:
                self._clock.hear()
            chunk = next(self._chunks, None)
            self._clock.check()
            return chunk
        except Exception as error:
            return _translated(self._connection, error)

    def _perform(self, action: Action) -> Outcome:
        match action:
            case Read(most):
                body = BytesIO()
                for chunk in self._chunks:
                    body.write(chunk)
                    self._clock.check()
                    if body.tell() > most:
                        body.truncate(most + 1)
                        break
                return body.getvalue()
            case Open():
                self._response = response = self._connection.open_sync(_ready(action, self._watch, self._clock))
                self._chunks = iter(response.chunks())
                self._clock.check()
                return Head(response.status, response.headers)
            case Pause():
                if (seconds := _between(action)) >= self._clock.left:
                    return Late()
                sleep(seconds)
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

    def __init__(self, connection: Connection, watch: Watch | None = None, patience: Patience = _ENDLESS) -> None:
        from sabir.alarm import Alarm  # loaded where a loop runs; those who wait need none of it

        self._connection = connection
        self._watch = watch
        self._clock = Clock(patience)
        self._alarm = Alarm(self._clock)
        self._response: AsyncWireResponse | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
        try:
            if type(action) is Next:
                if action.had_event:
                    self._clock.hear()
                self._alarm.set()
                outcome: Outcome = None if self._chunks is None else await anext(self._chunks, None)
            elif isinstance(action, Read | Open):
                self._alarm.set()
                outcome = await self._wait(action)
            else:
                return await self._perform(action)
            self._alarm.stop()
            self._clock.check()
            return outcome
        except BaseException as error:
            if self._alarm.stop(error):
                return _caused(self._clock.late(), error)
            if not isinstance(error, Exception):
                raise
            return _translated(self._connection, error)

    async def _wait(self, action: Read | Open) -> Outcome:
        if isinstance(action, Open):
            self._response = response = await self._connection.open(_ready(action, self._watch, self._clock))
            self._chunks = aiter(response.chunks())
            return Head(response.status, response.headers)
        body = BytesIO()
        if self._chunks is not None:
            async for chunk in self._chunks:
                body.write(chunk)
                self._clock.check()
                if body.tell() > action.most:
                    body.truncate(action.most + 1)
                    break
        return body.getvalue()

    async def _perform(self, action: Action) -> Outcome:
        match action:
            case Pause():
                import asyncio

                if (seconds := _between(action)) >= self._clock.left:
                    return Late()
                await asyncio.sleep(seconds)
            case Close():
                await self.close()
            case Failed():
                _tell(self._watch, action)
        return None

    async def close(self) -> None:
        """Close the open response, if there is one; a failure of that is no concern of the call's."""
        self._alarm.close()
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


def _ready(action: Open, watch: Watch | None, clock: Clock) -> WireRequest:
    """What is sent, having told who watches: a repetition waits no longer than the call has left."""
    _tell(watch, action)
    clock.begin()
    request = action.request
    if (
        action.attempt == 1
        or request.timeout is None
        or (left := clock.longest_read(streaming=request.streaming)) >= request.timeout
    ):
        return request
    return replace(request, timeout=max(round(left, 1), 0.1))


def _tell(watch: Watch | None, action: Open | Failed) -> None:
    if watch is not None:
        watch(action)


def _translated(connection: Connection, error: Exception) -> Raised:
    if isinstance(error, SabirError):
        return Raised(error)
    translated = connection.translate(error)
    if translated is None:
        return Raised(error)
    return _caused(translated, error)


def _caused(raised: SabirError, cause: BaseException) -> Raised:
    raised.__cause__ = cause
    return Raised(raised)


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
