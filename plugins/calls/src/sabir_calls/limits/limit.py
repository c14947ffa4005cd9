"""A limit that callers in threads and in event loops wait for.

async with limit.slot(tokens) as slot: …          with limit.slot(tokens) as slot: …
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
from time import monotonic
from typing import Literal, NamedTuple, TypeAlias

from sabir import CallError, SettingsInvalid

from sabir_calls.limits.admission import Admission, Ticket
from sabir_calls.limits.headers import read_allowances
from sabir_calls.limits.window import Window

logger = logging.getLogger("sabir_calls")

Period: TypeAlias = Literal["second", "minute", "hour", "day"] | float
"""The length of the window: a word, or seconds."""
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


class LimitStatus(NamedTuple):
    """The present state of a Limit. Returned by the method `Limit.status`."""

    running: int
    """The number of requests that are running."""
    waiting: int
    """The number of callers that are waiting."""
    waited: float
    """The sum of the seconds that requests waited before they were admitted, since the limit was created. Waits of less
    than a millisecond are not counted."""


class Limit:
    """How much may be sent: by one adapter, or by several that share the limit. Thread-safe.

    `at_once` is the number of requests that may run at the same time. `requests` and `tokens` limit the requests, and
    the input and output tokens together, in every period of length `per`: "second", "minute", "hour", "day", or a
    number of seconds. The period slides: the requests of the last 60 seconds count, not those since the last full
    minute. None means no limit.

    Callers are served in the order in which they begin to wait. If a provider answers with the time after which to try
    again (`CallError.retry_after`), no request that waits for the limit is sent before that time. If the headers of a
    response report how many requests or tokens are left until a reset, no more are sent until then. Retries of an
    adapter count but do not wait, so they may exceed the numbers.

    Raises SettingsInvalid for a limit that is not a whole number of at least 1, and for an invalid `per`.

    >>> import sabir, sabir_calls
    >>> limit = sabir_calls.Limit(at_once=8, requests=500, per="minute")
    >>> llm = sabir_calls.limited(sabir.adapter("echo:m"), limit)
    >>> llm.complete_sync("Hello!").text, limit.status()
    ('Hello!', LimitStatus(running=0, waiting=0, waited=0.0))
    """

    def __init__(
        self,
        *,
        at_once: int | None = None,
        requests: int | None = None,
        tokens: int | None = None,
        per: Period = "minute",
    ) -> None:
        numbers = {"at_once": at_once, "requests": requests, "tokens": tokens}
        for name, number in numbers.items():
            if number is not None and (type(number) is not int or number < 1):
                raise SettingsInvalid(f"Limit: {name} is {number!r}; expected a whole number of at least 1, or None")
        seconds = _SECONDS.get(per, 0.0) if isinstance(per, str) else per
        if type(seconds) not in (int, float) or not isfinite(seconds) or seconds <= 0:
            periods = ", ".join(map(repr, _SECONDS))
            raise SettingsInvalid(f"Limit: per is {per!r}; expected {periods}, or a positive number of seconds")
        self.tokens = tokens
        """The limit of tokens in each period, or None."""
        self._text = ", ".join(f"{name}={number}" for name, number in {**numbers, "per": per}.items() if number)
        self._admission = Admission(Window(seconds, requests, tokens), at_once)
        self._lock = threading.Lock()
        self._waited = 0.0

    def __repr__(self) -> str:
        """Show the limits that are set."""
        return f"Limit({self._text})"

    def status(self) -> LimitStatus:
        """Return how many requests are running, how many callers wait, and how long admitted requests have waited."""
        with self._lock:
            return LimitStatus(self._admission.running, self._admission.waiting, self._waited)

    def slot(self, tokens: int = 0) -> "Slot":
        """Return a slot for one request, for a `with` or an `async with` block.

        `tokens` is an estimate of the request's tokens. Entering the block waits for the limit; leaving it ends the
        request. Raises SettingsInvalid if the estimate is larger than the limit, because no waiting would help.
        """
        if self.tokens is not None and tokens > self.tokens:
            reason = f"the request has about {tokens} tokens, more than the limit of {self.tokens}"
            raise SettingsInvalid(f"{reason}; send less, or raise tokens=")
        return Slot(self, Ticket(tokens))


@dataclass(eq=False)
class Slot:
    """One request under a Limit, from waiting to its end. Created by `Limit.slot`; used once."""

    limit: Limit
    _ticket: Ticket
    _used: int | None = None

    def __enter__(self) -> "Slot":
        """Wait until the request may be sent. Blocks the thread."""
        if self._join_queue() > 0:
            event = threading.Event()
            with self._wait_in_queue(event.set):
                while (seconds := self._try_to_start()) > 0:
                    event.wait(None if seconds == inf else seconds)
                    event.clear()
        return self

    async def __aenter__(self) -> "Slot":
        """Wait until the request may be sent."""
        if self._join_queue() > 0:
            event = asyncio.Event()
            with self._wait_in_queue(partial(asyncio.get_running_loop().call_soon_threadsafe, event.set)):
                while (seconds := self._try_to_start()) > 0:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(None if seconds == inf else seconds):
                            await event.wait()
                    event.clear()
        return self

    def __exit__(self, *raised: object) -> None:
        """End the request, so that the next caller may send."""
        with self.limit._lock:
            self.limit._admission.finish(self._ticket, self._used)

    async def __aexit__(self, *raised: object) -> None:
        """End the request, so that the next caller may send."""
        self.__exit__()

    def use(self, tokens: int | None) -> None:
        """Set the tokens that the reply reports, input and output together. They replace the estimate of the last
        attempt when the block ends. None leaves the estimate.
        """
        self._used = tokens

    def retry(self) -> None:
        """Count one more request, which the adapter sends after a failure without waiting for the limit."""
        with self.limit._lock:
            self.limit._admission.count(self._ticket, monotonic())

    def fail(self, error: CallError) -> None:
        """If the provider reported when to try again, let no request that waits for the limit start before that
        time.
        """
        if error.retry_after:
            with self.limit._lock:
                self.limit._admission.pause(monotonic() + error.retry_after)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Let no more requests start than the provider reports as left in the headers of a response (names in lower
        case), until the reset that it reports. Does nothing if the headers report none.
        """
        requests, tokens = read_allowances(headers)
        if requests or tokens:
            with self.limit._lock:
                self.limit._admission.restrict(requests, tokens, monotonic())

    def _join_queue(self) -> float:
        """Join the queue, and return 0.0 if the request may be sent at once, otherwise the seconds to wait."""
        with self.limit._lock:
            self.limit._admission.join(self._ticket)
            return self.limit._admission.admit(self._ticket, monotonic())

    @contextmanager
    def _wait_in_queue(self, wake: Callable[[], object]) -> Iterator[None]:
        """Leave the queue if the `with` block raises. Add the time of the block to the limit's total.

        `wake` is called when the request is first in the queue. The block must call `_try_to_start` until it returns
        0.0.
        """
        began = monotonic()
        self._ticket.wake = wake
        try:
            yield
        except BaseException:
            self._leave_queue()
            raise
        self._note_wait(began)

    def _try_to_start(self) -> float:
        with self.limit._lock:
            return self.limit._admission.admit(self._ticket, monotonic())

    def _leave_queue(self) -> None:
        """Leave the queue, or end the request if it was admitted while the caller was cancelled."""
        with self.limit._lock:
            if self._ticket.requests:
                self.limit._admission.finish(self._ticket, 0)
            else:
                self.limit._admission.leave(self._ticket)

    def _note_wait(self, began: float) -> None:
        waited = monotonic() - began
        if waited < 0.001:
            return
        with self.limit._lock:
            self.limit._waited += waited
        logger.debug("waited %.3f s for %r", waited, self.limit)
