"""Which addresses may be visited: the tables, held against the standard library's own (UP-22)."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir_media.targets import address_refusal

REFUSED = {
    "an unspecified address": "0.0.0.0 ::",
    "a private address": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd00:ec2::254",
    "a carrier-grade NAT address": "100.64.0.1",
    "a loopback address": "127.0.0.1 ::1",
    "a cloud metadata address": "168.63.129.16",
    "a link-local address": "169.254.169.254 fe80::1",
    "a reserved address": "192.0.0.192 240.0.0.1 255.255.255.255 ::7f00:1 ::ffff:0:7f00:1 64:ff9b:1::a00:1 100::1",
    "a benchmarking address": "198.18.0.1",
    "a documentation address": "203.0.113.7 2001:db8::1 3fff::1",
    "a 6to4 relay address": "192.88.99.1",
    "a multicast address": "224.0.0.1 ff02::1",
    "a site-local address": "fec0::1",
    "a Teredo address": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "a loopback address inside an IPv4-mapped one": "::ffff:127.0.0.1",
    "a private address inside an NAT64 one": "64:ff9b::10.0.0.1",
    "a private address inside an 6to4 one": "2002:c0a8:101::1",
    "an address bound to one network interface": "fe80::1%eth0 2606:4700::1%eth0",
}
ALLOWED = "8.8.8.8 172.32.0.1 2606:4700:4700::1111 2a00:1450::200e ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1"
# Refused although the standard library calls them global: the platform address of one cloud, the relays of a
# tunnel that nobody runs any more, and the few exceptions inside 192.0.0.0/24.
STRICTER = [IPv4Network(text) for text in ("168.63.129.16/32", "192.88.99.0/24", "192.0.0.0/24")]


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_public_is_refused_by_its_kind(reason: str) -> None:
    for text in REFUSED[reason].split():
        assert address_refusal(ip_address(text)) == reason, text
    assert [text for text in ALLOWED.split() if address_refusal(ip_address(text))] == []


def near(networks: list[str]) -> st.SearchStrategy[IPv4Address]:
    """Addresses at and beside the edges of some ranges, where a wrong prefix length shows."""
    edges = [int(IPv4Network(text)[end]) for text in networks for end in (0, -1)]
    return st.builds(lambda edge, step: IPv4Address((edge + step) % 2**32), st.sampled_from(edges), st.integers(-2, 2))


SPECIAL = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
    "240.0.0.0/4",
]  # fmt: skip


@given(st.one_of(st.ip_addresses(v=4), near(SPECIAL)))
def test_ipv4_is_judged_as_the_standard_library_judges_it(address: IPv4Address) -> None:
    """The table names what `is_global` and `is_multicast` leave out, and three ranges more."""
    public = address.is_global and not address.is_multicast
    stricter = any(address in network for network in STRICTER)

    assert (address_refusal(address) is None) == (public and not stricter)


WRAPPERS = [IPv6Network(text) for text in ("::ffff:0:0/96", "64:ff9b::/96", "2002::/16")]
BELOW_2001 = st.ip_addresses(v=6, network="2001::/16")


@given(st.one_of(st.ip_addresses(v=6), BELOW_2001))
def test_no_ipv6_address_is_visited_that_the_standard_library_calls_special(address: IPv6Address) -> None:
    """Outside the wrappers of IPv4, whatever may be visited is global unicast."""
    if address_refusal(address) is None and not any(address in network for network in WRAPPERS):
        assert address.is_global
        assert not (address.is_private or address.is_multicast or address.is_reserved or address.is_link_local)


@given(st.ip_addresses(v=4))
def test_a_wrapped_ipv4_address_is_judged_as_the_bare_one(address: IPv4Address) -> None:
    wrapped = [
        IPv6Address(0xFFFF << 32 | int(address)),
        IPv6Address(0x64FF9B << 96 | int(address)),
        IPv6Address(0x2002 << 112 | int(address) << 80 | 1),
    ]
    bare = address_refusal(address)

    for wrapper in wrapped:
        refused = address_refusal(wrapper)
        assert (refused is None) == (bare is None)
        assert bare is None or str(refused).startswith(bare)
