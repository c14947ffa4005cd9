"""Workers and servers that die in the middle of requests: another gets them, or the caller hears why not (RN-31)."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sabir_runtime.distributed import CallSettings, DistributedRunner, NoServer, NoWorkers, Worker, WorkerSettings

from tests.distributed.contexts import Desk
from tests.distributed.support import DEADLINE, QUICK, Gate, Gated, Place, WorkerProcess, soon, until, worker_process
from tests.servers.nats import nats_server

PATIENT = QUICK.model_copy(update={"patience": DEADLINE})


@pytest.fixture
def worker(place: Place) -> Iterator[WorkerProcess]:
    with worker_process(place.url, place.name) as worker:
        yield worker


def started(folder: Path) -> set[int]:
    return {int(path.stem) for path in folder.glob("*.started")}


@pytest.mark.parametrize("when", ["at once", "accepted"])
async def test_a_killed_worker_is_replaced(place: Place, worker: WorkerProcess, tmp_path: Path, when: str) -> None:
    async with place.runner(PATIENT) as runner:
        asked = asyncio.ensure_future(Desk(runner).hold("x", folder=str(tmp_path)))
        await until(lambda: started(tmp_path) == {worker.pid})
        if when == "accepted":
            assert runner._caller is not None
            (pending,) = runner._caller._pending.values()
            await until(lambda: pending.worker == worker.id)

        os.kill(worker.pid, signal.SIGKILL)
        async with place.worker(Desk):
            await until(lambda: started(tmp_path) == {worker.pid, os.getpid()})
            (tmp_path / "go").touch()
            (said,) = await soon(asked)

    assert said.text == str(os.getpid())


async def test_a_frozen_worker_counts_as_dead(place: Place, worker: WorkerProcess, tmp_path: Path) -> None:
    """Its connection stands, so only its silence tells; when it wakes it is told that nobody waits."""
    async with place.runner(PATIENT) as runner:
        ctx = Desk(runner)
        asked = asyncio.ensure_future(ctx.hold("x", folder=str(tmp_path)))
        await until(lambda: started(tmp_path) == {worker.pid})
        os.kill(worker.pid, signal.SIGSTOP)
        async with place.worker(Desk):
            await until(lambda: os.getpid() in started(tmp_path))
            (tmp_path / "go").touch()
            (said,) = await soon(asked)
            os.kill(worker.pid, signal.SIGCONT)
            again = await soon(asyncio.gather(*(ctx.echo(str(number)) for number in range(50))))

    assert said.text == str(os.getpid())
    assert [message.text for (message,) in again] == [str(number) for number in range(50)]


async def test_a_server_that_comes_back_is_found_again_by_both_sides(gate: Gate) -> None:
    """What was under way is asked for again under its id, and runs once; nothing waits in a buffer to arrive late."""
    quick = QUICK.model_copy(update={"patience": DEADLINE})
    with nats_server() as url:
        port = urlsplit(url).port
        assert port is not None
        worker = Worker(gate.context, url, settings=WorkerSettings(accept_after=0.0, beat=0.05))
        await worker.start()
        runner = DistributedRunner(url, settings=quick)
        asked = asyncio.ensure_future(Gated(runner).wait("x"))
        await until(lambda: gate.began)
    assert runner._caller is not None
    caller = runner._caller
    await until(lambda: not worker._require_connection().is_up and not caller.connection.is_up)
    gate.opened.set()
    await until(lambda: gate.ended)
    meanwhile = asyncio.ensure_future(Gated(runner).wait("y"))
    await until(lambda: len(caller._pending) == 2)
    assert caller.connection._client.pending_data_size == 0
    with nats_server(port=port):
        (said,), (later,) = await soon(asyncio.gather(asked, meanwhile))
        await runner.aclose()
        await worker.finish()

    assert (said.text, later.text) == ("X", "Y")
    assert gate.began == ["x", "y"]


async def test_a_worker_that_stops_while_the_server_is_away_takes_nothing_when_it_is_back(gate: Gate) -> None:
    """It finishes what it has; its subscriptions do not come back with the connection."""
    with nats_server() as url:
        port = urlsplit(url).port
        assert port is not None
        worker = Worker(gate.context, url)
        await worker.start()
        first = DistributedRunner(url, settings=QUICK)
        asked = asyncio.ensure_future(Gated(first).wait("x"))
        await until(lambda: gate.began)
    with pytest.raises(NoServer):
        await soon(asked)
    leaving = asyncio.ensure_future(worker.finish())
    await asyncio.sleep(0)
    with nats_server(port=port):
        await until(lambda: worker._require_connection().is_up)
        async with DistributedRunner(url, settings=QUICK) as second:
            with pytest.raises(NoWorkers):
                await soon(Gated(second).wait("y"))
        gate.opened.set()
        await soon(leaving)
    await first.aclose()

    assert gate.began == gate.ended == ["x"]


async def test_a_server_that_stays_away_ends_calls_and_workers_with_a_clear_error(gate: Gate) -> None:
    with nats_server() as url:
        worker = Worker(gate.context, url, settings=WorkerSettings(patience=0.3))
        running = asyncio.ensure_future(worker.run())
        runner = DistributedRunner(url, settings=CallSettings(patience=0.3, acceptance=1000, silence=1000))
        ctx = Gated(runner)
        asked = asyncio.ensure_future(ctx.wait("x"))
        await until(lambda: gate.began)
        gate.opened.set()
    with pytest.raises(NoServer, match=r"no NATS server at nats://127.0.0.1:\d+ within 0.3 s"):
        await soon(asked)
    with pytest.raises(NoServer, match="start nats-server there"):
        await soon(running)
    with pytest.raises(NoServer):
        await soon(ctx.wait("y"))
    await runner.aclose()


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
