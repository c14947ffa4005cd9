"""The guarded fetcher, which downloads media after checking address, size and type.

Two drivers, one for blocking sockets and one for an event loop, perform the steps of a download; steps.py makes all
decisions. A driver has at most one open connection, and closes it before it opens the next.
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
from sabir_media.steps import FAILURES, Connect, Download, FetchedMedia, LookUp, Read, ResponseHead, Step, fetch_steps
from sabir_media.targets import read_rules

StepResult = Sequence[str] | ResponseHead | bytes


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a driver: the resolver, a function that returns the TLS context (called for https only), and
    the time at which the download must be complete.
    """

    resolver: Resolver
    tls_context: Callable[[], ssl.SSLContext]
    deadline: Deadline

    def tls_context_for(self, step: Connect) -> ssl.SSLContext | None:
        """Return the TLS context for a target, or None for plain http."""
        return self.tls_context() if step.target.scheme == "https" else None


class Driver:
    """Performs the steps of one download on blocking sockets. No operation exceeds the deadline."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._exit_stack = ExitStack()
        self._chunks: Iterator[bytes] = iter(())

    def perform(self, step: Step) -> StepResult:
        """Perform one step and return its result. Raises the exceptions of the network, and TimeoutError at the
        deadline.
        """
        match step:
            case LookUp(host, port):
                return look_up_within(self._resources.resolver, host, port, self._resources.deadline.remaining())
            case Connect():
                self.close()
                return self._connect_and_request(step)
            case Read():
                return next(self._chunks, b"")

    def close(self) -> None:
        """Close the open connection, if there is one."""
        self._exit_stack.close()

    def _connect_and_request(self, step: Connect) -> ResponseHead:
        """Connect to one of the checked addresses, send the request, and return the response's head."""
        request = request_to(step.target)
        backend = PinnedBackend(step.addresses, self._resources.deadline)
        connection = httpcore2.HTTPConnection(
            request.url.origin, ssl_context=self._resources.tls_context_for(step), network_backend=backend
        )
        self._exit_stack.callback(backend.close)
        self._exit_stack.callback(connection.close)
        response = connection.handle_request(request)
        self._chunks = response.iter_stream()
        return ResponseHead(response.status, response.headers)


class AsyncDriver:
    """Performs the steps of one download on an event loop. A step is cancelled at the deadline."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._exit_stack = AsyncExitStack()
        self._chunks: AsyncGenerator[bytes] | None = None

    async def perform(self, step: Step) -> StepResult:
        """Async version of `Driver.perform`."""
        with anyio.fail_after(self._resources.deadline.remaining()):
            match step:
                case LookUp(host, port):
                    look_up = anyio.to_thread.run_sync
                    return await look_up(self._resources.resolver, host, port, abandon_on_cancel=True)
                case Connect():
                    await self.aclose()
                    return await self._connect_and_request(step)
                case Read():
                    return await anext(self._chunks, b"") if self._chunks else b""

    async def aclose(self) -> None:
        """Close the open connection, if there is one, even during a cancellation."""
        with anyio.CancelScope(shield=True):
            await self._exit_stack.aclose()

    async def _connect_and_request(self, step: Connect) -> ResponseHead:
        """Async version of `Driver._connect_and_request`."""
        request = request_to(step.target)
        backend = AsyncPinnedBackend(step.addresses, self._resources.deadline)
        connection = httpcore2.AsyncHTTPConnection(
            request.url.origin, ssl_context=self._resources.tls_context_for(step), network_backend=backend
        )
        self._exit_stack.push_async_callback(backend.aclose)
        self._exit_stack.push_async_callback(connection.aclose)
        response = await connection.handle_async_request(request)
        self._chunks = response.aiter_stream()
        self._exit_stack.push_async_callback(self._chunks.aclose)
        return ResponseHead(response.status, response.headers)


class GuardedFetcher:
    """Downloads media from public http and https addresses, and raises MediaRefused for anything else.

    `max_bytes` is the maximum size of each medium. `timeout` is the maximum time of a download in seconds, including
    name look-ups and redirects. `max_redirects` is the maximum number of redirects of a download. `allowed_mimes` are
    the accepted MIME types. `allow_hosts` are texts of the form `host:port`: these hosts are allowed although their
    name, address or port is not public. All other limits apply to them too, and redirects to them are followed.

    `resolver` is a function that returns the addresses of a host name. It is called once for each URL with a host name,
    also after a redirect. `ssl_context` contains the trusted certificates, by default the system's. Proxies,
    certificates and credentials from the environment are ignored, and cookies are not stored.

    Threads and tasks may share a fetcher, and it need not be closed. Raises SettingsInvalid for an invalid argument.
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
            raise SettingsInvalid(f"timeout is {timeout}; expected a number of seconds greater than 0")
        self._rules = read_rules(
            max_bytes=max_bytes, max_redirects=max_redirects, allowed_mimes=allowed_mimes, allow_hosts=allow_hosts
        )
        self._timeout = timeout
        self._resolver = resolver
        self._ssl_context = ssl_context

    def fetch_sync(self, url: str) -> FetchedMedia:
        """Download a URL, and return the bytes, their MIME type and the URL after redirects. Raises MediaRefused (one
        of its subclasses) if the download is not allowed or fails.
        """
        download = Download(fetch_steps(url, self._rules))
        with closing(Driver(self._resources())) as driver:
            while download.step is not None:
                try:
                    download.resume(driver.perform(download.step))
                except FAILURES as error:
                    download.fail(error)
        return download.media

    async def fetch(self, url: str) -> FetchedMedia:
        """Async version of `fetch_sync`. If it is cancelled, the connection is closed."""
        download = Download(fetch_steps(url, self._rules))
        async with aclosing(AsyncDriver(self._resources())) as driver:
            while download.step is not None:
                try:
                    download.resume(await driver.perform(download.step))
                except FAILURES as error:
                    download.fail(error)
        return download.media

    def _resources(self) -> Resources:
        return Resources(self._resolver, lambda: self._tls_context, Deadline.after(self._timeout))

    @cached_property
    def _tls_context(self) -> ssl.SSLContext:
        return self._ssl_context or httpx2.create_ssl_context(trust_env=False)
