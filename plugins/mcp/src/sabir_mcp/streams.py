"""The messages that a transport delivers, checked before the SDK builds objects from them.

    transport ──▶ CheckedMessages ──▶ the SDK's session
                   ├── too many tools or parts      ──▶ an error response to the same request
                   ├── fields that are never used   ──▶ removed
                   └── a request of the server      ──▶ answered here: ping, and a refusal of every other request

Requests of the server are answered here, one after the other, because the SDK would start a task for each request: a
server that sends requests and never reads the answers would fill the memory with tasks.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from sabir_mcp.limits import Limits, excess_text

COUNTED: Mapping[str, tuple[str, str]] = {
    "tools": ("tools on one page", "tools"),
    "content": ("content blocks in one result", "parts"),
    "inputRequests": ("requests for input in one result", "parts"),
}
"""Field of a result → what it lists, and the name of its limit."""
TICKET = "sabir.stored_result"
"""The only field of a ticket, a small result that replaces a large result."""
EXPIRY = 10.0
"""How many seconds a stored result is kept. The SDK asks for it sooner, as soon as it has parsed the ticket."""
EMPTY_NOTIFICATION = JSONRPCNotification(jsonrpc="2.0", method="nothing")
UNUSED = ("icons", "annotations", "_meta", "outputSchema")
"""Fields of tools, content blocks and servers that no option uses. The SDK would build objects from them."""


class StoredResults:
    """Large results that a transport parsed itself. In the message for the SDK, a ticket replaces the result.

    The SDK's parser tries each kind of message in turn, and would have five copies of a large result in memory.
    """

    def __init__(self) -> None:
        self._results: dict[str, dict[str, Any]] = {}

    def store(self, result: dict[str, Any]) -> dict[str, Any]:
        """Store a result, and return its ticket: a small result that contains only an id.

        The result is removed after `EXPIRY` seconds, because nothing takes the result of a cancelled request.
        """
        ticket = uuid4().hex
        self._results[ticket] = result
        asyncio.get_running_loop().call_later(EXPIRY, self._results.pop, ticket, None)
        return {TICKET: ticket}

    def take(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the stored result for a ticket, or the result itself if it is not a ticket."""
        ticket = result.get(TICKET)
        return self._results.pop(ticket, result) if isinstance(ticket, str) else result


class CheckedMessages:
    """The read stream of a transport, with only messages within the limits.

    `note` is called with the text of each exceeded limit. `results` contains the results that the transport parsed
    itself.
    """

    def __init__(
        self, reading: Any, writing: Any, limits: Limits, note: Callable[[str], None], results: "StoredResults"
    ) -> None:
        self._reading, self._writing = reading, writing  # Any: the SDK's protocols for streams have no public name
        self._limits, self._note, self._results = limits, note, results
        self._previous: SessionMessage | None = None

    @property
    def last_context(self) -> Any:
        """The context variables of the last message's sender, which the SDK reads. None without such variables."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message for the SDK's session. Requests of the server are answered here.

        The result of a message that exceeds a limit is replaced by an error.
        """
        if self._previous is not None:
            # Frees memory, because the SDK refers to the last message until the next message.
            self._previous.message = EMPTY_NOTIFICATION
        while True:
            item: SessionMessage | Exception = await self._reading.receive()
            if not isinstance(item, SessionMessage):
                return item
            if isinstance(item.message, JSONRPCRequest):
                await self._writing.send(SessionMessage(_answer_request(item.message)))
                continue
            if isinstance(item.message, JSONRPCResponse):
                item.message = self._check_response(item.message)
            self._previous = item
            return item

    def _check_response(self, response: JSONRPCResponse) -> JSONRPCResponse | JSONRPCError:
        result = response.result = self._results.take(response.result)
        for field, (what, name) in COUNTED.items():
            limit = getattr(self._limits, name)
            if isinstance(items := result.get(field), list | dict) and len(items) > limit:
                text = excess_text(what, name, limit)
                self._note(text)
                error = ErrorData(code=INTERNAL_ERROR, message=text)
                return JSONRPCError(jsonrpc="2.0", id=response.id, error=error)
        for each in (result.get("serverInfo"), *_as_list(result.get("tools")), *_as_list(result.get("content"))):
            if isinstance(each, dict):
                for field in UNUSED:
                    each.pop(field, None)
        return response

    def __aiter__(self) -> Self:
        """Iterate over the messages."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return the next message for the session, as `receive` does."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close the transport's stream."""
        await self._reading.aclose()

    async def __aenter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the transport's stream."""
        await self.aclose()


class CheckedTransport:
    """A transport for the SDK's Client that delivers the messages of another transport, checked by CheckedMessages."""

    def __init__(
        self,
        transport: AbstractAsyncContextManager[Any],
        limits: Limits,
        note: Callable[[str], None],
        results: "StoredResults | None" = None,
    ) -> None:
        self._transport, self._limits, self._note = transport, limits, note
        self._results = results or StoredResults()

    async def __aenter__(self) -> Any:
        """Open the transport and return its streams."""
        reading, writing = await self._transport.__aenter__()
        return CheckedMessages(reading, writing, self._limits, self._note, self._results), writing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Close the transport."""
        return await self._transport.__aexit__(kind, error, traceback)


def _answer_request(request: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
    if request.method == "ping":
        return JSONRPCResponse(jsonrpc="2.0", id=request.id, result={})
    error = ErrorData(code=METHOD_NOT_FOUND, message=f"Method not found: {request.method[:100]}")
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
