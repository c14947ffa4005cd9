"""Sums over the replies of a conversation, which grow with it: each reply is counted once.

chat.cost ──▶ Totals ──▶ replies 0 … 7,998 counted before · 7,999 new ──▶ usage, cost
"""

from decimal import Decimal

from sabir import Reply, Usage
from sabir.authoring import installed_hooks

from sabir_session.evaluation.evaluations import Evaluation
from sabir_session.evaluation.prompts import total


class Totals:
    """The usage and the cost of the replies of one evaluation at a time."""

    def __init__(self) -> None:
        self._evaluation: Evaluation | None = None
        self._replies: list[Reply] = []
        self._begin()

    def _begin(self) -> None:
        self._usage, self._used = total(()), 0
        self._cost, self._costed = Decimal(0), 0

    def up_to(self, evaluation: Evaluation | None) -> "Totals":
        """Use the replies of this evaluation; another one than before is counted from its start."""
        if evaluation is not self._evaluation:
            self._evaluation = evaluation
            self._replies = [] if evaluation is None else evaluation.replies
            self._begin()
        return self

    @property
    def usage(self) -> Usage:
        """The tokens of all replies; a figure that a provider did not report is None."""
        new = self._replies[self._used :]
        if new:
            self._usage, self._used = total([self._usage, *(reply.usage for reply in new)]), len(self._replies)
        return self._usage

    @property
    def cost(self) -> Decimal | None:
        """The cost of all replies in US dollars; None if one of them has no known cost."""
        for reply in self._replies[self._costed :]:
            cost = installed_hooks().cost(reply)
            if cost is None:
                return None
            self._cost, self._costed = self._cost + cost, self._costed + 1
        return self._cost
