"""A connection to a function of this process, for providers that need no network: embedded models, doubles.

    WireRequest ──▶ serve ──▶ Served(status, chunks)

The function is asked at each `open`, in the caller's own thread or loop.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from sabir.base.errors import SabirError
from sabir.base.values import FrozenDict
from sabir.contract.provider import WireRequest


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
