"""What a medium is: the server's word against the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_media import ALLOWED_MIMES, TypeRefused
from sabir_media.mimes import read_claim, verify_mime

from tests.media.server import PNG

URL = "https://example.com/a"
SAMPLES = {
    "application/pdf": b"%PDF-1.7\n%\xe2\xe3",
    "audio/flac": b"fLaC\x00\x00",
    "audio/mp4": b"\x00\x00\x00\x20ftypM4A \x00",
    "audio/mpeg": b"ID3\x04\x00",
    "audio/ogg": b"OggS\x00\x02",
    "audio/wav": b"RIFF\x24\x00\x00\x00WAVEfmt ",
    "audio/webm": b"\x1aE\xdf\xa3\x01",
    "image/avif": b"\x00\x00\x00\x20ftypavif\x00",
    "image/bmp": b"BM\x3a\x00\x00\x00",
    "image/gif": b"GIF89a\x01\x00",
    "image/heic": b"\x00\x00\x00\x18ftypheic\x00",
    "image/heif": b"\x00\x00\x00\x18ftypmif1\x00",
    "image/jpeg": b"\xff\xd8\xff\xe0\x00",
    "image/png": PNG,
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 ",
    "video/mp4": b"\x00\x00\x00\x20ftypisom\x00",
    "video/ogg": b"OggS\x00\x02",
    "video/quicktime": b"\x00\x00\x00\x14ftypqt  \x00",
    "video/webm": b"\x1aE\xdf\xa3\x01",
}
TEXTS = {
    "application/json": b'{"BM": 1}',
    "text/csv": b"BM,1\n",
    "text/markdown": b"<p align=center>hello</p>\n",
    "text/plain": "ID3 is a tag, <html> in the middle is text, ü".encode(),
}
MARKUP = [
    b"<!DOCTYPE html><p>",
    b"\xef\xbb\xbf\r\n <HTML>",
    b"<!-- a --> <!-- <b> -->\n<svg xmlns='x'>",
    b'<?xml version="1.0"?><svg/>',
    b"<script>alert(1)</script>",
    b"<!--->--><body onload=x>",
    b"<math><mtext></mtext></math>",
]

TAGS = [b"<img src=x>", b" \r\n\x0c<p>hello", b"<a", b"</p>", b"<!-- a -->text", b"<?php"]


def settled(content_type: str | None, data: bytes, allowed: frozenset[str] = ALLOWED_MIMES) -> str:
    return verify_mime(URL, read_claim(URL, content_type, allowed), data, allowed)


def refused(content_type: str | None, data: bytes, allowed: frozenset[str] = ALLOWED_MIMES) -> str:
    with pytest.raises(TypeRefused) as caught:
        settled(content_type, data, allowed)
    return str(caught.value)


def test_there_is_a_sample_of_every_allowed_type() -> None:
    """A type that is allowed but can never pass would be a promise not kept."""
    assert SAMPLES.keys() | TEXTS.keys() == ALLOWED_MIMES


@pytest.mark.parametrize("mime", sorted(SAMPLES | TEXTS))
def test_a_claim_that_agrees_with_the_bytes_is_the_type(mime: str) -> None:
    assert settled(f"{mime.upper()}; charset=utf-8", (SAMPLES | TEXTS)[mime]) == mime


@pytest.mark.parametrize("mime", sorted(set(SAMPLES) - {"audio/webm", "video/ogg"}))
@pytest.mark.parametrize("content_type", [None, "", "application/octet-stream", "binary/octet-stream"])
def test_a_server_that_says_nothing_leaves_the_word_to_the_bytes(mime: str, content_type: str | None) -> None:
    """Object stores often call everything octet-stream."""
    assert settled(content_type, SAMPLES[mime]) == mime


@pytest.mark.parametrize(
    ("content_type", "mime", "sample"),
    [
        ("image/jpg", "image/jpeg", "image/jpeg"),
        ("audio/x-wav", "audio/wav", "audio/wav"),
        ("audio/mp3", "audio/mpeg", "audio/mpeg"),
        ("video/x-m4v", "video/mp4", "video/mp4"),
        ("audio/mp4", "audio/mp4", "video/mp4"),
        ("video/quicktime", "video/quicktime", "video/mp4"),
    ],
)
def test_other_names_and_shared_containers_are_known(content_type: str, mime: str, sample: str) -> None:
    assert settled(content_type, SAMPLES[sample]) == mime


@given(st.sampled_from(sorted(SAMPLES)), st.sampled_from(sorted(SAMPLES)))
def test_a_type_of_another_family_is_refused(claimed: str, true: str) -> None:
    if claimed.partition("/")[0] != true.partition("/")[0] and SAMPLES[claimed][4:8] != SAMPLES[true][4:8]:
        message = refused(claimed, SAMPLES[true])

        assert f"the server reports the type {claimed}, but the bytes " in message


@pytest.mark.parametrize("mime", sorted(SAMPLES))
def test_bytes_without_a_signature_are_refused_under_every_type_that_has_one(mime: str) -> None:
    assert "but the bytes have another type" in refused(mime, b"hello, world")


@pytest.mark.parametrize("data", [*MARKUP, *TAGS])
@pytest.mark.parametrize("content_type", ["text/plain", "image/png", None, "application/json"])
def test_what_begins_with_a_tag_is_no_plain_text(data: bytes, content_type: str | None) -> None:
    """UP-22: a login page is no image, and any element can run a script; in Markdown a tag is text, a page is none."""
    assert "HTML, SVG or XML" in refused(content_type, data)
    assert settled("text/markdown", b"# Title\n\n" + data) == "text/markdown"
    if data in MARKUP:
        assert "HTML, SVG or XML" in refused("text/markdown", data)
    else:
        assert settled("text/markdown", data) == "text/markdown"


@pytest.mark.parametrize("data", [b"<3", b"< img", b"1 <img>", b"<", b"<<EOF"])
def test_a_sign_that_opens_no_tag_is_text(data: bytes) -> None:
    assert settled("text/plain", data) == "text/plain"


def test_a_type_that_is_not_allowed_is_refused_by_claim_and_by_bytes() -> None:
    only_png = frozenset({"image/png"})

    assert "image/gif is not allowed; to allow it, add it to allowed_mimes" in refused(
        "image/gif", SAMPLES["image/gif"], only_png
    )
    assert "image/gif is not allowed" in refused(None, SAMPLES["image/gif"], only_png)
    assert settled("image/png", PNG, only_png) == "image/png"


def test_a_type_that_no_signature_can_tell_is_believed_where_a_user_allowed_it() -> None:
    allowed = ALLOWED_MIMES | {"application/msword"}

    assert settled("application/msword", b"\xd0\xcf\x11\xe0", allowed) == "application/msword"
    assert "bytes are image/png" in refused("application/msword", PNG, allowed)


@pytest.mark.parametrize(
    ("content_type", "data", "reason"),
    [
        ("image/png", b"", "the body is empty"),
        ("text/plain", b"a\x00b", "the bytes have another type"),
        ("text/plain", "grün".encode("latin-1"), "the bytes have another type"),
        ("text/plain", b"%PDF-1.7", "the bytes are application/pdf"),
        (None, b"hello", "its type is unknown: the server sent no type, and the bytes have no known signature"),
        ("nonsense", PNG, "which is not a MIME type"),
        ("image/png, text/html", PNG, "which is not a MIME type"),
    ],
)
def test_what_is_no_medium_is_refused(content_type: str | None, data: bytes, reason: str) -> None:
    assert reason in refused(content_type, data)


def test_looking_for_markup_takes_time_in_proportion_to_the_body() -> None:
    """Comments that never lead to markup are skipped once, not tried in every combination."""
    assert settled("text/markdown", b"<!-- a -->" * 100_000) == "text/markdown"
    assert settled("text/markdown", b"<!--" * 100_000) == "text/markdown"
