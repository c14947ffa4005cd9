"""Sums of tokens and costs over the replies of a conversation. Each reply is counted once.

chat.cost ──▶ Totals ──▶ replies 0 … 7,998 counted before · 7,999 new ──▶ usage, cost
"""

from decimal import Decimal

from sabir import Reply, Usage
from sabir.authoring import installed_hooks

from sabir_session.evaluation.evaluations import Evaluation
from sabir_session.evaluation.prompts import total


class Totals:
    """The sums of the tokens and costs of the replies of one evaluation, updated for new replies."""

    def __init__(self) -> None:
        self._evaluation: Evaluation | None = None
        self._replies: list[Reply] = []
        self._begin()

    def _begin(self) -> None:
        self._usage, self._used = total(()), 0
        self._cost, self._costed = Decimal(0), 0

    def up_to(self, evaluation: Evaluation | None) -> "Totals":
        """Set the evaluation whose replies are summed, and return this object. None means no replies.

        The sums begin at zero if it is another evaluation than before.
        """
        if evaluation is not self._evaluation:
            self._evaluation = evaluation
            self._replies = [] if evaluation is None else evaluation.replies
            self._begin()
        return self

    @property
    def usage(self) -> Usage:
        """The sum of the tokens of all replies. A number is None if a provider did not report it."""
        new = self._replies[self._used :]
        if new:
            self._usage, self._used = total([self._usage, *(reply.usage for reply in new)]), len(self._replies)
        return self._usage

    @property
    def cost(self) -> Decimal | None:
        """The cost of all replies in US dollars; None if the cost of a reply is not known."""
        for reply in self._replies[self._costed :]:
            cost = installed_hooks().cost(reply)
            if cost is None:
                return None
            self._cost, self._costed = self._cost + cost, self._costed + 1
        return self._cost
