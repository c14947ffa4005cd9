"""Budgets: limits for the turns, tokens, seconds and money of an evaluation, checked before each request.

When the seconds are over, running coroutine options are cancelled, and options in threads are left running.

    Budget ──▶ Spending ── add(reply) … check() ──▶ BudgetExhausted

    llm = with_budget(sabir.adapter("provider:model"), Budget(turns=20, cost=1, price=…))  # around any adapter

If a provider does not report a number that has a limit, the next request raises BudgetExhausted.
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
"""A function that gets a reply and returns its cost, in any unit, or None if the cost is not known."""
MOST_REQUESTS = 50
"""How many replies one call of `evaluate` or `Conversation.ask` requests at most for a question, without a budget."""
_LIMITS = ("turns", "tokens", "seconds", "cost")


@dataclass(frozen=True)
class Budget:
    """Limits for an evaluation, a conversation or an adapter. None means no limit.

    `turns` limits the number of replies, and `tokens` the input and output tokens together. `seconds` limits the time
    since the evaluation or the answer to a question began or was resumed, or since `with_budget`. In an evaluation,
    when the seconds are over, running coroutine options are cancelled, and options in threads are left running. `cost`
    limits the sum of the costs of the replies. `price` is a function that returns the cost of a reply, in the unit of
    `cost`, or None if unknown. For the replies of removed turns, `price` gets replies without messages.

    Each limit is checked before a request, and the seconds also while options run. BudgetExhausted is raised if the
    limit is reached, or if the used amount is not known. When an evaluation is resumed, the turns, tokens and cost of
    earlier processes count. In a conversation, removed turns count, and a fork counts everything that was used before
    the fork.

    Raises SettingsInvalid for a limit that is not a number of at least 0, and for a `cost` without a `price`.

    >>> import sabir_session
    >>> chat = sabir_session.Conversation("echo:m", budget=sabir_session.Budget(turns=1))
    >>> chat.ask_sync("Hello!").text
    'Hello!'
    >>> chat.ask_sync("Hello again!")
    Traceback (most recent call last):
    sabir_session.evaluation.prompts.BudgetExhausted: the budget of 1 turns is exhausted: 1 used; ...
    """

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | Decimal | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        """Raise SettingsInvalid for invalid limits."""
        for name in _LIMITS:
            limit = getattr(self, name)
            try:  # seconds are added to a float of the clock, which a Decimal cannot be
                is_limit = limit is None or bool((limit + 0.0 if name == "seconds" else limit) >= 0)
            except TypeError:
                is_limit = False
            if not is_limit:
                expected = "a number of at least 0, or None for no limit"
                raise SettingsInvalid(f"Budget: {name} is {limit!r}; expected {expected}")
        if self.cost is not None and self.price is None:
            raise SettingsInvalid("Budget: cost= needs price=, a function that returns the cost of a reply")


class UsageLedger:
    """The sums of the turns, tokens and costs of replies. `price` is None if the budget does not limit the cost.

    `tokens` and `cost` are None if the number of one reply is not known.
    """

    def __init__(self, price: Price | None) -> None:
        self.price = price
        self.turns = 0
        self.tokens: int | None = 0
        self.cost: Decimal | None = Decimal(0)

    def add(self, reply: Reply) -> None:
        """Count a reply. Raises SettingsInvalid if `price` does not return None or a number of at least 0."""
        cost = None if self.price is None else self.price(reply)
        if cost is not None and not (math.isfinite(cost) and cost >= 0):  # no limit would ever be reached
            expected = "a number of at least 0, or None if not known"
            raise SettingsInvalid(f"Budget: price() returned {cost!r}; expected {expected}")
        tokens = reply.usage.total_tokens
        self.turns += 1
        self.tokens = None if self.tokens is None or tokens is None else self.tokens + tokens
        self.cost = None if self.cost is None or cost is None else self.cost + Decimal(str(cost))


class Spending:
    """The used amounts of a budget. Thread-safe. `ledger` contains the amounts that were used before."""

    def __init__(self, budget: Budget, ledger: UsageLedger | None = None) -> None:
        self._budget = budget
        self._began = time.monotonic()
        self._lock = Lock()
        self._ledger = ledger or UsageLedger(budget.price if budget.cost is not None else None)

    def add(self, reply: Reply) -> None:
        """Count a reply. Raises SettingsInvalid if `price` does not return None or a number of at least 0."""
        with self._lock:
            self._ledger.add(reply)

    def seconds_left(self) -> float | None:
        """Return the remaining seconds; None without a time limit."""
        seconds = self._budget.seconds
        return None if seconds is None else max(0.0, seconds - time.monotonic() + self._began)

    def time_over(self, running: Sequence[OptionCall]) -> BudgetExhausted:
        """Return the error for the end of the time while these calls still run."""
        assert self._budget.seconds is not None
        spent = time.monotonic() - self._began
        return BudgetExhausted("seconds", self._budget.seconds, spent, running=tuple(running))

    def check(self) -> None:
        """Raise BudgetExhausted if a limit is reached, or if the used amount of a limit is not known."""
        with self._lock:
            spent = (self._ledger.turns, self._ledger.tokens, time.monotonic() - self._began, self._ledger.cost)
        for name, used in zip(_LIMITS, spent, strict=True):
            allowed = getattr(self._budget, name)
            if allowed is not None and (used is None or used >= allowed):
                raise BudgetExhausted(name, allowed, used)


class BudgetedAdapter(WrappedAdapter):
    """An adapter with a budget for all its requests together. Created by `with_budget`.

    The methods that send raise BudgetExhausted, and the errors of the wrapped adapter. The budget is checked when a
    request begins, and replies are counted when they end, so concurrent requests may together exceed the budget.
    """

    def __init__(self, adapter: Adapter, budget: Budget) -> None:
        super().__init__(adapter)
        self._spending = Spending(budget)

    def __repr__(self) -> str:
        """Return the representation of the wrapped adapter in `with_budget(…)`."""
        return f"with_budget({self.inner!r})"

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering unchanged, and count the reply. Raises BudgetExhausted instead if a limit is reached."""
        return self._count_reply(await self._adapter_in_budget.send(rendering))

    def send_sync(self, rendering: Rendering) -> Reply:
        """Sync version of `send`. Blocks the thread."""
        return self._count_reply(self._adapter_in_budget.send_sync(rendering))

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Send a conversation, and count the reply. Raises BudgetExhausted instead if a limit is reached."""
        return self._count_reply(await self._adapter_in_budget.complete(messages, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""
        return self._count_reply(self._adapter_in_budget.complete_sync(messages, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Return the reply as a stream. If the stream fails or is closed early, the part that arrived is counted.

        Raises BudgetExhausted at once, before the stream is read, if a limit is reached.
        """
        relay = _CountedStream(self._adapter_in_budget.stream(messages, **how), self._spending)
        return ReplyStream(relay, relay.start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Sync version of `stream`. Reading blocks the thread."""
        relay = _CountedStream(self._adapter_in_budget.stream_sync(messages, **how), self._spending)
        return SyncReplyStream(relay, relay.start)

    @property
    def _adapter_in_budget(self) -> Adapter:
        """The wrapped adapter. Raises BudgetExhausted if a limit is reached."""
        self._spending.check()
        return self.inner

    def _count_reply(self, reply: Reply) -> Reply:
        self._spending.add(reply)
        return reply


class _CountedStream(Relay):
    """A stream whose reply is counted, also if the stream fails or is closed. Replies without messages and tokens are
    not counted, nor are unread streams.
    """

    def __init__(self, stream: ReplyStream | SyncReplyStream, spending: Spending) -> None:
        super().__init__(stream)
        self._spending = spending

    def script(self) -> Script[Reply]:
        """Forward the events of the stream, and count the reply at the end."""
        reply = None
        try:
            reply = yield from super().script()
            return reply
        finally:
            reply = reply or self.partial
            if reply.messages or reply.usage.total_tokens:
                self._spending.add(reply)


def with_budget(adapter: Adapter, budget: Budget) -> BudgetedAdapter:
    """Return an adapter that sends with `adapter`, and raises BudgetExhausted before a request if a limit is reached.

    The limits hold for all requests of the returned adapter together; requests that are sent with `adapter` itself do
    not count. `seconds` count from this call. If a provider does not report a number that the budget limits, the next
    request raises BudgetExhausted. Errors of `adapter` are raised unchanged.

    >>> import sabir, sabir_session
    >>> llm = sabir_session.with_budget(sabir.adapter("echo:m"), sabir_session.Budget(turns=20))
    >>> llm.complete_sync("Hello!").text
    'Hello!'
    """
    return BudgetedAdapter(adapter, budget)


def sends_renderings(adapter: Adapter) -> bool:
    """Return whether `adapter.complete` only sends what `adapter.render` returns.

    True for an adapter of `sabir.adapter`, also inside `with_budget`. Other wrappers may do more: fetch media, read a
    cache, or ask the next member of a fallback.
    """
    while isinstance(adapter, BudgetedAdapter):
        adapter = adapter.inner
    return isinstance(adapter, ModelAdapter)
