"""Many bytes are compressed, too many are refused with the limit and the remedy."""

import os
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_runtime.distributed.envelopes import LARGEST, pack, unpack
from sabir_runtime.distributed.errors import EnvelopeInvalid

LONG = b'{"text": "' + b"to be or not to be " * 1000 + b'"}'


@given(st.binary(max_size=200).map(lambda data: b"{" + data), st.integers(0, 300))
def test_what_is_packed_unpacks_to_the_same(body: bytes, compress_above: int) -> None:
    """A body is a JSON object: its brace tells it from what is compressed."""
    assert unpack(pack(body, "it", largest=1000, compress_above=compress_above)) == body


def test_many_bytes_are_compressed_where_that_makes_them_fewer() -> None:
    """It costs time; the server's limit is not to be met with an error where it can be met with compression."""
    random = b"{" + os.urandom(500)

    assert pack(LONG, "it", largest=1 << 20, compress_above=len(LONG)) == LONG
    assert len(pack(LONG, "it", largest=1 << 20, compress_above=len(LONG) - 1)) < len(LONG) / 10
    assert unpack(pack(LONG, "it", largest=1000, compress_above=1 << 30)) == LONG
    assert pack(random, "it", largest=1000, compress_above=0) == random


@pytest.mark.parametrize("data", [b"x", b"x\x9c broken", zlib.compress(LONG)[:-5]])
def test_damaged_bytes_are_an_error_of_our_own(data: bytes) -> None:
    with pytest.raises(EnvelopeInvalid, match="message of"):
        unpack(data)


def test_a_megabyte_cannot_unpack_to_gigabytes() -> None:
    packing = zlib.compressobj(9)
    bomb = b"".join(packing.compress(bytes(1 << 20)) for _ in range(256)) + packing.flush()
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(
            EnvelopeInvalid, match=r"unpacks to more than 33,554,432 bytes; send less, or increase `largest`"
        ):
            unpack(bomb)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 3 * LARGEST


@pytest.mark.parametrize("sent", [LONG, zlib.compress(LONG)], ids=["plain", "compressed"])
def test_a_body_may_have_exactly_so_many_bytes(sent: bytes) -> None:
    assert unpack(sent, len(LONG)) == LONG
    with pytest.raises(EnvelopeInvalid, match=f"more than {len(LONG) - 1:,}"):
        unpack(sent, len(LONG) - 1)
