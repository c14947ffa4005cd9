"""Read a URL strictly, and check whether a fetcher may download it.

    text ──▶ no unsafe characters ──▶ scheme ──▶ no user ──▶ host in one spelling ──▶ port ──▶ FetchTarget

A URL that two parsers could read differently is refused instead of repaired: backslashes, spaces, control
characters, %00, percent-encoded hosts, users, and every spelling of an IPv4 address except four decimal numbers
between dots.

A table contains the refused IP addresses. It follows the IANA IPv4 and IPv6 Special-Purpose Address Registries, and
adds a cloud vendor's address that no registry lists. `ipaddress.is_global` is not used, because its result differs
between Python versions. An IPv6 address outside of 2000::/3, the only range assigned for global unicast, is refused. If
an IPv6 address contains an IPv4 address in a known way, the IPv4 address is checked instead. A NAT64 prefix that a
network operator chose within 2000::/3 cannot be distinguished from any other public address.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urljoin

import httpx2
from sabir.errors import SettingsInvalid

from sabir_media.errors import AddressRefused, refusal
from sabir_media.mimes import NEVER_ALLOWED, plain_mime

Address = IPv4Address | IPv6Address

_REFUSED: Sequence[tuple[IPv4Network | IPv6Network, str]] = [
    (ip_network(network), reason)
    for reason, networks in {
        "an unspecified address": "0.0.0.0/8 ::/128",
        "a private address": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
        "a carrier-grade NAT address": "100.64.0.0/10",
        "a loopback address": "127.0.0.0/8 ::1/128",
        "a cloud metadata address": "168.63.129.16/32",
        "a link-local address": "169.254.0.0/16 fe80::/10",
        "a site-local address": "fec0::/10",
        "a documentation address": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
        "a 6to4 relay address": "192.88.99.0/24",
        "a Teredo address": "2001::/32",
        "a benchmarking address": "198.18.0.0/15",
        "a multicast address": "224.0.0.0/4 ff00::/8",
        "a reserved address": "192.0.0.0/24 240.0.0.0/4 2001::/23",
    }.items()
    for network in networks.split()
]
"""Refused ranges, each with the kind of its addresses. The first range that contains an address counts."""

_WRAPPERS: Sequence[tuple[IPv6Network, int, str]] = [
    (IPv6Network("::ffff:0:0/96"), 0, "IPv4-mapped"),
    (IPv6Network("64:ff9b::/96"), 0, "NAT64"),
    (IPv6Network("2002::/16"), 80, "6to4"),
]
"""IPv6 ranges whose addresses contain an IPv4 address: the range, the number of bits to the right of the IPv4 address,
and the range's name.
"""

_GLOBAL_UNICAST = IPv6Network("2000::/3")


def read_address(text: str) -> Address | None:
    """Parse an IP address. Return None for a text that Python's `ipaddress` does not accept."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def address_refusal(address: Address) -> str | None:
    """Return the kind of an address that is not allowed, such as "a private address"; None if the address is
    allowed.
    """
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return "an address bound to one network interface"
        for network, shift, kind in _WRAPPERS:
            if address in network:
                inner = address_refusal(IPv4Address(int(address) >> shift & 0xFFFFFFFF))
                return inner and f"{inner} inside an {kind} one"
    reason = next((reason for network, reason in _REFUSED if address in network), None)
    is_public = isinstance(address, IPv4Address) or address in _GLOBAL_UNICAST
    return reason or (None if is_public else "a reserved address")


def find_refusal(answers: Sequence[str], judge: Callable[[Address], str | None]) -> str | None:
    """Return a text with the first refused answer of a look-up and the reason, or None if all answers are allowed.

    An answer is refused if it is not an IP address, or if `judge` returns a reason for its address.
    """
    for answer in answers:
        address = read_address(answer)
        reason = "not an IP address" if address is None else judge(address)
        if reason:
            return f"{answer!r}, {reason}"
    return None


_HOST_AND_PORT = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of a fetcher. `allow_hosts` are pairs (name or address, port) whose name, address and port are not
    checked.
    """

    max_bytes: int
    max_redirects: int
    allowed_mimes: frozenset[str]
    allow_hosts: frozenset[tuple[str, int]]


def read_rules(
    *, max_bytes: int, max_redirects: int, allowed_mimes: Collection[str], allow_hosts: Collection[str]
) -> Rules:
    """Return the rules for a fetcher's arguments. Raises SettingsInvalid, which names the wrong argument."""
    if max_bytes < 1:
        raise SettingsInvalid(f"max_bytes is {max_bytes}; expected a maximum size in bytes, 1 or more")
    if max_redirects < 0:
        raise SettingsInvalid(f"max_redirects is {max_redirects}; expected a number of redirects, 0 or more")
    return Rules(max_bytes, max_redirects, _read_mimes(allowed_mimes), _read_hosts(allow_hosts))


def _read_mimes(mimes: Collection[str]) -> frozenset[str]:
    """Return the types by their usual names. Raises SettingsInvalid for a text that is not a type, and for a forbidden
    type.
    """
    _refuse_lone_text("allowed_mimes", mimes)
    for mime in mimes:
        known = plain_mime(mime)
        if known is None:
            raise SettingsInvalid(f"allowed_mimes has {mime!r}; expected type/subtype, for example 'image/png'")
        if known in NEVER_ALLOWED:
            raise SettingsInvalid(f"allowed_mimes has {mime!r}, which can contain scripts; remove it")
    return frozenset(plain_mime(mime) or "" for mime in mimes)


