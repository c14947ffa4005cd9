"""The connection to a server, and the requests over it.

    open  ─▶ keeper, a task: enters the client ─▶ waits until the block is left ─▶ leaves the client
    call  ─▶ a task: sends the request ─▶ result, or an MCPFault

The SDK's clients use task groups, which one task must enter and leave, and which cancel that task when a transport
breaks. So a separate task, the keeper, enters the client: a failure there reaches a call as an error, and does not
cancel the caller's block. A client that its owner has entered is not entered again, and stays open.

A request runs in a task too, because the SDK may take seconds to cancel a request whose server does not read. The
caller gets its error at once, and the task ends on its own.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json
from sabir.authoring import one_line

from sabir_mcp.contents import KINDS
from sabir_mcp.errors import AnswerInvalid, AnswerTooLarge, MCPFault, ServerLost, ServerRefused, ServerTimedOut
from sabir_mcp.limits import Excesses, Limits, excess_text
from sabir_mcp.servers import client_of, is_entered, label_of

if TYPE_CHECKING:
    from mcp import ClientSession, MCPError
    from mcp.types import CallToolResult, Tool

    from sabir_mcp.servers import ServerLike

Answer = TypeVar("Answer")

logger = logging.getLogger("sabir")

LOST = ("Connection closed", "SSE stream", "Session terminated")
"""The beginnings of the SDK's messages for an ended connection. The error codes do not show it, because servers use
the same codes for other faults."""
MOST_SHOWN = 1_000
"""The maximum number of characters of a server's error message that an error repeats."""
CLOSING = 5.0
"""How many seconds leaving the client may take before the keeper is cancelled."""
CLOSING_IN_A_HURRY = 0.5
"""How many seconds leaving the client may take after a failure, and when the block is cancelled."""


class ListedTool(NamedTuple):
    """A tool as the server lists it. `schema` is the JSON text of its input schema."""

    name: str
    description: str
    schema: bytes


