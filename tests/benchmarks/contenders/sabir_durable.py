"""sabir's durable runner, on an SQLite file."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import sabir
from sabir import Message
from sabir_durable import DurableRunner
from sabir_runtime import BaseContext, BaseRunner

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import choose
from tests.benchmarks.contenders.messages import messages_of
from tests.benchmarks.contenders.stepping import Stepping
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}", "{durable}")


class Stages(BaseContext):
    """A context whose `main` takes steps, each a bound call."""

    def __init__(self, runner: BaseRunner, taking: Stepping, size: int) -> None:
        super().__init__(runner)
        self.batch = [sabir.assistant(work.reply_text())]
        observed = messages_of(size)

        async def main(ctx: Any, observations: list[Message], options: list[str] | None = None) -> list[Message]:
            await taking.main(lambda: ctx.step(observed))
            return []

        self.main = self._bind(main)
        self.step = self._bind(choose)


class Steps(Stepping):
    """A run of a context's main policy."""

    def __init__(self, given: Given) -> None:
        self.size = given.size
        super().__init__()

    async def start(self) -> None:
        """Begin it as a task of this event loop."""
        self.durable = DurableRunner(f"sqlite:///{self.path}")
        ctx = Stages(self.durable, self, self.size)
        self.running = asyncio.ensure_future(self.durable.run(ctx.main, "Go.", run_id="benchmark"))

    async def stop(self) -> None:
        """Await its end."""
        await self.running
        await self.durable.aclose()


def stepped(given: Given, steps: Steps) -> dict[str, Any]:
    """How many steps the database holds, and what the last one gave by it."""
    with closing(sqlite3.connect(steps.path)) as connection:
        query = "SELECT coalesce(result, batch) FROM sabir_calls WHERE name = 'step' AND state = 'done' ORDER BY number"
        found = [text for (text,) in connection.execute(query)]
    return {"count": len(found), "texts": [message.text for message in sabir.loads(found[-1])]}


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {"durable_step": Steps}
EVIDENCE = {"durable_step": stepped}
