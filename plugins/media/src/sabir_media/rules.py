"""A fetcher's rules: a frozen value, checked once when it is made, that every decision reads."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from sabir.errors import SettingsInvalid

from sabir_media.addresses import read_address
from sabir_media.mimes import NEVER_ALLOWED, plain_mime

_HOST_AND_PORT = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Rules:
    """Sizes in bytes; hosts as (name or address, port) pairs that the address and port checks let pass."""

    max_bytes: int
    max_redirects: int
    allowed_mimes: frozenset[str]
    allow_hosts: frozenset[tuple[str, int]]


def read_rules(
    *, max_bytes: int, max_redirects: int, allowed_mimes: Collection[str], allow_hosts: Collection[str]
) -> Rules:
    """The rules that a user's settings make; SettingsInvalid names the setting that is wrong."""
    if max_bytes < 1:
        raise SettingsInvalid(f"max_bytes is {max_bytes}; expected the number of bytes to read at most, 1 or more")
    if max_redirects < 0:
        raise SettingsInvalid(f"max_redirects is {max_redirects}; expected 0, to follow none, or more")
    return Rules(max_bytes, max_redirects, _read_mimes(allowed_mimes), _read_hosts(allow_hosts))


def _read_mimes(mimes: Collection[str]) -> frozenset[str]:
    _refuse_lone_text("allowed_mimes", mimes)
    for mime in mimes:
        known = plain_mime(mime)
        if known is None:
            raise SettingsInvalid(f"allowed_mimes has {mime!r}; expected type/subtype, for example 'image/png'")
        if known in NEVER_ALLOWED:
            raise SettingsInvalid(f"allowed_mimes has {mime!r}, which can carry scripts; remove it")
    return frozenset(plain_mime(mime) or "" for mime in mimes)


def _read_hosts(hosts: Collection[str]) -> frozenset[tuple[str, int]]:
    _refuse_lone_text("allow_hosts", hosts)
    pairs = set()
    for host in hosts:
        match = _HOST_AND_PORT.fullmatch(host)
        if match is None or not 0 < int(match[3]) < 65536:
            raise SettingsInvalid(f"allow_hosts has {host!r}; expected host:port, for example 'files.intranet:8080'")
        name = (match[1] or match[2]).lower().removesuffix(".")
        pairs.add((str(read_address(name) or name), int(match[3])))
    return frozenset(pairs)


def _refuse_lone_text(name: str, value: Collection[str]) -> None:
    if isinstance(value, str):
        raise SettingsInvalid(f"{name} is the text {value!r}; expected a collection of texts: wrap it in a tuple")
