"""Deliver the events of one question to the iterators of a stream, and stop when nothing iterates any more.

    stream.text ──▶ iterator ──▶ EventBuffer ──▶ the question's coroutine: here (sync), or in a task of its own (async)
                       │            └── reservation: the right to answer, which `stop` releases at once
                       └── gone, and no `with` block open ──▶ abandoned: the next question may begin

Law: a question advances only while its stream is read. An abandoned stream never makes the conversation busy: it ends
when it is garbage collected, or when the conversation is used again.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from threading import get_ident
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from sabir_session.evaluation.events import Event
from sabir_session.evaluation.performers import StepPerformer

if TYPE_CHECKING:
    import asyncio

Item = TypeVar("Item")
Result = TypeVar("Result")
Select: TypeAlias = Callable[[Event], Item | None]
"""Returns the value that an iterator yields for an event, or None to skip the event."""


class Reservation:
    """The right to answer one question: a context manager that another object can end early.

    `lock` is the context manager that reserves the conversation. `performer` is None until answering begins.
    """

    def __init__(self, lock: AbstractContextManager[None], buffer: "EventBuffer[Any] | None") -> None:
        self._lock = lock
        self.is_open = False
        self.buffer = buffer
        self.performer: StepPerformer | None = None

    def __enter__(self) -> "Reservation":
        """Acquire the right. Raises ConversationBusy if another question is being answered."""
        self._lock.__enter__()
        self.is_open = True
        return self

    def __exit__(self, *raised: Any) -> None:
        """Release the right, unless it was released before."""
        if self.is_open:
            self.is_open = False
            self._lock.__exit__(*raised)

    def abandon(self) -> None:
        """Release the right at once, so that the question records nothing more.

        Has no effect while options run, because their results are recorded when the cancelled question ends.
        """
        if self.performer is None or not self.performer.runs_options:
            if self.performer is not None:
                self.performer.session = None
            self.__exit__(GeneratorExit, GeneratorExit(), None)


class EventBuffer(ABC, Generic[Result]):
    """A buffer of the events of one question, between its coroutine and the iterators of a stream."""

    def __init__(self, start: "Callable[[Any], Coroutine[Any, Any, Result]]") -> None:
        self.question = ""
        """The id of the new question's first message; "" while an earlier question is being finished."""
        self.reservation: Reservation | None = None
        self.is_entered = False
        """Whether a `with` block of the stream is open."""
        self.iterators = 0
        """The number of open iterators."""
        self._start = start

    @property
    def is_abandoned(self) -> bool:
        """Whether the stream has neither an open iterator nor an open `with` block."""
        return not self.iterators and not self.is_entered

    @abstractmethod
    def emit(self, event: Event) -> None:
        """Add an event of the question."""

    @abstractmethod
    async def wait_until_read(self) -> None:
        """Suspend the question until all events are read. The sync version waits until another event is asked for."""

    @abstractmethod
    def stop(self) -> None:
        """Stop answering, and release the conversation. Does not wait for the question's task to end."""


class SyncEventBuffer(EventBuffer[Result]):
    """Runs the coroutine in the reader's thread, one event at a time.

    The coroutine has a copy of the reader's context variables, so that its changes, such as the current span, do not
    hold for the reader's code between two events.
    """

    def __init__(self, start: "Callable[[SyncEventBuffer[Result]], Coroutine[Any, Any, Result]]") -> None:
        super().__init__(start)
        self.result: Result | None = None
        self._events: deque[Event] = deque()
        self._steps: Coroutine[Any, Any, Result] | None = None
        self._context: Context
        self._error: BaseException | None = None
        self._is_over = False

    def emit(self, event: Event) -> None:
        """Add an event of the question, which `next` will return."""
        self._events.append(event)

    async def wait_until_read(self) -> None:
        """Suspend the question until the reader has read all events and asks for the next event."""
        await _suspend()

    def next(self) -> Event:
        """Return the next event. Raises StopIteration at the end, and the errors of the question."""
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._is_over:
                raise StopIteration
            try:
                if self._steps is None:
                    self._steps, self._context = self._start(self), copy_context()
                self._context.run(self._steps.send, None)
            except StopIteration as end:
                self.result, self._is_over = end.value, True
            except BaseException as error:
                self._error = error
                raise
        return self._events.popleft()

    def stop(self) -> None:
        """Stop the question's coroutine, which closes the connection. Recorded messages stay."""
        self._is_over = True
        if self._steps is not None:
            self._context.run(self._steps.close)


