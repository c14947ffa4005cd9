"""Responses of a server over HTTP, checked before the SDK reads them.

    response ──chunks──▶ buffer (at most message_bytes) ──message──▶ limits ─┬─▶ small: the SDK
                                                                             └─▶ large: parsed here, a ticket to the SDK

A hook of the HTTP client replaces each response's stream. A body in JSON is one message. In a stream of server-sent
events, each event is one message. Responses must not be compressed, because kilobytes could become gigabytes.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client
from pydantic_core import from_json, to_json
from sabir.authoring import explaining_environment_errors

from sabir_mcp.limits import Limits, excess_text, find_excess
from sabir_mcp.streams import StoredResults

CONNECT_TIMEOUT, READ_TIMEOUT = 30.0, 300.0
"""Seconds to connect, and seconds between two pieces of a response, as in the SDK's own client."""
SMALL = 2**16
"""The maximum number of bytes of a message that the SDK parses itself."""
MOST_SHOWN = 10_000
"""The maximum number of characters of a server's error message in a large message."""
_END_OF_EVENT = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")


class _TooLarge(httpx2.SSEError, httpx2.StreamError):
    """Raised while a response is read if a message exceeds the limits. The SDK then fails one request only.

    For this, the error must be a StreamError in a body of JSON, and an SSEError in server-sent events.
    """


@asynccontextmanager
async def http_transport(
    url: str, limits: Limits, note: Callable[[str], None], results: StoredResults
) -> AsyncIterator[Any]:
    """Return a transport for the SDK's client that checks the responses of a server over HTTP.

    `note` is called with the text of each exceeded limit. Large results are stored in `results`. Raises
    ConnectionFailed if the HTTP client cannot be created because of an environment variable, for example ALL_PROXY.
    """

    async def check(response: httpx2.Response) -> None:
        response.stream = _CheckedBody(response, limits, note, results)

    timeout = httpx2.Timeout(CONNECT_TIMEOUT, read=READ_TIMEOUT)
    headers = {"accept-encoding": "identity"}
    with explaining_environment_errors(urlsplit(url).hostname or "server"):
        http_client = httpx2.AsyncClient(timeout=timeout, headers=headers, event_hooks={"response": [check]})
    async with (
        http_client as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=limits.message_bytes) as streams,
    ):
        yield streams


class _CheckedBody(httpx2.AsyncByteStream):
    """The body of a response. Reading raises _TooLarge if a message exceeds the limits or the body is compressed."""

    def __init__(
        self, response: httpx2.Response, limits: Limits, note: Callable[[str], None], results: StoredResults
    ) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream, self._headers = response.stream, response.headers
        self._limits, self._note, self._results = limits, note, results

    async def aclose(self) -> None:
        """Close the response."""
        await self._stream.aclose()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces, one for each message, all within the limits."""
        encoding = self._headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            text = f"the server compressed its response ({encoding[:40]}), although the request forbids compression"
            raise self._note_excess(text)
        has_events = self._headers.get("content-type", "").strip().lower().startswith("text/event-stream")
        buffer = bytearray()
        async for chunk in self._stream:
            position = max(len(buffer) - 3, 0)
            buffer += chunk
            while has_events and (match := _END_OF_EVENT.search(buffer, position)):
                position = 0
                yield self._convert_event(_take_beginning(buffer, match.end()))
            if len(buffer) > self._limits.message_bytes:
                limit = self._limits.message_bytes
                raise self._note_excess(excess_text("bytes in one message", "message_bytes", limit))
        if buffer:
            yield self._convert_event(buffer) if has_events else self._convert_message(buffer)

    def _convert_event(self, event: bytearray) -> bytes:
        """Return a server-sent event for the SDK. If its data are large, a message with a ticket replaces the data."""
        lines = event.count(b"\n") + event.count(b"\r")
        if lines > self._limits.message_values:
            raise self._note_excess(excess_text("lines in one event", "message_values", self._limits.message_values))
        data, others = bytearray(), bytearray()
        for line in event.splitlines():
            if not line.startswith(b"data:"):
                others += line + b"\n"
            elif data:
                data += b"\n" + line[5:]
            else:
                data = line
        event.clear()
        if not data:
            return bytes(others)
        del data[:5]
        message = self._convert_message(data).strip().replace(b"\n", b"\ndata: ")
        before = bytes(others.rstrip(b"\n")) + b"\n" if others else b""
        return b"%bdata: %b\n\n" % (before, message)

    def _convert_message(self, message: bytearray) -> bytes:
        """Return the message for the SDK: unchanged if it is small, else with a ticket instead of its result.

        A large error is shortened, and a large notification or request is replaced by an unknown notification.
        """
        if excess := find_excess(message, self._limits):
            raise self._note_excess(excess)
        if len(message) <= SMALL:
            return bytes(message)
        try:
            document = from_json(message)
        except ValueError:
            return bytes(message[:SMALL])  # this is not JSON either, so the SDK reports it
        message.clear()  # frees memory before the document is processed
        if not isinstance(document, dict):
            return b"null"
        if isinstance(document.get("result"), dict):
            document["result"] = self._results.store(document["result"])
        elif isinstance(error := document.get("error"), dict):
            document["error"] = {"code": error.get("code"), "message": str(error.get("message"))[:MOST_SHOWN]}
        else:  # no option uses the contents of notifications and requests
            document = {"jsonrpc": "2.0", "method": "notifications/large"}
        return to_json(document)

    def _note_excess(self, text: str) -> _TooLarge:
        self._note(text)
        return _TooLarge(text)


def _take_beginning(buffer: bytearray, end: int) -> bytearray:
    """Remove the first `end` bytes of the buffer, and return them."""
    beginning = buffer[:end]
    del buffer[:end]
    return beginning
