"""A router: a small model sorts prompts, and each goes to the model for its sort, which has another behind it."""

import asyncio
from collections import Counter
from decimal import Decimal
from typing import Literal

import sabir
from sabir_session import Answer, Conversation

Sort = Literal["code", "facts", "talk"]
SORTING = "Say of which sort the prompt is: code, facts, or talk."


class Router:
    """Answers many prompts at once, at most `width` at a time."""

    def __init__(self, sorter: str | sabir.Adapter, routes: dict[Sort, list[str | sabir.Adapter]], width: int = 8):
        self.sorter = sorter
        self.routes = {sort: sabir.fallback(*models) for sort, models in routes.items()}
        self.places = asyncio.Semaphore(width)
        self.sorts: Counter[Sort] = Counter()

    async def answer(self, prompt: str) -> Answer[None]:
        """Sort a prompt, and have it answered."""
        async with self.places:
            sort = (await Conversation(self.sorter, instructions=SORTING).ask(prompt, output=Sort)).output
            self.sorts[sort] += 1
            return await Conversation(self.routes[sort]).ask(prompt)

    async def answer_all(self, prompts: list[str]) -> list[Answer[None]]:
        """The answers, in the order of the prompts; print who gave them, and what they cost."""
        answers = await asyncio.gather(*map(self.answer, prompts))
        given_by = Counter(f"{answer.reply.origin.provider}:{answer.reply.origin.model}" for answer in answers)
        passed_over = sum(len(answer.reply.failed_members) for answer in answers)
        known = [answer.cost for answer in answers if answer.cost is not None]
        print(f"{dict(self.sorts)} by {dict(given_by)}; {passed_over} calls went to another model")
        print(f"cost: {sum(known, Decimal(0))} for {len(known)} answers with a known price")
        return answers
