"""A support agent: each customer has a conversation of their own, and each answer a type that the shop works with."""

from dataclasses import dataclass
from decimal import Decimal

import sabir
from pydantic import BaseModel, Field
from sabir_session import Conversation, Store


class Support(BaseModel):
    """What the customer reads, and what the shop does."""

    advice: str = Field(description="The text for the customer.")
    refund: Decimal | None = Field(None, description="An amount to pay back.")
    escalate: bool = False


@dataclass
class Shop:
    """What the agent may look into; its methods are the options of one customer's agent."""

    customer: str
    orders: dict[int, tuple[str, Decimal]]

    def find_order(self, number: int) -> str:
        """Look up an order of this customer."""
        if number not in self.orders:
            raise LookupError(f"{self.customer} has no order {number}")
        what, paid = self.orders[number]
        return f"{what}, {paid} paid"

    def check(self, answer: Support) -> None:
        """Refuse to pay back more than was paid."""
        most = max((paid for _, paid in self.orders.values()), default=Decimal(0))
        if answer.refund is not None and answer.refund > most:
            raise ValueError(f"a refund of {answer.refund} is more than the {most} paid")


async def answer(model: str | sabir.Adapter, shop: Shop, question: str, store: Store) -> Support:
    """Answer a customer's question, with all that was said to this customer before."""
    async with Conversation(
        model,
        instructions=f"You help {shop.customer}, a customer of a shop.",
        options=[shop.find_order],
        output=Support,
        output_validator=shop.check,
        keep=store,
        name=shop.customer,
    ) as chat:
        return (await chat.ask(question)).output
