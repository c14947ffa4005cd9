"""The cost of a reply, by a maintained table of prices; an unknown cost is None, never 0."""

from sabir_prices.costs import Cost, cost, cost_of

__all__ = ["Cost", "cost", "cost_of"]
