"""The two drivers of a fetch: each performs one step at a time, on blocking sockets or on an event loop.

They decide nothing. A driver holds at most one open connection, and leaves it before it opens the next.
"""

import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

import anyio
import anyio.to_thread
import httpcore2

from sabir_media.network import (
    AsyncPinnedBackend,
    Deadline,
    PinnedBackend,
    Resolver,
    look_up_within,
    request_to,
)
from sabir_media.steps import Head, LookUp, Open, Read, Step

Answer = Sequence[str] | Head | bytes


@dataclass(frozen=True, slots=True)
class Resources:
    """What both drivers work with: `trust` gives the certificates to trust, asked only for https."""

    resolver: Resolver
    trust: Callable[[], ssl.SSLContext]
    deadline: Deadline

    def trust_for(self, step: Open) -> ssl.SSLContext | None:
        """The TLS context that a target needs, None for plain http."""
        return self.trust() if step.target.scheme == "https" else None


class Driver:
    """Performs steps on blocking sockets, every operation within the deadline."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._held = ExitStack()
        self._chunks: Iterator[bytes] = iter(())

    def perform(self, step: Step) -> Answer:
        """The answer to one step; raises what the network raises."""
        match step:
            case LookUp(host, port):
                return look_up_within(self._resources.resolver, host, port, self._resources.deadline.remaining())
            case Open():
                self.close()
                return self._open(step)
            case Read():
                return next(self._chunks, b"")

    def close(self) -> None:
        """Leave the open connection, if there is one."""
        self._held.close()

    def _open(self, step: Open) -> Head:
        request = request_to(step.target)
        backend = PinnedBackend(step.addresses, self._resources.deadline)
        connection = httpcore2.HTTPConnection(
            request.url.origin, ssl_context=self._resources.trust_for(step), network_backend=backend
        )
        self._held.callback(backend.close)
        self._held.callback(connection.close)
        response = connection.handle_request(request)
        self._chunks = response.iter_stream()
        return Head(response.status, response.headers)


class AsyncDriver:
    """Performs steps on an event loop, each cancelled at the deadline."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._held = AsyncExitStack()
        self._chunks: AsyncGenerator[bytes] | None = None

    async def perform(self, step: Step) -> Answer:
        """The answer to one step; raises what the network raises."""
        with anyio.fail_after(self._resources.deadline.remaining()):
            match step:
                case LookUp(host, port):
                    look_up = anyio.to_thread.run_sync
                    return await look_up(self._resources.resolver, host, port, abandon_on_cancel=True)
                case Open():
                    await self.aclose()
                    return await self._open(step)
                case Read():
                    return await anext(self._chunks, b"") if self._chunks else b""

    async def aclose(self) -> None:
        """Leave the open connection, if there is one, whatever is being cancelled."""
        with anyio.CancelScope(shield=True):
            await self._held.aclose()

    async def _open(self, step: Open) -> Head:
        request = request_to(step.target)
        backend = AsyncPinnedBackend(step.addresses, self._resources.deadline)
        connection = httpcore2.AsyncHTTPConnection(
            request.url.origin, ssl_context=self._resources.trust_for(step), network_backend=backend
        )
        self._held.push_async_callback(backend.aclose)
        self._held.push_async_callback(connection.aclose)
        response = await connection.handle_async_request(request)
        self._chunks = response.aiter_stream()
        self._held.push_async_callback(self._chunks.aclose)
        return Head(response.status, response.headers)
