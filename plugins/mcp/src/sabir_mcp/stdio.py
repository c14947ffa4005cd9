"""A server's process, and messages over its stdin and stdout: a transport for the SDK's client.

    stdout ──chunks──▶ buffer (at most message_bytes) ──line──▶ limits ──▶ JSON ──▶ reading
    stdin  ◀──────────────────────────────── lines ◀─────────────────────────────── writing

The SDK's own transport collects a line of any length. Here a line that exceeds the limits ends the process, and the
connection: an endless line has no next message. A line that is no message is ignored, as some servers print to stdout.
"""

import asyncio
import logging
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter
from pydantic_core import from_json
from sabir.errors import SettingsInvalid

from sabir_mcp.limits import Limits, excess_of, excess_text

if TYPE_CHECKING:
    from mcp import StdioServerParameters

logger = logging.getLogger("sabir")

CHUNK = 2**16
"""Bytes of stdout that are read at once."""
MOST_QUEUED = 64
"""Messages that wait for a server to read its stdin."""
GRACE = 2.0
"""Seconds that a server has to exit after its stdin closes, and again after SIGTERM."""
SHORT_GRACE = 0.2
"""The same after a failure, and when the block is cancelled."""


class ProcessTransport:
    """A transport that runs a command.

    `note` is called with the text of the error when the server exceeds a limit; the connection then ends.
    """

    def __init__(self, parameters: "StdioServerParameters", limits: Limits, note: Callable[[str], None]) -> None:
        if "\n".encode(parameters.encoding) != b"\n":
            raise SettingsInvalid(f"encoding is {parameters.encoding!r}; MCP servers write lines of UTF-8")
        self._parameters, self._limits, self._note = parameters, limits, note
        self._grace = GRACE
        self._ignores_lines = False
        self._process: asyncio.SubprocessTransport
        self._pipes: SubprocessStreamProtocol
        self._tasks: list[asyncio.Task[None]] = []

    def hurry(self) -> None:
        """Give the server little time to exit."""
        self._grace = SHORT_GRACE

    async def __aenter__(self) -> tuple[Any, Any]:  # the SDK's names for streams are not public
        """Start the process and return the streams for reading and writing messages."""
        loop = asyncio.get_running_loop()
        parameters = self._parameters
        command = (shutil.which(parameters.command) if sys.platform == "win32" else None) or parameters.command
        self._process, self._pipes = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=CHUNK, loop=loop),
            command, *parameters.args,
            stdin=PIPE, stdout=PIPE, stderr=None,
            env=get_default_environment() | (parameters.env or {}), cwd=parameters.cwd, start_new_session=True,
        )  # fmt: skip
        received, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writing, sent = anyio.create_memory_object_stream[SessionMessage](MOST_QUEUED)
        self._streams = (received, reading, writing, sent)
        self._tasks = [asyncio.create_task(self._read(received)), asyncio.create_task(self._write(sent, received))]
        return reading, writing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the process: close its stdin, then terminate it, then kill it."""
        if error is not None:
            self.hurry()
        try:
            await self._end()
        finally:
            self._kill(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
            with suppress(PermissionError):  # a setuid process, which cannot be killed
                self._process.close()
            for task in self._tasks:
                task.cancel()
            for stream in self._streams:
                stream.close()

    async def _end(self) -> None:
        pipes = self._pipes
        assert pipes.stdin is not None
        pipes.stdin.close()
        if await self._exits():
            return
        self._kill(signal.SIGTERM)
        await self._exits()

    async def _exits(self) -> bool:
        """Return whether the process exits in time. It is polled: to wait for it is to wait for its children too."""
        deadline = asyncio.get_running_loop().time() + self._grace
        while self._process.get_returncode() is None:
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    def _kill(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, unless the process has exited."""
        if self._process.get_returncode() is not None:
            return
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self._process.get_pid(), number)

    async def _read(self, received: Any) -> None:
        stdout = self._pipes.stdout
        assert stdout is not None
        buffer = bytearray()
        async with received:
            while chunk := await stdout.read(CHUNK):
                position = len(buffer)
                buffer += chunk
                while (end := buffer.find(b"\n", position)) >= 0:
                    position = 0
                    message, excess = self._take_line(buffer, end)
                    if excess:
                        return self._refuse(excess)
                    if message is not None:
                        try:
                            await received.send(SessionMessage(message))
                        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                            return await self._drain(stdout)
                        del message  # it may be large, and the next one may be long in coming
                if len(buffer) > self._limits.message_bytes:
                    return self._refuse(
                        excess_text("bytes in one message", "message_bytes", self._limits.message_bytes)
                    )
        return None

    def _take_line(self, buffer: bytearray, end: int) -> tuple[JSONRPCMessage | None, str]:
        """Remove a line from the buffer; return its message, or None, and the text of an exceeded limit, or ""."""
        line = buffer[:end]
        del buffer[: end + 1]
        if not line or line.isspace():
            return None, ""
        if excess := excess_of(line, self._limits):
            return None, excess
        parameters = self._parameters
        text = line if parameters.encoding == "utf-8" else line.decode(parameters.encoding, "replace").encode()
        try:
            # Not validate_json: its union of messages would hold a large result five times.
            return jsonrpc_message_adapter.validate_python(from_json(text), by_name=False), ""
        except ValueError:
            if not self._ignores_lines:
                logger.warning("MCP server %r writes lines to stdout that are not messages", parameters.command)
            self._ignores_lines = True
            return None, ""

    def _refuse(self, excess: str) -> None:
        """End the connection at once because a limit was exceeded."""
        self._note(excess)
        self.hurry()
        self._kill(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)

    async def _drain(self, stdout: asyncio.StreamReader) -> None:
        """Discard what the server still writes, so that a full pipe does not keep it from exiting."""
        while await stdout.read(CHUNK):
            pass

    async def _write(self, sent: Any, received: Any) -> None:
        stdin = self._pipes.stdin
        assert stdin is not None
        parameters = self._parameters
        try:
            async for item in sent:
                text: str = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(f"{text}\n".encode(parameters.encoding, parameters.encoding_error_handler))
                await stdin.drain()
        except (OSError, anyio.ClosedResourceError):
            await received.aclose()  # the server may still run, but no request reaches it
