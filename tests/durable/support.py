"""Programs of a few lines, and runners that look around quickly."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import sabir
from sabir import Message, OptionCallPayload
from sabir.base.values import JSONValue
from sabir_runtime import BaseContext, BaseRunner, Batch
from sabir_runtime.durable import DurableRunner, RunTaken

from tests.durable.assistant import Names
from tests.durable.children import BEAT, POLL

Policy = Callable[..., Awaitable[list[Message]]]


class Program(BaseContext):
    """A context of whatever policies it is given."""

    def __init__(self, runner: BaseRunner, **policies: Policy) -> None:
        super().__init__(runner)
        for name, policy in policies.items():
            setattr(self, name, self._bind(policy))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@asynccontextmanager
async def working(store: str, **policies: Policy) -> AsyncIterator[tuple[DurableRunner, Program]]:
    """A launched runner and a program of these policies."""
    async with DurableRunner(store, beat=BEAT, poll=POLL) as runner:
        program = Program(runner, **policies)
        await runner.launch()
        yield runner, program


def saying(text: str, heard: list[str] | None = None) -> Policy:
    """A policy that says one thing, and notes that it ran."""

    async def say(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        if heard is not None:
            heard.append(text)
        return [sabir.assistant(text, policy="say")]

    return say


def choosing(*choices: tuple[str, str, dict[str, JSONValue]], heard: list[str] | None = None) -> Policy:
    """A policy that chooses options: name, invocation id, arguments."""

    async def choose(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        if heard is not None:
            heard.append("choose")
        payloads = [OptionCallPayload(invocation_id=i, option_name=name, arguments=given) for name, i, given in choices]
        return [Message(policy="choose", payload=payload) for payload in payloads]

    return choose


class Gate:
    """A policy that stays in the middle of a run until the process ends, or somebody opens the gate."""

    def __init__(self) -> None:
        self.reached, self.opened, self.passed = asyncio.Event(), asyncio.Event(), 0

    async def __call__(self, ctx: Program, observations: Batch, options: Names = None) -> Batch:
        self.passed += 1
        self.reached.set()
        await self.opened.wait()
        return [sabir.assistant("through", policy="gate")]


async def end_at(gate: Gate, runner: DurableRunner, performing: Awaitable[list[Message]]) -> None:
    """Begin a run, and end its runner as soon as it has come to the gate: what is unfinished stays so."""
    task = asyncio.ensure_future(performing)
    await gate.reached.wait()
    await runner.aclose()
    try:
        await task
    except RunTaken:
        return
    raise AssertionError("the run ended before the gate")


async def left_at(gate: Gate, store: str, /, **policies: Policy) -> None:
    """Begin the run "r" of `main`, and end its runner at the gate."""
    async with working(store, **policies) as (runner, program):
        await end_at(gate, runner, runner.run(program.main, "Hi.", run_id="r"))


async def carried_on(store: str, /, **policies: Policy) -> list[Message]:
    """What the run "r" gives when another runner carries it on."""
    async with working(store, **policies) as (runner, _):
        return await runner.result("r")
