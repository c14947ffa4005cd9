"""URLs of media: which URLs are valid, the MIME types of bytes, and which media a dialect accepts.

    path | bytes | URL ──▶ one URL string ──▶ form (url · data · file) ──▶ the dialect's media table

Only the header of a data URL is parsed; the payload never goes through a URL parser.
"""

import base64
import binascii
import mimetypes
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from errno import EINVAL
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

from pydantic import BaseModel
from pydantic_core import Url, ValidationError

from sabir.base.errors import MediaRefused
from sabir.base.renamed import callable_by_old_names

Modality: TypeAlias = Literal["image", "audio", "video", "document"]
"""The kind of a medium: "image", "audio", "video" or "document". sabir keeps the kind that the program chose, whatever
the MIME type.
"""
Form: TypeAlias = Literal["url", "data", "file"]
"""How the URL of a medium gives its content: "url" is a web address, "data" contains the bytes, "file" is a file id of
a provider.
"""

DATA_URL_CAP = 100_000_000
"""The largest number of characters that a data URL may have."""
FILE_CAP = 50_000_000
"""The default of `cap`: the largest file, or value of bytes, that `image`, `audio`, `video` and `document` accept."""
SCHEMES = ("http", "https", "data", "provider-file")
"""The schemes of the URLs that a media part may have."""

_HEADER = re.compile(r"data:([a-z0-9.+-]+/[a-z0-9.+*-]+)?((?:;[a-z0-9._+-]+(?:=[^;,]*)?)*),", re.IGNORECASE)
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")
_PROVIDER_FILE = re.compile(r"provider-file:([A-Za-z0-9_.-]+)/([^\s\x00-\x1f]+)\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]*+(?:%[0-9A-Fa-f]{2}[A-Za-z0-9+/=_-]*+)*+")
_DIGIT = re.compile(rb"[A-Za-z0-9+/_-]")
"""A digit of base64; the first byte needs two digits."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_REFUSED_MIMES = frozenset({"text/html", "application/xhtml+xml", "image/svg+xml", "text/javascript"})
"""MIME types that a data URL must not have, because they can contain scripts."""
_ALLOWED_MIMES = re.compile(
    r"(image|audio|video)/.+|text/.+|application/(pdf|json|xml|rtf|csv|x-ndjson|octet-stream|zip|msword|vnd\..+)"
)
"""Matches the MIME types that a data URL may have."""
_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"), (0, b"\xff\xd8\xff", "image/jpeg"), (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"), (8, b"WEBP", "image/webp"), (8, b"WAVE", "audio/wav"), (0, b"BM", "image/bmp"),
    (0, b"%PDF-", "application/pdf"), (0, b"ID3", "audio/mpeg"), (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"), (0, b"fLaC", "audio/flac"), (0, b"OggS", "audio/ogg"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    *((4, b"ftyphe" + end, "image/heic") for end in (b"ic", b"ix", b"im", b"is", b"vc", b"vx", b"vm", b"vs")),
    *((4, b"ftyp" + brand, "image/heif") for brand in (b"mif1", b"mif2", b"msf1", b"heif")),
    (4, b"ftypavi", "image/avif"), (4, b"ftypqt  ", "video/quicktime"),
    *((4, b"ftyp" + brand, "audio/mp4") for brand in (b"M4A", b"M4B", b"M4P", b"F4A", b"F4B")),
    (4, b"ftyp", "video/mp4"),
)  # fmt: skip
"""Offset and first bytes → MIME type; the first match counts. The four bytes after `ftyp` are the major brand of an ISO
base media file: https://mp4ra.org/registered-types/brands. A file of any other brand is a video."""


