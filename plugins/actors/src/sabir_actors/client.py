"""ThreadClient: threads as a program uses them, without writing messages.

async with ActorSystem("provider:model", store=SQLiteStore("threads.db")) as system:
    client = ThreadClient(system)
    thread_id = await client.create("user1", "Shall I repot my fern?")
    await client.start(thread_id)
    result = await client.result(thread_id)
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from sabir_actors import data as typed
from sabir_actors.actor import REMEMBERED, THREADS, Actor, Handled
from sabir_actors.protocol import Message, data_of, raised
from sabir_actors.state import ENDS, thread_id_of
from sabir_actors.system import ActorSystem

Answer = TypeVar("Answer", bound=typed.Data)


class ThreadClient(Actor):
    """Creates threads, and is told their results. Each method raises ActorError if its message is refused."""

    def __init__(self, system: ActorSystem, client_id: str | None = None, *, threads: str = THREADS) -> None:
        super().__init__(client_id or f"client-{uuid4()}", system)
        self._threads = threads
        self._results: OrderedDict[str, typed.ThreadResult | None] = OrderedDict()
        """Thread created here → its result, None before its end; of results that were not asked for, the latest are
        kept."""
        self._told = asyncio.Event()
        """Set, and replaced by a new one, when a thread of this client ends."""
        system.add(self)

    async def on_thread_result(self, message: Message) -> Handled:
        """Take the result of a thread."""
        result = data_of(message, typed.ThreadResult)
        self._expect(result.thread_id, result)
        told, self._told = self._told, asyncio.Event()
        told.set()
        return {"thread_id": result.thread_id}

    async def create(
        self, user_id: str, text: str, *, metadata: Mapping[str, Any] | None = None, chain: str | None = None
    ) -> str:
        """Make a thread; returns its id."""
        said = {"user_id": user_id, "initial_input": text, "metadata": dict(metadata or {}), "chain": chain}
        message_id = str(uuid4())
        made = thread_id_of(message_id)
        self._expect(made, None)
        return (await self._asked("CREATE_THREAD", said, typed.ThreadCreated, made, id=message_id)).thread_id

    async def start(self, thread_id: str) -> typed.ThreadStarted:
        """Start a thread."""
        return await self._asked("START_THREAD", {"thread_id": thread_id}, typed.ThreadStarted, thread_id)

    async def pause(self, thread_id: str) -> typed.ThreadPaused:
        """Let no further phase start."""
        return await self._asked("PAUSE_THREAD", {"thread_id": thread_id}, typed.ThreadPaused, thread_id)

    async def resume(self, thread_id: str) -> typed.ThreadResumed:
        """Continue with the next phase."""
        return await self._asked("RESUME_THREAD", {"thread_id": thread_id}, typed.ThreadResumed, thread_id)

    async def terminate(self, thread_id: str, reason: str = "user_request") -> typed.ThreadTerminated:
        """End a thread."""
        said = {"thread_id": thread_id, "reason": reason}
        return await self._asked("TERMINATE_THREAD", said, typed.ThreadTerminated, thread_id)

    async def status(self, thread_id: str) -> typed.ThreadStatus:
        """Where a thread is."""
        return await self._asked("GET_THREAD_STATUS", {"thread_id": thread_id}, typed.ThreadStatus, thread_id)

    async def configure(self, thread_id: str, phase: str, **change: Any) -> typed.AgentConfigUpdated:
        """Change the configuration of a phase's agent from its next run on: another `model`, `tools`, …"""
        said = {"agent_id": f"{thread_id}/{phase}", "config": change}
        return await self._asked("UPDATE_AGENT_CONFIG", said, typed.AgentConfigUpdated, thread_id)

    async def watch(self, thread_id: str, *, every: float = 0.2) -> AsyncIterator[typed.ThreadStatus]:
        """A thread's status at each change until its end; read every `every` seconds."""
        last = None
        while True:
            status = await self.status(thread_id)
            if status != last:
                yield status
                last = status
            if status.status in ENDS:
                return
            await asyncio.sleep(every)

    async def result(self, thread_id: str, *, every: float = 1.0) -> typed.ThreadResult:
        """Wait for a thread's end; returns its result.

        The client that created it here is told. Its state is also read: at once if another client created it or a queue
        gave it to a process, and every `every` seconds, because another process may run it.
        """
        is_due = thread_id not in self._results or self.system.queue is not None
        while True:
            told, found = self._told, self._results.pop(thread_id, None)
            if found is None and is_due:
                found = (await self.status(thread_id)).result
            if found is not None:
                return found
            try:
                await asyncio.wait_for(told.wait(), every)
            except TimeoutError:
                is_due = True

    def _expect(self, thread_id: str, result: typed.ThreadResult | None) -> None:
        self._results[thread_id] = result
        if len(self._results) > REMEMBERED:
            self._results.popitem(last=False)

    async def _asked(
        self, message_type: str, said: Mapping[str, Any], answer: type[Answer], thread_id: str, **envelope: Any
    ) -> Answer:
        """Send a message and return the answer; every message about a thread has its id as correlation id."""
        sent = {name: value for name, value in said.items() if value is not None}
        request = self._request(message_type, sent, self._threads, thread_id, **envelope)
        return data_of(raised(await self.system.send_message(request)), answer)
