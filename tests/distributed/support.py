"""What these tests start and wait for: `sabir worker` processes, gates, events with a deadline."""

import asyncio
import json
import re
import subprocess
import sysconfig
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import sabir
from nats.aio.client import Client
from nats.aio.msg import Msg
from sabir_runtime import BaseContext, BaseRunner, Batch, BoundPolicy
from sabir_runtime.distributed import CallSettings, DistributedRunner, Worker, WorkerSettings
from sabir_runtime.distributed.envelopes import Cancelled, Reply, Request, Sought, decode_reply, encode

from tests.distributed.contexts import Names, echo

ROOT = Path(__file__).parents[2]
DEADLINE = 20.0
"""Seconds after which something that should happen has not."""
QUICK = CallSettings(timeout=DEADLINE, acceptance=0.4, silence=0.4, patience=0.3)
"""For tests in which somebody falls silent."""
Came = TypeVar("Came")


@dataclass(frozen=True)
class Place:
    """A server, and a name under which no other test's workers listen."""

    url: str
    name: str

    def worker(self, context: Callable[[Any], BaseContext], settings: WorkerSettings | None = None) -> Worker:
        return Worker(context, self.url, name=self.name, settings=settings)

    def runner(self, settings: CallSettings | None = None) -> DistributedRunner:
        return DistributedRunner(self.url, name=self.name, settings=settings)


def body_of(name: str, policy: str = "echo", **changes: Any) -> bytes:
    request = {"schema": 1, "id": "r1", "context": name, "policy": policy, "observations": [], "seconds_left": 5}
    return json.dumps({**request, **changes}).encode()


async def soon(awaited: Awaitable[Came]) -> Came:
    """What comes of it, which must be soon."""
    async with asyncio.timeout(DEADLINE):
        return await awaited


async def flushed(client: Client) -> None:
    """Wait until the server has all that a client sent; its ping overtakes what it has not written yet, so twice."""
    await client.flush()
    await client.flush()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not holds():
            await asyncio.sleep(0.002)


@dataclass
class Gate:
    """Where a policy of this process waits, and what it says meanwhile."""

    began: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    def context(self, runner: BaseRunner) -> "Gated":
        return Gated(runner, self)

    def with_echo(self, runner: BaseRunner) -> "Gated":
        made = self.context(runner)
        made.echo = made._bind(echo)
        return made


class Own(BaseContext):
    """A context of whatever policies it is given."""

    def __init__(self, runner: BaseRunner, **policies: Callable[..., Any]) -> None:
        super().__init__(runner)
        for name, policy in policies.items():
            setattr(self, name, self._bind(policy))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def own(**policies: Callable[..., Any]) -> Callable[[BaseRunner], Own]:
    """What makes a context of these policies."""
    return lambda runner: Own(runner, **policies)


class Gated(BaseContext):
    wait: BoundPolicy
    echo: BoundPolicy

    def __init__(self, runner: BaseRunner, gate: Gate | None = None) -> None:
        super().__init__(runner)
        gate = gate or Gate()

        async def wait(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
            said = observations[-1].text
            gate.began.append(said)
            try:
                await gate.opened.wait()
            except asyncio.CancelledError:
                gate.cancelled.append(said)
                raise
            gate.ended.append(said)
            return [sabir.assistant(said.upper())]

        self.wait = self._bind(wait)


@dataclass
class WorkerProcess:
    process: subprocess.Popen[str]
    id: str

    @property
    def pid(self) -> int:
        return self.process.pid


@contextmanager
def worker_process(
    url: str, name: str, *options: str, context: str = "tests.distributed.contexts:Desk"
) -> Iterator[WorkerProcess]:
    command = [Path(sysconfig.get_path("scripts")) / "sabir", "worker", context, "--url", url, "--name", name, *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    with process.stdout:
        try:
            said = process.stdout.readline()
            while said.startswith("sabir worker: "):  # how the search for its server goes
                said = process.stdout.readline()
            listening = re.match(r"worker (\S+) answers", said)
            assert listening, said + process.stdout.read()
            yield WorkerProcess(process, listening[1])
        finally:
            process.kill()
            process.wait()


class Caller:
    """A bare client that asks as a runner does, and keeps all that it hears."""

    def __init__(self, client: Client, context: str) -> None:
        self.client = client
        self.context = context
        self.inbox = client.new_inbox()
        self.heard: list[tuple[str, Reply]] = []

    async def listen(self) -> None:
        await self.client.subscribe(f"{self.inbox}.>", cb=self._hear)

    async def _hear(self, message: Msg) -> None:
        self.heard.append((message.subject.removeprefix(f"{self.inbox}."), decode_reply(message.data)))

    async def ask(
        self,
        id: str,
        text: str = "x",
        *,
        policy: str = "wait",
        sending: int = 1,
        left: float = 20.0,
        waited: float = 0.0,
    ) -> None:
        request = Request(
            id=id,
            context=self.context,
            policy=policy,
            observations=(sabir.user(text),),
            seconds_left=left,
            waited=waited,
        )
        subject = f"sabir.{self.context}.{policy}"
        await self.client.publish(subject, encode(request), reply=f"{self.inbox}.{id}.{sending}")

    async def give_up(self, id: str) -> None:
        await self.client.publish(f"sabir-all.{self.context}", encode(Cancelled(id=id)))

    async def seek(self, id: str) -> None:
        await self.client.publish(f"sabir-all.{self.context}", encode(Sought(id=id)), reply=f"{self.inbox}.{id}.1")

    async def settle(self, worker: Worker) -> None:
        """Until all that was sent so far was heard by the worker, and its word here."""
        await flushed(self.client)
        await worker._require_connection().flush()
        await until(lambda: not any(each.pending_msgs for each in worker._subscriptions))
        await worker._require_connection().flush()
        await flushed(self.client)
        await asyncio.sleep(0)

    def of(self, kind: type[Any]) -> list[Any]:
        return [reply for _, reply in self.heard if isinstance(reply, kind)]

    async def first(self, kind: type[Any]) -> Any:
        await until(lambda: self.of(kind))
        return self.of(kind)[0]
