"""How long a call may take: what its driver looks at, and its script does not know.

    open ──▶ until `timeout` after the call began ── the first event ──▶ until `idle` after the last event

A call that is read whole has the first bound alone for all of it. Retries and pauses count; what the reader of a stream
does between two events does not.
"""

from math import inf
from time import monotonic
from typing import NamedTuple

from sabir.errors import CallTimedOut


class Patience(NamedTuple):
    """How long a call may take, in seconds; None for no end.

    `is_folded` says that nobody sees a stream's events: it is bounded as what is read whole. `who` is for the error.
    """

    timeout: float | None = None
    idle: float | None = None
    is_folded: bool = False
    who: str = "the provider"


class Clock:
    """A call's time, which begins with it. `until` is the moment (of `time.monotonic`) that bounds what is done now."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._ends = inf if patience.timeout is None else monotonic() + patience.timeout
        self._last = self._ends if patience.is_folded else inf
        self._idle = inf if patience.idle is None else patience.idle
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
        who, patience = self._patience.who, self._patience
        if self._is_silence:
            return CallTimedOut(f"{who} sent no event for {patience.idle:g} s; raise Settings.idle")
        whole = f"{who} gave no whole answer within {patience.timeout:g} s, retries and pauses included"
        return CallTimedOut(f"{whole}; raise Settings.timeout")
