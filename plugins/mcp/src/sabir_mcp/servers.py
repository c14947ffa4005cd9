"""The ways to name a server, and the SDK's client for each.

    "python -m my_server" · ["cmd", "arg"] · StdioServerParameters  ──▶ a process; its bytes are checked
    "https://host/mcp"                                              ──▶ streamable HTTP; its bytes are checked
    transport                                                       ──▶ used unchanged; its messages are checked
    server · Client · ClientSession                                 ──▶ used unchanged; only the SDK checks messages

Errors name a server by its command or its host only, because arguments and paths may contain keys, and models read the
errors.
"""

import os
import re
import shlex
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

from sabir.authoring import one_line
from sabir.errors import SettingsInvalid

from sabir_mcp.limits import Excesses, Limits

if TYPE_CHECKING:
    from mcp import Client, ClientSession, StdioServerParameters
    from mcp.client import Transport
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    ServerLike: TypeAlias = (
        str | Sequence[str] | StdioServerParameters | Transport | Server[Any] | MCPServer | Client | ClientSession
    )

EXPECTED = "a command, an http(s) URL, or an object of the SDK: parameters, transport, server, client or session"


def client_of(
    server: "ServerLike", limits: Limits, excesses: Excesses
) -> "tuple[Client | ClientSession, Callable[[], None]]":
    """Return the SDK's client for a server, and a function that makes the server exit faster when the client closes.

    Exceeded limits are recorded in `excesses`. If `server` is a Client or ClientSession, it is returned unchanged.
    Otherwise the client is new, and not entered yet. Raises SettingsInvalid for an object that does not name a server.
    """
    from mcp import Client, ClientSession, StdioServerParameters
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer
    from mcp.types import Implementation

    from sabir_mcp.http import http_transport
    from sabir_mcp.stdio import ProcessTransport
    from sabir_mcp.streams import CheckedTransport, StoredResults

    if isinstance(server, Client | ClientSession):
        return server, _do_nothing
    target, hurry, results = _find_target(server), _do_nothing, StoredResults()
    if isinstance(target, StdioServerParameters):
        target = ProcessTransport(target, limits, excesses.end)
        hurry = target.hurry
    elif isinstance(target, str):
        target = http_transport(target, limits, excesses.note, results)
    if not isinstance(target, Server | MCPServer):
        target = CheckedTransport(target, limits, excesses.note, results)
    information = Implementation(name="sabir-mcp", version=version("sabir-mcp"))
    return Client(target, client_info=information), hurry


def _do_nothing() -> None:
    """Do nothing: the hurry function for servers that this package has not started."""


def is_entered(client: "Client | ClientSession") -> bool:
    """Return whether a client is entered already, so that its owner will leave it. Always True for a session."""
    from mcp import ClientSession

    if isinstance(client, ClientSession):
        return True
    try:
        return client.session is not None
    except RuntimeError:  # the SDK's error for a client that is not entered
        return False


def label_of(server: "ServerLike") -> str:
    """Return a name of the server for errors before the server has sent its own name: its host or its command."""
    if isinstance(server, str) and _is_url(server):
        return urlsplit(server).hostname or "server"
    words = _split_command(server) if isinstance(server, str | Sequence) else []
    command = words[0] if words else getattr(server, "command", None)
    return os.path.basename(command) if isinstance(command, str) else str(getattr(server, "name", "server"))


def _find_target(server: Any) -> Any:
    """Return the URL, parameters, transport or server object that `server` means.

    Raises SettingsInvalid for anything else. The type is Any, because these types have no common base.
    """
    from mcp import StdioServerParameters
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    if isinstance(server, str) and _is_url(server):
        return server
    if isinstance(server, str | Sequence):
        words = _split_command(server)
        if not words or not words[0] or "://" in words[0]:
            raise SettingsInvalid(f"server is {one_line(repr(server), 60)}; expected {EXPECTED}")
        return StdioServerParameters(command=words[0], args=words[1:])
    if isinstance(server, StdioServerParameters | Server | MCPServer) or hasattr(server, "__aenter__"):
        return server
    raise SettingsInvalid(f"server is of type {type(server).__name__}; expected {EXPECTED}")


def _is_url(text: str) -> bool:
    return re.match(r"https?://", text, re.IGNORECASE) is not None


def _split_command(command: str | Sequence[Any]) -> list[str]:
    if not isinstance(command, str):
        return cast(list[str], list(command))
    try:
        return shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        text = one_line(command, 60)
        raise SettingsInvalid(f"command {text!r} cannot be split into words: {error}; pass a list of words") from None
