"""A reply as it arrives: one class for async code and one for sync code.

    async with llm.stream(chat) as stream:          with llm.stream_sync(chat) as stream:
        async for text in stream.text: ...              for text in stream.text: ...
        reply = await stream.reply()                    reply = stream.reply()

A wrapper of an adapter that reads or changes the events of a stream hands them on by a Relay.

The request goes out when the first event is asked for. Leaving the block closes the connection, as does a
cancellation; a stream that is read to its end closes itself, so that `await stream.reply()` needs no block.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from threading import Lock
from typing import Self, TypeAlias

from sabir.base.errors import SettingsInvalid
from sabir.base.surface import show_arguments
from sabir.calling.drive import Performer, drive, waited
from sabir.calling.exchange import Action, Emit, Next, Outcome, Script
from sabir.reading.incoming import StreamState
from sabir.vocabulary.reply import Reply, StreamBroken, StreamEvent

Start: TypeAlias = Callable[[], Awaitable[tuple[Script[Reply], Performer]]]
"""Prepares the call: the script to drive, and the wire to drive it on, sync or async as the stream is."""


class _Held:
    """Base of the objects that a user holds: the public methods of a subclass are its surface."""

    def __init_subclass__(cls, **named: object) -> None:
        super().__init_subclass__(**named)
        show_arguments(cls)


class SyncClosing(_Held):
    """Base class of objects that a `with` block closes. In help(), their methods show every keyword argument."""

    @abstractmethod
    def close(self) -> None:
        """Close the object."""

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the object."""
        self.close()


class AsyncClosing(_Held):
    """Base class of objects that an `async with` block closes. In help(), their methods show every keyword argument."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the object."""

    async def __aenter__(self) -> Self:
        """Return the object itself."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the object."""
        await self.aclose()


class _Stream:
    """A stream that is not begun, running, whole, failed or left. The reader that waits for an event holds `_turn`."""

    def __init__(self, state: "StreamState | Relay", start: Start) -> None:
        self._state = state
        self._start = start
        self._running: tuple[Script[Reply], Performer] | None = None
        self._reply: Reply | None = None
        self._error: Exception | None = None
        self._turn = Lock()

    @property
    def partial(self) -> Reply:
        """The reply as far as it has arrived. An unfinished option call is reported as a loss, not as a message."""
        return self._reply or self._state.partial

    async def _next(self, *, muted: bool = False) -> StreamEvent | None:
        """The next event, None after the last; if `muted`, only the end is given and no more events.

        Raises the error that ended the stream early, and SettingsInvalid while another reader waits for an event.
        """
        if not self._turn.acquire(blocking=False):
            raise SettingsInvalid("another task is already reading this stream; read it from one place")
        try:
            if self._error is not None:
                raise self._error
            if self._reply is not None:
                return None
            if muted:
                self._state.skip_events()
            self._running = self._running or await self._start()
            step = await drive(*self._running)
            if isinstance(step, Emit):
                return step.event
            self._reply, self._running = step.result, None
            return None
        except BaseException as error:
            self._stop(error)
            raise
        finally:
            self._turn.release()

    async def _whole(self) -> Reply:
        while await self._next(muted=True) is not None:
            pass
        assert self._reply is not None
        return self._reply

    async def _leave(self) -> None:
        running = self._stop()
        if running is not None:
            await running[1].close()

    def _stop(self, error: BaseException | None = None) -> tuple[Script[Reply], Performer] | None:
        """End the stream, after an error or because the reader left; returns the script and the wire to close."""
        running, self._running = self._running, None
        if self._reply is None and self._error is None:
            self._error = error if isinstance(error, Exception) else self._state.closed_error()
        if running is not None:
            running[0].close()
        return running


class ReplyStream(_Stream, AsyncClosing):
    """The events of a reply that is arriving, as an async iterator. Created by `adapter.stream`.

    `async with` closes the connection. A stream that is read to its end closes itself. Errors raise where an event is
    read: CallError before the first event, StreamBroken with the partial reply after it. A second reader at the same
    time gets SettingsInvalid.

    >>> import asyncio, sabir
    >>> async def kinds() -> list[str]:
    ...     async with sabir.adapter("echo:m").stream("Hello!") as stream:
    ...         return [event.type async for event in stream]
    >>> asyncio.run(kinds())
    ['reply-start', 'text-start', 'text-delta', 'text-end', 'reply-end']
    """

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        """Return an iterator over the events that have not been read yet."""
        return self

    async def __anext__(self) -> StreamEvent:
        """Wait for the next event and return it."""
        event = await self._next()
        if event is None:
            raise StopAsyncIteration
        return event

    @property
    def text(self) -> AsyncIterator[str]:
        """An async iterator over the pieces of the reply's text as they arrive. Other events are skipped."""
        return _Texts(self, self._state.text_of)

    async def reply(self) -> Reply:
        """Read the stream to its end and return the complete reply. Raises StreamBroken or another CallError on
        failure.
        """
        return await self._whole()

    async def aclose(self) -> None:
        """Close the connection. Events that were not read are discarded."""
        await self._leave()


