"""Connect only to checked addresses, never to a name, and never beyond a deadline.

httpcore2 tells its network backend to connect to a URL's host. The backends here connect to the checked addresses
instead, so that a second look-up cannot return another address (DNS rebinding). The Host header, the TLS server name
and the check of the certificate still use the URL's host. Proxies, cookies, caches and environment variables are not
used.
"""

import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import httpcore2

from sabir_media.targets import FetchTarget

Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""A function `(host name, port)` that returns IP addresses as texts; they are tried in this order. It may block, and
raises OSError if the name has no address."""


def system_resolver(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of a host name from the operating system. The default resolver of a GuardedFetcher.
    Raises OSError if the name has no address.
    """
    return [str(answer[4][0]) for answer in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time limit: `moment` is the time at which it is over, in seconds of `time.monotonic`."""

    moment: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """Return the deadline `seconds` from now."""
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Return the number of remaining seconds, more than 0. Raises TimeoutError after the deadline."""
        seconds = self.moment - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the deadline has passed")
        return seconds

    def shares(self, addresses: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Yield each address, and the number of seconds for connecting to it: when an address is yielded, the remaining
        time is divided evenly among this address and the following ones. Raises TimeoutError after the deadline.
        """
        for index, address in enumerate(addresses):
            yield address, self.remaining() / (len(addresses) - index)


def request_to(target: FetchTarget) -> httpcore2.Request:
    """Return the GET request for a target, without credentials and cookies. It asks for an uncompressed body."""
    headers: dict[bytes | str, bytes | str] = {
        "Host": target.host_header,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "User-Agent": "sabir-media",
    }
    url = httpcore2.URL(scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path)
    return httpcore2.Request("GET", url, headers=headers)


def look_up_within(resolver: Resolver, host: str, port: int, seconds: float) -> Sequence[str]:
    """Return the resolver's addresses. Raises the resolver's exception, and TimeoutError after `seconds`. The look-up
    cannot be stopped, so it then continues in its own thread.
    """
    answers: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(resolver(host, port))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=look_up, name=f"sabir-media look-up of {host}", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer for {host}") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


class TimedStream(httpcore2.NetworkStream):
    """A connection whose reads, writes and handshake end at the deadline. The argument `timeout` of its methods is
    ignored.
    """

    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes, at most `max_bytes`; empty at the end. Raises a timeout error at the deadline."""
        return self._stream.read(max_bytes, self._deadline.remaining())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes of `buffer`. Raises a timeout error at the deadline."""
        self._stream.write(buffer, self._deadline.remaining())

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Perform the TLS handshake before the deadline, and return the secured connection with the same deadline."""
        secured = self._stream.start_tls(ssl_context, server_hostname, self._deadline.remaining())
        return TimedStream(secured, self._deadline)

    # The type of the result depends on `info`; httpcore2 has the same annotation.
    def get_extra_info(self, info: str) -> Any:
        """Return the information on the connection with the name `info`, as httpcore2 does."""
        return self._stream.get_extra_info(info)


class PinnedBackend(httpcore2.NetworkBackend):
    """A network backend that connects only to `addresses`: it tries them in order until a connection succeeds."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._backend = httpcore2.SyncBackend()
        self._connection: httpcore2.NetworkStream | None = None

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore2.NetworkStream:
        """Connect to the first address that accepts a connection, and return the connection. Only `port` is used;
        `host` and all other arguments are ignored. Raises the error of the last address, or TimeoutError after the
        deadline.
        """
        failure: Exception = httpcore2.ConnectError("no address")
        for address, seconds in self._deadline.shares(self._addresses):
            try:
                self._connection = self._backend.connect_tcp(address, port, seconds)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return TimedStream(self._connection, self._deadline)
        raise failure

    def close(self) -> None:
        """Close the connection, also if its TLS handshake did not complete."""
        if self._connection is not None:
            self._connection.close()


class AsyncPinnedBackend(httpcore2.AsyncNetworkBackend):
    """Async version of PinnedBackend. Its connections have no deadline of their own: AsyncDriver cancels them."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._backend = httpcore2.AnyIOBackend()
        self._connection: httpcore2.AsyncNetworkStream | None = None

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        """Async version of `PinnedBackend.connect_tcp`."""
        failure: Exception = httpcore2.ConnectError("no address")
        for address, seconds in self._deadline.shares(self._addresses):
            try:
                self._connection = await self._backend.connect_tcp(address, port, seconds)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return self._connection
        raise failure

    async def aclose(self) -> None:
        """Close the connection, also if its TLS handshake did not complete."""
        if self._connection is not None:
            await self._connection.aclose()
