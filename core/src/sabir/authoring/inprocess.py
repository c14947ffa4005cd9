"""Connections made of functions: in this process, and over SDKs that only wait.

    WireRequest ──▶ serve ──▶ Served(status, chunks)            embedded models, doubles: no network is needed
    WireRequest ──▶ begin ──▶ WaitingCall ──open──▶ response    in the caller's thread, or in one for an event loop

`serve` is called at each `open`, in the caller's own thread or loop.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from sabir.base.errors import SabirError
from sabir.base.values import FrozenDict
from sabir.contract.provider import AsyncWireResponse, WireRequest, WireResponse
from sabir.options.threads import in_thread

Given = TypeVar("Given")


class Served(NamedTuple):
    """A function's answer: a status, the body's chunks, and headers (names in lower case)."""

    status: int
    chunks: Iterable[bytes]
    headers: Mapping[str, str] = FrozenDict()


Serve: TypeAlias = Callable[[WireRequest], Served]


class _Response:
    def __init__(self, served: Served) -> None:
        self.status, self._chunks, self.headers = served

    def chunks(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def close(self) -> None:
        """Do nothing; there is no connection to give back."""


class _AsyncResponse:
    def __init__(self, served: Served) -> None:
        self.status, self._chunks, self.headers = served

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        """Do nothing; there is no connection to give back."""


class InProcessConnection:
    """A Connection without a client: it has nothing to close, and none of its errors is a failure of the wire."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve

    def open_sync(self, request: WireRequest) -> _Response:
        """The function's answer."""
        return _Response(self._serve(request))

    async def open(self, request: WireRequest) -> _AsyncResponse:
        """The function's answer."""
        return _AsyncResponse(self._serve(request))

    def translate(self, error: Exception) -> SabirError | None:
        """None: the function's exceptions are raised unchanged."""
        return None

    def close(self) -> None:
        """Do nothing; there is nothing to close."""

    async def aclose(self) -> None:
        """Do nothing; there is nothing to close."""


class WaitingCall(Protocol):
    """One request to an SDK that only waits; made without I/O."""

    def open(self) -> WireResponse:
        """Send the request, and return once the response's headers are there, whatever the status."""

    def hang_up(self) -> None:
        """Shut the socket down, so that an `open` or a read that waits in another thread ends.

        It may be called before `open`, after the end, and twice.
        """


class WaitingConnection:
    """A Connection over an SDK that only waits: calls of an event loop run in threads. A cancelled call hangs up.

    `begin` makes the call for a request, `translate` is that of a Connection, `close` frees what all calls share.
    """

    def __init__(
        self,
        begin: Callable[[WireRequest], WaitingCall],
        translate: Callable[[Exception], SabirError | None],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin, self.translate, self.close = begin, translate, close

    def open_sync(self, request: WireRequest) -> WireResponse:
        """Send the request, and return once the response's headers are there, whatever the status."""
        return self._begin(request).open()

    async def open(self, request: WireRequest) -> AsyncWireResponse:
        """As `open_sync`, in a thread."""
        waited = _Waited(self._begin(request))
        await waited.open()
        return waited

    async def aclose(self) -> None:
        """Free what all calls share, in a thread."""
        await in_thread(self.close)


class _Waited:
    """A call whose steps run in threads; its response is closed even if the caller has left."""

    def __init__(self, call: WaitingCall) -> None:
        self._call = call
        self._is_given_up = False
        self._response: WireResponse

    async def open(self) -> None:
        """Send the request, and return once the response's headers are there."""

        def opened() -> WireResponse:
            self._response = self._call.open()
            self.status, self.headers = self._response.status, self._response.headers
            self.secrets: tuple[str, ...] = getattr(self._response, "secrets", ())
            if self._is_given_up:
                self._response.close()
            return self._response

        await self._in_thread(opened)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive."""
        chunks = iter(self._response.chunks())
        while (chunk := await self._in_thread(lambda: next(chunks, None))) is not None:
            yield chunk

    async def aclose(self) -> None:
        """Close it; twice is harmless."""
        await self._in_thread(self._response.close)

    async def _in_thread(self, step: Callable[[], Given]) -> Given:
        try:
            return await in_thread(step)
        except BaseException:  # a failed call sends no more, and a cancelled call has no reader
            self._is_given_up = True
            self._call.hang_up()
            raise
