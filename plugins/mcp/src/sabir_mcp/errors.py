"""The errors of MCP servers. Each but ServerUnreachable becomes the error result of its call.

    MCPFault
    ├── ServerUnreachable   no connection, or no list of options: raised where the block is entered
    ├── ServerLost          the connection ended, or the block was left
    ├── ServerTimedOut      no answer in time
    ├── ServerRefused       the server answered with a protocol error
    └── AnswerInvalid       the protocol or the option's own schema does not allow the answer

The class's name is the result's `error_type`, its message the `error_message` that a model reads. A failure that the
option itself reports is core's OptionFailed, of type `option_failed`.
"""

from sabir.errors import SabirError


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
