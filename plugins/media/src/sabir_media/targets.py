"""One place to visit, read strictly from a URL.

    text ──▶ no unsafe characters ──▶ scheme ──▶ no user ──▶ host in one spelling ──▶ port ──▶ Target

A URL that two parsers could read differently is refused instead of repaired: backslashes, spaces, control
characters, %00, percent-encoded hosts, users, and every spelling of an IPv4 address but the one with four
decimal numbers between dots.
"""

import re
from dataclasses import dataclass
from urllib.parse import urljoin

import httpx2

from sabir_media.addresses import Address, address_refusal, read_address
from sabir_media.errors import AddressRefused, refusal
from sabir_media.rules import Rules

_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]|%00")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:@\[\]%]+)(?::(?P<port>[0-9]{1,5})?)?")
_NAME = re.compile(r"(?!.{254})(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
"""A name whose last label is a number: resolvers read it as an IPv4 address (WHATWG URL, host parsing)."""

_LOCAL_SUFFIXES = ("localhost", "local", "internal", "home.arpa", "localdomain")
"""Names of a machine or a private network: RFC 6761, RFC 6762, ICANN's .internal, RFC 8375."""
_METADATA_NAMES = frozenset({
    "metadata.google.internal", "metadata.goog", "metadata", "instance-data", "instance-data.ec2.internal",
    "metadata.azure.com", "metadata.azure.internal", "metadata.tencentyun.com", "metadata.packet.net",
    "metadata.platformequinix.com", "metadata.oraclecloud.com", "metadata.ec2.internal", "rancher-metadata",
})  # fmt: skip
_ALLOW = "if you mean it, add {host!r} to allow_hosts"


@dataclass(frozen=True, slots=True)
class Target:
    """A checked place: `host` in lower case without brackets or final dot, `path` as on the wire, with query.

    `address` is set where the host is one; `permitted` says that allow_hosts names this host and port.
    """

    url: str
    scheme: str
    host: str
    port: int
    path: bytes
    address: Address | None
    permitted: bool

    @property
    def host_header(self) -> str:
        """The Host header's value: brackets around IPv6, the port where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_target(url: str, rules: Rules) -> Target:
    """The place that a URL names; AddressRefused if it may not be visited."""
    authority = _read_authority(url)
    try:
        parsed = httpx2.URL(url).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError) as error:
        raise refusal(AddressRefused, url, f"it is no URL ({error})", "correct it") from None
    host = parsed.raw_host.decode("ascii").removesuffix(".")
    port = int(authority["port"] or _DEFAULT_PORTS[parsed.scheme])
    address = _read_host(url, host, authority["host"])
    host = host if address is None else str(address)
    permitted = (host, port) in rules.allow_hosts
    if not permitted:
        _check_place(url, host, port, address)
    return Target(str(parsed), parsed.scheme, host, port, parsed.raw_path, address, permitted)


def redirected(target: Target, location: str, rules: Rules) -> Target:
    """The place that a redirect leads to, under the same rules as the first; AddressRefused as there."""
    if _UNSAFE.search(location):
        raise refusal(AddressRefused, target.url, "it redirects to a URL with unsafe characters", "use the final URL")
    try:
        url = urljoin(target.url, location)
    except ValueError as error:
        reason = f"it redirects to what is no URL ({error})"
        raise refusal(AddressRefused, target.url, reason, "use the final URL") from None
    return read_target(url, rules)


def _read_authority(url: str) -> re.Match[str]:
    if _UNSAFE.search(url):
        raise refusal(
            AddressRefused,
            url,
            "it holds a space, a control character, a backslash or %00",
            "percent-encode or remove it",
        )
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in _DEFAULT_PORTS:
        raise refusal(AddressRefused, url, "only http:// and https:// are fetched", "pass the bytes instead")
    text = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in text:
        raise refusal(AddressRefused, url, "it holds a user name or password", "remove what stands before the @")
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise refusal(AddressRefused, url, "it names no plain host and port", "write it as http(s)://host/path")
    return match


def _read_host(url: str, host: str, spelling: str) -> Address | None:
    address = read_address(host)
    if _NUMBER.fullmatch(host) and (address is None or spelling.removesuffix(".") != host):
        reason = f"its host {host!r} is an IPv4 address in disguise"
        raise refusal(AddressRefused, url, reason, "write four decimal numbers, or a name")
    if address is None and not _NAME.fullmatch(host):
        raise refusal(AddressRefused, url, f"its host {host!r} is no host name", "correct it")
    return address


def _check_place(url: str, host: str, port: int, address: Address | None) -> None:
    remedy = _ALLOW.format(host=f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    reason = _place_refusal(host, port, address)
    if reason:
        raise refusal(AddressRefused, url, reason, remedy)


def _place_refusal(host: str, port: int, address: Address | None) -> str | None:
    if address is not None:
        kind = address_refusal(address)
        if kind:
            return f"its host is {kind}"
    elif host in _METADATA_NAMES:
        return f"its host {host!r} is a cloud metadata service"
    elif "." not in host or host.endswith(tuple(f".{suffix}" for suffix in _LOCAL_SUFFIXES)):
        return f"its host {host!r} is a local name"
    return None if port in _DEFAULT_PORTS.values() else f"its port {port} is not 80 or 443"
