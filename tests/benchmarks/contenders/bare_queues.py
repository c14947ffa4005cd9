"""The limit of a message between actors: two queues of asyncio, and one pydantic validation each way.

Request and response are sabir's own models; nobody looks into their data.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from sabir_actors import Message, Response

from tests.benchmarks.contenders.doing import awaiting
from tests.benchmarks.contenders.threads import ANSWERED, request
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}", "{testing}", "{actors}")


class EvaluationIO:
    """A task that takes requests from one queue, and puts responses into another."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[Message] = asyncio.Queue()
        self.responses: asyncio.Queue[Response] = asyncio.Queue()
        self.serving: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Answer each."""
        while True:
            message = await self.requests.get()
            said: dict[str, Any] = {"sender": message.receiver, "receiver": message.sender, "message_id": message.id}
            self.responses.put_nowait(Response(type="AGENT_RESPONSE", data=ANSWERED, **said))

    async def ask(self) -> Response:
        """One request, and its response."""
        self.serving = self.serving or asyncio.ensure_future(self.serve())
        self.requests.put_nowait(request())
        return await self.responses.get()


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {"actor_message": lambda given: awaiting(EvaluationIO().ask)}
EVIDENCE = {"actor_message": lambda given, response: response.data["result"]["response"]}
