"""The errors of MCP servers. Each error but ServerUnreachable becomes the error result of its call:

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
    """The server could not be started or reached, or did not list its options."""


class ServerLost(MCPFault, ConnectionError):
    """The connection ended before an answer came. It is not opened again: enter a new block."""


class ServerTimedOut(MCPFault, TimeoutError):
    """The server did not answer in time. The call was cancelled at the server."""


class ServerRefused(MCPFault):
    """The server answered a call with a protocol error, for instance because it has no such option."""


class AnswerTooLarge(MCPFault, ValueError):
    """The server sent more than `Limits` allow. The message names the limit."""


class AnswerInvalid(MCPFault, ValueError):
    """The server's answer does not fit the protocol."""
