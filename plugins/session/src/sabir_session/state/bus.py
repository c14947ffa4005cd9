"""Delivers events to their subscribers in this process.

publish(event) ──▶ every handler of type(event), in the order of subscription
               └─▶ a handler's error is raised after all were called: it stops no other handler and is not lost
"""

from collections.abc import Callable
from threading import RLock
from typing import Protocol, TypeVar

from sabir.authoring import Signature

from sabir_session.errors import ObserverInvalid

Event = TypeVar("Event")


class Subscription:
    """The handle of a subscription; calling it, or `unsubscribe`, ends it. Ending twice is harmless."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def unsubscribe(self) -> None:
        """End it: nothing is called from now on."""
        self._end()

    __call__ = unsubscribe
    """The same."""


class EventBus(Protocol):
    """Publishes events; a session takes the events for which its slices have reducers."""

    def subscribe(self, event_type: type[Event], handler: Callable[[Event], object]) -> Subscription:
        """Have the handler called with every event of exactly that type."""

    def publish(self, event: object) -> None:
        """Give the event to its handlers."""


class Listeners:
    """Functions by type, in the order in which they were added.

    A change during a round takes effect in the next round.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self.by_type: dict[type, tuple[tuple[object, Callable[..., object]], ...]] = {}
        """Type → its functions, each with its own token; a type without functions is absent."""

    def add(self, listened_to: type, function: Callable[..., object]) -> Subscription:
        """Add a function; each addition ends separately, even of the same function."""
        if Signature.is_asynchronous(function):
            name = getattr(function, "__qualname__", type(function).__name__)
            remedy = "give a plain function, which may start a task"
            raise ObserverInvalid(f"{name} is a coroutine function, and nothing would await it; {remedy}")
        mark = object()

        def end() -> None:
            with self._lock:
                kept = tuple(each for each in self.by_type.get(listened_to, ()) if each[0] is not mark)
                if kept:
                    self.by_type[listened_to] = kept
                else:
                    self.by_type.pop(listened_to, None)

        with self._lock:
            self.by_type[listened_to] = (*self.by_type.get(listened_to, ()), (mark, function))
        return Subscription(end)

    def of(self, listened_to: type) -> tuple[Callable[..., object], ...]:
        """The functions of a type, in their order."""
        return tuple(function for _, function in self.by_type.get(listened_to, ()))


class InProcessEventBus:
    """An event bus within one process: handlers run in the caller's thread, before `publish` returns."""

    def __init__(self) -> None:
        self._handlers = Listeners()

    def subscribe(self, event_type: type[Event], handler: Callable[[Event], object]) -> Subscription:
        """Have the handler called with every event of exactly that type, after those that were subscribed before.

        Raises ObserverInvalid for a coroutine function.
        """
        return self._handlers.add(event_type, handler)

    def publish(self, event: object) -> None:
        """Give the event to all its handlers; then raise a handler's error, or a group of several."""
        failures: list[Exception] = []
        for handler in self._handlers.of(type(event)):
            try:
                handler(event)
            except Exception as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup(f"{len(failures)} handlers of {type(event).__name__} failed", failures)
