"""Options of MCP servers for sabir, through the protocol's official SDK, which is loaded when a server is entered."""

from sabir_mcp.connection import (
    AnswerInvalid,
    MCPFault,
    ServerLost,
    ServerRefused,
    ServerTimedOut,
    ServerUnreachable,
)
from sabir_mcp.options import MCPOptions, options_from_mcp

__all__ = [
    "AnswerInvalid", "MCPFault", "MCPOptions", "ServerLost", "ServerRefused", "ServerTimedOut", "ServerUnreachable",
    "options_from_mcp",
]  # fmt: skip
