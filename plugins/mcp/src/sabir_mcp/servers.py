"""Converts a user's server argument to a client of the SDK.

    "python -m my_server" · ["cmd", "arg"]       ──▶ a process of its own, by stdin and stdout
    "https://host/mcp"                           ──▶ streamable HTTP
    StdioServerParameters · transport · server   ──▶ as the SDK's own Client takes them
    Client · ClientSession                       ──▶ as they are

A server is shown by its command or its host alone: arguments and paths may hold keys, and errors go to models.
"""

import os
import re
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

from sabir.authoring import one_line
from sabir.errors import SettingsInvalid

if TYPE_CHECKING:
    from mcp import Client, ClientSession, StdioServerParameters
    from mcp.client import Transport
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    ServerLike: TypeAlias = (
        str | Sequence[str] | StdioServerParameters | Transport | Server[Any] | MCPServer | Client | ClientSession
    )

EXPECTED = "a command, an http(s) URL, or an object of the SDK: parameters, transport, server, client or session"


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
