"""The contexts of these tests: in this process, in a worker beside it, and in `sabir worker` processes."""

import asyncio
import os
from pathlib import Path

import sabir
from sabir import Message
from sabir.vocabulary.messages import OptionCallPayload
from sabir_runtime import BaseContext, BaseRunner, Batch, BoundPolicy

Names = list[str] | None
"""Options, as policies are given them."""

POLL = 0.01
"""Seconds between two looks at a file, in a process that a test cannot signal otherwise."""


async def echo(ctx: BaseContext, observations: Batch, options: Names = None, *, times: int = 1) -> Batch:
    """Say what was said, so many times."""
    return [sabir.assistant(observations[-1].text * times)]


async def give_back(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    return observations


async def tell_options(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
    return [sabir.assistant(repr(options))]


async def double(ctx: BaseContext, observations: Batch, options: Names = None, *, number: int) -> Batch:
    return [sabir.assistant(str(2 * number))]


def call_of(name: str, invocation_id: str, **arguments: object) -> Message:
    """An option call with an id that is the same each time."""
    payload = OptionCallPayload(invocation_id=invocation_id, option_name=name, arguments=arguments)
    return Message(id=f"m-{invocation_id}", policy="choose", payload=payload)


async def enlarge(ctx: BaseContext, observations: Batch, options: Names = None, *, size: int) -> Batch:
    """So many characters that do not compress to less than half."""
    return [sabir.assistant(os.urandom(size // 2).hex())]


async def hold(ctx: BaseContext, observations: Batch, options: Names = None, *, folder: str) -> Batch:
    """Say in a folder who is at it, then wait there for the file `go`."""
    place = Path(folder)
    (place / f"{os.getpid()}.started").touch()
    while not (place / "go").exists():
        await asyncio.sleep(POLL)
    return [sabir.assistant(str(os.getpid()))]


async def work(ctx: BaseContext, observations: Batch, options: Names = None, *, number: int) -> Batch:
    """Take some milliseconds for a number; say it, and who took them."""
    await asyncio.sleep(0.004)
    return [sabir.assistant(f"{number} {os.getpid()}")]


class Desk(BaseContext):
    echo: BoundPolicy
    give_back: BoundPolicy
    tell_options: BoundPolicy
    double: BoundPolicy
    enlarge: BoundPolicy
    hold: BoundPolicy
    work: BoundPolicy

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        for policy in (echo, give_back, tell_options, double, enlarge, hold, work):
            setattr(self, policy.__name__, self._bind(policy))


class NewerDesk(BaseContext):
    """Another version: `echo` is another function here, and there is a policy more."""

    echo: BoundPolicy
    twice: BoundPolicy

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.echo = self._bind(tell_options)
        self.twice = self._bind(double)
