"""How long a call may take, by three settings.

    a complete call    until `timeout` after the call began
    a stream           response begins until `timeout` after the call began ── each event until `idle` after the last

`total` limits both from the beginning of the call to its end. Retries and pauses count. The time that a stream's reader
spends between two events counts only for `total`.
"""

from math import inf
from time import monotonic
from typing import TypeAlias

from sabir.base.failures import CallTimedOut

LONGEST_CLOSE = 0.5
"""Seconds that closing a response may take after the call's time is over."""

Limit: TypeAlias = tuple[float, str]
"""A moment of `time.monotonic`, and the name of the setting that sets it."""
_MISSING = {
    "timeout": "did not complete its answer within {:g} s, retries and pauses included",
    "begun": "did not begin to answer within {:g} s, retries and pauses included",
    "idle": "sent no event for {:g} s",
    "total": "did not complete its answer within {:g} s, from the call's beginning to its end",
}
"""Name of the limit → what the provider did not do in time, for the error message."""


class Clock:
    """Measures the time of one call, from the creation of the clock. Durations are in seconds; None and infinity mean
    no limit.

    `until` is the moment of `time.monotonic` at which the present step must end. `is_stream` True means that a caller
    reads the events; then `timeout` limits the call only until its response begins. `who` is named in the error.
    """

    def __init__(
        self,
        timeout: float | None = None,
        idle: float = inf,
        total: float | None = None,
        *,
        is_stream: bool = False,
        who: object = "the provider",
    ) -> None:
        began = monotonic()
        self._seconds = {"timeout": timeout, "idle": idle, "total": total}
        self._idle = idle
        self._who = who
        self._is_stream = is_stream
        self._end: Limit = (inf if total is None else began + total, "total")
        self._opening = min(self._end, (inf if timeout is None else began + timeout, "timeout"))
        self._last = self._end if is_stream else self._opening
        self.until, self._setting = self._opening

    @property
    def left(self) -> float:
        """The seconds within which the response of another attempt must begin."""
        return self._opening[0] - monotonic()

    def begin(self) -> None:
        """Start an attempt: the limits for the beginning of a response apply."""
        self.until, self._setting = self._opening

    def open(self) -> None:
        """Note that the response has begun. For a stream, the limits for the next event apply."""
        if self._is_stream:
            self.note_event()

    def note_event(self) -> None:
        """Note that an event arrived: the limits for the next event apply."""
        until = monotonic() + self._idle
        self.until, self._setting = (until, "idle") if until < self._last[0] else self._last

    def close(self) -> None:
        """Note that the response is being closed. Closing must end at most LONGEST_CLOSE seconds after the present
        limit, or after now if that limit is past.
        """
        self.until = max(self.until, monotonic()) + LONGEST_CLOSE

    def check(self) -> None:
        """Raise CallTimedOut if the present step should have ended."""
        if monotonic() > self.until:
            raise self.late()

    def late(self) -> CallTimedOut:
        """Return the CallTimedOut for a call whose time is over. It names the setting whose limit was reached."""
        missing = _MISSING["begun" if self._is_stream and self._setting == "timeout" else self._setting]
        seconds = self._seconds[self._setting]
        return CallTimedOut(f"{self._who} {missing.format(seconds)}; raise Settings.{self._setting}")
