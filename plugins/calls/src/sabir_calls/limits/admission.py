"""The queue that decides which request may be sent next. It has no clock and no locks: callers pass the time.

join ──▶ queue ──admit──▶ running ──finish──▶ removed     first come, first served: a small request does not
           └────────────leave────────────────▶ removed     overtake a large one, so each request is sent at some time
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from sabir_calls.limits.headers import Allowance
from sabir_calls.limits.window import CountedRequest, Remainder, Window


def _ignore() -> None:
    """Do nothing. The `wake` of a ticket before a caller waits for it."""


@dataclass(eq=False, slots=True)
class Ticket:
    """One request's place in the queue, and later its slot. `tokens` is the estimate for the request."""

    tokens: int
    wake: Callable[[], object] = _ignore
    """Called, from any thread, when the ticket is first in the queue, so that its caller calls `admit` again."""
    requests: list[CountedRequest] = field(default_factory=list)
    """Each request that was sent for the ticket, as counted in the window; empty until the ticket is admitted."""


class Admission:
    """The queue of waiting tickets, the number of running tickets, and the window. Not thread-safe."""

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
        """Admit a ticket, which must be in the queue, if it may start now, and return 0.0. Otherwise return the seconds
        after which to call `admit` again; infinity means: when `wake` is called.
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
        """Count one request of an admitted ticket: its first, or a retry."""
        ticket.requests.append(self._window.add(now, ticket.tokens))

    def leave(self, ticket: Ticket) -> None:
        """Remove a ticket from the queue, because its caller stopped waiting."""
        if ticket in self._queue:  # otherwise `wake_first` removed it
            self._queue.remove(ticket)
        self.wake_first()

    def finish(self, ticket: Ticket, tokens: int | None) -> None:
        """End a running ticket. `tokens` replaces the estimate of its last request; None leaves the estimate."""
        self.running -= 1
        if tokens is not None:
            self._window.correct(ticket.requests[-1], tokens)
        self.wake_first()

    def pause(self, until: float) -> None:
        """Admit no ticket before the time `until`. A longer pause stays in effect."""
        self._paused_until = max(self._paused_until, until)

    def restrict(self, requests: Allowance | None, tokens: Allowance | None, now: float) -> None:
        """Admit no more than the provider reports as left, until the reset that it reports. The other running requests
        are taken off, because the provider may not have counted them.
        """
        others = max(self.running - 1, 0)
        self._window.restrict(
            requests and Remainder(requests.left - others, now + requests.seconds),
            tokens and Remainder(tokens.left, now + tokens.seconds),
        )
        self.wake_first()

    def wake_first(self) -> None:
        """Wake the first ticket of the queue, so that its caller calls `admit` again."""
        while self._queue:
            try:
                self._queue[0].wake()
            except RuntimeError:  # the event loop of the ticket's caller is closed: nobody waits for it
                self._queue.popleft()
            else:
                return
