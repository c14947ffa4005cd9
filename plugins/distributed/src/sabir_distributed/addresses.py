"""The URLs of NATS servers, parsed strictly, and shown without possible secrets.

    "nats://ada:secret@one:4222, tls://two" ──read_addresses──▶ two addresses, shown as nats://one:4222,tls://two

Errors repeat nothing of an invalid URL: a misplaced part may belong to a password.
"""

import re
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

from sabir_distributed.errors import AccessInvalid

ENCRYPTED = ("tls", "wss")
SCHEMES = ("nats", "ws", *ENCRYPTED)
_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+(%[\w.-]+)?")
_FORM = "write nats://host:4222 or tls://host:4222, several with commas between them, and credentials elsewhere"


@dataclass(frozen=True)
class Address:
    """One server."""

    url: str = field(repr=False)
    """The whole URL, possible secrets included."""
    shown: str
    """The URL with only its scheme, host and port, for display."""
    is_encrypted: bool
    """Whether it demands TLS."""
    has_login: bool
    """Whether it holds credentials."""
    secrets: tuple[str, ...] = field(repr=False)
    """A password or a token, as given and unquoted."""


def read_addresses(target: str) -> tuple[Address, ...]:
    """The servers of a target; raises AccessInvalid, which repeats nothing of it, if one is invalid."""
    given = [each.strip() for each in target.split(",")]
    return tuple(_read(each, f"NATS URL {place} of {len(given)}") for place, each in enumerate(given, 1))


def without_secrets(text: str, addresses: tuple[Address, ...]) -> str:
    """Another library's text about a connection, without the secrets of the URLs."""
    for secret in sorted({each for address in addresses for each in address.secrets}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _read(given: str, what: str) -> Address:
    scheme, colon, rest = given.rpartition("://")
    scheme = scheme.lower() if colon else "nats"
    if scheme not in SCHEMES:
        _refuse(what, f"its scheme is none of {', '.join(SCHEMES)}")
    if "@" in rest and not colon and not what.endswith(" of 1"):
        _refuse(what, "it has a user and no scheme, or a comma stands in a password")
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        host, port = parts.hostname or "", parts.port
    except ValueError:  # its text may repeat the invalid part
        _refuse(what, "its port is no number, or its host is none")
    if not _HOST.fullmatch(host) or not given.isprintable() or " " in given:
        _refuse(what, "it has no host, or one that is none")
    behind = f"{parts.path}?{parts.query}#{parts.fragment}"
    if port == 0 or "@" in behind or (scheme in ("nats", "tls") and behind not in ("?#", "/?#")):
        _refuse(what, "something stands behind the host that is no port; a token is no part of a query")
    shown = f"[{host}]" if ":" in host else host
    shown = f"{scheme}://{shown}" if colon else shown
    return Address(
        url=f"{scheme}://{rest}",
        shown=shown if port is None else f"{shown}:{port}",
        is_encrypted=scheme in ENCRYPTED,
        has_login="@" in parts.netloc,
        secrets=_secrets(parts),
    )


def _secrets(parts: SplitResult) -> tuple[str, ...]:
    held = filter(None, (parts.username if parts.password is None else parts.password, parts.query))
    return tuple(each for secret in held for each in (secret, unquote(secret)))


def _refuse(what: str, reason: str) -> NoReturn:
    raise AccessInvalid(f"{what} cannot be read: {reason}; {_FORM}") from None
