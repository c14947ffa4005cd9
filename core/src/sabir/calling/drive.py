"""Drivers: they perform a script's actions on a connection, waiting or in an event loop.

    drive_sync(script, SyncWire(connection))        await drive(script, Wire(connection))

Nothing is decided here: each wire knows one kind of I/O, and the drivers hand its answers to the script. No loop is
started, so that the waiting kind works inside a running loop, as in a notebook. An error or a cancellation closes
the open response on its way out. The wires look at the call's clock.
"""

import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from dataclasses import replace
from time import sleep
from typing import Generic, NamedTuple, Protocol, TypeAlias

from sabir.base.errors import SabirError, conceal
from sabir.calling.clock import Clock
from sabir.calling.exchange import Action, Close, Emit, Failed, Head, Late, Next, Open, Outcome, Pause, Result, Script
from sabir.contract.provider import AsyncWireResponse, Connection, WireHead, WireRequest, WireResponse

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

    def close(self) -> None:
        """Close what is open."""


class Performer(Protocol):
    """Whatever performs a script's actions in an event loop."""

    async def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""

    async def close(self) -> None:
        """Close what is open."""


def unwatched(action: Open | Failed) -> None:
    """Nobody is told."""


class _Wire:
    """What both kinds of wire share: whom they ask, whom they tell, and how long a call may take."""

    _answer: WireHead | None = None

    def __init__(self, connection: Connection, watch: Watch = unwatched, clock: Clock | None = None) -> None:
        self._connection = connection
        self._watch = watch
        self._clock = clock or Clock()

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

    def _tell(self, failed: Failed) -> None:
        """Tell who watches of a failure, from which what the request's sender alone knows is taken first."""
        conceal(failed.error, getattr(self._answer, "secrets", ()))
        self._watch(failed)

    def _raised(self, error: Exception) -> Raised:
        translated = None if isinstance(error, SabirError) else self._connection.translate(error)
        return Raised(error) if translated is None else _caused(translated, error)


class SyncWire(_Wire):
    """Performs actions by waiting for them; holds the open response."""

    _response: WireResponse | None = None
    _chunks: Iterator[bytes] = iter(())

    def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
        try:
            if type(action) is Next:
                if action.had_event:
                    self._clock.hear()
                outcome: Outcome = next(self._chunks, None)
            elif isinstance(action, Open):
                self._answer = self._response = response = self._connection.open_sync(self._request(action))
                self._chunks = iter(response.chunks())
                outcome = Head(response.status, response.headers)
            else:
                return self._perform(action)
            if outcome is not None:  # what is whole is taken, however late it ends
                self._clock.check()
            return outcome
        except Exception as error:
            return self._raised(error)

    def _perform(self, action: Action) -> Outcome:
        match action:
            case Pause():
                if (seconds := _between(action)) >= self._clock.left:
                    return Late()
                sleep(seconds)
            case Close():
                self.close()
            case Failed():
                self._tell(action)
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


class Wire(_Wire):
    """Performs actions in an event loop; holds the open response."""

    _response: AsyncWireResponse | None = None
    _chunks: AsyncIterator[bytes] | None = None

    def __init__(self, connection: Connection, watch: Watch = unwatched, clock: Clock | None = None) -> None:
        from sabir.calling.alarm import Alarm  # loaded where a loop runs; those who wait need none of it

        super().__init__(connection, watch, clock)
        self._alarm = Alarm(self._clock)

    async def perform(self, action: Action) -> Outcome | Raised:
        """Do what an action says; the answer that its class documents, or what it raised."""
        try:
            if type(action) is Next:
                if action.had_event:
                    self._clock.hear()
                self._alarm.set()
                outcome: Outcome = None if self._chunks is None else await anext(self._chunks, None)
            elif isinstance(action, Open):
                self._alarm.set()
                self._answer = self._response = response = await self._connection.open(self._request(action))
                self._chunks = aiter(response.chunks())
                outcome = Head(response.status, response.headers)
            else:
                return await self._perform(action)
            self._alarm.stop()
            if outcome is not None:  # what is whole is taken, however late it ends
                self._clock.check()
            return outcome
        except BaseException as error:
            if self._alarm.stop(error):
                return _caused(self._clock.late(), error)
            if not isinstance(error, Exception):
                raise
            return self._raised(error)

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
                self._tell(action)
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