@callable_by_old_names
class DataURL(NamedTuple):
    """The parts of a `data:` URL, which contains a medium's bytes. Only the header is parsed, so large URLs are cheap.
    Created by `DataURL.parse`.

    >>> from sabir.authoring import DataURL
    >>> url = DataURL.from_bytes(b"%PDF-1.4")
    >>> url, DataURL.parse(url).mime
    ('data:application/pdf;base64,JVBERi0xLjQ=', 'application/pdf')
    """

    url: str
    """The complete URL."""
    mime: str
    """The MIME type in lower case, without parameters; "text/plain" if the URL names none."""
    is_base64: bool
    """Whether the payload is base64. Otherwise it is percent-encoded."""
    offset: int
    """The index of the payload's first character in `url`."""
    parameters: str
    """The MIME type's parameters, such as ";codec=pcm;rate=24000". `base64` and `charset=utf-8` are left out."""

    @classmethod
    def parse(cls, url: str) -> "DataURL":
        """Return the parts of a data URL. Raises MediaRefused if `url` is not a data URL, or if its header has more
        than 1,000 characters. The payload is not checked.
        """
        match = _HEADER.match(url, 0, 1000)
        if match is None:
            raise MediaRefused(f"{shorten(url)} is not a data URL: expected data:<mime>;base64,<payload>")
        mime, further = (match[1] or "text/plain").lower(), match[2]
        return cls(url, mime, further.lower().endswith(";base64"), match.end(), type_parameters(further))

    @property
    def base64(self) -> str:
        """The payload as base64 text: unchanged if `is_base64` is True, else converted. Computed at each access."""
        payload = self.url[self.offset :]
        return payload if self.is_base64 else base64.b64encode(unquote_to_bytes(payload)).decode()

    @property
    def type(self) -> str:
        """The MIME type as written in the URL, with its parameters but without `;base64`; "" if the URL names none."""
        return self.url[len("data:") : self.offset - 1 - len(";base64") * self.is_base64]

    @property
    def content(self) -> bytes:
        """The decoded bytes, computed at each access. Raises MediaRefused for invalid base64, which includes base64
        with percent-encoded characters.
        """
        try:
            return base64.b64decode(self.base64, validate=True)
        except binascii.Error as error:
            raise MediaRefused(f"{shorten(self.url)} contains invalid base64: {error}") from None

    @classmethod
    def from_bytes(cls, data: bytes, mime: str | None = None, otherwise: str = "application/octet-stream") -> str:
        """Return a data URL, as text, that contains these bytes.

        The MIME type is `mime`; if that is None or "", the type that the first bytes show; if they show none,
        `otherwise`.
        """
        return cls.from_base64(base64.b64encode(data).decode(), mime or cls.sniff(data) or otherwise)

    @classmethod
    def from_base64(cls, data: str, mime: str) -> str:
        """Return a data URL, as text, for base64 text and its MIME type. Spaces around the type and each
        of its parameters are removed.
        """
        return f"data:{';'.join(each.strip() for each in mime.split(';'))};base64,{data}"

    @classmethod
    def with_sniffed_type(cls, data: str, mime: str) -> str:
        """Return a data URL, as text, for base64 text from a vendor. The MIME type that the first bytes show takes
        precedence over `mime`.

        If `data` is already a data URL, return it unchanged.
        """
        if data[:5].lower() == "data:":
            return data
        with suppress(ValueError):
            mime = cls.sniff(base64.b64decode(data[:64])) or mime
        return f"data:{mime};base64,{data}"

    @staticmethod
    def sniff(data: bytes) -> str | None:
        """Return the MIME type that the first bytes of `data` show, or None if they show no known type."""
        for offset, signature, mime in _SIGNATURES:
            if data.startswith(signature, offset) and (offset != 8 or data.startswith(b"RIFF")):
                return mime
        return None


