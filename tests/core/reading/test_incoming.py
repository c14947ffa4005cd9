"""Invalid Unicode of an answer is replaced, piece by piece, and nothing else changes."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from sabir.reading.incoming import mend

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
