"""The cost of replies in US dollars, from a maintained table of prices. An unknown cost is None, never 0.

If this package is installed, `cost` of the conversations and answers of sabir-session uses it.
"""

from decimal import Decimal

from sabir import Reply, hookimpl

from sabir_prices.costs import Cost, cheapest, cost, cost_of

__all__ = ["Cost", "cheapest", "cost", "cost_of"]


@hookimpl
def sabir_reply_cost(reply: Reply) -> Decimal | None:
    """Return the cost of a reply in US dollars, or None if it is not known."""
    reply_cost = cost(reply)
    return None if reply_cost is None else reply_cost.total
