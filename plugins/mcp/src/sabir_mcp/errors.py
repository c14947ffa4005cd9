"""The errors of MCP servers. Every error except ServerUnreachable becomes the error result of its call:

    MCPFault
    ├── ServerUnreachable   no connection or no list of options: raised where the block is entered
    ├── ServerLost          the connection ended, or the block was left
    ├── ServerTimedOut      no answer in time
    ├── ServerRefused       the server answered with a protocol error
    ├── AnswerTooLarge      the server sent more than `Limits` allow
    └── AnswerInvalid       the answer does not fit the protocol

The class's name is the result's `error_type`, and its message is the `error_message` that a model reads. A failure that
the option itself reports is core's OptionFailed, with the type `option_failed`.
"""

from sabir.errors import SabirError


class MCPFault(SabirError):
    """The base class of the errors of MCP servers."""


class ServerUnreachable(MCPFault, ConnectionError):
    """Raised by `options_from_mcp` if the server cannot be started or reached, or does not list its options."""


class ServerLost(MCPFault, ConnectionError):
    """Raised by a call if the connection ended first. It is not reopened: enter a new `options_from_mcp` block."""


class ServerTimedOut(MCPFault, TimeoutError):
    """Raised by a call that the server did not answer within `timeout`. The call is cancelled at the server."""


class ServerRefused(MCPFault):
    """Raised if the server answers a call with a protocol error, for instance because it does not have the option."""


class AnswerTooLarge(MCPFault, ValueError):
    """Raised if the server sends more than `Limits` allows. The message names the limit."""


class AnswerInvalid(MCPFault, ValueError):
    """Raised if the server's answer does not follow the protocol."""
