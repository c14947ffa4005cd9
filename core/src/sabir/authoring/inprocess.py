"""Connections that are functions: of this process, and over SDKs that only wait.

    WireRequest ──▶ serve ──▶ Served(status, chunks)            embedded models, doubles: no network is needed
    WireRequest ──▶ begin ──▶ WaitingCall ──open──▶ response    in the caller's thread, or in one for an event loop

`serve` is asked at each `open`, in the caller's own thread or loop.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from sabir.base.errors import SabirError
from sabir.base.values import FrozenDict
from sabir.contract.provider import AsyncWireResponse, WireRequest, WireResponse
from sabir.options.threads import in_thread

Given = TypeVar("Given")


class Served(NamedTuple):
    """What a function answers: a status, the body's chunks, and headers (names in lower case)."""

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
        """There is nothing to give back."""


class _AsyncResponse:
    def __init__(self, served: Served) -> None:
        self.status, self._chunks, self.headers = served

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        """There is nothing to give back."""


class InProcessConnection:
    """A Connection without a client: it holds nothing that could be closed, and no error is the wire's."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve

    def open_sync(self, request: WireRequest) -> _Response:
        """The function's answer."""
        return _Response(self._serve(request))

    async def open(self, request: WireRequest) -> _AsyncResponse:
        """The function's answer."""
        return _AsyncResponse(self._serve(request))

    def translate(self, error: Exception) -> SabirError | None:
        """None: what the function raises is its own."""
        return None

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""


class WaitingCall(Protocol):
    """One request to an SDK that only waits; made without I/O."""

    def open(self) -> WireResponse:
        """Send; return at the response's headers, whatever the status."""

    def hang_up(self) -> None:
        """End what waits in another thread, be it `open` or a read: shut the socket down.

        It may come before `open` or after the end, and twice.
        """


class WaitingConnection:
    """Over an SDK that only waits: calls of an event loop run in threads. Who cancels one hangs up, so that these end.

    `begin` makes the call of a request, `translate` is as of a Connection, `close` gives back what all calls share.
    """

    def __init__(
        self,
        begin: Callable[[WireRequest], WaitingCall],
        translate: Callable[[Exception], SabirError | None],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin, self.translate, self.close = begin, translate, close

    def open_sync(self, request: WireRequest) -> WireResponse:
        """Send; return at the response's headers, whatever the status."""
        return self._begin(request).open()

    async def open(self, request: WireRequest) -> AsyncWireResponse:
        """The same in a thread."""
        waited = _Waited(self._begin(request))
        await waited.open()
        return waited

    async def aclose(self) -> None:
        """Give back what all calls share."""
        await in_thread(self.close)


class _Waited:
    """A call whose steps run in threads; its response is closed though nobody waits for it any more."""

    def __init__(self, call: WaitingCall) -> None:
        self._call = call
        self._is_given_up = False
        self._response: WireResponse

    async def open(self) -> None:
        """Send; return at the response's headers."""

        def opened() -> WireResponse:
            self._response = self._call.open()
            self.status, self.headers = self._response.status, self._response.headers
            self.secrets: tuple[str, ...] = getattr(self._response, "secrets", ())
            if self._is_given_up:
                self._response.close()
            return self._response

        await self._in_thread(opened)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come."""
        chunks = iter(self._response.chunks())
        while (chunk := await self._in_thread(lambda: next(chunks, None))) is not None:
            yield chunk

    async def aclose(self) -> None:
        """Close it; twice is harmless."""
        await self._in_thread(self._response.close)

    async def _in_thread(self, step: Callable[[], Given]) -> Given:
        try:
            return await in_thread(step)
        except BaseException:  # what fails has no more to say, and nobody waits for what is cancelled
            self._is_given_up = True
            self._call.hang_up()
            raise
