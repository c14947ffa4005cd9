"""A server, its connection, the requests over it, and their errors.

    "python -m my_server" · ["cmd", "arg"]       ──▶ a process of its own, by stdin and stdout
    "https://host/mcp"                           ──▶ streamable HTTP
    StdioServerParameters · transport · server   ──▶ as the SDK's own Client takes them
    Client · ClientSession                       ──▶ as they are

A server is shown by its command or its host alone: arguments and paths may hold keys, and errors go to models.

    open  ─▶ keeper, a task: enters the client · says so · waits to be told · leaves the client
    call  ─▶ client.call_tool ─▶ answer, or one of MCPFault

The SDK's clients live in task groups, which one task must enter and leave, and which cancel that task when a transport
breaks. So a separate task keeps the client: a failure there reaches a call as an error, and does not cancel the
caller's block. A client that its owner has entered is used as it is, and left open.

Each error but ServerUnreachable becomes the error result of its call:

    MCPFault
    ├── ServerUnreachable   no connection, or no list of options: raised where the block is entered
    ├── ServerLost          the connection ended, or the block was left
    ├── ServerTimedOut      no answer in time
    ├── ServerRefused       the server answered with a protocol error
    └── AnswerInvalid       the protocol or the option's own schema does not allow the answer

The class's name is the result's `error_type`, its message the `error_message` that a model reads. A failure that the
option itself reports is core's OptionFailed, of type `option_failed`.
"""

import asyncio
import logging
import os
import re
import shlex
from collections.abc import Coroutine, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import ValidationError
from sabir.authoring import one_line
from sabir.errors import SabirError, SettingsInvalid

from sabir_mcp.contents import KINDS

if TYPE_CHECKING:
    from mcp import Client, ClientSession, MCPError, StdioServerParameters
    from mcp.client import Transport
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer
    from mcp.types import CallToolResult, Tool

    ServerLike: TypeAlias = (
        str | Sequence[str] | StdioServerParameters | Transport | Server[Any] | MCPServer | Client | ClientSession
    )

Answer = TypeVar("Answer")

logger = logging.getLogger("sabir")

LOST = ("Connection closed", "SSE stream", "Session terminated")
"""The beginnings of the SDK's messages for an ended connection; servers also use its error codes for other faults."""


EXPECTED = "a command, an http(s) URL, or an object of the SDK: parameters, transport, server, client or session"


class MCPFault(SabirError):
    """The root of the errors of MCP servers."""


class ServerUnreachable(MCPFault, ConnectionError):
    """The server could not be started, reached, or asked for its options."""


class ServerLost(MCPFault, ConnectionError):
    """The connection ended before an answer came. It is not made again: enter a new block."""


class ServerTimedOut(MCPFault, TimeoutError):
    """The server gave no answer in time; it was told that nobody waits any longer."""


class ServerRefused(MCPFault):
    """The server answered a call with a protocol error: an option that it does not have, or a fault of its own."""


class AnswerInvalid(MCPFault, ValueError):
    """The server's answer does not fit the protocol, or does not fit the option's own output schema."""


class Connection:
    """One connection, with a limit for each call and one for the list of options."""

    def __init__(self, server: "ServerLike", timeout: float | None, connect_timeout: float) -> None:
        self.name = shown(server)
        self._client = client_of(server)
        self._seconds = {"timeout": timeout, "connect_timeout": connect_timeout}
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
        return await self._ask("a request for its options", self._pages(), "connect_timeout")

    async def call(self, name: str, arguments: Mapping[str, Any]) -> "CallToolResult":
        """The server's answer to one call. Raises MCPFault if there is none."""
        return await self._ask(f"a call of {name!r}", self._client.call_tool(name, dict(arguments)), "timeout")

    async def _pages(self) -> "list[Tool]":
        from mcp import Client
        from mcp.types import PaginatedRequestParams

        found: list[Tool] = []
        asked: set[str | None] = set()
        cursor: str | None = None
        while cursor not in asked:
            asked.add(cursor)
            if isinstance(self._client, Client):
                page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
            else:
                page = await self._client.list_tools(params=PaginatedRequestParams(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise AnswerInvalid(self._say(f"its list of options goes round in a circle: {cursor!r} came twice"))

    async def _ask(self, what: str, answer: Coroutine[Any, Any, Answer], setting: str) -> Answer:
        from mcp import MCPError

        if self._leave.is_set():
            answer.close()
            raise ServerLost(self._say("its block was left; call options within `async with options_from_mcp(…)`"))
        seconds = self._seconds[setting]  # None: no limit
        clock = asyncio.timeout(seconds)
        try:
            async with clock:
                return await answer
        except TimeoutError as error:
            waited = f" within {seconds:g} s; give it longer by {setting}=" if clock.expired() else ""
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


def client_of(server: "ServerLike") -> "Client | ClientSession":
    """The client that reaches a server, not yet entered unless it was given.

    Raises SettingsInvalid for any other object.
    """
    from mcp import Client, ClientSession
    from mcp.types import Implementation

    if isinstance(server, Client | ClientSession):
        return server
    return Client(_target(server), client_info=Implementation(name="sabir-mcp", version=version("sabir-mcp")))


def is_entered(client: "Client | ClientSession") -> bool:
    """Whether the client's owner has entered it, and so will leave it; always true for a session."""
    from mcp import ClientSession

    if isinstance(client, ClientSession):
        return True
    try:
        return client.session is not None
    except RuntimeError:  # the SDK's error for a client that is not entered
        return False


def shown(server: "ServerLike") -> str:
    """A server's name in errors before its own name is known."""
    if isinstance(server, str) and _is_url(server):
        return urlsplit(server).hostname or "server"
    words = _words(server) if isinstance(server, str | Sequence) else []
    command = words[0] if words else getattr(server, "command", None)
    return os.path.basename(command) if isinstance(command, str) else str(getattr(server, "name", "server"))


def _target(server: Any) -> Any:
    """What the SDK's Client takes; Any, as that is a union of unlike things."""
    from mcp import StdioServerParameters
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    if isinstance(server, str) and _is_url(server):
        return server
    if isinstance(server, str | Sequence):
        words = _words(server)
        if not words or not words[0] or "://" in words[0]:
            raise SettingsInvalid(f"server is {one_line(repr(server), 60)}; expected {EXPECTED}")
        return StdioServerParameters(command=words[0], args=words[1:])
    if isinstance(server, StdioServerParameters | Server | MCPServer) or hasattr(server, "__aenter__"):
        return server
    raise SettingsInvalid(f"server is of type {type(server).__name__}; expected {EXPECTED}")


def _is_url(text: str) -> bool:
    return re.match(r"https?://", text, re.IGNORECASE) is not None


def _words(command: str | Sequence[Any]) -> list[str]:
    if not isinstance(command, str):
        return cast(list[str], list(command))
    try:
        return shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        raise SettingsInvalid(f"command {one_line(command, 60)!r} cannot be split: {error}; give a list") from None
