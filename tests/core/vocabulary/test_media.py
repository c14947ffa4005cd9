"""Media by one URL: read by its header, sniffed by its first bytes, taken by a wire's table."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir import audio, image, video
from sabir.authoring import DataURL, MediaURL
from sabir.errors import MediaRefused, SabirError
from sabir.vocabulary.media import DATA_URL_CAP, MediaRule, mime_type, read_source, split_provider_file
from sabir.vocabulary.parts import MediaPart


@given(st.binary(min_size=1, max_size=200))
def test_bytes_come_back_from_their_data_url(data: bytes) -> None:
    found = DataURL.parse(MediaURL(DataURL.from_bytes(data, "application/octet-stream")).check())

    assert (found.content, found.base64) == (data, base64.b64encode(data).decode())
    assert found.mime == "application/octet-stream"


@pytest.mark.parametrize(
    ("url", "mime", "is_base64", "parameters", "data"),
    [
        ("data:image/PNG;base64,AAE=", "image/png", True, "", b"\0\1"),
        ("data:text/plain;charset=UTF-8,a%20b", "text/plain", False, "", b"a b"),
        ("data:text/plain;charset=latin-1;base64,AAE=", "text/plain", True, ";charset=latin-1", b"\0\1"),
        ("data:,a,b", "text/plain", False, "", b"a,b"),
        ("data:audio/L16;codec=pcm;rate=24000;base64,", "audio/l16", True, ";codec=pcm;rate=24000", b""),
        ("data:image/png;BASE64,AAE=", "image/png", True, "", b"\0\1"),
    ],
)  # fmt: skip
def test_a_data_url_is_read_by_its_header(url: str, mime: str, is_base64: bool, parameters: str, data: bytes) -> None:
    header = DataURL.parse(url)

    assert (header.mime, header.is_base64, header.parameters) == (mime, is_base64, parameters)
    assert (header.content, header.base64) == (data, base64.b64encode(data).decode())


NO_HEADER = "is not a data URL: expected data:<mime>;base64,<payload>"


@pytest.mark.parametrize(
    ("read", "url", "words"),
    [
        *((DataURL.parse, url, NO_HEADER) for url in (
            "data:image/png;base64", "data:;;,", "data: image/png,a", "data:" + "x" * 2000 + ",a", "")),
        (lambda url: DataURL.parse(url).content, "data:image/png;base64,A", "contains invalid base64"),
        (lambda url: MediaURL(url).check(), "data:image/png;base64," + "A" * DATA_URL_CAP,
         r"1000000\d\d characters\)' has more than 100000000 characters; upload the content to the provider"),
        (lambda url: MediaURL(url).check(), "https://example.org/" + "a" * 100_000, "may have at most 100000"),
        (split_provider_file, "provider-file:acme", "is not a provider file: expected provider-file:<provider>/<id>"),
    ],
    ids=lambda given: "" if callable(given) else given[:30],
)  # fmt: skip
def test_what_no_url_of_media_is_is_refused_in_one_short_line(read: Any, url: str, words: str) -> None:
    with pytest.raises(MediaRefused, match=words) as caught:
        read(url)

    assert len(str(caught.value)) < 250
    assert split_provider_file("provider-file:acme/files/abc-1") == ("acme", "files/abc-1")


@pytest.mark.parametrize(
    ("urls", "form"),
    [
        (("https://a.org", "Http://a.org", "HTTPS://a.org"), "url"),
        (("data:image/png,a", "DATA:image/png,a"), "data"),
        (("provider-file:acme/1",), "file"),
    ],
)  # fmt: skip
def test_a_url_has_one_of_three_forms(urls: tuple[str, ...], form: str) -> None:
    for url in urls:
        assert MediaPart(modality="image", url=url).form == form
        assert read_source(url, "image", None, 10) == MediaURL(url).check() == url


BRANDS = {
    "image/heic": "heic heix heim heis hevc hevx hevm hevs", "image/heif": "mif1 msf1 heif", "image/avif": "avif avis",
    "audio/mp4": "M4A  M4B  M4P  F4A  F4B ", "video/quicktime": "qt  ", "video/mp4": "isom mp41 mp42 avc1 M4V  dash",
}  # fmt: skip
MAKERS = {"image": image, "audio": audio, "video": video}


@pytest.mark.parametrize("mime", BRANDS)
def test_the_major_brand_of_an_iso_file_is_its_type(mime: str) -> None:
    brands = [BRANDS[mime][start : start + 4] for start in range(0, len(BRANDS[mime]), 5)]
    files = [b"\x00\x00\x00\x18ftyp" + brand.ljust(4).encode() + b"\x00\x00\x00\x00mif1heic" for brand in brands]

    assert {DataURL.sniff(file) for file in files} == {mime}
    assert {MAKERS[mime.partition("/")[0]](file).data_url().mime for file in files} == {mime}


SNIFFED = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff\xe0": "image/jpeg", b"GIF89a": "image/gif",
    b"RIFF\0\0\0\0WEBPVP8 ": "image/webp", b"RIFF\0\0\0\0WAVEfmt ": "audio/wav", b"XXXX\0\0\0\0WAVEfmt ": None,
    b"%PDF-1.7": "application/pdf", b"ID3\x04": "audio/mpeg", b"fLaC": "audio/flac", b"OggS": "audio/ogg",
    b"\0\0\0\x20ftypM4A ": "audio/mp4", b"\0\0\0\x20ftypisom": "video/mp4", b"\x1aE\xdf\xa3": "video/webm",
    b"hello": None, b"": None,
}  # fmt: skip


def test_the_first_bytes_tell_the_type() -> None:
    """PJ-17: a hint where none was given, never a decision."""
    assert {data: DataURL.sniff(data) for data in SNIFFED} == SNIFFED


@given(
    st.text(max_size=50) | st.text(max_size=30).map("data:{}".format) | st.text(max_size=30).map("https://{}".format)
)
def test_any_text_is_a_url_as_given_or_refused_in_one_line(url: str) -> None:
    """Law 10 for media: nothing else is raised, and nothing is normalised."""
    try:
        assert MediaURL(url).check() == url
    except SabirError as error:
        assert "\n" not in str(error)


def test_a_rule_takes_forms_and_types() -> None:
    """For each form the MIME types, "" for any; a hint is compared without case and parameters (PJ-17)."""
    any_url, rule = MediaRule(url="", data=r"image/(png|jpeg)"), MediaRule(url=r"image/png", file=r"image/png")

    for form, mime, said in [
        ("url", None, None), ("url", "image/tiff", None), ("data", "image/png", None), ("data", None, None),
        ("data", "image/tiff", "does not accept image/tiff"), ("data", "png", "does not accept png"),
        ("data", "image/*", "does not accept image/*"),
        ("file", "image/png", "accepts media only as url or data, not as file"),
    ]:  # fmt: skip
        assert any_url.refusal(form, mime) == said  # type: ignore[arg-type]
    assert MediaRule().refusal("url", None) == "does not accept media"
    for form in ("url", "file"):
        assert rule.refusal(form, "Image/PNG; q=1") is None
        assert rule.refusal(form, "image/tiff") == "does not accept image/tiff"
    for hint in ("a photograph", "png", "", "image/*", "*/*", "image/", "/png", "image/png, image/gif", "a/b/c"):
        assert mime_type(hint) is rule.refusal("url", hint) is rule.refusal("file", hint) is None
    assert mime_type(" Image/SVG+xml ; q=1") == "image/svg+xml"
    assert mime_type(None) is None
