"""ThreadClient: create, start and follow threads by method calls, without writing protocol messages.

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
from sabir_actors.actor import REMEMBERED, THREADS, Actor, HandlerResult
from sabir_actors.protocol import Message, data_of, raise_for_error
from sabir_actors.state import ENDS, thread_id_of
from sabir_actors.system import ActorSystem

Answer = TypeVar("Answer", bound=typed.Data)


class ThreadClient(Actor):
    """Creates, starts and follows threads. The usual way for a program to use an ActorSystem.

    `client_id` is the client's actor id, by default a random one. `threads` is the id of the actor of all threads.
    Each method raises ActorError if the system refuses the request, for example for an unknown thread, or with
    RECORDING_FAILED if the store cannot be used. Creating a client adds it to the system, and raises ActorError
    (INVALID_CONFIG) if another actor has its id.

    >>> import asyncio
    >>> from sabir_actors import ActorSystem, ThreadClient
    >>> async def main():
    ...     async with ActorSystem("echo:m") as system:
    ...         client = ThreadClient(system)
    ...         thread_id = await client.create("ada", "Shall I repot my fern?")
    ...         await client.start(thread_id)
    ...         return await client.result(thread_id)
    >>> asyncio.run(main()).status
    'completed'
    """

    def __init__(self, system: ActorSystem, client_id: str | None = None, *, threads: str = THREADS) -> None:
        super().__init__(client_id or f"client-{uuid4()}", system)
        self._threads = threads
        self._results: OrderedDict[str, typed.ThreadResult | None] = OrderedDict()
        """Id of a thread that this client created → its result, None before its end. Only the latest REMEMBERED threads
        whose result was not read are stored.
        """
        self._thread_ended = asyncio.Event()
        """Set when a thread of this client ends, and then replaced by a new event."""
        system.add(self)

    async def on_thread_result(self, message: Message) -> HandlerResult:
        """Handle THREAD_RESULT, which the system sends at a thread's end: store the result for `result`."""
        result = data_of(message, typed.ThreadResult)
        self._store_result(result.thread_id, result)
        thread_ended, self._thread_ended = self._thread_ended, asyncio.Event()
        thread_ended.set()
        return {"thread_id": result.thread_id}

    async def create(
        self, user_id: str, text: str, *, metadata: Mapping[str, Any] | None = None, chain: str | None = None
    ) -> str:
        """Create a thread, without starting it, and return its id.

        `user_id` identifies the user, and `text` is the user's question or request. `metadata` is a JSON object that is
        stored with the thread and passed to its phases; `conversation_history` in it is an earlier conversation, which
        the agents read. `chain` names the chain of phases, by default AEIOUY_CHAIN.

        Raises ActorError: INVALID_CONFIG for an unknown chain, INVALID_MESSAGE for a `user_id` that is empty or longer
        than 200 characters, or RECORDING_FAILED if the store cannot be used.
        """
        fields = {"user_id": user_id, "initial_input": text, "metadata": dict(metadata or {}), "chain": chain}
        message_id = str(uuid4())
        thread_id = thread_id_of(message_id)
        self._store_result(thread_id, None)
        return (
            await self._send_and_await("CREATE_THREAD", fields, typed.ThreadCreated, thread_id, id=message_id)
        ).thread_id

    async def start(self, thread_id: str) -> typed.ThreadStarted:
        """Start the phases of a created thread, and return at once. Use `result` to wait for the end.

        Raises ActorError: UNKNOWN_THREAD, INVALID_STATE if the thread was started before, or INVALID_CONFIG if the
        system lacks a model, an option or the chain of the thread, unless only other processes run threads.
        """
        return await self._send_and_await("START_THREAD", {"thread_id": thread_id}, typed.ThreadStarted, thread_id)

    async def pause(self, thread_id: str) -> typed.ThreadPaused:
        """Pause a thread: the running phase continues to its end, and no further phase starts until `resume`.

        Raises ActorError: UNKNOWN_THREAD, or INVALID_STATE if the thread is not processing.
        """
        return await self._send_and_await("PAUSE_THREAD", {"thread_id": thread_id}, typed.ThreadPaused, thread_id)

    async def resume(self, thread_id: str) -> typed.ThreadResumed:
        """Continue a paused thread with the next phase.

        Raises ActorError: UNKNOWN_THREAD, INVALID_STATE if the thread is not paused, or INVALID_CONFIG as `start`.
        """
        return await self._send_and_await("RESUME_THREAD", {"thread_id": thread_id}, typed.ThreadResumed, thread_id)

    async def terminate(self, thread_id: str, reason: str = "user_request") -> typed.ThreadTerminated:
        """End a thread for good. A running phase is interrupted. `reason` is stored with the thread.

        Raises ActorError: UNKNOWN_THREAD, or INVALID_STATE if the thread has already ended.
        """
        fields = {"thread_id": thread_id, "reason": reason}
        return await self._send_and_await("TERMINATE_THREAD", fields, typed.ThreadTerminated, thread_id)

    async def status(self, thread_id: str) -> typed.ThreadStatus:
        """Return the thread's state, its completed and remaining phases, and its result once it has ended.

        Raises ActorError (UNKNOWN_THREAD) for an unknown id.
        """
        return await self._send_and_await("GET_THREAD_STATUS", {"thread_id": thread_id}, typed.ThreadStatus, thread_id)

    async def configure(self, thread_id: str, phase: str, **change: Any) -> typed.AgentConfigUpdated:
        """Change the configuration of a phase's agent, from the agent's next run on.

        `change` has the fields to change: `model`, `system_prompt`, `tools` (names of options) or a setting of
        `sabir.Settings`. None unsets a setting or the system prompt. Raises ActorError: UNKNOWN_THREAD, INVALID_STATE
        for an ended thread, INVALID_MESSAGE for an unknown phase or an invalid field, or INVALID_CONFIG for an invalid
        setting, for a chain that this system lacks and, if threads run in this process, for a wrong model or option.
        """
        fields = {"agent_id": f"{thread_id}/{phase}", "config": change}
        return await self._send_and_await("UPDATE_AGENT_CONFIG", fields, typed.AgentConfigUpdated, thread_id)

    async def watch(self, thread_id: str, *, every: float = 0.2) -> AsyncIterator[typed.ThreadStatus]:
        """Yield the thread's status now and after each change, until the thread has ended.

        The status is read every `every` seconds, so short changes between two reads are not seen. Raises ActorError
        (UNKNOWN_THREAD) for an unknown id.
        """
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
        """Wait until the thread has ended, in any process, and return its result.

        A failed or terminated thread has a result too: see its `status`, and `error_message` of a failed thread. The
        client that created the thread is notified if the thread ends in this process. The status is also read every
        `every` seconds, because another process may run the thread. For a thread that is not started or stays paused,
        this waits without limit. Raises ActorError (UNKNOWN_THREAD) for an unknown id.
        """
        is_due = thread_id not in self._results or self.system.queue is not None
        while True:
            thread_ended, thread_result = self._thread_ended, self._results.pop(thread_id, None)
            if thread_result is None and is_due:
                thread_result = (await self.status(thread_id)).result
            if thread_result is not None:
                return thread_result
            try:
                await asyncio.wait_for(thread_ended.wait(), every)
            except TimeoutError:
                is_due = True

    def _store_result(self, thread_id: str, result: typed.ThreadResult | None) -> None:
        self._results[thread_id] = result
        if len(self._results) > REMEMBERED:
            self._results.popitem(last=False)

    async def _send_and_await(
        self, message_type: str, fields: Mapping[str, Any], answer: type[Answer], thread_id: str, **envelope: Any
    ) -> Answer:
        """Send a message about a thread, and return the response's data as `answer`. Raises the ActorError of an ERROR.

        `fields` is the message's data; fields that are None are not sent. The correlation id is the thread's id.
        """
        set_fields = {name: value for name, value in fields.items() if value is not None}
        request = self._request(message_type, set_fields, self._threads, thread_id, **envelope)
        return data_of(raise_for_error(await self.system.send_message(request)), answer)
