"""How long a call may take: its driver checks this, and its script knows nothing of it.

    open ──▶ until `timeout` after the call began ── the first event ──▶ until `idle` after the last event

A call whose answer is read whole has the first bound alone. Retries and pauses count; the time that a stream's reader
takes between two events does not.
"""

from math import inf
from time import monotonic

from sabir.base.failures import CallTimedOut


class Clock:
    """Measures one call from its beginning; `timeout` and `idle` in seconds, `timeout=None` sets no end.

    `until` is the moment (of `time.monotonic`) that bounds the present action. `is_folded` says that no caller reads
    the stream's events: the call is bounded as one whose answer is read whole. `who` is named in the error.
    """

    def __init__(
        self, timeout: float | None = None, idle: float = inf, *, is_folded: bool = False, who: object = "the provider"
    ) -> None:
        self._timeout = timeout
        self._idle = idle
        self._who = who
        self._ends = inf if timeout is None else monotonic() + timeout
        self._last = self._ends if is_folded else inf
        self._is_silence = False
        self.until = self._ends

    @property
    def left(self) -> float:
        """Seconds that the call has left."""
        return self._ends - monotonic()

    def longest_read(self, *, streaming: bool) -> float:
        """Seconds that one read may take; if a caller reads the stream's events, at least `idle`."""
        is_seen = streaming and self._last == inf and self._idle < inf
        return max(self.left, self._idle) if is_seen else self.left

    def begin(self) -> None:
        """Begin another attempt, of which no event has come yet."""
        self.until, self._is_silence = self._ends, False

    def hear(self) -> None:
        """Note that an event came and the next is asked for."""
        until = monotonic() + self._idle
        self._is_silence = until < self._last
        self.until = until if self._is_silence else self._last

    def check(self) -> None:
        """Raise CallTimedOut if the time is over."""
        if monotonic() > self.until:
            raise self.late()

    def late(self) -> CallTimedOut:
        """The error for a call whose time is over."""
        if self._is_silence:
            return CallTimedOut(f"{self._who} sent no event for {self._idle:g} s; raise Settings.idle")
        whole = f"{self._who} gave no whole answer within {self._timeout:g} s, retries and pauses included"
        return CallTimedOut(f"{whole}; raise Settings.timeout")
