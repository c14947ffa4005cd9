"""The options of an MCP server: its tools, chosen and named, each as an option that calls the server.

async with options_from_mcp(server, only=…, prefix=…) as options ─▶ sabir.answer(reply, options)
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from sabir import Option, SettingsInvalid
from sabir.authoring import JSONValue
from sabir.errors import OptionInvalid

from sabir_mcp.connection import Connection, MCPFault, ServerUnreachable, reason_of
from sabir_mcp.contents import ResultPart, returned_by

if TYPE_CHECKING:
    from mcp.types import Tool

    from sabir_mcp.connection import ServerLike

Returned: TypeAlias = JSONValue | list[ResultPart]


class MCPOptions(Sequence[Option]):
    """The options of a server, in its order: a sequence, to be offered and to be answered with.

    They work until their block is left.
    """

    def __init__(
        self, connection: Connection, only: frozenset[str] | None, exclude: frozenset[str], prefix: str
    ) -> None:
        self._connection = connection
        self._only, self._exclude, self._prefix = only, exclude, prefix
        self._options: tuple[Option, ...] = ()

    @property
    def server(self) -> str:
        """The server's own name."""
        return self._connection.name

    @property
    def instructions(self) -> str:
        """The server's instructions for models, for a system message if you trust it; may be empty."""
        return self._connection.instructions

    async def refresh(self) -> None:
        """Ask the server for its options again, and replace this sequence's contents.

        A server's notice that its list changed is not waited for: ask when you expect one. Raises MCPFault, and
        OptionInvalid for a chosen name that is offered no more; the options then stay as they were.
        """
        offered: dict[str, Tool] = {}
        for each in await self._connection.list_options():
            offered.setdefault(each.name, each)
        if unknown := sorted(((self._only or frozenset()) | self._exclude) - set(offered)):
            known = ", ".join(sorted(offered)) or "none"
            raise OptionInvalid(f"MCP server {self.server!r} offers no option {unknown[0]!r}; it offers: {known}")
        taken = (set(offered) if self._only is None else self._only) - self._exclude
        self._options = tuple(self._option(said) for name, said in offered.items() if name in taken)

    def _option(self, said: "Tool") -> Option:
        async def ask(**arguments: Any) -> Returned:
            return returned_by(await self._connection.call(said.name, arguments))

        description = said.description or said.title or ""
        return Option.from_schema(f"{self._prefix}{said.name}", description, said.input_schema, ask)

    @overload
    def __getitem__(self, index: int) -> Option: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Option, ...]: ...

    def __getitem__(self, index: int | slice) -> Option | tuple[Option, ...]:
        """An option by its place."""
        return self._options[index]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._options)

    def __repr__(self) -> str:
        """The server's name and the options' names."""
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
) -> AsyncIterator[MCPOptions]:
    """The options of an MCP server, for as long as the block lasts.

    `server` is a command (a string, or a list of words) that speaks the protocol by stdin and stdout, an http(s) URL,
    or an object of the SDK: StdioServerParameters, a transport, a server in this process, a Client, a ClientSession. A
    client or session that is entered already stays its owner's.

    `only` and `exclude` choose by the server's own names; `prefix` stands before each, so that two servers may offer
    the same. Seconds: `timeout` for each call, None for as long as it takes; `connect_timeout` for starting, greeting
    and listing.

    Raises ServerUnreachable, SettingsInvalid for an invalid server, OptionInvalid for a name that is not offered. Later
    faults are raised by the options, and so become error results.
    """
    chosen = _names("only", only), _names("exclude", exclude) or frozenset()
    connection = Connection(server, timeout, connect_timeout)
    options = MCPOptions(connection, *chosen, prefix)
    try:
        await _open(connection, options, connect_timeout)
        yield options
    finally:
        await connection.close()


async def _open(connection: Connection, options: MCPOptions, seconds: float) -> None:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await connection.open()
            await options.refresh()
    except OptionInvalid:
        raise
    except MCPFault as error:
        raise ServerUnreachable(str(error)) from error
    except Exception as error:
        late = f"no list of its options within {seconds:g} s; raise connect_timeout="
        said = late if limit.expired() else reason_of(error)
        raise ServerUnreachable(f"MCP server {connection.name!r} is not to be had: {said}") from error


def _names(which: str, given: Iterable[str] | None) -> frozenset[str] | None:
    if isinstance(given, str):
        raise SettingsInvalid(f"{which} is the string {given!r}; give a list: {which}=[{given!r}]")
    return None if given is None else frozenset(given)
