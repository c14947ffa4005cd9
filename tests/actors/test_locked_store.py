"""A store that another process locks blocks no event loop: heartbeats are answered, and nothing is lost (CH-32)."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from sabir_actors import AEIOUY, ActorSystem, ThreadClient
from sabir_session import SQLiteStore

from tests.actors.support import Model, Processes, ask, begun, events_of, system_of, tell

LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""
LOCKED_FOR = 1.5
LIMIT = 1.0


@contextmanager
def locked(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Lock a SQLite file by another process, until it reads a line."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", LOCK, str(path)], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            if process.poll() is None:
                process.communicate("\n")


async def longest_heartbeat(system: ActorSystem, *actors: str, seconds: float = LOCKED_FOR) -> float:
    """Return the longest time that a heartbeat took, and the loop to come back to us."""
    longest, until = 0.0, monotonic() + seconds
    while monotonic() < until:
        began = monotonic()
        await asyncio.sleep(0.01)
        for actor in actors:
            response = await system.send_message(ask("HEARTBEAT", actor))
            assert response.data["status"] == "alive"
        longest = max(longest, monotonic() - began)
    return longest


async def test_heartbeats_are_answered_while_messages_wait_for_the_store(tmp_path: Path) -> None:  # CH-32
    """Each kind has a system of its own; it is done once the store is free, and a status, which only reads, at once."""
    kinds = ("CREATE_THREAD", "START_THREAD", "GET_THREAD_STATUS", "UPDATE_AGENT_CONFIG")
    async with AsyncExitStack() as stack:
        stores = [stack.enter_context(SQLiteStore(tmp_path / "threads.db")) for _ in kinds]
        systems = [await stack.enter_async_context(system_of(Model(held=True), store)) for store in stores]
        threads = [await ThreadClient(system).create("u", "hi") for system in systems]
        with locked(tmp_path / "threads.db"):
            asked = []
            for kind, system, thread_id in zip(kinds, systems, threads, strict=True):
                known: dict[str, dict[str, Any]] = {
                    "CREATE_THREAD": {"user_id": "u", "initial_input": "x"},
                    "UPDATE_AGENT_CONFIG": {"agent_id": f"{thread_id}/yield", "config": {"temperature": 0.5}},
                }
                data = known.get(kind, {"thread_id": thread_id})
                asked.append(asyncio.ensure_future(tell(system, kind, **data)))
            longest = await asyncio.gather(*[longest_heartbeat(each, "threads", "supervisor") for each in systems])
            assert max(longest) < LIMIT
            assert [kind for kind, answer in zip(kinds, asked, strict=True) if answer.done()] == ["GET_THREAD_STATUS"]
        assert [kind for kind, answer in zip(kinds, asked, strict=True) if (await answer).is_error] == []


async def test_heartbeats_are_answered_while_phases_wait_for_the_store(store: SQLiteStore, tmp_path: Path) -> None:
    """Records of replies and of phases wait in their order; no model is asked twice."""
    # CH-32
    model = Model(held=True)
    async with system_of(model, store) as system:
        client, thread_id = await begun(system)
        await model.gate.reached()
        with locked(tmp_path / "threads.db"):
            model.gate.open()
            assert await longest_heartbeat(system, "threads", f"{thread_id}/agents", f"{thread_id}/action") < LIMIT
        assert (await asyncio.wait_for(client.result(thread_id, every=0.05), 10)).status == "completed"
    assert model.asked == list(AEIOUY)
    assert events_of(store, thread_id) == ["created", "started", *AEIOUY, "completed"]


async def test_heartbeats_are_answered_while_a_queued_thread_waits(processes: Processes, tmp_path: Path) -> None:
    # CH-32
    system = await processes.asker()
    worker, seat, model = await processes.worker()
    client, thread_id = await begun(system)
    with locked(tmp_path / "threads.db"):
        run = seat.begin()
        longest = await asyncio.gather(*[longest_heartbeat(each, "threads") for each in (system, worker)])
        assert max(longest) < LIMIT and not model.asked
    await run
    assert (await client.result(thread_id, every=0.05)).status == "completed"
    assert processes.events(thread_id) == ["created", "started", "taken", *AEIOUY, "completed"]


async def test_a_start_interrupted_while_the_store_is_locked_is_performed(store: SQLiteStore, tmp_path: Path) -> None:
    # CH-32
    async with system_of(Model(), store) as system:
        client = ThreadClient(system)
        thread_id = await client.create("u", "hi")
        with locked(tmp_path / "threads.db"):
            asked = asyncio.ensure_future(tell(system, "START_THREAD", thread_id=thread_id))
            await asyncio.sleep(0.1)
            system.threads.interrupt()
            await asyncio.sleep(0.1)
        assert (await asked).data["error_code"] == "STOPPED"
        assert (await asyncio.wait_for(client.result(thread_id, every=0.05), 10)).status == "completed"
