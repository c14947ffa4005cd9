"""The connection of an adapter: created at the first call, shared by all threads, and created again after closing.

adapter ──wire(kind, rendering)──▶ Wire or SyncWire over Provider.connect(access), with the clock of one call
"""

from threading import Lock
from typing import TypeAlias

from sabir.calling.clock import Clock
from sabir.calling.drive import SyncWire, Watch, Wire
from sabir.contract.dialect import Rendering
from sabir.contract.provider import Access, Connection, Provider, WireRequest

WireClass: TypeAlias = type[Wire] | type[SyncWire]
"""The Performer of a call: Wire in an event loop, SyncWire for sync methods."""


class Connector:
    """Creates wires over one connection to a provider's endpoint."""

    def __init__(self, provider: Provider, access: Access) -> None:
        self.provider = provider
        """The provider's plugin object."""
        self.access = access
        """The API key, the base URL and the client that the user passed."""
        self.connection: Connection | None = None
        """The open connection. None before the first call and after closing."""
        self._lock = Lock()

    def wire(
        self, kind: WireClass, rendering: Rendering, watch: Watch | None = None, *, is_stream: bool = False
    ) -> Wire | SyncWire:
        """Return the wire for one call. `is_stream` True means that a caller reads the events."""
        limits = rendering.timeout, rendering.idle, rendering.total
        clock = Clock(*limits, is_stream=is_stream, who=rendering.target)
        with self._lock:
            if self.connection is None:
                self.connection = self.provider.connect(self.access)
            connection = self.connection
        return kind(connection, watch, clock)

    async def aclose(self) -> None:
        """Close the sync client and the async client of the running event loop, if the connection created them."""
        if (connection := self._detach()) is not None:
            await connection.aclose()

    def close(self) -> None:
        """Close the sync client, if the connection created the client."""
        if (connection := self._detach()) is not None:
            connection.close()

    def _detach(self) -> Connection | None:
        with self._lock:
            connection, self.connection = self.connection, None
        return connection


def wire_request(rendering: Rendering, *, is_stream: bool) -> WireRequest:
    """Return the request of a rendering. `is_stream` True means that a caller reads the events."""
    timeout, opening = read_limits(rendering, is_stream=is_stream)
    return WireRequest(
        rendering.path,
        rendering.body_bytes,
        rendering.headers,
        timeout,
        streaming=rendering.streaming,
        opening=opening,
        method=rendering.method,
    )


def read_limits(rendering: Rendering, *, is_stream: bool) -> tuple[float | None, float | None]:
    """Return two limits in seconds: for one read, and until the response begins. None means no limit.

    If a caller reads the events (`is_stream`), one read may take as long as `idle`.
    """
    timeout, idle, total = rendering.timeout, rendering.idle, rendering.total
    opening = timeout if total is None else total if timeout is None else min(timeout, total)
    if is_stream and timeout is not None:
        return max(timeout, idle) if total is None else min(max(timeout, idle), total), opening
    return opening, opening
