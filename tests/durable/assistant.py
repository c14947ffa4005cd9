"""The program of the durable tests: three turns of a model, two options each but in the last.

    main ─▶ model ─▶ add(3), shout("one") ─▶ model ─▶ add(4), shout("two") ─▶ model ─▶ "done"

What has an effect writes a line into a journal, at once and for good: so a test sees what ran, also in a process that
was killed.
"""

import asyncio
import os
import random
from pathlib import Path

import sabir
from sabir import Message, OptionCallPayload
from sabir.base.values import JSONValue
from sabir_runtime import BaseContext, BaseRunner, Batch, BoundPolicy

Names = list[str] | None
"""Options, as policies are given them."""

TURNS = (("one", 3), ("two", 4))


class Journal:
    """Lines that outlive the process that writes them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, line: str) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


def call(name: str, turn: int, **arguments: JSONValue) -> Message:
    payload = OptionCallPayload(invocation_id=f"{name}-{turn}", option_name=name, arguments=arguments)
    return Message(policy="model", payload=payload)


class Assistant(BaseContext):
    main: BoundPolicy
    model: BoundPolicy
    add: BoundPolicy
    shout: BoundPolicy

    def __init__(self, runner: BaseRunner, journal: Journal) -> None:
        super().__init__(runner)
        self._journal = journal
        self.main = self._bind(main)
        self.model = self._bind(model)
        self.add = self._bind(add)
        self.shout = self._bind(shout)


async def main(ctx: Assistant, observations: Batch, options: Names = None) -> Batch:
    history = list(observations)
    while True:
        batch = await ctx.model(history, ["add", "shout"])
        history += batch
        if all(message.kind == "parts" for message in batch):
            return history[len(observations) :]


async def model(ctx: Assistant, observations: Batch, options: Names = None) -> Batch:
    """A model that counts the results it sees."""
    turn = sum(message.kind == "option_result" for message in observations) // 2
    ask(ctx._journal, turn)
    if turn == len(TURNS):
        return [sabir.assistant("done", policy="model")]
    word, number = TURNS[turn]
    return [call("add", turn, number=number), call("shout", turn, word=word)]


def ask(journal: Journal, turn: int) -> None:
    """The call of the provider."""
    journal.write(f"asked {turn}")


async def add(ctx: Assistant, observations: Batch, options: Names = None, *, number: int) -> Batch:
    """Add one.

    Args:
        number: To what.
    """
    work(ctx._journal, f"add {number}")
    return [sabir.assistant(str(number + 1), policy="add")]


async def shout(ctx: Assistant, observations: Batch, options: Names = None, *, word: str) -> Batch:
    """Shout.

    Args:
        word: What.
    """
    work(ctx._journal, f"shout {word}")
    return [sabir.assistant(word.upper(), policy="shout")]


def work(journal: Journal, what: str) -> None:
    """The effect of an option."""
    journal.write(what)


class Branches(BaseContext):
    """Three branches that run at once, of four calls each, in whatever order they come."""

    main: BoundPolicy
    step: BoundPolicy

    def __init__(self, runner: BaseRunner, journal: Journal) -> None:
        super().__init__(runner)
        self.main = self._bind(branches)
        self.step = self._bind(step)


async def branches(ctx: Branches, observations: Batch, options: Names = None) -> list[Message]:
    async def branch(name: str) -> Batch:
        return [message for index in range(4) for message in await ctx.step(observations, name=f"{name}{index}")]

    together = await asyncio.gather(branch("a"), branch("b"), branch("c"))
    return [message for part in together for message in part]


async def step(ctx: Branches, observations: Batch, options: Names = None, *, name: str) -> Batch:
    for _ in range(random.randrange(50)):
        await asyncio.sleep(0)
    return [sabir.assistant(name, policy="step")]
