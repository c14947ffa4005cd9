"""The cost of a reply, by seller, model and rate. An unknown cost is None, never 0."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sabir import Reply, Usage

from sabir_prices.sellers import own_seller, seller_at
from sabir_prices.table import Cost, price


def cost(reply: Reply, *, at: datetime | None = None) -> Cost | None:
    """The cost of a reply, by its usage and its origin.

    None if it is not known: the provider reported no usage, the table lacks the model or a rate, the provider sells
    nothing (a model on the own machine), or the call went to another endpoint than the vendor's.
    `at` is when the call was made, for rates that change; now, unless it is given.
    """
    origin = reply.origin
    seller = seller_at(origin.provider, origin.endpoint)
    if seller is None:
        return None
    reported = origin.reported_model or origin.model
    model = reported if seller.names == "reported" else origin.model
    return price(reply.usage, seller.table_id, model, served=_served(reply.usage, reply.details), at=at)


def cost_of(usage: Usage, *, provider: str, model: str, at: datetime | None = None) -> Cost | None:
    """The cost of a usage at a provider's own service; None if it is not known, as for `cost`.

    `provider` and `model` are named as in `sabir.adapter("provider:model")`.
    """
    seller = own_seller(provider)
    return None if seller is None else price(usage, seller.table_id, model, served=_served(usage, None), at=at)


def _served(usage: Usage, details: object) -> dict[str, Any]:
    """The provider's fields about how it served the call, from the reply's details or its usage."""
    said = (found for found in (details, usage.details) if isinstance(found, Mapping))
    return {name: value for found in said for name, value in found.items()}
