"""Options of MCP servers for sabir, through the protocol's official SDK, which is loaded when a server is entered."""

from sabir_mcp.errors import (
    AnswerInvalid,
    AnswerTooLarge,
    MCPFault,
    ServerLost,
    ServerRefused,
    ServerTimedOut,
    ServerUnreachable,
)
from sabir_mcp.limits import Limits
from sabir_mcp.options import MCPOptions, options_from_mcp

__all__ = [
    "AnswerInvalid", "AnswerTooLarge", "Limits", "MCPFault", "MCPOptions", "ServerLost", "ServerRefused",
    "ServerTimedOut", "ServerUnreachable", "options_from_mcp",
]  # fmt: skip
