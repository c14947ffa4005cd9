"""A durable run that stays open, and takes so many steps when it is told to: the standard library alone.

run() ──how many──▶ main, a run since it was made ready ──▶ step, step, … ──last──▶ run()
"""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.benchmarks import work

Step = Callable[[], Awaitable[Any]]


class Stepping:
    """What is timed: so many steps of one run. `start` and `stop` are its engine's."""

    units = work.STEPS

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder, "runs.db")
        self.commands: asyncio.Queue[int] = asyncio.Queue()
        self.found: asyncio.Queue[Any] = asyncio.Queue()
        self.runner = asyncio.Runner()
        self.runner.run(self.start())

    async def start(self) -> None:
        """Begin the run, whose body is `main`."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Await the run's end, and end its engine."""
        raise NotImplementedError

    async def main(self, step: Step) -> None:
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
        """So many steps."""
        self.last = self.runner.run(self.take())
        return self

    def close(self) -> None:
        """End the run, and delete what it wrote."""
        self.commands.put_nowait(0)
        self.runner.run(self.stop())
        self.runner.close()
        shutil.rmtree(self.folder)