class MediaURL(NamedTuple):
    """Text that should be the URL of a medium: http(s), `data:` or `provider-file:`. `check` validates the text;
    creating a MediaURL does not.
    """

    url: str
    """The text, unchanged."""

    @property
    def scheme(self) -> str | None:
        """The URL's scheme in lower case, such as "https". None if the text has no scheme."""
        match = _SCHEME.match(self.url, 0, 100)
        return match and match[0].lower()

    @property
    def has_known_scheme(self) -> bool:
        """Whether media parts accept URLs with this scheme."""
        return self.scheme in SCHEMES

    @property
    def shown(self) -> str:
        """The quoted URL for error messages. Of more than 60 characters, the first 45 and the number are shown."""
        return shorten(self.url)

    def check(self) -> str:
        """Return the URL unchanged if a media part accepts it. Raises MediaRefused with the reason otherwise."""
        url, scheme = self.url, self.scheme
        if scheme in ("http", "https"):
            _check_web_url(url)
        elif scheme == "data":
            _check_data_url(url)
        elif url.startswith("provider-file:"):
            split_provider_file(url)
        else:
            known = "http(s)://, data:, or provider-file:<provider>/<id>"
            remedy = "for a path or bytes use sabir.image(), audio(), video() or document()"
            raise MediaRefused(f"{shorten(url)} is not a media URL: expected {known}; {remedy}")
        return url


def type_parameters(written: str) -> str:
    """Return the parameters after a MIME type, such as ";rate=24000", without `base64` and `charset=utf-8`, which have
    no effect.
    """
    parameters = (each.strip() for each in written.split(";"))
    return "".join(f";{each}" for each in parameters if each.lower() not in ("", "base64", "charset=utf-8"))


def split_provider_file(url: str) -> tuple[str, str]:
    """Return the provider and the file id of a `provider-file:<provider>/<id>` URL. Raises MediaRefused for another
    URL.
    """
    match = _PROVIDER_FILE.match(url)
    if match is None:
        raise MediaRefused(f"{shorten(url)} is not a provider file: expected provider-file:<provider>/<id>")
    return match[1], match[2]


def _check_web_url(url: str) -> None:
    """Raise MediaRefused for a web URL that is too long, is invalid, or has no host."""
    if len(url) > 100_000:
        raise MediaRefused(f"{shorten(url)} has {len(url)} characters; a web URL may have at most 100000")
    if _CONTROL.search(url) or "%00" in url:
        raise MediaRefused(f"{shorten(url)} contains a space, a control character or %00; percent-encode or remove it")
    try:
        has_host = bool(urlsplit(url).hostname)
        if has_host:
            Url(url)
    except ValueError as error:
        reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error
        raise MediaRefused(f"{shorten(url)} is not a URL: {reason}") from None
    if not has_host:
        raise MediaRefused(f"{shorten(url)} has no host; expected http(s)://host/…")


def _check_data_url(url: str) -> None:
    """Raise MediaRefused for a data URL that is too long, is empty, has invalid base64, or has a forbidden type."""
    if len(url) > DATA_URL_CAP:
        raise MediaRefused(
            f"{shorten(url)} has more than {DATA_URL_CAP} characters; upload the content to the provider"
        )
    _, mime, is_base64, offset, _ = DataURL.parse(url)
    if offset == len(url) or (is_base64 and len(_DIGIT.findall(unquote_to_bytes(url[offset : offset + 30]))) < 2):
        raise MediaRefused(f"{shorten(url)} is empty; pass a data URL with a payload")
    if "\0" in url or (is_base64 and not _BASE64.fullmatch(url, offset)):
        raise MediaRefused(f"{shorten(url)} contains invalid base64 or NUL; encode the bytes with base64.b64encode")
    if mime in _REFUSED_MIMES or not _ALLOWED_MIMES.fullmatch(mime):
        raise MediaRefused(f"{shorten(url)} is of type {mime}, which a media part cannot contain; convert it first")


def mime_type(hint: str | None) -> str | None:
    """Return the MIME type in a text, in lower case and without parameters; None if the text is not a MIME type."""
    kind = (hint or "").partition(";")[0].strip().lower()
    return kind if _MIME.fullmatch(kind) else None


