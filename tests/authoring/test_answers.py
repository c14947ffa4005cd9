"""Answers of a real HTTP client: decompressed in small steps, in whatever pieces they come."""

import asyncio
import gzip
import zlib
from collections.abc import Callable

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.authoring.answers import STEP, AsyncHTTPAnswer, HTTPAnswer, Inflater
from sabir.errors import ResponseInvalid
from sabir_testing.loopback import Server, whole

TEXT = b'{"text": "' + bytes(range(32, 127)) * 2_000 + b'"}'
RAW = zlib.compressobj(wbits=-zlib.MAX_WBITS)
PACKED = {
    "gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "deflate, bare": RAW.compress(TEXT) + RAW.flush(),
    "identity": TEXT,
}


def read_waiting(url: str) -> bytes:
    with httpx2.Client() as client, client.stream("POST", url) as response:
        return b"".join(HTTPAnswer(response).chunks())


def read_async(url: str) -> bytes:
    async def read() -> bytes:
        async with httpx2.AsyncClient() as client, client.stream("POST", url) as response:
            return b"".join([piece async for piece in AsyncHTTPAnswer(response).chunks()])

    return asyncio.run(read())


@pytest.mark.parametrize("read", [read_waiting, read_async])
@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_is_decompressed(encoding: str, read: Callable[[str], bytes]) -> None:
    """What was asked for, as its vendors send it."""
    answer = whole(PACKED[encoding], content_encoding=encoding.partition(",")[0])
    with Server([answer]) as server:
        assert read(server.url) == TEXT


@pytest.mark.parametrize("read", [read_waiting, read_async])
@pytest.mark.parametrize(("encoding", "says"), [("br", "'br'"), ("gzip, gzip", "gzip, gzip"), ("gzip", "is no gzip")])
def test_what_cannot_be_decompressed_is_refused(encoding: str, says: str, read: Callable[[str], bytes]) -> None:
    """An encoding that was not asked for, which could not be bounded, is named."""
    with Server([whole(b"neither", content_encoding=encoding)]) as server, pytest.raises(ResponseInvalid, match=says):
        read(server.url)


@given(size=st.integers(1, 300), encoding=st.sampled_from(["gzip", "deflate"]))
def test_pieces_are_small_however_the_chunks_fall(size: int, encoding: str) -> None:
    """A bomb unfolds step by step, and a chunk that gives nothing yet gives an empty piece."""
    inflater, packed = Inflater(encoding), PACKED[encoding]
    pieces = [list(inflater.feed(packed[at : at + size])) for at in range(0, len(packed), size)]

    assert all(pieces)
    assert max(len(piece) for found in pieces for piece in found) <= STEP
    assert b"".join(piece for found in pieces for piece in found) == TEXT


def test_what_follows_the_end_is_passed_over() -> None:
    """As browsers do; it is not kept either."""
    inflater = Inflater("gzip")

    assert b"".join(inflater.feed(PACKED["gzip"] + b"more")) == TEXT
    assert b"".join(inflater.feed(b"more")) == b""
