"""Who may send next. Pure: the caller passes the time, and wakes the tickets that it is told to wake.

join ──▶ queue ──admit──▶ running ──finish──▶ left        first come, first served: a small request
           └────────────leave────────────────▶ left        does not overtake a large one, so none starves
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from sabir_calls.limits.window import CountedRequest, Window


def _ignore() -> None:
    """The `wake` of a ticket that nobody waits for yet."""


@dataclass(eq=False, slots=True)
class Ticket:
    """One request's place in the queue, and later its slot. `tokens` is the estimate for the request."""

    tokens: int
    wake: Callable[[], object] = _ignore
    """Called, from any thread, when the ticket is first in the queue and may be admitted now."""
    requests: list[CountedRequest] = field(default_factory=list)
    """The entry of each request that was sent for the ticket; empty until the ticket is admitted."""


class Admission:
    """The queue of waiting tickets, the running ones, and the window. Not thread-safe: its user holds a lock."""

    def __init__(self, window: Window, at_once: int | None) -> None:
        self._window = window
        self._at_once = inf if at_once is None else at_once
        self._queue: deque[Ticket] = deque()
        self._paused_until = -inf
        self.running = 0

    @property
    def waiting(self) -> int:
        """The number of tickets in the queue."""
        return len(self._queue)

    def join(self, ticket: Ticket) -> None:
        """Add a ticket at the end of the queue."""
        self._queue.append(ticket)

    def admit(self, ticket: Ticket, now: float) -> float:
        """Admit a ticket if it is its turn, and return 0.0; otherwise return the seconds to wait before asking again.

        Infinity means: wait until `wake` is called.
        """
        if self._queue[0] is not ticket or self.running >= self._at_once:
            return inf
        delay = max(self._paused_until - now, self._window.delay(now, ticket.tokens))
        if delay > 0:
            return delay
        self._queue.popleft()
        self.running += 1
        self.count(ticket, now)
        self.wake_first()
        return 0.0

    def count(self, ticket: Ticket, now: float) -> None:
        """Count one request of an admitted ticket. A retry is one more request."""
        ticket.requests.append(self._window.add(now, ticket.tokens))

    def leave(self, ticket: Ticket) -> None:
        """Remove a ticket from the queue, because its caller does not wait any longer."""
        self._queue.remove(ticket)
        self.wake_first()

    def finish(self, ticket: Ticket, tokens: int | None) -> None:
        """End a running ticket. `tokens` replaces the estimate of its last request; None leaves the estimate."""
        self.running -= 1
        if tokens is not None:
            self._window.correct(ticket.requests[-1], tokens)
        self.wake_first()

    def pause(self, until: float) -> None:
        """Admit nobody before this moment. A pause that lasts longer already stays."""
        self._paused_until = max(self._paused_until, until)

    def wake_first(self) -> None:
        """Wake the first ticket of the queue, so that it asks again."""
        while self._queue:
            try:
                self._queue[0].wake()
            except RuntimeError:  # the event loop of the caller was closed while the caller waited
                self._queue.popleft()
            else:
                return
