"""The cost of a reply, by a maintained table of prices; an unknown cost is None, never 0.

An installed plugin: `answer.cost` of a conversation asks it.
"""

from decimal import Decimal

from sabir import Reply, hookimpl

from sabir_prices.costs import Cost, cost, cost_of

__all__ = ["Cost", "cost", "cost_of"]


@hookimpl
def sabir_reply_cost(reply: Reply) -> Decimal | None:
    """The cost of a reply in US dollars, None if it is not known."""
    found = cost(reply)
    return None if found is None else found.total
