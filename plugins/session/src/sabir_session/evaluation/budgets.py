"""How much an evaluation may spend: turns, tokens, seconds, money; checked before each provider call.

An evaluation waits for its options only until its seconds are over.

    Budget ──▶ Spending ── add(reply) … check() ──▶ BudgetExhausted

    llm = with_budget(sabir.adapter("provider:model"), Budget(turns=20, cost=1, price=…))  # around any adapter

A figure that a provider does not report cannot be counted: if it has a limit, the next call is refused.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import TypeAlias, Unpack

from sabir import Adapter, ModelAdapter, Rendering, Reply, ReplyStream, SettingsInvalid, SyncReplyStream
from sabir.authoring import CallArguments, Messages, OptionCall, Relay, Script, WrappedAdapter

from sabir_session.evaluation.prompts import BudgetExhausted

Price: TypeAlias = Callable[[Reply], float | Decimal | None]
"""The cost of a reply; None if it is not known."""
MOST_REQUESTS = 50
"""The limit of answered requests for a call of `evaluate` without a budget."""
_LIMITS = ("turns", "tokens", "seconds", "cost")


@dataclass(frozen=True)
class Budget:
    """Limits, each None for no limit; raises SettingsInvalid for a limit that is not a number of at least 0.

    A `cost` without a `price` is refused too.

    `turns` counts provider calls that were answered, `tokens` input and output together, `seconds` the time since this
    evaluation began or was resumed, `cost` the sum of what `price` returns for each reply. When an evaluation is
    resumed, the turns, tokens and cost of earlier processes count. In a conversation, dropped turns count too, and a
    fork counts what was spent before it was forked. For a dropped turn, `price` gets replies without messages.

    An option that runs when the seconds are over is cancelled; if it does not stop, it is left running.
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
            try:  # seconds are added to a clock's
                is_limit = limit is None or bool((limit + 0.0 if name == "seconds" else limit) >= 0)
            except TypeError:
                is_limit = False
            if not is_limit:
                raise SettingsInvalid(f"Budget: {name} is {limit!r}; give a number of at least 0, or None for no limit")
        if self.cost is not None and self.price is None:
            raise SettingsInvalid("Budget: a cost needs price=, a function that says what a reply cost")


class Ledger:
    """The sum of what replies spent; `price` gives the cost of each, None if no cost is limited."""

    def __init__(self, price: Price | None) -> None:
        self.price = price
        self.turns = 0
        self.tokens: int | None = 0
        self.cost: Decimal | None = Decimal(0)

    def add(self, reply: Reply) -> None:
        """Count a reply; raises SettingsInvalid for a price that is not a number of at least 0."""
        cost = None if self.price is None else self.price(reply)
        if cost is not None and not (math.isfinite(cost) and cost >= 0):  # no limit would ever be reached
            raise SettingsInvalid(f"Budget: price gave {cost!r}; it gives a number of at least 0, or None if not known")
        tokens = reply.usage.total_tokens
        self.turns += 1
        self.tokens = None if self.tokens is None or tokens is None else self.tokens + tokens
        self.cost = None if self.cost is None or cost is None else self.cost + Decimal(str(cost))


class Spending:
    """The amounts spent of a budget; threads and tasks may share it. `ledger` has what was spent before."""

    def __init__(self, budget: Budget, ledger: Ledger | None = None) -> None:
        self._budget = budget
        self._began = time.monotonic()
        self._lock = Lock()
        self._ledger = ledger or Ledger(budget.price if budget.cost is not None else None)

    def add(self, reply: Reply) -> None:
        """Count a reply; raises SettingsInvalid for a price that is not a number of at least 0."""
        with self._lock:
            self._ledger.add(reply)

    def left(self) -> float | None:
        """The seconds that are left, None without a limit of time."""
        seconds = self._budget.seconds
        return None if seconds is None else max(0.0, seconds - time.monotonic() + self._began)

    def time_over(self, running: Sequence[OptionCall]) -> BudgetExhausted:
        """The error that the time is over while these calls still run."""
        assert self._budget.seconds is not None
        spent = time.monotonic() - self._began
        return BudgetExhausted("seconds", self._budget.seconds, spent, running=tuple(running))

    def check(self) -> None:
        """Raise BudgetExhausted if a limit is reached, or if a limited figure is not known."""
        with self._lock:
            spent = (self._ledger.turns, self._ledger.tokens, time.monotonic() - self._began, self._ledger.cost)
        for name, used in zip(_LIMITS, spent, strict=True):
            allowed = getattr(self._budget, name)
            if allowed is not None and (used is None or used >= allowed):
                raise BudgetExhausted(name, allowed, used)


class BudgetedAdapter(WrappedAdapter):
    """An adapter that refuses a call once a budget is exhausted; made by `with_budget`.

    Its methods raise BudgetExhausted and the adapter's own errors. Calls that run at the same time are each checked
    when they begin, so together they may exceed the budget.
    """

    def __init__(self, adapter: Adapter, budget: Budget) -> None:
        super().__init__(adapter)
        self._spending = Spending(budget)

    def __repr__(self) -> str:
        """Show the wrapped adapter."""
        return f"with_budget({self.inner!r})"

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering as it is."""
        return self._counted(await self._checked.send(rendering))

    def send_sync(self, rendering: Rendering) -> Reply:
        """As `send`, waiting."""
        return self._counted(self._checked.send_sync(rendering))

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Render and send."""
        return self._counted(await self._checked.complete(messages, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """As `complete`, waiting."""
        return self._counted(self._checked.complete_sync(messages, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Render, send and stream the reply. A stream that is left before its end is counted as far as it came."""
        relay = _Counted(self._checked.stream(messages, **how), self._spending)
        return ReplyStream(relay, relay.start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """As `stream`, waiting."""
        relay = _Counted(self._checked.stream_sync(messages, **how), self._spending)
        return SyncReplyStream(relay, relay.start)

    @property
    def _checked(self) -> Adapter:
        """The wrapped adapter; raises BudgetExhausted if the budget is spent."""
        self._spending.check()
        return self.inner

    def _counted(self, reply: Reply) -> Reply:
        self._spending.add(reply)
        return reply


class _Counted(Relay):
    """A stream whose reply is counted however it ends; a stream that never began costs nothing."""

    def __init__(self, stream: ReplyStream | SyncReplyStream, spending: Spending) -> None:
        super().__init__(stream)
        self._spending = spending

    def script(self) -> Script[Reply]:
        """Passes the events on."""
        said = None
        try:
            said = yield from super().script()
            return said
        finally:
            said = said or self.partial
            if said.messages or said.usage.total_tokens:
                self._spending.add(said)


def with_budget(adapter: Adapter, budget: Budget) -> BudgetedAdapter:
    """The adapter, which raises BudgetExhausted instead of a call beyond the budget; time counts from now on.

    If a provider does not report a figure that the budget limits, the next call is refused.
    """
    return BudgetedAdapter(adapter, budget)


def sends_renderings(adapter: Adapter) -> bool:
    """Return whether `adapter.complete` only sends what `adapter.render` returns.

    Other wrappers may do more: fetch media, read a cache, or ask the next member of a fallback.
    """
    while isinstance(adapter, BudgetedAdapter):
        adapter = adapter.inner
    return isinstance(adapter, ModelAdapter)
