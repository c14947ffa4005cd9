"""A reply as it arrives: one class for async code and one for sync code.

    async with llm.stream(chat) as stream:          with llm.stream_sync(chat) as stream:
        async for text in stream.text: ...              for text in stream.text: ...
        reply = await stream.reply()                    reply = stream.reply()

A wrapper of an adapter uses a Relay to read or change the events of a stream.

The request is sent when the first event is read. Leaving the block closes the connection, and so does a cancellation. A
stream that is read to its end closes itself, so `await stream.reply()` needs no block.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from threading import Lock
from typing import Self, TypeAlias

from sabir.base.errors import SettingsInvalid
from sabir.base.surface import show_arguments
from sabir.calling.drive import Performer, drive, run_blocking
from sabir.calling.exchange import Action, Emit, Next, Outcome, Script
from sabir.reading.incoming import StreamState
from sabir.vocabulary.reply import Reply, StreamBroken, StreamEvent

Start: TypeAlias = Callable[[], Awaitable[tuple[Script[Reply], Performer]]]
"""A function that prepares the call when the first event is read. Returns the script to run, and the Performer to run
it with, which is sync or async like the stream.
"""


class _ShowsArguments:
    """Base class that applies `show_arguments` to each subclass, so that help() shows every keyword argument."""

    def __init_subclass__(cls, **named: object) -> None:
        super().__init_subclass__(**named)
        show_arguments(cls)


class SyncClosing(_ShowsArguments):
    """Base class of objects that a `with` block closes. In help(), their methods show every keyword argument."""

    @abstractmethod
    def close(self) -> None:
        """Close the object. Called at the end of a `with` block, also after an exception."""

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the object."""
        self.close()


class AsyncClosing(_ShowsArguments):
    """Base class of objects that an `async with` block closes. In help(), their methods show every keyword argument."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the object. Called at the end of an `async with` block, also after an exception."""

    async def __aenter__(self) -> Self:
        """Return the object itself."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the object."""
        await self.aclose()


class _BaseStream:
    """The state of a stream: not started, running, complete, failed or closed. The reader that waits for an event holds
    the lock `_turn`.
    """

    def __init__(self, state: "StreamState | Relay", start: Start) -> None:
        self._state = state
        self._start = start
        self._running: tuple[Script[Reply], Performer] | None = None
        self._reply: Reply | None = None
        self._error: Exception | None = None
        self._turn = Lock()

    @property
    def partial(self) -> Reply:
        """The reply as far as it has arrived; after the end, the complete reply. May be read at any time.

        An unfinished option call, medium or opaque part is a loss, not a part of a message.
        """
        return self._reply or self._state.partial

    async def _read_event(self, *, muted: bool = False) -> StreamEvent | None:
        """Read and return the next event; None after the last event. With `muted`, the other events are skipped.

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
                event: StreamEvent = step.event
                return event
            self._reply, self._running = step.result, None
            return None
        except BaseException as error:
            self._end_stream(error)
            raise
        finally:
            self._turn.release()

    async def _read_all(self) -> Reply:
        while await self._read_event(muted=True) is not None:
            pass
        assert self._reply is not None
        return self._reply

    async def _close_running(self) -> None:
        running = self._end_stream()
        if running is not None:
            await running[1].close()

    def _end_stream(self, error: BaseException | None = None) -> tuple[Script[Reply], Performer] | None:
        """End the stream, after an error or because the reader left. Return the script and the wire if the wire must be
        closed.
        """
        running, self._running = self._running, None
        if self._reply is None and self._error is None:
            self._error = error if isinstance(error, Exception) else self._state.closed_error()
        if running is not None:
            running[0].close()
        return running


class ReplyStream(_BaseStream, AsyncClosing):
    """The events of a reply that is arriving, as an async iterator. Created by `adapter.stream`.

    Reading the first event sends the request. `async with` closes the connection. A stream that is read to its end
    closes itself. Reading an event raises the errors of the call: a CallError before the first event, StreamBroken with
    the partial reply after it. Reading after an error raises the error again. Reading a stream that was closed before
    its end, or whose reader was cancelled, raises StreamBroken. A second reader at the same time gets SettingsInvalid.

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
        """Wait for the next event and return it. Raises StopAsyncIteration after the last event."""
        event = await self._read_event()
        if event is None:
            raise StopAsyncIteration
        return event

    @property
    def text(self) -> AsyncIterator[str]:
        """An async iterator over the pieces of the reply's text in the events that have not been read yet. Skips other
        events.
        """
        return _Texts(self, self._state.text_of)

    async def reply(self) -> Reply:
        """Read the stream to its end and return the complete reply; after the end, return the reply again.

        Events that were not read before are skipped. Raises the same errors as reading an event.
        """
        return await self._read_all()

    async def aclose(self) -> None:
        """Close the connection. Events that were not read are discarded. A second call does nothing."""
        await self._close_running()


