"""The MIME type of a medium: the type that the server reports, checked against the bytes.

    Content-Type ──▶ the server's claim (None: no claim) ──┐
                                                           ├──▶ the type, or a refusal
    bytes ──▶ the type by core's file signatures ──────────┘

A claim and the bytes must agree. Without a claim (no Content-Type, or octet-stream), the bytes decide. Text has no
signature. It must be UTF-8 without NUL, and must not be markup that a browser would run: a body that begins with a tag
is refused as a page, even if the server claims another type. Markdown may begin with a tag, but not with a tag of a
page, drawing or script.
"""

import re

from sabir.authoring import DataURL

from sabir_media.errors import TypeRefused, refusal

ALLOWED_MIMES = frozenset({
    "application/json", "application/pdf",
    "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm",
    "image/avif", "image/bmp", "image/gif", "image/heic", "image/heif", "image/jpeg", "image/png",
    "image/webp",
    "text/csv", "text/markdown", "text/plain",
    "video/mp4", "video/ogg", "video/quicktime", "video/webm",
})  # fmt: skip
"""The MIME types that a GuardedFetcher accepts by default. The bytes must have the signature of the type or of a
related type, except for text types and JSON, whose bytes must be UTF-8.
"""

NEVER_ALLOWED = frozenset({
    "application/javascript", "application/xhtml+xml", "application/xml", "image/svg+xml", "text/html",
    "text/javascript", "text/xml",
})  # fmt: skip
"""Types that can contain scripts. They are never accepted: `allowed_mimes` with one of them raises SettingsInvalid."""

_MEANINGLESS = frozenset({"application/octet-stream", "binary/octet-stream", "application/force-download"})
"""Types that say nothing about the content, so that the bytes decide."""
_TYPE = re.compile(r"\s*([a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+)\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)
_ALIASES = {
    "application/ogg": "audio/ogg", "application/x-pdf": "application/pdf",
    "audio/m4a": "audio/mp4", "audio/mp3": "audio/mpeg", "audio/opus": "audio/ogg", "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav", "audio/x-flac": "audio/flac", "audio/x-m4a": "audio/mp4", "audio/x-mpeg": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-ms-bmp": "image/bmp", "image/x-png": "image/png",
    "text/x-markdown": "text/markdown", "video/x-m4v": "video/mp4",
}  # fmt: skip
"""Alias of a type → its usual name."""
_RELATED = {
    "audio/mp4": frozenset({"video/mp4"}),
    "audio/ogg": frozenset({"video/ogg"}),
    "image/heic": frozenset({"image/heif"}),
    "image/heif": frozenset({"image/avif", "image/heic"}),
    "video/mp4": frozenset({"audio/mp4", "video/quicktime"}),
    "video/quicktime": frozenset({"video/mp4"}),
    "video/webm": frozenset({"audio/webm"}),
}
"""Type by signature → other types that the server may claim for such bytes."""
_WITH_SIGNATURE = frozenset(mime for mime in ALLOWED_MIMES if not mime.startswith("text/")) - {"application/json"}
"""Types whose bytes always have a signature."""
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*+<[a-z/!?]", re.IGNORECASE)
"""Pattern of a body that begins with a tag, a comment or a declaration, after an optional byte order mark and spaces.
https://html.spec.whatwg.org/#tag-open-state
"""
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>\s+|<!--.*?-->)*+<(?:!doctype|html|head|body|script|iframe|svg|math|\?xml)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Pattern of beginnings that Markdown must not have, also after comments. Its groups are atomic, so that matching takes
linear time.
"""
_REMEDY = "download it yourself, convert it, and pass the bytes"


def plain_mime(text: str) -> str | None:
    """Return the MIME type in a Content-Type header: in lower case, without parameters, and with the usual name in
    place of an alias. None for a text that is not a MIME type.
    """
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    mime = match[1].lower()
    return _ALIASES.get(mime, mime)


def read_claim(url: str, content_type: str | None, allowed: frozenset[str]) -> str | None:
    """Return the type that the server claims; None for a missing or meaningless claim. Raises TypeRefused for a text
    that is not a MIME type, and for a type that is not allowed.
    """
    if content_type is None or not content_type.strip():
        return None
    mime = plain_mime(content_type)
    if mime is None:
        reason = f"the server reports the type {content_type[:80]!r}, which is not a MIME type"
        raise refusal(TypeRefused, url, reason, _REMEDY)
    if mime in _MEANINGLESS:
        return None
    return _check_allowed(url, mime, allowed)


def verify_mime(url: str, claimed: str | None, data: bytes, allowed: frozenset[str]) -> str:
    """Return the type of a complete body. Raises TypeRefused for an empty body, for HTML, SVG and XML, for an unknown
    or forbidden type, and for bytes that do not have the type that the server claims.
    """
    if not data:
        raise refusal(TypeRefused, url, "the body is empty", "check the URL")
    if (_PAGE if claimed == "text/markdown" else _MARKUP).match(data):
        raise refusal(TypeRefused, url, "the body is HTML, SVG or XML, which can contain scripts", _REMEDY)
    detected = DataURL.sniff(data)
    if claimed is None:
        if detected is None:
            reason = "its type is unknown: the server sent no type, and the bytes have no known signature"
            raise refusal(TypeRefused, url, reason, _REMEDY)
        return _check_allowed(url, detected, allowed)
    if _is_consistent(claimed, detected, data):
        return claimed
    content = f"are {detected}" if detected else "have another type"
    raise refusal(TypeRefused, url, f"the server reports the type {claimed}, but the bytes {content}", _REMEDY)


def _is_consistent(claimed: str, detected: str | None, data: bytes) -> bool:
    """Return whether bytes may have the claimed type. `detected` is the type of their signature, or None."""
    if claimed.startswith("text/") or claimed == "application/json":
        return _is_plain_text(data)
    if detected is None:
        return claimed not in _WITH_SIGNATURE
    return claimed == detected or claimed in _RELATED.get(detected, ())


def _is_plain_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8 text without NUL, and not a PDF."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\x00" not in data and not data.startswith(b"%PDF-")


def _check_allowed(url: str, mime: str, allowed: frozenset[str]) -> str:
    """Return the type. Raises TypeRefused if the type can contain scripts or is not in `allowed`."""
    if mime in NEVER_ALLOWED:
        raise refusal(TypeRefused, url, f"its type is {mime}, which can contain scripts", _REMEDY)
    if mime not in allowed:
        raise refusal(TypeRefused, url, f"its type {mime} is not allowed", "to allow it, add it to allowed_mimes")
    return mime
