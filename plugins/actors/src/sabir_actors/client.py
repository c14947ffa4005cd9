"""ThreadClient: threads as a program uses them, without writing messages.

async with ActorSystem("provider:model", store=SQLiteStore("threads.db")) as system:
    client = ThreadClient(system)
    thread_id = await client.create("user1", "Shall I repot my fern?")
    await client.start(thread_id)
    result = await client.result(thread_id)
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from sabir_actors import data as typed
from sabir_actors.actor import Actor, Handled
from sabir_actors.protocol import Message, data_of
from sabir_actors.state import ENDS
from sabir_actors.system import THREADS, ActorSystem, raised

Answer = TypeVar("Answer", bound=typed.Data)


class ThreadClient(Actor):
    """Whoever creates threads, and is told how they end. Each method raises ActorError where its message is refused."""

    def __init__(self, system: ActorSystem, client_id: str | None = None, *, threads: str = THREADS) -> None:
        super().__init__(client_id or f"client-{uuid4()}", system)
        self._threads = threads
        self._results: dict[str, typed.ThreadResult] = {}
        self._news = asyncio.Condition()
        system.add(self)

    async def on_thread_result(self, message: Message) -> Handled:
        """How a thread ended."""
        result = data_of(message, typed.ThreadResult)
        async with self._news:
            self._results[result.thread_id] = result
            self._news.notify_all()
        return {"thread_id": result.thread_id}

    async def create(
        self, user_id: str, text: str, *, metadata: Mapping[str, Any] | None = None, chain: str | None = None
    ) -> str:
        """Make a thread; its id."""
        said = {"user_id": user_id, "initial_input": text, "metadata": dict(metadata or {}), "chain": chain}
        return (await self._asked("CREATE_THREAD", said, typed.ThreadCreated)).thread_id

    async def start(self, thread_id: str) -> typed.ThreadStarted:
        """Set a thread on its way."""
        return await self._asked("START_THREAD", {"thread_id": thread_id}, typed.ThreadStarted)

    async def pause(self, thread_id: str) -> typed.ThreadPaused:
        """Let no further phase start."""
        return await self._asked("PAUSE_THREAD", {"thread_id": thread_id}, typed.ThreadPaused)

    async def resume(self, thread_id: str) -> typed.ThreadResumed:
        """Go on at the phase that is next."""
        return await self._asked("RESUME_THREAD", {"thread_id": thread_id}, typed.ThreadResumed)

    async def terminate(self, thread_id: str, reason: str = "user_request") -> typed.ThreadTerminated:
        """End a thread."""
        said = {"thread_id": thread_id, "reason": reason}
        return await self._asked("TERMINATE_THREAD", said, typed.ThreadTerminated)

    async def status(self, thread_id: str) -> typed.ThreadStatus:
        """Where a thread is."""
        return await self._asked("GET_THREAD_STATUS", {"thread_id": thread_id}, typed.ThreadStatus)

    async def configure(self, thread_id: str, phase: str, **change: Any) -> typed.AgentConfigUpdated:
        """Have the agent of a phase ask otherwise from its next run on: by another `model`, `tools`, …"""
        said = {"agent_id": f"{thread_id}/{phase}", "config": change}
        return await self._asked("UPDATE_AGENT_CONFIG", said, typed.AgentConfigUpdated)

    async def watch(self, thread_id: str, *, every: float = 0.2) -> AsyncIterator[typed.ThreadStatus]:
        """Where a thread is, each time that it is elsewhere, to its end; looked at every so many seconds."""
        last = None
        while True:
            status = await self.status(thread_id)
            if status != last:
                yield status
                last = status
            if status.status in ENDS:
                return
            await asyncio.sleep(every)

    async def result(self, thread_id: str) -> typed.ThreadResult:
        """How a thread that this client created ended, once it has."""
        async with self._news:
            await self._news.wait_for(lambda: thread_id in self._results)
        return self._results[thread_id]

    async def _asked(self, message_type: str, said: Mapping[str, Any], answer: type[Answer]) -> Answer:
        sent = {name: value for name, value in said.items() if value is not None}
        response = await self.system.send_message(
            Message(type=message_type, data=sent, sender=self.actor_id, receiver=self._threads)
        )
        return data_of(raised(response), answer)
