"""Refuse requests that no connection may send: a path with "..", or headers that the HTTP client itself sets.

    WireRequest ──check_request──▶ SettingsInvalid, before a client is created

Both come from the user: some APIs put the model's name into the path, and headers come from `Settings.extra_headers`.
"""

from urllib.parse import unquote

from sabir.base.errors import SettingsInvalid, one_line
from sabir.contract.provider import WireRequest

HOP_BY_HOP = frozenset({
    "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers of a single connection, which the HTTP client sets itself. With a second value, two servers may disagree
about where the request ends: https://www.rfc-editor.org/rfc/rfc9112#section-11.2
"""


def check_request(request: WireRequest) -> None:
    """Raise SettingsInvalid for a header in HOP_BY_HOP, and for a path with `..`."""
    if names := sorted(name for name in request.headers if name.lower() in HOP_BY_HOP):
        raise SettingsInvalid(f"extra_headers has {', '.join(names)}, which the HTTP client sets itself; remove it")
    check_path(request.path)


def check_path(path: str) -> None:
    """Raise SettingsInvalid for a path with `..`, percent-encoded or not, because it would lead to another resource."""
    if ".." in unquote(unquote(path)):
        raise SettingsInvalid(f"the model's name makes the path {one_line(path, 100)!r}; expected a name without '..'")
