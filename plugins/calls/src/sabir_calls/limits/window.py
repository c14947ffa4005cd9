"""A sliding window over requests and tokens. Pure: the caller passes the time, in seconds of any clock.

    requests    ──●───●●────●──▶ now          in every period of `seconds`: at most `requests`,
                  └─ seconds ─┘               and at most `tokens` tokens

The window slides: it counts the requests of the last `seconds`, not those since the last full minute. A provider may
report that less is left until some time; until then, the smaller number counts.
"""

from collections import deque
from dataclasses import dataclass
from math import inf


@dataclass(eq=False, slots=True)
class CountedRequest:
    """A request in a window: when it was sent, and its tokens, first as estimated and then as used."""

    time: float
    tokens: int


@dataclass(eq=False, slots=True)
class Remainder:
    """How much a provider still accepts until a time: a number of requests or of tokens."""

    left: float = inf
    until: float = -inf


class Window:
    """Counts the requests and tokens of the last `seconds`. None means no limit."""

    def __init__(self, seconds: float, requests: int | None, tokens: int | None) -> None:
        self._seconds = seconds
        self._requests = requests
        self._tokens = tokens
        self._entries: deque[CountedRequest] = deque()
        self._total = 0
        self._left_requests, self._left_tokens = Remainder(), Remainder()

    def restrict(self, requests: Remainder | None, tokens: Remainder | None) -> None:
        """Set what the provider reports as left. It replaces an earlier report; None leaves an earlier report."""
        self._left_requests = requests or self._left_requests
        self._left_tokens = tokens or self._left_tokens

    def delay(self, now: float, tokens: int) -> float:
        """Return the seconds until a request with this many tokens fits; 0.0 if it fits now.

        A request with more tokens than the limit fits into an empty window. A request that needs more than the provider
        reported as left fits when the report expires.
        """
        self._remove_old_requests(now)
        start = 0.0  # the time from which the request fits; 0.0 for now
        if self._requests is not None and len(self._entries) >= self._requests:
            start = self._entries[len(self._entries) - self._requests].time + self._seconds
        if self._tokens is not None:
            total = self._total
            for entry in self._entries:
                if total + tokens <= self._tokens:
                    break
                total -= entry.tokens
                start = max(start, entry.time + self._seconds)
        for remainder, needed in ((self._left_requests, 1), (self._left_tokens, tokens)):
            if remainder.left < needed:
                start = max(start, remainder.until)
        return max(0.0, start - now)

    def add(self, now: float, tokens: int) -> CountedRequest:
        """Count a request, even if it does not fit, and return its entry."""
        entry = CountedRequest(now, tokens)
        self._entries.append(entry)
        self._total += tokens
        self._left_requests.left -= 1
        self._left_tokens.left -= tokens
        return entry

    def correct(self, entry: CountedRequest, tokens: int) -> None:
        """Replace the tokens of a request, for example by the tokens that the reply reports.

        A request that has left the window is not changed.
        """
        if self._entries and entry.time >= self._entries[0].time:
            self._total += tokens - entry.tokens
            entry.tokens = tokens

    def _remove_old_requests(self, now: float) -> None:
        """Remove the entries that are older than the window."""
        while self._entries and self._entries[0].time + self._seconds <= now:
            self._total -= self._entries.popleft().tokens
