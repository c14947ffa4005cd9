"""The guarded fetcher, which a user gives to code that may fetch on their behalf.

Two drivers perform a fetch, one step at a time, on blocking sockets or on an event loop. They decide nothing. A driver
holds at most one open connection, and leaves it before it opens the next.
"""

import ssl
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, closing
from dataclasses import dataclass
from functools import cached_property

import anyio
import anyio.to_thread
import httpcore2
import httpx2
from sabir.errors import SettingsInvalid

from sabir_media.mimes import ALLOWED_MIMES
from sabir_media.network import (
    AsyncPinnedBackend,
    Deadline,
    PinnedBackend,
    Resolver,
    look_up_within,
    request_to,
    system_resolver,
)
from sabir_media.steps import FAILURES, FetchedMedia, Head, LookUp, Open, Progress, Read, Step, fetch_steps
from sabir_media.targets import read_rules

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


class GuardedFetcher:
    """Fetches media from public http and https addresses, and refuses everything else in one line.

    `max_bytes` limits a body, `timeout` (seconds) the whole fetch with its look-ups and redirects,
    `max_redirects` the redirects followed. `allowed_mimes` are the types taken. `allow_hosts` are
    `host:port` texts that may be visited although their name, address or port is not public; the other rules
    hold for them too, and a redirect may lead there.

    `resolver` looks names up, once for each hop; `ssl_context` holds the certificates to trust, by default
    the system's. Proxies, certificates and credentials from the environment are ignored, and no cookie is
    kept.

    A fetcher keeps nothing between fetches but the certificates: threads and tasks may share it, and there is
    nothing to close. Raises SettingsInvalid for an invalid setting.
    """

    def __init__(
        self,
        *,
        max_bytes: int = 20_000_000,
        timeout: float = 20.0,
        max_redirects: int = 3,
        allowed_mimes: Collection[str] = ALLOWED_MIMES,
        allow_hosts: Collection[str] = (),
        resolver: Resolver = system_resolver,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if not 0 < timeout < float("inf"):
            raise SettingsInvalid(f"timeout is {timeout}; expected the seconds that a fetch may take, more than 0")
        self._rules = read_rules(
            max_bytes=max_bytes, max_redirects=max_redirects, allowed_mimes=allowed_mimes, allow_hosts=allow_hosts
        )
        self._timeout = timeout
        self._resolver = resolver
        self._ssl_context = ssl_context

    def fetch_sync(self, url: str) -> FetchedMedia:
        """The bytes behind a URL, their type and final URL; raises a MediaRefused if a rule is broken."""
        progress = Progress(fetch_steps(url, self._rules))
        with closing(Driver(self._resources())) as driver:
            while progress.step is not None:
                try:
                    progress.answer(driver.perform(progress.step))
                except FAILURES as error:
                    progress.fail(error)
        return progress.media

    async def fetch(self, url: str) -> FetchedMedia:
        """As fetch_sync, on an event loop; cancelling it closes its connection."""
        progress = Progress(fetch_steps(url, self._rules))
        async with aclosing(AsyncDriver(self._resources())) as driver:
            while progress.step is not None:
                try:
                    progress.answer(await driver.perform(progress.step))
                except FAILURES as error:
                    progress.fail(error)
        return progress.media

    def _resources(self) -> Resources:
        return Resources(self._resolver, lambda: self._trust, Deadline.after(self._timeout))

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return self._ssl_context or httpx2.create_ssl_context(trust_env=False)
