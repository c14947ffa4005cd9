"""Invalid Unicode of an answer is replaced, piece by piece, and nothing else changes."""

import json
import re
import struct
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.dialect import ServerEventReader
from sabir.errors import ResponseInvalid
from sabir.reading.incoming import KEPT_BYTES, StreamState, mend

from tests.core.support import SCOPE, TinyDialect

ESCAPES = st.lists(
    st.sampled_from(
        [r"\ud83d", r"\ude00", r"\ud83d\ude00", r"\\", r"\n", r"\u00e9", r"\\ud83d", "a", "é", "\N{GRINNING FACE}"]
    )
)
LONE = re.compile("[\ud800-\udfff]")


@given(st.binary())
def test_bytes_become_what_python_replaces(body: bytes) -> None:
    mended, was_broken = mend(body)

    if b"\\u" not in body:
        assert mended.decode() == body.decode(errors="replace")
    assert was_broken == (mended != body)


@given(ESCAPES)
def test_escapes_of_half_a_pair_become_the_replacement_character(pieces: list[str]) -> None:
    body = json.dumps("".join(pieces), ensure_ascii=False).replace("\\\\", "\\")  # escapes as they were sent
    mended, was_broken = mend(body.encode())

    expected = LONE.sub("\N{REPLACEMENT CHARACTER}", json.loads(body))
    assert json.loads(mended) == expected
    assert was_broken == (LONE.search(json.loads(body)) is not None)


def test_large_bodies_are_mended_across_pieces() -> None:
    text = "é" * 2**20 + "\N{GRINNING FACE}"
    body = b"a" + text.encode()

    assert mend(body) == (body, False)
    assert mend(body + b"\xff") == (body + "\N{REPLACEMENT CHARACTER}".encode(), True)
    assert len(mend(b"\xff" * 2**21, 2**20)[0]) > 2**20


@pytest.mark.parametrize("where", ["feed", "close"])
def test_what_a_framing_raises_ends_in_an_error_of_the_library(where: str) -> None:
    """Law 10: a plugin's own framing meets bytes that it cannot cut."""

    def crack(*chunk: bytes) -> NoReturn:
        raise struct.error("unpack requires a buffer of 4 bytes")

    class Cracked(TinyDialect):
        def framing(self, content_type: str) -> Any:
            reader = ServerEventReader()
            setattr(reader, where, crack)
            return reader

    state = StreamState(Cracked(), SCOPE)

    with pytest.raises(ResponseInvalid, match="a body that is not"):
        list(state.feed(b"half") if where == "feed" else state.close())


def test_a_body_in_place_of_a_stream_is_kept_up_to_a_limit() -> None:
    state = StreamState(TinyDialect(), SCOPE)
    for _ in range(40):
        assert not list(state.feed(b" " * 4096))

    assert len(state._beginning) <= KEPT_BYTES + 4096