def _read_hosts(hosts: Collection[str]) -> frozenset[tuple[str, int]]:
    """Return pairs of a host and a port. Raises SettingsInvalid for a text that is not `host:port`."""
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
        raise SettingsInvalid(f"{name} is the single text {value!r}; write a list of texts: [{value!r}]")


_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]|%00")
"""Matches characters that two parsers of URLs could read differently."""
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:@\[\]%]+)(?::(?P<port>[0-9]{1,5})?)?")
_NAME = re.compile(r"(?!.{254})(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
"""Pattern of host names whose last label is a number. Resolvers read such a name as an IPv4 address (WHATWG URL, host
parsing).
"""

_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa", ".localdomain")
"""Endings of names within a machine or a private network: RFC 6761, RFC 6762, ICANN's .internal, RFC 8375."""
_METADATA_NAMES = frozenset({
    "metadata.google.internal", "metadata.goog", "metadata", "instance-data", "instance-data.ec2.internal",
    "metadata.azure.com", "metadata.azure.internal", "metadata.tencentyun.com", "metadata.packet.net",
    "metadata.platformequinix.com", "metadata.oraclecloud.com", "metadata.ec2.internal", "rancher-metadata",
})  # fmt: skip
"""Host names of the metadata services of clouds."""


@dataclass(frozen=True, slots=True)
class FetchTarget:
    """A checked URL. `host` is lower-case without brackets and final dot; `path` is encoded and includes the query.

    `address` is set if the host is an IP address. `permitted` is True if allow_hosts names this host and port.
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
        """The value of the Host header: the host (an IPv6 address in brackets), and the port if it is not the scheme's
        default port.
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_target(url: str, rules: Rules) -> FetchTarget:
    """Return the target of a URL. Raises AddressRefused if the URL is invalid or not allowed. Host names are not looked
    up here.
    """
    authority = _read_authority(url)
    try:
        parsed = httpx2.URL(url).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError) as error:
        raise refusal(AddressRefused, url, f"it is not a URL ({error})", "correct it") from None
    host = parsed.raw_host.decode("ascii").removesuffix(".")
    port = int(authority["port"] or _DEFAULT_PORTS[parsed.scheme])
    address = _read_host(url, host, authority["host"])
    host = host if address is None else str(address)
    permitted = (host, port) in rules.allow_hosts
    if not permitted:
        _check_host(url, host, port, address)
    return FetchTarget(str(parsed), parsed.scheme, host, port, parsed.raw_path, address, permitted)


def follow_redirect(target: FetchTarget, location: str, rules: Rules) -> FetchTarget:
    """Return the target of a redirect from `target`, under the same rules. `location` is the Location header, which may
    be relative. Raises AddressRefused if the new URL is invalid or not allowed.
    """
    if _UNSAFE.search(location):
        raise refusal(AddressRefused, target.url, "it redirects to a URL with unsafe characters", "use the final URL")
    try:
        url = urljoin(target.url, location)
    except ValueError as error:
        reason = f"it redirects to something that is not a URL ({error})"
        raise refusal(AddressRefused, target.url, reason, "use the final URL") from None
    return read_target(url, rules)


def _read_authority(url: str) -> re.Match[str]:
    """Return the match of a URL's host and port. Raises AddressRefused for a URL that could be read in two ways."""
    if _UNSAFE.search(url):
        reason = "it contains a space, a control character, a backslash or %00"
        raise refusal(AddressRefused, url, reason, "percent-encode or remove it")
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in _DEFAULT_PORTS:
        raise refusal(AddressRefused, url, "only http:// and https:// are fetched", "pass the bytes instead")
    text = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in text:
        raise refusal(AddressRefused, url, "it contains a user name or password", "remove everything before the @")
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise refusal(AddressRefused, url, "it has no valid host and port", "write it as http(s)://host/path")
    return match


def _read_host(url: str, host: str, spelling: str) -> Address | None:
    """Return the address if the host is an IP address. Raises AddressRefused for an unusual spelling of an address, and
    for invalid names. `spelling` is the host as written in the URL.
    """
    address = read_address(host)
    if _NUMBER.fullmatch(host) and (address is None or spelling.removesuffix(".") != host):
        reason = f"its host {host!r} is an IPv4 address in disguise"
        raise refusal(AddressRefused, url, reason, "write four decimal numbers, or a name")
    if address is None and not _NAME.fullmatch(host):
        raise refusal(AddressRefused, url, f"its host {host!r} is not a host name", "correct it")
    return address


def _check_host(url: str, host: str, port: int, address: Address | None) -> None:
    """Raise AddressRefused for a port, an address or a name that is not public."""
    reason = None if port in _DEFAULT_PORTS.values() else f"its port {port} is not 80 or 443"
    if address is not None:
        kind = address_refusal(address)
        reason = f"its host is {kind}" if kind else reason
    elif host in _METADATA_NAMES:
        reason = f"its host {host!r} is a cloud metadata service"
    elif "." not in host or host.endswith(_LOCAL_SUFFIXES):
        reason = f"its host {host!r} is a local name"
    if reason:
        host_and_port = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise refusal(AddressRefused, url, reason, f"to allow it, add {host_and_port!r} to allow_hosts")