class _Texts:
    """An async iterator over the texts of a stream. Not a generator, so that a loop that ends early leaves nothing
    open.
    """

    def __init__(self, events: AsyncIterator[StreamEvent], text_of: Callable[[StreamEvent], str]) -> None:
        self._events = events
        self._text_of = text_of

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while not (text := self._text_of(await anext(self._events))):
            pass
        return text


class SyncReplyStream(_BaseStream, SyncClosing):
    """The events of a reply that is arriving, as an iterator. Created by `adapter.stream_sync`. Reading blocks the
    thread.

    Reading the first event sends the request. `with` closes the connection. No event loop is needed. Raises the same
    errors as ReplyStream.

    >>> import sabir
    >>> with sabir.adapter("echo:m").stream_sync("Hello there!") as stream:
    ...     list(stream.text)
    ['Hello ', 'there!']
    """

    def __iter__(self) -> Iterator[StreamEvent]:
        """Return an iterator over the events that have not been read yet."""
        return self

    def __next__(self) -> StreamEvent:
        """Wait for the next event and return it. Raises StopIteration after the last event."""
        event = run_blocking(self._read_event())
        if event is None:
            raise StopIteration
        return event

    @property
    def text(self) -> Iterator[str]:
        """An iterator over the pieces of the reply's text in the events that have not been read yet. Skips other
        events.
        """
        return filter(None, map(self._state.text_of, self))

    def reply(self) -> Reply:
        """Read the stream to its end and return the complete reply; after the end, return the reply again.

        Events that were not read before are skipped. Raises the same errors as reading an event.
        """
        return run_blocking(self._read_all())

    def close(self) -> None:
        """Close the connection. Events that were not read are discarded. A second call does nothing."""
        run_blocking(self._close_running())


class Relay:
    """Passes on the events of another stream, so that a wrapper of an adapter can read or change the events.

    `stream` is the wrapped stream. Create the new stream with `ReplyStream(relay, relay.start)`, or with
    `SyncReplyStream(relay, relay.start)` for a SyncReplyStream. Override `adapt_reply` to change the reply, `script` to
    change the events, or `start` to act before the first event.
    """

    def __init__(self, stream: ReplyStream | SyncReplyStream) -> None:
        self.stream = stream
        """The wrapped stream, from which the events are read. An override of `start` may replace it."""

    def adapt_reply(self, reply: Reply) -> Reply:
        """Return the reply to pass on instead of `reply`, which may be complete or partial. By default,
        return `reply`.
        """
        return reply

    @property
    def partial(self) -> Reply:
        """The reply of the wrapped stream as far as it has arrived, changed by `adapt_reply`."""
        return self.adapt_reply(self.stream.partial)

    def skip_events(self) -> None:
        """Make the wrapped stream return no further events, because the caller only wants the final reply."""
        self.stream._state.skip_events()

    def closed_error(self) -> StreamBroken:
        """Return the StreamBroken to raise for a reader of a closed stream, with the partial reply."""
        return self._adapt_error(self.stream._state.closed_error())

    def text_of(self, event: StreamEvent) -> str:
        """Return the text that an event adds to the reply's text, or "" for other events."""
        return self.stream._state.text_of(event)

    async def start(self) -> tuple[Script[Reply], Performer]:
        """Return the script to run and the Performer to run it with, which is this relay. Called before the first event
        is read.
        """
        return self.script(), self

    def script(self) -> Script[Reply]:
        """Return a script that emits all events and returns the reply as its result."""
        try:
            while event := (yield from self.next_event()):
                yield Emit(event)
        except StreamBroken as error:
            raise self._adapt_error(error)  # noqa: B904 — it is the same error
        return self.partial

    def next_event(self) -> Script[StreamEvent | None]:
        """Return a script that reads the next event of the stream. Its result is None at the end. Use with `yield
        from`.
        """
        event = yield Next()
        assert event is None or isinstance(event, StreamEvent)
        return event

    async def perform(self, action: Action) -> Outcome:
        """Return the next event of the wrapped stream, or None at its end. `action` is ignored."""
        return await anext(self.stream, None) if isinstance(self.stream, ReplyStream) else next(self.stream, None)

    async def close(self) -> None:
        """Close the wrapped stream."""
        if isinstance(self.stream, ReplyStream):
            await self.stream.aclose()
        else:
            self.stream.close()

    def _adapt_error(self, error: StreamBroken) -> StreamBroken:
        error.partial = self.adapt_reply(error.partial)
        return error
