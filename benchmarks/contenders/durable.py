"""A durable run that stays open, and takes so many steps when it is told to: sabir's, and the engine's own steps.

run() ──how many──▶ main, a run since it was made ready ──▶ step, step, … ──last──▶ run()

Both are on an SQLite file with the settings that suit it. What the engine's step gives is the text of the batch that
sabir's policy gives, ready made; so the engine writes the same bytes.
"""

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import sabir
from dbos import DBOS, DBOSConfig, Serializer
from sabir import Message
from sabir_runtime import BaseContext, BaseRunner
from sabir_runtime.durable import DurableRunner
from sqlalchemy import create_engine, event

from benchmarks import answers, work
from benchmarks.contenders.doing import Contender, choose
from benchmarks.contenders.messages import plain_messages
from benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}[durable]")


class Stepping:
    """What is timed: so many steps of one run. `start` begins the run, whose body is `main`; `stop` awaits its end."""

    units = work.STEPS
    query = ""
    """What gives the texts of the steps in the database."""

    def __init__(self, given: Given) -> None:
        self.size, self.folder = given.size, tempfile.mkdtemp()
        self.path = Path(self.folder, "runs.db")
        self.commands: asyncio.Queue[int] = asyncio.Queue()
        self.found: asyncio.Queue[Any] = asyncio.Queue()
        self.runner = asyncio.Runner()
        self.runner.run(self.start())

    async def start(self) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError

    async def main(self, step: Callable[[], Awaitable[Any]]) -> None:
        """The run's body: nothing is awaited in it but commands and steps."""
        while count := await self.commands.get():
            last: Any = None
            for _ in range(count):
                last = await step()
            self.found.put_nowait(last)

    async def take(self) -> Any:
        """Have it take steps; what the last one gave."""
        self.commands.put_nowait(self.units)
        return await self.found.get()

    def __call__(self) -> "Stepping":
        self.last = self.runner.run(self.take())
        return self

    def evidence(self) -> dict[str, Any]:
        """How many steps the database holds, and what the last one gave by it."""
        with closing(sqlite3.connect(self.path)) as connection:
            found = [text for (text,) in connection.execute(self.query)]
        return {"count": len(found), "texts": [message.text for message in sabir.loads(found[-1])]}

    def close(self) -> None:
        self.commands.put_nowait(0)
        self.runner.run(self.stop())
        self.runner.close()
        shutil.rmtree(self.folder)


class Stages(BaseContext):
    """A context whose `main` takes steps, each a bound call."""

    def __init__(self, runner: BaseRunner, taking: Stepping) -> None:
        super().__init__(runner)
        self.batch = [sabir.assistant(answers.reply_text())]
        observed = plain_messages(taking.size)

        async def main(ctx: Any, observations: list[Message], options: list[str] | None = None) -> list[Message]:
            await taking.main(lambda: ctx.step(observed))
            return []

        self.main = self._bind(main)
        self.step = self._bind(choose)


class Own(Stepping):
    """A run of a context's main policy, begun as a task of this event loop."""

    query = "SELECT coalesce(result, batch) FROM sabir_calls WHERE name = 'step' AND state = 'done' ORDER BY number"

    async def start(self) -> None:
        self.durable = DurableRunner(f"sqlite:///{self.path}")
        ctx = Stages(self.durable, self)
        self.running = asyncio.ensure_future(self.durable.run(ctx.main, "Go.", run_id="benchmark"))

    async def stop(self) -> None:
        await self.running
        await self.durable.aclose()


class Plain(Serializer):
    def serialize(self, data: Any) -> str:
        return data if isinstance(data, str) else work.compact(data)

    def deserialize(self, serialized_data: str) -> Any:
        return serialized_data

    def name(self) -> str:
        return "plain"


_open: "Bare | None" = None
"""Whoever is open: the engine is one in each process."""


@DBOS.workflow(name="benchmark")
async def body() -> None:
    batch = sabir.dumps([sabir.assistant(answers.reply_text())])

    async def give() -> str:
        return batch

    await _open.main(lambda: DBOS.run_step_async({"name": "step"}, give))


class Bare(Stepping):
    """A workflow, begun as a task of this event loop."""

    query = "SELECT output FROM operation_outputs WHERE function_name = 'step' ORDER BY function_id"

    async def start(self) -> None:
        global _open  # noqa: PLW0603
        _open = self
        self.engine = create_engine(f"sqlite:///{self.path}")

        @event.listens_for(self.engine, "connect")
        def prepare(connection: Any, record: object) -> None:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")

        config: DBOSConfig = {
            "name": "benchmark", "system_database_url": f"sqlite:///{self.path}",
            "system_database_engine": self.engine, "serializer": Plain(), "log_level": "WARNING",
            "application_version": "1", "executor_id": "benchmark",
            "notification_listener_polling_interval_sec": 0.01,
        }  # fmt: skip
        DBOS(config=config)
        DBOS.launch()
        self.handle = await DBOS.start_workflow_async(body)

    async def stop(self) -> None:
        await self.handle.get_result()
        DBOS.destroy()
        self.engine.dispose()


EVIDENCE = {"durable_step": lambda given, steps: steps.evidence()}
CONTENDERS = {
    "sabir_durable": Contender({"durable_step": Own}, EVIDENCE),
    "bare_step": Contender({"durable_step": Bare}, EVIDENCE),
}
