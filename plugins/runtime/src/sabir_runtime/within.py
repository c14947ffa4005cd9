"""A budget around any adapter, for loops that are not evaluations.

llm = within(sabir.adapter("provider:model"), Budget(turns=20, cost=1, price=…))      # what takes an adapter takes it
"""

from collections.abc import Callable
from typing import Unpack

from sabir import Adapter, Rendering, Reply, ReplyStream, SyncReplyStream, Target
from sabir.calling.calls import CallArguments, Messages
from sabir.calling.drive import Performer, SyncPerformer
from sabir.calling.exchange import Script
from sabir.calling.relay import Relay, SyncRelay, way_along

from sabir_runtime.budgets import Budget, Spending


class BudgetedAdapter:
    """An adapter that refuses a call once a budget is exhausted; made by `within`.

    Its methods raise BudgetExhausted and what the adapter's own raise. Calls that run at the same time are each
    checked when they begin, so that they may go beyond the budget together.
    """

    def __init__(self, adapter: Adapter, budget: Budget) -> None:
        self._adapter = adapter
        self._spending = Spending(budget)

    @property
    def target(self) -> Target:
        """The adapter's."""
        return self._adapter.target

    @property
    def speaks_as(self) -> str:
        """The policy on whose behalf the adapter speaks."""
        return str(getattr(self._adapter, "speaks_as", "llm"))

    def __repr__(self) -> str:
        """With the adapter."""
        return f"within({self._adapter!r})"

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """The adapter's; it costs nothing."""
        return self._adapter.render(messages, **how)

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering as it is."""
        self._spending.check()
        return self._counted(await self._adapter.send(rendering))

    def send_sync(self, rendering: Rendering) -> Reply:
        """As `send`, waiting."""
        self._spending.check()
        return self._counted(self._adapter.send_sync(rendering))

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Render and send."""
        self._spending.check()
        return self._counted(await self._adapter.complete(messages, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """As `complete`, waiting."""
        self._spending.check()
        return self._counted(self._adapter.complete_sync(messages, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Render and send; the reply as it comes. One that is left before its end is counted as far as it came."""
        self._spending.check()
        relay = Relay(way_along((self._adapter,), (), lambda adapter: adapter.stream(messages, **how)))

        async def start() -> tuple[Script[Reply], Performer]:
            return self._script(relay.script(), lambda: relay.partial), relay

        return ReplyStream(relay, start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """As `stream`, waiting."""
        self._spending.check()
        relay = SyncRelay(way_along((self._adapter,), (), lambda adapter: adapter.stream_sync(messages, **how)))

        def start() -> tuple[Script[Reply], SyncPerformer]:
            return self._script(relay.script(), lambda: relay.partial), relay

        return SyncReplyStream(relay, start)

    async def aclose(self) -> None:
        """Close the adapter."""
        await self._adapter.aclose()

    def close(self) -> None:
        """Close the adapter."""
        self._adapter.close()

    def _counted(self, reply: Reply) -> Reply:
        self._spending.add(reply)
        return reply

    def _script(self, script: Script[Reply], partial: Callable[[], Reply]) -> Script[Reply]:
        """A stream's script, whose reply is counted however it ends; what never began costs nothing."""
        said = None
        try:
            said = yield from script
            return said
        finally:
            said = said or partial()
            if said.messages or said.usage.total_tokens:
                self._spending.add(said)


def within(adapter: Adapter, budget: Budget) -> BudgetedAdapter:
    """The adapter, which raises BudgetExhausted in place of a call beyond the budget; time counts from now on.

    Where a provider does not say what a call used, and the budget limits just that, the next call is refused.
    """
    return BudgetedAdapter(adapter, budget)
