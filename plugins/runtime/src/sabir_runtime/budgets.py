"""How much an evaluation may spend: turns, tokens, seconds, money; checked before each provider call.

Options are not waited for longer than the seconds last.

    Budget ──▶ Spending ── add(reply) … check() ──▶ BudgetExhausted

What a provider does not say cannot be counted: where a limit stands on it, the next call is refused rather than made.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import Any, TypeAlias

from sabir import Reply
from sabir.errors import SettingsInvalid
from sabir.vocabulary.messages import OptionCall

from sabir_runtime.outcomes import BudgetExhausted

Price: TypeAlias = Callable[[Reply], float | Decimal | None]
"""What a reply cost; None where that is not known."""
Clock: TypeAlias = Callable[[], float]
"""Seconds from some moment on."""
MOST_REQUESTS = 50
"""Answered requests of one call of `evaluate` that is given no budget."""
_LIMITS = ("turns", "tokens", "seconds", "cost")


@dataclass(frozen=True)
class Budget:
    """Limits, each None where there is none; SettingsInvalid for what is no number of at least 0.

    A `cost` has its `price`, or is refused so too.

    `turns` counts provider calls that were answered, `tokens` input and output together, `seconds` the time since this
    evaluation began or was resumed, `cost` what `price` says of each reply, in its currency. Turns, tokens and cost of
    earlier processes count when an evaluation is resumed. An option that runs when the seconds are over is cancelled;
    one that does not stop then is given up, and runs on by itself.
    """

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | Decimal | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        """Refuse limits that cannot be kept."""
        for name in _LIMITS:
            limit = getattr(self, name)
            if limit is not None and not _is_limit(limit, is_float=name == "seconds"):
                raise SettingsInvalid(f"Budget: {name} is {limit!r}; give a number of at least 0, or None for no limit")
        if self.cost is not None and self.price is None:
            raise SettingsInvalid("Budget: a cost needs price=, a function that says what a reply cost")


def _is_limit(given: Any, *, is_float: bool) -> bool:
    """Whether what is given can be a limit; seconds are added to those of a clock."""
    try:
        return bool((given + 0.0 if is_float else given) >= 0)
    except TypeError:
        return False


class Spending:
    """What has been spent of a budget; threads and tasks may share it."""

    def __init__(self, budget: Budget | None, clock: Clock = time.monotonic) -> None:
        self._budget = budget or Budget()
        self._clock = clock
        self._began = clock()
        self._lock = Lock()
        self._turns = 0
        self._tokens: int | None = 0
        self._cost: Decimal | None = Decimal(0)

    def add(self, reply: Reply) -> None:
        """Count a reply."""
        price = self._budget.price
        cost = None if price is None or self._budget.cost is None else _checked(price(reply))
        tokens = reply.usage.total_tokens
        with self._lock:
            self._turns += 1
            self._tokens = None if self._tokens is None or tokens is None else self._tokens + tokens
            self._cost = None if self._cost is None or cost is None else self._cost + Decimal(str(cost))

    def left(self) -> float | None:
        """The seconds that are left, None where there is no limit of time."""
        seconds = self._budget.seconds
        return None if seconds is None else max(0.0, seconds - self._clock() + self._began)

    def time_over(self, running: Sequence[OptionCall]) -> BudgetExhausted:
        """What says that the time is over while these calls still run."""
        assert self._budget.seconds is not None
        spent = self._clock() - self._began
        return BudgetExhausted("seconds", self._budget.seconds, spent, running=tuple(running))

    def check(self) -> None:
        """BudgetExhausted where a limit is reached, or where it cannot be told whether it is."""
        with self._lock:
            spent = (self._turns, self._tokens, self._clock() - self._began, self._cost)
        for name, used in zip(_LIMITS, spent, strict=True):
            allowed = getattr(self._budget, name)
            if allowed is not None and (used is None or used >= allowed):
                raise BudgetExhausted(name, allowed, used)


def _checked(cost: float | Decimal | None) -> float | Decimal | None:
    """A price that can be summed up; SettingsInvalid for one under which no limit would ever be reached."""
    if cost is not None and not (math.isfinite(cost) and cost >= 0):
        raise SettingsInvalid(f"Budget: price gave {cost!r}; it gives a number of at least 0, or None if not known")
    return cost
