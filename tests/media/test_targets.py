"""How a URL is read, strictly and refused rather than repaired, and which addresses may be visited (UP-22)."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sabir.errors import MediaRefused
from sabir_media import ALLOWED_MIMES, AddressRefused
from sabir_media.errors import public_name
from sabir_media.targets import Rules, address_refusal, follow_redirect, read_rules, read_target


def rules(*allow_hosts: str) -> Rules:
    return read_rules(max_bytes=1000, max_redirects=3, allowed_mimes=ALLOWED_MIMES, allow_hosts=allow_hosts)


def refused(url: str, *allow_hosts: str) -> str:
    with pytest.raises(AddressRefused) as caught:
        read_target(url, rules(*allow_hosts))
    return str(caught.value)


def test_a_public_url_is_read_as_it_goes_on_the_wire() -> None:
    target = read_target("HTTPS://Media.Example.COM./a%20b/ü.png?q=1&r=ü#part", rules())

    assert (target.scheme, target.host, target.port) == ("https", "media.example.com", 443)
    assert target.path == b"/a%20b/%C3%BC.png?q=1&r=%C3%BC"
    assert target.host_header == "media.example.com"
    assert "#" not in target.url
    assert target.address is None


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://example.com:443/", "example.com:443"),
        ("http://example.com:80/", "example.com"),
        ("http://[2606:4700:4700::1111]/", "[2606:4700:4700::1111]"),
        ("https://[2606:4700:4700::1111]:80/", "[2606:4700:4700::1111]:80"),
        ("http://8.8.8.8/", "8.8.8.8"),
    ],
)
def test_the_host_header_names_host_and_port(url: str, header: str) -> None:
    """RFC 9110 §7.2: in ASCII, brackets around IPv6, a port only where it is not the scheme's own."""
    assert read_target(url, rules()).host_header == header


REFUSED = {
    "only http:// and https:// are fetched": [
        "ftp://example.com/a.png", "javascript:alert(1)", "data:image/png;base64,AAAA", "provider-file:acme/1",
        "//example.com/a.png", "http:example.com", "",
    ],
    "no valid host and port": [
        "http:///a.png", "http://:80/", "http://ex%61mple.com/", "http://[fe80::1%25eth0]/", "http://[::1/",
        "http://example.com:+80/", "http://example.com:８０/", "http://example.com:80:80/",
    ],
    "user name or password": ["http://user:secret@example.com/", "http://@example.com/", "http://127.0.0.1%2f@example.com/"],
    "backslash": [
        "http://example.com\\@127.0.0.1/", "http://example.com/\x00", "http://example.com/%00.png",
        "http://example.com/a b.png", "http://example.com\r\nHost: x/",
    ],
    "not a URL": ["http://[1.2.3.4]/", "http://example.com/\ud800"],
    "not a host name": [
        "http://exa<mple.com/", "http://-example.com/", "http://example..com/", f"http://{'a' * 64}.com/",
        f"http://{'a.' * 127}com/",
    ],
    "is not 80 or 443": ["http://example.com:22/", "http://example.com:0/", "http://example.com:65536/"],
    "a local name": [
        "http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://printer/", "http://db.localhost/",
        "http://nas.local/", "http://vault.internal/", "http://router.home.arpa/", "http://host.localdomain/",
    ],
    "a cloud metadata service": [
        "http://metadata/latest/", "http://METADATA.Google.Internal./", "http://metadata.goog/", "http://instance-data/",
        "http://metadata.tencentyun.com/",
    ],
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_no_plain_web_url_is_refused(reason: str) -> None:  # UP-22, D-02
    for url in REFUSED[reason]:
        assert reason in refused(url), url


@pytest.mark.parametrize(
    "host",
    [
        "0x7f000001", "0X7F.1", "2130706433", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "0x7f.0.0.0x1",
        "1.2.3.4.5", "256.256.256.256", "010.8.8.8", "a.0x7f", "example.1", "127.0.0.1..", "0x", "8.8",
        "127。0。0。1", "8。8。8。8", "①②⑦.0.0.1", "127.0.0.1", "[::ffff:7f00:1]", "[::127.0.0.1]",
        "[0:0:0:0:0:ffff:169.254.169.254]", "127.0.0.1.",
    ],
)  # fmt: skip
def test_no_spelling_of_an_address_gets_past(host: str) -> None:
    assert "\n" not in refused(f"http://{host}/")


def spellings(address: IPv4Address) -> list[str]:
    """The ways in which URLs of attacks write an IPv4 address."""
    number = int(address)
    octets = address.packed
    hexadecimal = f"{octets[0]:02x}{octets[1]:02x}:{octets[2]:02x}{octets[3]:02x}"
    return [
        str(address),
        f"{address}.",
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(hex(octet) for octet in octets),
        ".".join(f"0{octet:o}" for octet in octets),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
        f"[::ffff:{address}]",
        f"[::ffff:{hexadecimal}]",
        f"[::{hexadecimal}]",
        f"[64:ff9b::{hexadecimal}]",
        f"[2002:{hexadecimal}::1]",
        f"[{IPv6Address(0xFFFF << 32 | number).exploded}]",
    ]


PRIVATE = st.one_of(
    st.ip_addresses(v=4, network="10.0.0.0/8"),
    st.ip_addresses(v=4, network="127.0.0.0/8"),
    st.ip_addresses(v=4, network="169.254.0.0/16"),
    st.ip_addresses(v=4, network="172.16.0.0/12"),
    st.ip_addresses(v=4, network="192.168.0.0/16"),
    st.ip_addresses(v=4, network="100.64.0.0/10"),
)


@given(PRIVATE, st.sampled_from(["http", "https", "HTTP"]), st.sampled_from(["", ":80", ":443"]))
def test_every_spelling_of_every_private_address_is_refused(address: IPv4Address, scheme: str, port: str) -> None:
    # UP-22
    for host in spellings(address):
        assert "was not fetched" in refused(f"{scheme}://{host}{port}/x")


@given(st.ip_addresses(v=4).filter(lambda address: address.is_global and not address.is_multicast))
def test_an_allowed_numeric_host_is_the_one_plain_spelling(address: IPv4Address) -> None:
    for host in spellings(address)[2:9]:
        if host != str(address):
            assert re.search("in disguise|Invalid IPv4 address", refused(f"http://{host}/"))


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://example.com/", "http://["]))
@example("example.com:" + "9" * 5000, "http://")
def test_any_text_is_a_target_or_one_refusal_of_one_line(text: str, prefix: str) -> None:
    try:
        target = read_target(prefix + text, rules())
    except AddressRefused as error:
        assert "\n" not in str(error)
        assert len(str(error)) <= 500
    else:
        assert re.fullmatch(r"[a-z0-9._:-]+", target.host)
        assert target.port in (80, 443)


def test_a_refusal_shows_no_credentials_and_no_query_and_what_to_allow() -> None:
    message = refused("ftp://me:secret@127.0.0.1:22/a.png?token=secret#secret")

    assert "ftp://127.0.0.1:22/a.png" in message
    assert "secret" not in message
    assert len(public_name("http://example.com/" + "a" * 1000)) < 130
    assert "'127.0.0.1:8080' to allow_hosts" in refused("http://127.0.0.1:8080/a")
    assert "'[::1]:80' to allow_hosts" in refused("http://[::1]/a")


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret/word@host/a", "http://user:secret\\@host/a", "user:secret@host/a",
        "http://user:se@cret@host/a", "mailto:secret@host", "http://host/a?secret", "http://host/a#secret",
        "http://[secret@host/a", "http:/user:secret@host/", "data:text/plain,secret",
    ],
)  # fmt: skip
def test_a_malformed_url_shows_no_secret_either(url: str) -> None:
    """Where it cannot be told what is a password, only the scheme is shown."""
    assert "secret" not in public_name(url)


