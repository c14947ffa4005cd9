"""How requests are asked of other processes, one by one or many at once: the standard library alone.

Asking ──starts──▶ so many processes of the contender's own module, each gone when its stdin closes
   └ run() ──▶ calls, each timed ──▶ what they gave, and the median and the 99th percentile of their latencies
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.benchmarks import work
from tests.benchmarks.work import Given

ROOT = Path(__file__).parents[3]
PROCESSES = {"one worker": 1, "four workers": 4}
MESSAGES = 10
"""What is asked with, where the size counts requests."""

Ask = Callable[[], Awaitable[Any]]


class Asking:
    """What is timed: `units` requests, so many of them under way at once. `connect` and `disconnect` are its own."""

    def __init__(self, module: str, given: Given, units: int) -> None:
        self.given, self.units = given, units
        command = [sys.executable, "-m", module, given.url]
        self.processes = [
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(PROCESSES[given.wire])
        ]
        for process in self.processes:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"a process of {module} ended")
        self.runner = asyncio.Runner()
        self.ask = self.runner.run(self.connect())

    async def connect(self) -> Ask:
        """What asks once."""
        raise NotImplementedError

    async def disconnect(self) -> None:
        """End the connection."""
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        """Ask."""
        return self.runner.run(self.all())

    async def all(self) -> dict[str, Any]:
        """So many who ask at once, each again and again until all is asked."""
        clock, ask, left = time.perf_counter_ns, self.ask, iter(range(self.units))
        replies: list[Any] = []
        latencies: list[int] = []

        async def some() -> None:
            for _ in left:
                begun = clock()
                replies.append(await ask())
                latencies.append(clock() - begun)

        await asyncio.gather(*(some() for _ in range(self.given.concurrency)))
        cuts = statistics.quantiles(latencies, n=100)
        return {"replies": replies, "figures": {"median": statistics.median(latencies), "p99": cuts[98]}}

    def close(self) -> None:
        """End the connection and the processes."""
        self.runner.run(self.disconnect())
        self.runner.close()
        for process in self.processes:
            process.communicate()


def until_stdin_closes() -> asyncio.Future[str]:
    """Ready, and done when whoever started this process has gone."""
    print("ready", flush=True)
    return asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def one_by_one(given: Given) -> int:
    """How many requests a run has, where the size counts messages."""
    return work.ASKED * given.concurrency
