"""A model that is ready with its answer, a system that asks it, and what is said to actors: written once.

A phase costs what sabir makes of it: nothing of a provider's request and answer is among it.
"""

import asyncio
import json
from sys import intern
from typing import Any

from sabir import Reply
from sabir_actors import ActorSystem, Chain, Message, Phase
from sabir_session import Store
from sabir_testing import ScriptedAdapter

from tests.benchmarks import work

MODEL, USER, ASKED = "scripted:model", "user", "Do I need an umbrella?"
SAID = {"input": ASKED, "context": {"user_id": USER}}
ANSWERED = {"result": {"response": work.reply_text(), "confidence": 0.9, "tool_calls": []}, "processing_time": 0.5}


class Ready(ScriptedAdapter):
    """Gives one ready reply to every request, some seconds after it; `asked` has the first word of each."""

    def __init__(self, least: float = 0.0, most: float = 0.0) -> None:
        text = json.dumps({"response": work.reply_text(), "confidence": 0.9})
        super().__init__(text)
        self._reply = super().complete_sync("Ready?")
        self._least, self._span = least, most - least
        self.asked: list[str] = []

    async def complete(self, messages: Any, **how: Any) -> Reply:
        """The reply; how long each request waits for it is spread evenly, and the same each time."""
        self.asked.append(intern(messages[0].text.partition(" ")[0]))
        await asyncio.sleep(self._least + self._span * (len(self.asked) * 0.618 % 1))
        return self._reply


def system_of(model: Ready, store: Store | None = None, **how: Any) -> ActorSystem:
    """A system whose agents ask that model."""
    return ActorSystem(MODEL, store=store, adapters=lambda _: model, **how)


def short_chain(count: int) -> Chain:
    """A chain of so many phases; what a phase is told begins with its name."""
    return Chain("short", [Phase(f"phase{number}", f"phase{number}") for number in range(count)])


def request() -> Message:
    """What an actor is asked, made anew as every sender does."""
    return Message(type="PROCESS_WITH_AGENT", data=SAID, sender="client", receiver="desk")