def test_allow_hosts_permits_a_host_and_port_and_no_other() -> None:
    permitted = rules("127.0.0.1:8080", "Files.Intranet:80", "[0:0::1]:8080")

    assert read_target("http://127.0.0.1:8080/a", permitted).permitted
    assert read_target("http://FILES.intranet/a", permitted).permitted
    assert read_target("http://[::0:1]:8080/a", permitted).permitted
    assert not read_target("http://example.com/a", permitted).permitted
    for url in (
        "http://127.0.0.1:8081/",
        "http://127.0.0.1/",
        "http://2130706433:8080/",
        "http://files.intranet:8080/",
    ):
        assert "was not fetched" in refused(url, "127.0.0.1:8080", "files.intranet:80")


@pytest.mark.parametrize(
    ("location", "arrives"),
    [
        ("/b.png", "https://example.com/b.png"),
        ("b.png?x=1", "https://example.com/a/b.png?x=1"),
        ("//cdn.example.com/b.png", "https://cdn.example.com/b.png"),
        ("http://cdn.example.com", "http://cdn.example.com/"),
    ],
)
def test_a_redirect_is_read_relative_to_where_it_came_from(location: str, arrives: str) -> None:
    start = read_target("https://example.com/a/a.png?secret=1", rules())

    assert follow_redirect(start, location, rules()).url.rstrip("/") == arrives.rstrip("/")


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/", "//169.254.169.254/latest/", "http://2130706433/", "file:///etc/passwd",
        "http://user:x@example.com/", "http://example.com:22/", "http://metadata.google.internal/", "//[::1]/",
        "http://example.com\\@127.0.0.1/", "/a b", "data:text/html,x", "http://[::1", "/\udcff",
    ],
)  # fmt: skip
def test_a_redirect_is_refused_by_the_same_rules_as_the_first_url(location: str) -> None:
    """UP-22: a public page must not lead into the private network."""
    start = read_target("https://example.com/a.png", rules())

    with pytest.raises(MediaRefused, match="was not fetched"):
        follow_redirect(start, location, rules())


NOT_PUBLIC = {
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


@pytest.mark.parametrize("reason", NOT_PUBLIC)
def test_what_is_not_public_is_refused_by_its_kind(reason: str) -> None:
    for text in NOT_PUBLIC[reason].split():
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
