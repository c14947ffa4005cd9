"""The response headers in which vendors report how much may still be sent.

x-ratelimit-remaining-requests: 0     x-ratelimit-reset-requests: 6m0.5s     ──▶ Allowance(0 requests, 360.5 s)
anthropic-ratelimit-tokens-remaining  anthropic-ratelimit-tokens-reset: 2026-11-27T12:00:00Z

https://platform.openai.com/docs/guides/rate-limits · https://docs.claude.com/en/api/rate-limits
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

REQUESTS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)
"""Pairs of header names: the requests that may still be sent, and the time at which the number is restored."""
TOKENS = (
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
)
"""The same for tokens. The smallest number counts."""
LONGEST_RESET = 86_400.0
"""The longest believed time in seconds. A later reset is ignored, because the header may mean something else."""
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_FIRST_EPOCH = 1_000_000_000
"""A larger number is seconds since 1970, or milliseconds if it is larger than _FIRST_MILLISECOND."""
_FIRST_MILLISECOND = 100_000_000_000


class Allowance(NamedTuple):
    """What the vendor still accepts until a reset: a number of requests or tokens, for so many seconds from now."""

    left: int
    seconds: float


def read_allowances(
    headers: Mapping[str, str], now: datetime | None = None
) -> tuple[Allowance | None, Allowance | None]:
    """Return the allowances of requests and of tokens; None for one that the headers do not report.

    Names of headers are in lower case. `now` is the present time with a time zone, for resets that are a time of day.
    """
    if not any("ratelimit" in name for name in headers):
        return None, None
    requests, tokens = (
        [each for name, reset in names if (each := _read(headers.get(name), headers.get(reset), now))]
        for names in (REQUESTS, TOKENS)
    )
    return next(iter(requests), None), min(tokens, default=None)


def _read(left: str | None, reset: str | None, now: datetime | None) -> Allowance | None:
    if left is None or reset is None or not re.fullmatch(r"\s*\d{1,15}\s*", left):
        return None
    seconds = seconds_until(reset.strip(), now or datetime.now(UTC))
    return Allowance(int(left), seconds) if seconds is not None and 0 < seconds <= LONGEST_RESET else None


def seconds_until(reset: str, now: datetime) -> float | None:
    """Return the seconds from `now` until a reset. None for a text of another form.

    A reset is a duration such as "6m0s" or "120ms", a number of seconds, a Unix time in seconds or milliseconds, or an
    RFC 3339 time.
    """
    if re.fullmatch(r"\d+(\.\d+)?", reset):
        number = float(reset)
        if number > _FIRST_EPOCH:
            number = number / (1000 if number > _FIRST_MILLISECOND else 1) - now.timestamp()
        return number
    if reset and (match := _DURATION.fullmatch(reset)):
        days, hours, minutes, seconds, milliseconds = (float(number or 0) for number in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + milliseconds / 1000
    try:
        moment = datetime.fromisoformat(reset)
    except ValueError:
        return None
    return (moment - now).total_seconds() if moment.tzinfo else None
