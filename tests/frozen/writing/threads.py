"""Writes threads of actors in several phases into a session store, with and without a durable queue.

system     completed, review, failed, terminated, paused       by a system that ends as it should
killed     early, late: the process dies while a phase asks its model
asking     created, configured, scheduled: no process performs them
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

import sabir
from sabir_actors import ActorSystem, PhaseReply, RestartPolicy, ThreadClient
from sabir_actors.durable import DurableQueue
from sabir_session import Store
from sabir_testing import Gate, ScriptedAdapter, Sent, always, delayed, reply

from tests.frozen.programs import REVIEW, Town
from tests.frozen.writing.conversations import ANTHROPIC, GOOGLE, open_store
from tests.frozen.writing.runs import BEAT, HOST, POLL

PAUSED_AT, EARLY_AT, LATE_AT = ("experience", "paused"), ("action", "early"), ("observation", "late")
"""Phase and user's text of the questions that are held."""
FAILED = "failed"


class Model:
    """The model of agents: it answers, fails, or is held where a question has this phase and this text."""

    def __init__(self, *held: tuple[str, str]) -> None:
        self.asked: list[tuple[str, str]] = []
        self.gates = {place: Gate() for place in held}

    def __call__(self, model: str) -> ScriptedAdapter:
        def answer(sent: Sent) -> Any:
            phase = sent.messages[0].text.split()[3]  # "You are the action phase."
            text = next(message.text for message in sent.messages[1:] if message.policy == "user")
            self.asked.append((phase, text))
            if text == FAILED and phase == "experience":
                return sabir.CredentialsMissing("there is no key")
            said = reply(PhaseReply(response=f"{phase} of {text}", confidence=0.5))
            gate = self.gates.get((phase, text))
            return said if gate is None else delayed(said, gate)

        return ScriptedAdapter(always(answer), model=model)


def queue_of(runs: str | None, **how: Any) -> DurableQueue | None:
    return None if runs is None else DurableQueue(runs, beat=BEAT, poll=POLL, **how)


def system_of(model: Model, store: Store, runs: str | None = None, **how: Any) -> ActorSystem:
    return ActorSystem(
        ANTHROPIC,
        store=store,
        adapters=model,
        chains=[REVIEW],
        options=Town().options,
        queue=queue_of(runs),
        restarts=RestartPolicy(first_pause=0.0),
        **how,
    )


async def begin(client: ThreadClient, text: str, **how: Any) -> str:
    thread_id = await client.create("traveller", text, metadata={"source": text}, **how)
    await client.start(thread_id)
    return thread_id


def write_ended(store: str, runs: str | None) -> None:
    """Threads that are over, and a paused one with two phases done."""
    socket.gethostname = lambda: HOST
    asyncio.run(_ended(store, runs))


async def _ended(store: str, runs: str | None) -> None:
    model = Model(PAUSED_AT)
    async with system_of(model, open_store(store), runs) as system:
        client = ThreadClient(system, "client")
        for text, how in (("completed", {}), ("review", {"chain": "review"}), (FAILED, {})):
            thread_id = await begin(client, text, **how)
            await client.result(thread_id, every=POLL)
        await client.terminate(await client.create("traveller", "terminated"), "changed my mind")
        paused = await begin(client, "paused")
        gate = model.gates[PAUSED_AT]
        await gate.reached()
        await client.pause(paused)
        gate.open()
        while len((await client.status(paused)).phases_completed) != 2:
            await asyncio.sleep(POLL)
        await asyncio.sleep(10 * BEAT)  # its run ends, and says so


def write_cut_off(store: str, runs: str | None) -> None:
    """Threads whose process is killed while a model is asked."""
    socket.gethostname = lambda: HOST
    asyncio.run(_cut_off(store, runs))


async def _cut_off(store: str, runs: str | None) -> None:
    model = Model(EARLY_AT, LATE_AT)
    async with system_of(model, open_store(store), runs) as system:
        client = ThreadClient(system, "client")
        for text in ("early", "late"):
            await begin(client, text)
        for gate in model.gates.values():
            await gate.reached()
        os.kill(os.getpid(), signal.SIGKILL)


def write_asking(store: str, runs: str | None) -> None:
    """Threads that no process performs; with a queue, `scheduled` waits in it."""
    socket.gethostname = lambda: HOST
    asyncio.run(_asking(store, runs))


async def _asking(store: str, runs: str | None) -> None:
    queue = queue_of(runs, at_once=0)
    how = {"recovers": False} if queue is None else {"queue": queue}
    async with ActorSystem(ANTHROPIC, store=open_store(store), chains=[REVIEW], **how) as system:  # type: ignore[arg-type]
        client = ThreadClient(system, "client")
        await client.create("traveller", "created")
        configured = await client.create("traveller", "configured", chain="review")
        await client.configure(configured, "final", model=GOOGLE)
        if queue is not None:
            await begin(client, "scheduled")


WRITERS: tuple[Callable[[str, str | None], None], ...] = (write_ended, write_cut_off, write_asking)
