"""A server's connection, and the requests over it.

    open  ─▶ keeper, a task: enters the client · says so · waits to be told · leaves the client
    call  ─▶ client.call_tool ─▶ answer, or one of MCPFault

The SDK's clients live in task groups, which one task must enter and leave, and which cancel that task when a transport
breaks. So a separate task keeps the client: a failure there reaches a call as an error, and does not cancel the
caller's block. A client that its owner has entered is used as it is, and left open.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import ValidationError
from sabir.authoring import one_line

from sabir_mcp.contents import KINDS
from sabir_mcp.errors import AnswerInvalid, MCPFault, ServerLost, ServerRefused, ServerTimedOut
from sabir_mcp.servers import client_of, is_entered, shown

if TYPE_CHECKING:
    from mcp import MCPError
    from mcp.types import CallToolResult, ListToolsResult, Tool

    from sabir_mcp.servers import ServerLike

Answer = TypeVar("Answer")

logger = logging.getLogger("sabir")

LOST = ("Connection closed", "SSE stream", "Session terminated")
"""The beginnings of the SDK's messages for an ended connection; servers also use its error codes for other faults."""


class Limit(NamedTuple):
    """The seconds that an answer may take (None: no limit), and the setting with that limit."""

    seconds: float | None
    setting: str


class Connection:
    """One connection, with a limit for each call and one for the list of options."""

    def __init__(self, server: "ServerLike", timeout: float | None, connect_timeout: float) -> None:
        self.name = shown(server)
        self._client = client_of(server)
        self._call_limit, self._list_limit = Limit(timeout, "timeout"), Limit(connect_timeout, "connect_timeout")
        self._keeper: asyncio.Task[None] | None = None
        self._entered, self._leave = asyncio.Event(), asyncio.Event()

    async def open(self) -> None:
        """Enter the client, unless its owner did. The SDK's exceptions pass through."""
        if not is_entered(self._client):
            self._keeper = asyncio.create_task(self._keep())
            entered = asyncio.create_task(self._entered.wait())
            try:
                await asyncio.wait({self._keeper, entered}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                entered.cancel()
            if not self._entered.is_set():
                await self._keeper  # which raises
        if (information := self._client.server_info) is not None:
            self.name = information.name

    async def close(self) -> None:
        """Leave the client, if it was entered here. A server that died before is logged, and is not an error."""
        self._leave.set()
        if self._keeper is None:
            return
        if not self._entered.is_set():
            self._keeper.cancel()
        await asyncio.wait({self._keeper})
        error = None if self._keeper.cancelled() else self._keeper.exception()
        if error is not None and self._entered.is_set():
            logger.warning("MCP server %r: the connection ended: %s", self.name, reason_of(error))

    async def _keep(self) -> None:
        async with self._client:
            self._entered.set()
            await self._leave.wait()

    @property
    def instructions(self) -> str:
        """The server's instructions for models; may be empty."""
        return self._client.instructions or ""

    async def list_options(self) -> "list[Tool]":
        """All tools of the server. Raises MCPFault if it does not answer in time, or fails."""
        return await self._ask("a request for its options", self._pages(), self._list_limit)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> "CallToolResult":
        """The server's answer to one call. Raises MCPFault if there is none."""
        return await self._ask(f"a call of {name!r}", self._client.call_tool(name, dict(arguments)), self._call_limit)

    async def _pages(self) -> "list[Tool]":
        found: list[Tool] = []
        asked: set[str] = set()
        cursor: str | None = None
        while True:
            page = await self._page(cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return found
            if cursor in asked:
                raise AnswerInvalid(self._say(f"its list of options goes round in a circle: {cursor!r} came twice"))
            asked.add(cursor)

    async def _page(self, cursor: str | None) -> "ListToolsResult":
        from mcp import Client
        from mcp.types import PaginatedRequestParams

        if isinstance(self._client, Client):
            return await self._client.list_tools(cursor=cursor, cache_mode="refresh")
        return await self._client.list_tools(params=PaginatedRequestParams(cursor=cursor))

    async def _ask(self, what: str, answer: Coroutine[Any, Any, Answer], limit: Limit) -> Answer:
        from mcp import MCPError

        if self._leave.is_set():
            answer.close()
            raise ServerLost(self._say("its block was left; call options within `async with options_from_mcp(…)`"))
        clock = asyncio.timeout(limit.seconds)
        try:
            async with clock:
                return await answer
        except TimeoutError as error:
            waited = f" within {limit.seconds:g} s; give it longer by {limit.setting}=" if clock.expired() else ""
            raise ServerTimedOut(self._say(f"no answer to {what}{waited}")) from error
        except MCPError as error:
            raise self._fault(what, error) from error
        except ValidationError as error:
            raise AnswerInvalid(self._say(f"its answer to {what} {_misfit(error)}")) from error
        except RuntimeError as error:  # the SDK's error for an answer that does not fit the option's output schema
            raise AnswerInvalid(self._say(f"{what}: {one_line(str(error))}")) from error

    def _fault(self, what: str, error: "MCPError") -> MCPFault:
        from mcp.types import REQUEST_TIMEOUT

        if error.message.startswith(LOST):
            return ServerLost(self._say(f"the connection ended before {what} was answered: {error.message}"))
        if error.code == REQUEST_TIMEOUT:
            return ServerTimedOut(self._say(f"no answer to {what}: {error.message}"))
        return ServerRefused(self._say(f"it refuses {what}: {error.message} ({error.code})"))

    def _say(self, text: str) -> str:
        return f"MCP server {self.name!r}: {text}"


def reason_of(error: BaseException) -> str:
    """The first error within groups of them, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _misfit(error: ValidationError) -> str:
    """A description of an answer's content that the protocol does not allow."""
    found = error.errors(include_url=False, include_context=False)
    types = [str(each["input"]) for each in found if "content" in each["loc"] and each["loc"][-1] == "type"]
    kinds = [kind for kind in types if kind not in KINDS]
    if kinds:
        return f"holds content of kind {kinds[0]!r}, which the protocol does not know"
    places = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
    return f"is none that the protocol allows: {one_line(places, 300)}"
