"""A server's process, and messages over its stdin and stdout: a transport for the SDK's client.

    stdout ──chunks──▶ buffer (at most message_bytes) ──line──▶ limits ──▶ JSON ──▶ reading
    stdin  ◀──────────────────────────────── lines ◀─────────────────────────────── writing

The SDK's own transport collects a line of any length. Here a line that exceeds the limits ends the process and the
connection, because an endless line has no next message. A line that is not a message is ignored, because some servers
print to stdout.
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

from sabir_mcp.limits import Limits, excess_text, find_excess

if TYPE_CHECKING:
    from mcp import StdioServerParameters

logger = logging.getLogger("sabir")

CHUNK = 2**16
"""The maximum number of bytes of stdout that are read at once."""
MOST_QUEUED = 64
"""The maximum number of messages that wait until a server reads its stdin."""
GRACE = 2.0
"""How many seconds a server has to exit after its stdin closes, and again after SIGTERM."""
SHORT_GRACE = 0.2
"""How many seconds a server has to exit after a failure, and when the block is cancelled."""


class ProcessTransport:
    """A transport for the SDK's client that runs a command, and sends messages through its stdin and stdout.

    `note` is called with the text of the limit when the server exceeds a limit. The connection then ends. Raises
    SettingsInvalid for an encoding in which a line break is not one byte.
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
        """Give the server only `SHORT_GRACE` seconds to exit."""
        self._grace = SHORT_GRACE

    async def __aenter__(self) -> tuple[Any, Any]:  # the SDK's names for streams are not public
        """Start the process, and return the streams for reading and writing messages. Raises OSError if it fails."""
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
        loops = self._read_stdout(received), self._write_stdin(sent, received)
        self._tasks = [asyncio.create_task(each) for each in loops]
        return reading, writing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the process: close its stdin, then terminate it, then kill it."""
        if error is not None:
            self.hurry()
        try:
            await self._stop_process()
        finally:
            self._kill(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
            with suppress(PermissionError):  # a process of another user, which cannot be killed
                self._process.close()
            for task in self._tasks:
                task.cancel()
            for stream in self._streams:
                stream.close()

    async def _stop_process(self) -> None:
        pipes = self._pipes
        assert pipes.stdin is not None
        pipes.stdin.close()
        if await self._wait_for_exit():
            return
        self._kill(signal.SIGTERM)
        await self._wait_for_exit()

    async def _wait_for_exit(self) -> bool:
        """Return whether the process exits in time.

        The process is polled, because asyncio's wait would also wait for its children.
        """
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

    async def _read_stdout(self, received: Any) -> None:
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
                        return self._end_connection(excess)
                    if message is not None:
                        try:
                            await received.send(SessionMessage(message))
                        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                            return await self._drain(stdout)
                        del message  # frees memory: the message may be large, and the next message may arrive late
                if len(buffer) > (limit := self._limits.message_bytes):
                    return self._end_connection(excess_text("bytes in one message", "message_bytes", limit))
        return None

    def _take_line(self, buffer: bytearray, end: int) -> tuple[JSONRPCMessage | None, str]:
        """Remove the line before `end` from the buffer. Return its message, and the text of an exceeded limit.

        The message is None for a line that is not a message, and the text is "" if no limit is exceeded.
        """
        line = buffer[:end]
        del buffer[: end + 1]
        if not line or line.isspace():
            return None, ""
        if excess := find_excess(line, self._limits):
            return None, excess
        parameters = self._parameters
        text = line if parameters.encoding == "utf-8" else line.decode(parameters.encoding, "replace").encode()
        try:
            # Not validate_json, because its union of messages would have five copies of a large result in memory.
            return jsonrpc_message_adapter.validate_python(from_json(text), by_name=False), ""
        except ValueError:
            if not self._ignores_lines:
                logger.warning("MCP server %r writes lines to stdout that are not messages", parameters.command)
            self._ignores_lines = True
            return None, ""

    def _end_connection(self, excess: str) -> None:
        """Record an exceeded limit, and kill the process, which ends the connection."""
        self._note(excess)
        self.hurry()
        self._kill(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)

    async def _drain(self, stdout: asyncio.StreamReader) -> None:
        """Read and discard the rest of stdout, so that a full pipe does not prevent the server from exiting."""
        while await stdout.read(CHUNK):
            pass

    async def _write_stdin(self, sent: Any, received: Any) -> None:
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