class AsyncEventBuffer(EventBuffer[Result]):
    """Runs the coroutine in a task of its own. In `wait_until_read`, the coroutine waits for the reader."""

    def __init__(self, start: "Callable[[AsyncEventBuffer[Result]], Coroutine[Any, Any, Result]]") -> None:
        super().__init__(start)
        self.task: asyncio.Task[Result] | None = None
        self.is_stopped = False
        self._thread = 0
        self._items: deque[Any] = deque()  # events, then the task
        self._has_items: asyncio.Event
        self._is_read: asyncio.Event

    def emit(self, event: object) -> None:
        """Add an event of the question, or its finished task."""
        self._items.append(event)
        self._is_read.clear()
        self._has_items.set()

    async def wait_until_read(self) -> None:
        """Suspend the question until all events are read."""
        await self._is_read.wait()

    async def next(self) -> Event | None:
        """Return the next event; None at the end. Raises the errors of the question."""
        import asyncio

        if self.is_stopped:
            return None
        if self.task is None:
            self._thread, self._has_items, self._is_read = get_ident(), asyncio.Event(), asyncio.Event()
            self.task = asyncio.ensure_future(self._start(self))
            self.task.add_done_callback(self.emit)
        while not self._items:
            self._is_read.set()
            self._has_items.clear()
            await self._has_items.wait()
        if self._was_stopped():
            return None
        if self._items[0] is self.task:  # it stays, for other readers
            self.task.result()
            return None
        event: Event = self._items.popleft()
        return event

    def _was_stopped(self) -> bool:
        return self.is_stopped

    def stop(self) -> None:
        """Cancel the question, without waiting for the task to end, and release the conversation. If options are
        running, the conversation is released when they have ended.
        """
        if self.task is None or self.task.done() or self.is_stopped:
            self.is_stopped = self.is_stopped or self.task is None
            return
        loop = self.task.get_loop()
        if not loop.is_closed() and get_ident() != self._thread:  # garbage is collected in any thread
            loop.call_soon_threadsafe(self.stop)
            return
        self.is_stopped = True
        if not loop.is_closed():
            self.task.add_done_callback(_retrieve)
            self.task.cancel()
        if self.reservation is not None:
            self.reservation.abandon()

    async def close(self) -> None:
        """Cancel the question, and wait until its options have ended."""
        import asyncio

        self.is_stopped = self.is_stopped or self.task is None or not self.task.done()
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


@coroutine
def _suspend() -> Generator[None, None, None]:
    """Suspend the coroutine once."""
    yield


async def wait_for(task: "asyncio.Task[Any]") -> None:
    """Wait until a task has ended. Does not raise the task's error or cancellation."""
    import asyncio

    await asyncio.wait([task])


def _retrieve(task: "asyncio.Task[Any]") -> None:
    """Read the error of a task that nothing awaits, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


class _CountedIterator(Generic[Item]):
    """An iterator that its EventBuffer counts, until it ends, is closed or is garbage collected.

    The reference to `stream` keeps the stream alive until its last iterator is gone.
    """

    def __init__(self, stream: object, buffer: Any, select: Select[Item]) -> None:
        self._stream: object = stream
        self._buffer = buffer
        self._select = select
        self._is_open = True
        buffer.iterators += 1

    def _end_iteration(self) -> None:
        if self._is_open:
            self._is_open = False
            self._buffer.iterators -= 1
            self._stream = None

    def __del__(self) -> None:
        """End the iteration."""
        self._end_iteration()


class SyncEvents(_CountedIterator[Item], Iterator[Item]):
    """Iterates over the values that `select` returns for the unread events of a question."""

    def __next__(self) -> Item:
        """Return the next value. Raises the errors of the question."""
        try:
            while self._is_open:
                item = self._select(self._buffer.next())
                if item is not None:
                    return item
        except BaseException:
            self._end_iteration()
            raise
        raise StopIteration

    def close(self) -> None:
        """End the iteration. A stream without other references then stops answering."""
        self._end_iteration()


class AsyncEvents(_CountedIterator[Item], AsyncIterator[Item]):
    """Iterates over the values that `select` returns for the unread events of a question."""

    async def __anext__(self) -> Item:
        """Return the next value. Raises the errors of the question."""
        try:
            while self._is_open:
                event = await self._buffer.next()
                if event is None:
                    break
                if (item := self._select(event)) is not None:
                    return item
        except BaseException:
            self._end_iteration()
            raise
        self._end_iteration()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the iteration. A stream without other references then stops answering."""
        self._end_iteration()
