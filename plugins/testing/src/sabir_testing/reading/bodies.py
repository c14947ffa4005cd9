"""A body in readable form: decompressed, and as a text, whatever its encoding.

unpacked      what `Content-Encoding` names, outermost last: gzip, deflate, br, zstd
reading       UTF-8, UTF-16 and UTF-32, by their mark or their zeros; and any encoding that the content type names
encoded       runs of base64 in a text, with what they hold
"""

import base64
import binascii
import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

_MARKS = (  # of 32 bits first: its mark begins as that of 16 bits does
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{6,}={0,2}")
_URL_SAFE = str.maketrans("-_", "+/")


def unpacked(body: bytes, encodings: str) -> bytes | None:
    """The body without what `Content-Encoding` says of it; None where that is unknown here, or not true.

    Some clients take the encoding away and keep its name: a plain text is what it is.
    """
    for name in reversed([each.strip().lower() for each in encodings.split(",")]):
        unpack = _UNPACKERS.get(name)
        if unpack is None:
            return None
        try:
            body = unpack(body)
        except Exception:  # each library has errors of its own
            return body if is_plain(body) else None
    return body


def is_plain(body: bytes) -> bool:
    """Whether it is a text in UTF-8 that a person could read."""
    try:
        return all(letter.isprintable() or letter.isspace() for letter in body.decode())
    except UnicodeDecodeError:
        return False


def _inflated(body: bytes) -> bytes:
    """What servers call deflate: with zlib's heading, or without."""
    try:
        return zlib.decompress(body)
    except zlib.error:
        return zlib.decompress(body, -zlib.MAX_WBITS)


def _by(*modules: str) -> Callable[[bytes], bytes]:
    """`decompress` of the first of those modules that is installed; ImportError where none is."""

    def unpack(body: bytes) -> bytes:
        for name in modules:
            try:
                module = import_module(name)
            except ImportError:
                continue
            found: bytes = module.decompress(body)
            return found
        raise ImportError(f"none of {', '.join(modules)} is installed")

    return unpack


_UNPACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.decompress,
    "x-gzip": gzip.decompress,
    "deflate": _inflated,
    "br": _by("brotli", "brotlicffi"),
    "zstd": _by("compression.zstd", "backports.zstd", "zstandard"),
}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x78\x01": "deflate", b"\x78\x9c": "deflate"} | {
    b"\x78\xda": "deflate"
}


def opened(body: bytes) -> bytes:
    """The body, decompressed if its first bytes name a known compression."""
    name = next((name for magic, name in _MAGIC.items() if body.startswith(magic)), "")
    return unpacked(body, name) or body


@dataclass(frozen=True)
class Reading:
    """A body as a text: `mark` and `text.encode(encoding)` are its bytes again."""

    text: str
    encoding: str
    mark: bytes = b""

    def written(self, text: str) -> bytes:
        """Another text in the same encoding."""
        return self.mark + text.encode(self.encoding)


def reading(body: bytes, content_type: str = "") -> Reading | None:
    """The body as a text; None where it is none."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if body.startswith(mark)), (b"", ""))
    named = _CHARSET.search(content_type)
    for name in (encoding, json.detect_encoding(body), named[1] if named else "utf-8"):
        try:
            text = body[len(mark) :].decode(name)
            if text.encode(name) == body[len(mark) :]:
                return Reading(text, name, mark)
        except (LookupError, UnicodeError, ValueError):
            continue
    return None


@dataclass(frozen=True)
class Encoded:
    """A run of base64 from `start` to `end` of a text, and the bytes that it holds."""

    start: int
    end: int
    held: bytes
    is_url_safe: bool
    is_padded: bool

    def written(self, held: bytes) -> str:
        """Other bytes in the same alphabet."""
        text = (base64.urlsafe_b64encode if self.is_url_safe else base64.b64encode)(held).decode()
        return text if self.is_padded else text.rstrip("=")


def encoded(text: str) -> Iterator[Encoded]:
    """The runs of base64 in a text, in order; many a word is one by chance, and holds nothing that reads."""
    for run in _RUN.finditer(text):
        letters = run.group().rstrip("=")
        letters = letters[: len(letters) - (len(letters) % 4 == 1)]  # a single letter more holds no byte
        padding = "=" * (-len(letters) % 4)
        try:
            held = base64.b64decode(letters.translate(_URL_SAFE) + padding, validate=True)
        except (binascii.Error, ValueError):
            continue
        end = run.start() + len(letters)
        is_padded = bool(padding) and text.startswith(padding, end)
        is_url_safe = "-" in letters or "_" in letters
        yield Encoded(run.start(), end + len(padding) * is_padded, held, is_url_safe, is_padded or not padding)
