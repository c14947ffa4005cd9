"""The errors of downloads. Their texts show a URL without credentials and query.

    sabir.errors.MediaRefused
    ├── AddressRefused      the URL, its host or the host's address is not allowed
    ├── SizeRefused         more bytes than allowed
    ├── TypeRefused         the type is not allowed or not known, or the bytes have another type than the server reports
    └── FetchFailed         no connection, a status other than 200, a compressed body, or too many redirects
        └── FetchTimedOut   the download took too long

Each message is one line: the URL, the reason, the remedy.
"""

import re

from sabir.authoring import one_line
from sabir.errors import MediaRefused

_HIERARCHICAL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)", re.DOTALL)
_OPAQUE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PLAIN_AUTHORITY = re.compile(r"(\[[^\[\]@]*\]|[^:@\[\]\\]*)(:[0-9]*)?")


class AddressRefused(MediaRefused):
    """Raised for a URL, host, port or IP address that the fetcher does not allow, also after a redirect. Also
    raised for an invalid URL. The fetcher's `allow_hosts` can allow a host and port.
    """


class SizeRefused(MediaRefused):
    """Raised for media with more bytes than the fetcher's `max_bytes`. The download is stopped."""


class TypeRefused(MediaRefused):
    """Raised for media whose type is not in the fetcher's `allowed_mimes`, is not known, or can contain scripts, and
    for media whose bytes do not have the type that the server reports. Also raised for an empty body.
    """


class FetchFailed(MediaRefused):
    """Raised if a download fails: no connection, an unknown host, a status other than 200, a compressed body, or too
    many redirects.
    """


class FetchTimedOut(FetchFailed):
    """Raised if a download, including name look-ups and redirects, takes longer than the fetcher's `timeout`."""


def public_name(url: str) -> str:
    """Return a URL in quotes for an error, without credentials, query and fragment, and cut to 120 characters."""
    match = _HIERARCHICAL.match(url)
    if match is None:
        scheme = _OPAQUE.match(url)
        return repr(f"{scheme[1]}:…" if scheme and "@" not in url else "…")
    authority = match[2].rpartition("@")[2]
    if _PLAIN_AUTHORITY.fullmatch(authority) is None:
        return repr(f"{match[1]}://…")
    text = f"{match[1]}://{authority}{match[3]}"
    return repr(text if len(text) <= 120 else f"{text[:119]}…")


def refusal(error: type[MediaRefused], url: str, reason: str, remedy: str) -> MediaRefused:
    """Return an error of the class `error`, with the URL, the reason and the remedy in one line."""
    return error(one_line(f"{public_name(url)} was not fetched: {reason}; {remedy}"))
