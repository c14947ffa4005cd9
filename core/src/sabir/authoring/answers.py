"""An answer of an HTTP client as core reads it: status, headers, and the body's bytes in small pieces.

    compressed chunk ──▶ pieces of at most STEP bytes      whoever counts them can stop; a bomb never unfolds

No HTTP client is imported here: answers are used by the few names that httpx2 and its kin share. A chunk that gives
nothing yet gives an empty piece, so that whoever reads can look at the clock.
"""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from sabir.errors import ResponseInvalid

ENCODINGS = "gzip, deflate"
"""The `accept-encoding` of every request: what is decompressed here.
https://www.rfc-editor.org/rfc/rfc9110#name-content-codings"""
STEP = 65_536
"""Most bytes that are decompressed at once."""
_KINDS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
"""Content encoding → zlib's name of its format."""


class Inflater:
    """Decompresses one body step by step; what follows its end is passed over, as browsers do."""

    def __init__(self, encoding: str) -> None:
        if encoding not in _KINDS:
            raise ResponseInvalid(f"the answer is encoded as {encoding!r}; it was asked for as {ENCODINGS} or as it is")
        self._encoding = encoding
        self._stream = zlib.decompressobj(_KINDS[encoding])
        self._has_begun = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """What a chunk gives, in pieces of at most STEP bytes, of which one may be empty."""
        piece = self._step(chunk)
        yield piece
        while not self._stream.eof and (len(piece) == STEP or self._stream.unconsumed_tail):
            piece = self._step(self._stream.unconsumed_tail)
            yield piece

    def _step(self, data: bytes) -> bytes:
        try:
            piece = b"" if self._stream.eof else self._stream.decompress(data, STEP)
        except zlib.error as error:
            if self._has_begun or self._encoding != "deflate":
                raise ResponseInvalid(f"the answer is no {self._encoding}, as it says it is: {error}") from error
            # Some send deflate without the format around it, which the name stands for.
            self._stream, self._has_begun = zlib.decompressobj(-zlib.MAX_WBITS), True
            return self._step(data)
        self._has_begun = True
        return piece


class _Answer:
    """An answer whose body has not been read, unless its client did so."""

    def __init__(self, response: Any) -> None:  # an HTTP client's own response; none of them is imported here
        self._response = response
        self.status: int = response.status_code
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}

    def _inflater(self) -> Inflater | None:
        """What decompresses the body; None where it is not compressed."""
        encodings = self.headers.get("content-encoding", "").lower().replace("identity", "").strip(" ,")
        return Inflater(encodings) if encodings else None


class HTTPAnswer(_Answer):
    """An answer to a waiting client."""

    def chunks(self) -> Iterator[bytes]:
        """The body's bytes as they come, decompressed; ResponseInvalid for what cannot be."""
        if self._response.is_stream_consumed:
            found: Iterator[bytes] = self._response.iter_bytes()
            return found
        raw: Iterator[bytes] = self._response.iter_raw()
        inflater = self._inflater()
        return raw if inflater is None else (piece for chunk in raw for piece in inflater.feed(chunk))

    def close(self) -> None:
        """Close it; twice is harmless."""
        self._response.close()


class AsyncHTTPAnswer(_Answer):
    """An answer to an async client."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, decompressed; ResponseInvalid for what cannot be."""
        if self._response.is_stream_consumed:
            found: AsyncIterator[bytes] = self._response.aiter_bytes()
            return found
        raw: AsyncGenerator[bytes, None] = self._response.aiter_raw()
        inflater = self._inflater()
        return raw if inflater is None else _inflated(raw, inflater)

    async def aclose(self) -> None:
        """Close it; twice is harmless."""
        await self._response.aclose()


async def _inflated(raw: AsyncGenerator[bytes, None], inflater: Inflater) -> AsyncIterator[bytes]:
    async with aclosing(raw):
        async for chunk in raw:
            for piece in inflater.feed(chunk):
                yield piece
