"""The options of an MCP server: its tools, chosen and named, each as an option that calls the server.

async with options_from_mcp(server, only=…, prefix=…) as options ─▶ sabir.answer(reply, options)
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from pydantic_core import from_json
from sabir import Option, SettingsInvalid
from sabir.authoring import JSONValue, one_line
from sabir.errors import OptionInvalid

from sabir_mcp.connection import ListedTool, ServerConnection, reason_of
from sabir_mcp.contents import ResultPart, option_value
from sabir_mcp.errors import MCPFault, ServerUnreachable
from sabir_mcp.limits import Limits

if TYPE_CHECKING:
    from sabir_mcp.servers import ServerLike

OptionValue: TypeAlias = JSONValue | list[ResultPart]


class MCPOptions(Sequence[Option]):
    """The options of an MCP server, as a sequence for `options=` and `sabir.answer`. Created by `options_from_mcp`.

    Vendors and MCP call an option a tool. The options work until the `async with` block ends. A later direct call of an
    option raises ServerLost. `sabir.answer` does not raise it, but returns an error result for the call.
    """

    def __init__(
        self, connection: ServerConnection, only: frozenset[str] | None, exclude: frozenset[str], prefix: str
    ) -> None:
        self._connection = connection
        self._only, self._exclude, self._prefix = only, exclude, prefix
        self._options: tuple[Option, ...] = ()

    @property
    def server(self) -> str:
        """The server's own name, shortened to 100 characters. Without one, a name such as its host or command."""
        return self._connection.name

    @property
    def instructions(self) -> str:
        """The server's instructions for models, or "".

        sabir does not send them. Put them into a system message only if you trust the server.
        """
        return self._connection.instructions

    async def refresh(self) -> None:
        """List the server's options again, and replace this sequence's contents.

        If the server reports a changed list, nothing is refreshed until you call `refresh`. Raises MCPFault if the
        server does not answer within `connect_timeout` or answers wrongly, and OptionInvalid for a name in `only` or
        `exclude` that is not offered any more, or for a chosen tool that cannot be an option. After an exception, the
        options are unchanged.
        """
        tools: dict[str, ListedTool] = {}
        for tool in await self._connection.list_options():
            tools.setdefault(tool.name, tool)
        if unknown := sorted(((self._only or frozenset()) | self._exclude) - set(tools)):
            known = one_line(", ".join(sorted(tools)), 2_000) or "none"
            raise OptionInvalid(f"MCP server {self.server!r} offers no option {unknown[0]!r}; it offers: {known}")
        chosen = (set(tools) if self._only is None else self._only) - self._exclude
        self._options = tuple(self._build_option(tool) for name, tool in tools.items() if name in chosen)

    def _build_option(self, tool: ListedTool) -> Option:
        async def ask(**arguments: Any) -> OptionValue:
            return option_value(await self._connection.call(tool.name, arguments))

        return Option.from_schema(f"{self._prefix}{tool.name}", tool.description, from_json(tool.schema), ask)

    @overload
    def __getitem__(self, index: int) -> Option: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Option, ...]: ...

    def __getitem__(self, index: int | slice) -> Option | tuple[Option, ...]:
        """Return the option at an index, or the options of a slice."""
        return self._options[index]

    def __len__(self) -> int:
        """Return the number of options."""
        return len(self._options)

    def __repr__(self) -> str:
        """Return `<options of MCP server 'name': …>` with the names of the options."""
        return f"<options of MCP server {self.server!r}: {', '.join(each.name for each in self) or 'none'}>"


@asynccontextmanager
async def options_from_mcp(
    server: "ServerLike",
    *,
    only: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    prefix: str = "",
    timeout: float | None = 60.0,
    connect_timeout: float = 30.0,
    limits: Limits | None = None,
) -> AsyncIterator[MCPOptions]:
    """Connect to an MCP server and return its options, which work inside the `async with` block.

        async with options_from_mcp("python -m my_server") as options:
            reply = await llm.complete(chat, options=options)
            chat += [*reply.messages, *await sabir.answer(reply, options)]

    `server` is a command (a string, or a list of words) that speaks the protocol by stdin and stdout, an http(s) URL,
    or an object of the SDK: StdioServerParameters, a transport, a server in this process, a Client, a ClientSession. A
    client or session that its owner has entered stays open.

    `only` and `exclude` choose options by the server's own names; `only=None` means all options. `prefix` is added
    before each name, so that two servers may offer the same name. `timeout` is the seconds for each call, or None for
    no limit. `connect_timeout` is the seconds for starting the server, connecting, and listing all options, together.
    `limits` are the largest amounts that the server may send; None means the defaults of `Limits`.

    Raises ServerUnreachable if the server cannot be reached or does not send a valid list of its options in time,
    SettingsInvalid for an invalid argument, and OptionInvalid for a name in `only` or `exclude` that is not offered, or
    for a chosen tool that cannot be an option. Later faults are raised by the options, so `sabir.answer` returns them
    as error results.
    """
    chosen = _check_name_list("only", only), _check_name_list("exclude", exclude) or frozenset()
    connection = ServerConnection(server, timeout, connect_timeout, limits or Limits())
    options = MCPOptions(connection, *chosen, prefix)
    try:
        await _connect_and_list(connection, options, connect_timeout)
        yield options
    except asyncio.CancelledError:
        connection.hurry()
        raise
    finally:
        await connection.close()


async def _connect_and_list(connection: ServerConnection, options: MCPOptions, seconds: float) -> None:
    """Connect and list the options within `seconds`. Raises ServerUnreachable, and OptionInvalid."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await connection.open()
            await options.refresh()
    except OptionInvalid:
        raise
    except MCPFault as error:
        connection.hurry()
        raise ServerUnreachable(str(error)) from error
    except Exception as error:
        connection.hurry()
        late = f"did not list its options within {seconds:g} s; raise connect_timeout="
        reason = late if limit.expired() else reason_of(error)
        raise ServerUnreachable(f"MCP server {connection.name!r} cannot be reached: {reason}") from error


def _check_name_list(setting: str, names: Iterable[str] | None) -> frozenset[str] | None:
    if isinstance(names, str):
        raise SettingsInvalid(f"{setting} is the string {names!r}; pass a list: {setting}=[{names!r}]")
    return None if names is None else frozenset(names)
