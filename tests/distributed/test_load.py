"""Thousands of requests to three workers, of which one is killed and one more comes: nothing lost, nothing twice."""

import asyncio
import os
import signal
from collections import Counter
from contextlib import ExitStack

from sabir_runtime.distributed import CallSettings

from tests.distributed.contexts import Desk
from tests.distributed.support import Place, worker_process

REQUESTS = 3_000
WORKERS = 3
CALLERS = 64
KILLED_AFTER = 600
ADDED_AFTER = 750
JOINED_BEFORE = 2_250
"""The rest waits for the new worker, so that it has its share however long it takes to start."""
SETTINGS = CallSettings(timeout=60, acceptance=2, silence=2, patience=20)


async def test_a_killed_and_an_added_worker_lose_nothing_and_repeat_nothing(place: Place) -> None:
    """RN-28, RN-30: each call has its own answer, once; others do a killed worker's work, a new one takes its share."""
    answers: Counter[int] = Counter()
    takers: Counter[int] = Counter()
    reached = {KILLED_AFTER: asyncio.Event(), ADDED_AFTER: asyncio.Event()}
    joined = asyncio.Event()
    numbers = iter(range(REQUESTS))

    async def ask(ctx: Desk) -> None:
        for number in numbers:
            if number >= JOINED_BEFORE:
                await joined.wait()
            (said,) = await ctx.work("x", number=number)
            answered, pid = map(int, said.text.split())
            assert answered == number
            answers[number] += 1
            takers[pid] += 1
            if len(answers) in reached:
                reached[len(answers)].set()

    with ExitStack() as processes:
        workers = [processes.enter_context(worker_process(place.url, place.name)) for _ in range(WORKERS)]

        async def disturb() -> int:
            await reached[KILLED_AFTER].wait()
            os.kill(workers[0].pid, signal.SIGKILL)
            await reached[ADDED_AFTER].wait()
            added = await asyncio.to_thread(processes.enter_context, worker_process(place.url, place.name))
            joined.set()
            return added.pid

        async with place.runner(SETTINGS) as runner:
            ctx = Desk(runner)
            async with asyncio.timeout(120):
                added, *_ = await asyncio.gather(disturb(), *(ask(ctx) for _ in range(CALLERS)))
            assert runner._caller is not None
            assert not runner._caller._pending

    assert answers == Counter(range(REQUESTS))
    assert takers.total() == REQUESTS
    assert set(takers) == {added, *(worker.pid for worker in workers)}
    assert takers[workers[0].pid] < min(takers[worker.pid] for worker in workers[1:])