class ServerConnection:
    """One connection to a server. `name` is the server's name in errors.

    `timeout` is the time limit for each call in seconds, None for no limit. `connect_timeout` is the time limit for the
    list of options.
    """

    def __init__(self, server: "ServerLike", timeout: float | None, connect_timeout: float, limits: Limits) -> None:
        self.name = label_of(server)
        self._limits = limits
        self._excesses = Excesses()
        self._client, self._hurry_server = client_of(server, limits, self._excesses)
        self._seconds = {"timeout": timeout, "connect_timeout": connect_timeout}
        self._keeper: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[Any]] = set()
        self._entered, self._leave = asyncio.Event(), asyncio.Event()
        self._closing = CLOSING

    async def open(self) -> None:
        """Enter the client, unless its owner has entered it. Raises AnswerTooLarge, and the errors of the SDK."""
        if not is_entered(self._client):
            self._keeper = asyncio.create_task(self._run_client())
            entered = asyncio.create_task(self._entered.wait())
            try:
                await asyncio.wait({self._keeper, entered}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                entered.cancel()
            if not self._entered.is_set():
                await self._raise_failure(self._keeper)
        if (information := self._client.server_info) is not None:
            self.name = one_line(information.name, 100)

    async def _raise_failure(self, keeper: "asyncio.Task[None]") -> None:
        try:
            await keeper
        except Exception as error:
            if excess := self._excesses.fatal or self._excesses.text_in(str(error)):
                raise AnswerTooLarge(self._with_name(excess)) from error
            raise

    def hurry(self) -> None:
        """Give the client and the server little time to end when the connection closes."""
        self._closing = CLOSING_IN_A_HURRY
        self._hurry_server()

    async def close(self) -> None:
        """Leave the client if it was entered here, and cancel all requests.

        If the connection failed before, or does not close in time, only a warning is logged.
        """
        self._leave.set()
        for request in self._requests:
            request.cancel()
        if self._keeper is None:
            return
        if not self._entered.is_set():
            self._keeper.cancel()
        try:
            await asyncio.wait({self._keeper}, timeout=self._closing)
            if not self._keeper.done():
                self._keeper.cancel()
                await asyncio.wait({self._keeper}, timeout=self._closing)
        except asyncio.CancelledError:  # for example because the event loop is being closed: do not wait
            self.hurry()
            self._keeper.cancel()
            raise
        self._log_failure(self._keeper)

    def _log_failure(self, keeper: "asyncio.Task[None]") -> None:
        if not keeper.done():
            logger.warning("MCP server %r: the connection does not close; it is abandoned", self.name)
        elif not keeper.cancelled() and (error := keeper.exception()) is not None and self._entered.is_set():
            logger.warning("MCP server %r: the connection ended: %s", self.name, reason_of(error))

    async def _run_client(self) -> None:
        async with self._client:
            self._entered.set()
            await self._leave.wait()

    @property
    def instructions(self) -> str:
        """The server's instructions for models; "" without instructions."""
        return self._client.instructions or ""

    @property
    def _session(self) -> "ClientSession":
        from mcp import ClientSession

        return self._client if isinstance(self._client, ClientSession) else self._client.session

    async def list_options(self) -> list[ListedTool]:
        """Return all tools of the server, from all pages of its list.

        Raises MCPFault if the server does not answer in time, exceeds a limit, or answers with an error.
        """
        return await self._await_answer("a request for its options", self._list_tools(), "connect_timeout")

    async def call(self, name: str, arguments: Mapping[str, Any]) -> "CallToolResult":
        """Call a tool of the server, and return the result. Raises MCPFault if there is no valid answer in time."""
        return await self._await_answer(f"a call of {name!r}", self._call_tool(name, dict(arguments)), "timeout")

    async def _call_tool(self, name: str, arguments: dict[str, Any]) -> "CallToolResult":
        from mcp import MCPError
        from mcp.types import HEADER_MISMATCH

        from sabir_mcp.calls import call_tool

        try:
            result = await call_tool(self._session, name, arguments)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
            await self._list_tools()  # reading the list tells the SDK which headers a call needs
            result = await call_tool(self._session, name, arguments)
        if len(result.content) > self._limits.parts:
            self._raise_excess("content blocks in one result", "parts", self._limits.parts)
        return result

    async def _list_tools(self) -> list[ListedTool]:
        from mcp.types import PaginatedRequestParams

        limits = self._limits
        listed: list[ListedTool] = []
        cursors: set[str | None] = set()
        cursor: str | None = None
        size = 0
        while cursor not in cursors:
            cursors.add(cursor)
            if len(cursors) > limits.tools:
                self._raise_excess("pages of tools", "tools", limits.tools)
            page = await self._session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            if len(listed) + len(page.tools) > limits.tools:
                self._raise_excess("tools", "tools", limits.tools)
            for tool in page.tools:
                listed.append(_read_tool(tool))
                size += sum(map(len, listed[-1]))
            if size > limits.message_bytes:
                self._raise_excess("bytes of schemas and descriptions", "message_bytes", limits.message_bytes)
            cursor = page.next_cursor
            if cursor is None:
                return listed
        reason = f"its list of options repeats itself: the cursor {cursor!r:.100} came twice"
        raise AnswerInvalid(self._with_name(reason))

    async def _await_answer(self, what: str, answer: Coroutine[Any, Any, Answer], setting: str) -> Answer:
        """Return the answer to a request, described by `what`. Raises MCPFault if there is no valid answer in time.

        `setting` is the name of the time limit: "timeout" or "connect_timeout".
        """
        from mcp import MCPError

        if self._leave.is_set():
            answer.close()
            reason = "its `async with options_from_mcp(…)` block has ended; call options inside the block"
            raise ServerLost(self._with_name(reason))
        if self._excesses.fatal:
            answer.close()
            raise ServerLost(self._with_name(f"the connection was closed: {self._excesses.fatal}"))
        seconds = self._seconds[setting]  # None: no limit
        request = asyncio.create_task(answer)
        self._requests.add(request)
        request.add_done_callback(self._discard_request)
        try:
            await asyncio.wait({request}, timeout=seconds)
        finally:
            request.cancel()  # no effect if the request is done
        if not request.done():
            reason = f"no answer to {what} within {seconds:g} s; allow more time with {setting}="
            raise ServerTimedOut(self._with_name(reason))
        try:
            return request.result()
        except asyncio.CancelledError:
            raise ServerLost(self._with_name(f"the connection ended before {what} was answered")) from None
        except TimeoutError as error:
            raise ServerTimedOut(self._with_name(f"no answer to {what}")) from error
        except MCPError as error:
            raise self._convert_error(what, error) from error
        except ValidationError as error:
            raise AnswerInvalid(self._with_name(f"its answer to {what} {_describe_misfit(error)}")) from error
        except RuntimeError as error:  # the server asks for input without end
            raise AnswerInvalid(self._with_name(f"{what}: {one_line(str(error), MOST_SHOWN)}")) from error

    def _discard_request(self, request: "asyncio.Task[Any]") -> None:
        """Remove a finished request. Its error is read, because asyncio logs errors of tasks that nothing reads."""
        self._requests.discard(request)
        if not request.cancelled():
            request.exception()

    def _convert_error(self, what: str, error: "MCPError") -> MCPFault:
        from mcp.types import REQUEST_TIMEOUT

        text = one_line(error.message, MOST_SHOWN)
        if excess := self._excesses.fatal or self._excesses.text_in(error.message):
            return AnswerTooLarge(self._with_name(f"its answer to {what} is too large: {excess}"))
        if error.message.startswith(LOST):
            return ServerLost(self._with_name(f"the connection ended before {what} was answered: {text}"))
        if error.code == REQUEST_TIMEOUT:
            return ServerTimedOut(self._with_name(f"no answer to {what}: {text}"))
        return ServerRefused(self._with_name(f"it refuses {what}: {text} ({error.code})"))

    def _raise_excess(self, what: str, name: str, limit: int) -> NoReturn:
        raise AnswerTooLarge(self._with_name(excess_text(what, name, limit)))

    def _with_name(self, text: str) -> str:
        return f"MCP server {self.name!r}: {text}"


def _read_tool(tool: "Tool") -> ListedTool:
    schema = to_json(tool.input_schema, inf_nan_mode="constants")
    return ListedTool(tool.name, tool.description or tool.title or "", schema)


def reason_of(error: BaseException) -> str:
    """Return the class and the message of an error in one line; for a group, of the first error in the group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _describe_misfit(error: ValidationError) -> str:
    """Return a text, beginning with a verb, that says why an answer does not fit the protocol."""
    faults = error.errors(include_url=False, include_context=False)
    types = [str(each["input"]) for each in faults if "content" in each["loc"] and each["loc"][-1] == "type"]
    kinds = [kind for kind in types if kind not in KINDS]
    if kinds:
        return f"has content of type {kinds[0]!r:.100}, which the protocol does not define"
    places = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in faults)
    return f"does not follow the protocol: {one_line(places, 300)}"
