"""How long a call may take: what its driver looks at, and its script does not know.

    open ──▶ until `timeout` after the call began ── the first event ──▶ until `idle` after the last event

A call that is read whole has the first bound alone for all of it. Retries and pauses count; what the reader of a stream
does between two events does not.
"""

from math import inf
from time import monotonic

from sabir.base.failures import CallTimedOut


class Clock:
    """Measures one call from the moment it is made; `timeout` and `idle` in seconds, `timeout=None` sets no end.

    `until` is the moment (of `time.monotonic`) that bounds what is done now. `is_folded` says that nobody sees a
    stream's events: it is bounded as what is read whole. `who` is for the error.
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
        """Seconds that one read may take: of a stream that somebody sees, also as long as a silence."""
        is_seen = streaming and self._last == inf and self._idle < inf
        return max(self.left, self._idle) if is_seen else self.left

    def begin(self) -> None:
        """Another attempt: none of its events came yet."""
        self.until, self._is_silence = self._ends, False

    def hear(self) -> None:
        """An event came, and the next is asked for."""
        until = monotonic() + self._idle
        self._is_silence = until < self._last
        self.until = until if self._is_silence else self._last

    def check(self) -> None:
        """CallTimedOut where the time is over."""
        if monotonic() > self.until:
            raise self.late()

    def late(self) -> CallTimedOut:
        """The error of a call whose time is over."""
        if self._is_silence:
            return CallTimedOut(f"{self._who} sent no event for {self._idle:g} s; raise Settings.idle")
        whole = f"{self._who} gave no whole answer within {self._timeout:g} s, retries and pauses included"
        return CallTimedOut(f"{whole}; raise Settings.timeout")