def shorten(url: str) -> str:
    """Return a quoted URL for error messages. Of more than 60 characters, the first 45 and the number are shown."""
    return repr(url if len(url) <= 60 else f"{url[:45]}… ({len(url)} characters)")


DEFAULT_MIMES: Mapping[Modality, str] = {
    "image": "image/png", "audio": "audio/wav", "video": "video/mp4", "document": "application/pdf",
}  # fmt: skip
"""Modality → its most common MIME type."""


def read_source(source: str | Path | bytes, modality: Modality, mime: str | None, cap: int) -> str:
    """Return the URL of a source: a URL unchanged, a path or bytes as a data URL.

    The type is `mime` if that is a MIME type, else detected from the first bytes, else from the file's extension.
    Raises MediaRefused for a file that is missing or not regular, for more than `cap` bytes, for no bytes, and if the
    type is unknown.
    """
    if isinstance(source, str) and re.match(r"(?i:https?|data):|provider-file:", source):
        return source
    if isinstance(source, bytes):
        name, data, guess = f"a value of {len(source)} bytes", source, None
    else:
        name = repr(str(source))
        try:
            data = read_regular(Path(source), cap + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise MediaRefused(f"{name} cannot be read: {reason}; pass a URL, a path or bytes") from None
        guess = mimetypes.guess_type(str(source))[0]
    if len(data) > cap:
        raise MediaRefused(f"{name} has more bytes than cap={cap} allows; upload it, or pass a larger cap=")
    if not data:
        raise MediaRefused(f"{name} is empty; pass a file or bytes with content")
    kind = (mime if mime_type(mime) else None) or DataURL.sniff(data) or guess
    if kind is None:
        example = repr(DEFAULT_MIMES[modality])
        raise MediaRefused(f"the {modality} type of {name} is unknown; pass mime=, for example {example}")
    return DataURL.from_bytes(data, kind)


def read_regular(path: Path, most: int = -1) -> bytes:
    """Return the first `most` bytes of a regular file; by default all bytes.

    Raises OSError or ValueError for a path that cannot be read or is not a regular file, because a device has no end
    and a pipe may have no writer.
    """
    if path.exists() and not path.is_file():
        raise OSError(EINVAL, "it is not a regular file")
    with path.open("rb") as file:
        return file.read(most)


@dataclass(frozen=True, slots=True)
class MediaRule:
    """How one side of an API accepts media of one modality. The values of `Tables.media`.

    `url`, `data` and `file` are for media as a web address, as bytes, and as the id of a file at the provider. None
    means that the form is not accepted, "" that every MIME type is accepted, and any other text is a regular expression
    for the accepted MIME types. `parameters` is True if parameters of a data URL's MIME type are sent too; otherwise
    they are reported as a loss. `hints` is a strict, frozen pydantic model of the vendor hints that a medium may have;
    None means no hints.
    """

    url: str | None = None
    data: str | None = None
    file: str | None = None
    parameters: bool = False
    hints: type[BaseModel] | None = None

    def refusal(self, form: Form, mime: str | None) -> str | None:
        """Return why the rule does not accept a medium, as a phrase that follows the API's name in a loss. None if the
        rule accepts the medium.

        `form` is "url", "data" or "file". `mime` is the MIME type of a data URL; for other forms, the type that the
        program gave, or None. In every accepted form, a medium whose type is None is accepted; in the forms "url" and
        "file", a medium whose type is not a MIME type is accepted too.
        """
        pattern = getattr(self, form)
        if pattern is None:
            forms = [name for name in ("url", "data", "file") if getattr(self, name) is not None]
            return f"accepts media only as {' or '.join(forms)}, not as {form}" if forms else "does not accept media"
        if not pattern or mime is None:
            return None
        kind = mime_type(mime)
        return None if (re.fullmatch(pattern, kind) if kind else form != "data") else f"does not accept {mime}"
