"""Which IP addresses may be visited: a table of ranges that may not, and of those that hide an IPv4 address.

The tables follow the IANA IPv4 and IPv6 Special-Purpose Address Registries, and add a cloud vendor's address
that no registry lists. They are kept here instead of asking `ipaddress.is_global`, whose answer differs
between Python versions. An IPv6 address outside 2000::/3, the only range handed out for global unicast, is
refused unless it is a known wrapper of an IPv4 address, which is then judged in its stead.

A NAT64 prefix that a network operator chose within 2000::/3 cannot be told from any other public address.
"""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_REFUSED_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a carrier-grade NAT address"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "a cloud metadata address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a 6to4 relay address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a benchmarking address"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)

_REFUSED_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/32", "a Teredo address"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "a documentation address"),
        ("3fff::/20", "a documentation address"),
    )
)

_WRAPPERS: tuple[tuple[IPv6Network, int, str], ...] = tuple(
    (IPv6Network(network), shift, kind)
    for network, shift, kind in (
        ("::ffff:0:0/96", 0, "IPv4-mapped"),
        ("64:ff9b::/96", 0, "NAT64"),
        ("2002::/16", 80, "6to4"),
    )
)
"""A range, how far right its IPv4 address must be shifted to be the lowest 32 bits, and its name."""

_GLOBAL_UNICAST = IPv6Network("2000::/3")


def read_address(text: str) -> Address | None:
    """The address that a text spells in its one canonical form, or None."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def address_refusal(address: Address) -> str | None:
    """Why an address may not be visited, as a noun phrase, or None where it may."""
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _REFUSED_V4 if address in network), None)
    if address.scope_id is not None:
        return "an address bound to one network interface"
    for network, shift, kind in _WRAPPERS:
        if address in network:
            inner = address_refusal(IPv4Address(int(address) >> shift & 0xFFFFFFFF))
            return inner and f"{inner} inside an {kind} one"
    for refused, reason in _REFUSED_V6:
        if address in refused:
            return reason
    return None if address in _GLOBAL_UNICAST else "a reserved address"


def first_refusal(answers: Sequence[str], judge: Callable[[Address], str | None]) -> str | None:
    """The first answer of a look-up that is no address, or that `judge` refuses, with the reason; or None."""
    for answer in answers:
        address = read_address(answer)
        reason = "no IP address" if address is None else judge(address)
        if reason:
            return f"{answer!r}, {reason}"
    return None
