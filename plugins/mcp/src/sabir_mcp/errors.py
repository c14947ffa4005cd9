"""The errors of MCP servers. In a call of an option, an error becomes the error result of the call:

    MCPFault
    ├── ServerUnreachable   no connection or no list of options: raised at the start of the `async with` block
    ├── ServerLost          the connection ended, or the block was left
    ├── ServerTimedOut      no answer in time
    ├── ServerRefused       the server answered with a protocol error
    ├── AnswerTooLarge      the server sent more than `Limits` allows
    └── AnswerInvalid       the answer does not fit the protocol

The class's name is the result's `error_type`, and its message is the `error_message` that a model reads. A failure that
the option itself reports is core's OptionFailed, with the type `option_failed`.
"""

from sabir.errors import SabirError


class MCPFault(SabirError):
    """The base class of the errors of MCP servers.

    Errors of a call reach the model as the call's error result, with the class's name as `error_type`. `refresh` and
    `options_from_mcp` raise errors to the program.
    """


class ServerUnreachable(MCPFault, ConnectionError):
    """Raised by `options_from_mcp` if the server cannot be started or reached, or does not send a valid list of its
    options in time. The message contains the cause.
    """


class ServerLost(MCPFault, ConnectionError):
    """Raised by a call and by `refresh` if the connection ended before the answer, or the `async with` block has ended.

    The connection is not reopened. Enter a new `options_from_mcp` block.
    """


class ServerTimedOut(MCPFault, TimeoutError):
    """Raised by a call that the server does not answer within `timeout`, and by `refresh` if no list of options arrives
    in time.

    Other requests may still be answered.
    """


class ServerRefused(MCPFault):
    """Raised if the server answers a call or `refresh` with a protocol error, for instance because it does not have the
    option.
    """


class AnswerTooLarge(MCPFault, ValueError):
    """Raised if the server sends more than `Limits` allows. The message names the limit."""


class AnswerInvalid(MCPFault, ValueError):
    """Raised if the server's answer does not follow the protocol, or if the server asks for input 10 times in one
    call.
    """