class _Texts:
    """The texts of a stream. It is no generator, so that a loop left half-way leaves nothing to close."""

    def __init__(self, events: AsyncIterator[StreamEvent], text_of: Callable[[StreamEvent], str]) -> None:
        self._events = events
        self._text_of = text_of

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while not (text := self._text_of(await anext(self._events))):
            pass
        return text


class SyncReplyStream(_Stream, SyncClosing):
    """The events of a reply that is arriving, as an iterator. Created by `adapter.stream_sync`. Reading blocks the
    thread.

    `with` closes the connection. No event loop is needed. Raises the same errors as ReplyStream.

    >>> import sabir
    >>> with sabir.adapter("echo:m").stream_sync("Hello there!") as stream:
    ...     list(stream.text)
    ['Hello ', 'there!']
    """

    def __iter__(self) -> Iterator[StreamEvent]:
        """Return an iterator over the events that have not been read yet."""
        return self

    def __next__(self) -> StreamEvent:
        """Wait for the next event and return it."""
        event = waited(self._next())
        if event is None:
            raise StopIteration
        return event

    @property
    def text(self) -> Iterator[str]:
        """An iterator over the pieces of the reply's text as they arrive. Other events are skipped."""
        return filter(None, map(self._state.text_of, self))

    def reply(self) -> Reply:
        """Read the stream to its end and return the complete reply. Raises StreamBroken or another CallError on
        failure.
        """
        return waited(self._whole())

    def close(self) -> None:
        """Close the connection. Events that were not read are discarded."""
        waited(self._leave())


class Relay:
    """Passes the events of another stream on, so that a wrapper of an adapter can read or change them.

    Create the new stream with `ReplyStream(relay, relay.start)` or `SyncReplyStream(relay, relay.start)`. Override
    `adapt_reply` to change the reply, `script` to change the events, or `start` to act before the first event. `stream`
    is the wrapped stream.
    """

    def __init__(self, stream: ReplyStream | SyncReplyStream) -> None:
        self.stream = stream
        """The stream that gives the events. `start` may replace it."""

    def adapt_reply(self, reply: Reply) -> Reply:
        """Return the reply to pass on in place of `reply`, which may be complete or partial. By default
        `reply` itself.
        """
        return reply

    @property
    def partial(self) -> Reply:
        """The reply as far as it has arrived."""
        return self.adapt_reply(self.stream.partial)

    def skip_events(self) -> None:
        """Pass on no more events, because the caller only wants the final reply."""
        self.stream._state.skip_events()

    def closed_error(self) -> StreamBroken:
        """Return the StreamBroken for a caller that reads from a closed stream, with the partial reply."""
        return self._telling(self.stream._state.closed_error())

    def text_of(self, event: StreamEvent) -> str:
        """Return the text that an event adds to the reply, or ""."""
        return self.stream._state.text_of(event)

    async def start(self) -> tuple[Script[Reply], Performer]:
        """Return the script to run and the Performer to run it with, which is this relay. Called before the first event
        is read.
        """
        return self.script(), self

    def script(self) -> Script[Reply]:
        """Return a script that passes on all events and ends with the reply."""
        try:
            while event := (yield from self.next_event()):
                yield Emit(event)
        except StreamBroken as error:
            raise self._telling(error)  # noqa: B904 — it is the same error
        return self.partial

    def next_event(self) -> Script[StreamEvent | None]:
        """Return a script that reads the next event of the stream. Its result is None at the end. Use with `yield
        from`.
        """
        event = yield Next()
        assert event is None or isinstance(event, StreamEvent)
        return event

    async def perform(self, action: Action) -> Outcome:
        """Return the next event of the stream, or None at its end."""
        return await anext(self.stream, None) if isinstance(self.stream, ReplyStream) else next(self.stream, None)

    async def close(self) -> None:
        """Close the wrapped stream."""
        if isinstance(self.stream, ReplyStream):
            await self.stream.aclose()
        else:
            self.stream.close()

    def _telling(self, error: StreamBroken) -> StreamBroken:
        error.partial = self.adapt_reply(error.partial)
        return error
