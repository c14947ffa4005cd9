"""Two hundred threads in progress at once: none waits for another's model, and actors answer meanwhile."""

import asyncio
from collections import Counter
from typing import Any

from sabir import Reply
from sabir_actors import ActorSystem, Chain, Phase, ThreadClient
from sabir_testing import ScriptedAdapter

from .scripts import MODEL, ask, said

THREADS = 200
NAMES = ("first", "second", "third")
CHAIN = Chain("short", [Phase(name, f"You are {name}.") for name in NAMES])


class Crowd(ScriptedAdapter):
    """A model that answers the first phase of every thread only when all threads ask for it."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self._reply = reply
        self.waiting, self.everybody, self.may_answer = 0, asyncio.Event(), asyncio.Event()
        self.order: list[str] = []
        """The phases that were asked for, in the order of their requests."""

    async def complete(self, messages: Any, **how: Any) -> Reply:
        """One reply for all."""
        phase = messages[0].text.removeprefix("You are ").rstrip(".")
        self.order.append(phase)
        if phase == NAMES[0]:
            self.waiting += 1
            if self.waiting == THREADS:
                self.everybody.set()
            await self.may_answer.wait()
        else:
            await asyncio.sleep(0)
        return self._reply


async def test_two_hundred_threads_at_once() -> None:
    """All are in their first phase together; heartbeats and states are answered then; all end, none far behind."""
    reply = await ScriptedAdapter(said("Fine.", 0.5)).complete("Hello")
    crowd = Crowd(reply)
    async with ActorSystem(MODEL, chains=[CHAIN], adapters=lambda _: crowd) as system:
        client = ThreadClient(system, "client")
        made = await asyncio.gather(*(client.create("user", "Hello", chain="short") for _ in range(THREADS)))
        await asyncio.gather(*map(client.start, made))
        await crowd.everybody.wait()

        beats = [await system.send_message(ask("HEARTBEAT", each)) for each in system.actors()]
        assert Counter(each.data["status"] for each in beats) == {"alive": 2 * THREADS + 3}
        assert (await client.status(made[-1])).status == "processing"
        assert len(crowd.order) == THREADS

        crowd.may_answer.set()
        results = await asyncio.gather(*map(client.result, made))
        status = await system.send_message(ask("HEARTBEAT", "threads"))
        assert status.data["load"] == 0

    assert Counter(each.status for each in results) == {"completed": THREADS}
    assert Counter(crowd.order) == dict.fromkeys(NAMES, THREADS)
    last_second = len(crowd.order) - crowd.order[::-1].index("second")
    assert crowd.order[:last_second].count("third") < THREADS / 10
