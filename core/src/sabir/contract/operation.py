"""Requests besides chat, such as embeddings. An Operation has the functions, without I/O, for one kind of request.

    call ──encode──▶ OperationRequest ──▶ Connection ──▶ body ──decode──▶ Decoded(output, usage)
             └ losses                                      └ or each line ──decode──▶ Decoded, Decoded, …

A provider's `operations` maps the name of each operation to its Operation. The classes of an operation's calls and
values belong to the package that defines the operation, or to core if several provider packages share them, as for
embeddings. Errors, retries, time limits and telemetry are the same as for chat.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from sabir.base.failures import CallError
from sabir.base.values import JSONValue
from sabir.contract.scope import DecodeScope, RequestScope
from sabir.vocabulary.reply import Reply, Usage

Call = TypeVar("Call")
Output = TypeVar("Output")
HTTPMethod: TypeAlias = Literal["POST", "GET", "DELETE"]
DecodeError: TypeAlias = Callable[[int, Mapping[str, str], bytes, str], CallError]
"""Returns the CallError for an error status. Arguments: status, headers (names in lower case), body, provider."""


class OperationRequest(NamedTuple):
    """The request of one operation. Returned by `Operation.encode`.

    `path` is the path below the endpoint. `body` is a JSON object, to which core adds the user's `extra_body`, or the
    exact bytes, for other formats and requests without a body. `headers` are sent with it, for example a content type.
    """

    path: str
    body: Mapping[str, JSONValue] | bytes = b""
    method: HTTPMethod = "POST"
    headers: Mapping[str, str] = {}


class Decoded(NamedTuple, Generic[Output]):
    """The value that `Operation.decode` read from a response, with the tokens that the vendor reports, and the name of
    the model that answered; None if the response does not name the model.
    """

    output: Output
    usage: Usage = Usage()
    model: str | None = None


class OperationResult(NamedTuple, Generic[Output]):
    """The value of one call of an operation. `reply` has no messages: it has the call's usage, losses, origin, request
    id and attempts, so that `sabir_prices` and telemetry treat the call like a chat.
    """

    output: Output
    reply: Reply


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation(Generic[Call, Output]):
    """One kind of request of an API besides chat: pure functions that translate between `Call`, the API's bytes and
    `Output`.
    """

    name: str
    """The full name, `<provider>.<operation>`, for example "acme.embeddings". The `dialect` of its targets."""
    encode: Callable[[Call, RequestScope], OperationRequest]
    """Return the request of a call, and add to `scope.losses` what the API or the model cannot do. The scope has no
    options and no turns.
    """
    decode: Callable[[bytes, DecodeScope], Decoded[Output]]
    """Read the body of a response, or one of its lines if `reads_lines`. Raises ResponseInvalid, or the CallError that
    the body reports.
    """
    decode_error: DecodeError
    """Return the CallError for a response with a status of 400 or more. Usually `ErrorTable(…).decode`."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """The API's limits of one request by name, for example {"texts": 2048}. The operation's package reads them."""
    reads_lines: bool = False
    """Whether `decode` reads one line of the body at a time, without its end. For long bodies of JSON lines."""
