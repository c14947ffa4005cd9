"""The fetcher's errors, as one tree, and the form of a URL in their texts: without credentials and query.

    sabir.errors.MediaRefused
    ├── AddressRefused      the URL, its host or the host's address may not be visited
    ├── SizeRefused         more bytes than allowed
    ├── TypeRefused         a type that is not allowed, or bytes that are not what the server calls them
    └── FetchFailed         no connection, a refusing or broken server, too many redirects
        └── FetchTimedOut   the time for the whole fetch is used up

Each message is one line: the URL, the reason, the remedy.
"""

import re

from sabir.authoring import one_line
from sabir.errors import MediaRefused

_HIERARCHICAL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)", re.DOTALL)
_OPAQUE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PLAIN_AUTHORITY = re.compile(r"(\[[^\[\]@]*\]|[^:@\[\]\\]*)(:[0-9]*)?")


class AddressRefused(MediaRefused):
    """The URL, its host, or an address of its host may not be visited."""


class SizeRefused(MediaRefused):
    """The medium has more bytes than the fetcher may read."""


class TypeRefused(MediaRefused):
    """The medium's type is not allowed, or its bytes are not what the server calls them."""


class FetchFailed(MediaRefused):
    """The medium could not be fetched: no connection, a refusing or broken server, too many redirects."""


class FetchTimedOut(FetchFailed):
    """The whole fetch, with look-ups and redirects, took longer than its limit."""


def public_name(url: str) -> str:
    """A URL as an error may show it, quoted: no credentials, query or fragment; at most 120 characters."""
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
    """An error of that kind, ready to raise: the URL, the reason and the remedy in one line."""
    return error(one_line(f"{public_name(url)} was not fetched: {reason}; {remedy}"))
