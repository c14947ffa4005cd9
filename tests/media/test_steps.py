"""The decisions of a fetch, step by step and without a network: what is opened is what was judged (UP-22)."""

from collections.abc import Sequence
from ipaddress import IPv4Address

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.errors import MediaRefused
from sabir_media import (
    ALLOWED_MIMES,
    AddressRefused,
    FetchedMedia,
    FetchFailed,
    FetchTimedOut,
    SizeRefused,
    TypeRefused,
)
from sabir_media.steps import FAILURES, Connect, Download, LookUp, Read, ResponseHead, fetch_steps
from sabir_media.targets import Rules, read_rules, read_target

from tests.media.server import PNG

PUBLIC = ("93.184.216.34", "2606:4700::1111")
URL = "https://example.com/a.png"
FOUND = ResponseHead(200, [(b"Content-Type", b"image/png")])


def rules(max_bytes: int = 1000, max_redirects: int = 3, allow_hosts: Sequence[str] = ()) -> Rules:
    return read_rules(
        max_bytes=max_bytes,
        max_redirects=max_redirects,
        allowed_mimes=ALLOWED_MIMES,
        allow_hosts=allow_hosts,
    )


def moved(location: str, status: int = 302) -> ResponseHead:
    return ResponseHead(status, [(b"location", location.encode())])


def test_a_fetch_looks_up_opens_and_reads_to_the_end() -> None:
    download = Download(fetch_steps(URL, rules()))
    steps = []
    for answer in (PUBLIC, FOUND, PNG[:9], PNG[9:], b""):
        steps.append(download.step)
        download.resume(answer)

    target = read_target(URL, rules())
    assert steps == [LookUp("example.com", 443), Connect(target, PUBLIC), Read(), Read(), Read()]
    assert download.step is None
    assert download.media == FetchedMedia(data=PNG, mime="image/png", url=URL)


NOT_PUBLIC = st.ip_addresses(v=4).filter(lambda address: not address.is_global or address.is_multicast)


@given(NOT_PUBLIC, st.sampled_from(["{}", "::ffff:{}"]), st.permutations([0, 1, 2]))
def test_no_address_that_is_not_public_is_ever_opened(address: IPv4Address, spelling: str, order: list[int]) -> None:
    download = Download(fetch_steps(URL, rules()))
    answers = [(*PUBLIC, spelling.format(address))[index] for index in order]

    with pytest.raises(AddressRefused):
        download.resume(answers)


@pytest.mark.parametrize(
    ("url", "answers", "address"),
    [("http://8.8.8.8/a.png", [], "8.8.8.8"), ("http://files.intranet:8080/a.png", [["10.0.0.7"]], "10.0.0.7")],
    ids=["literal", "permitted"],
)
def test_the_address_that_was_judged_is_opened(url: str, answers: list[list[str]], address: str) -> None:
    """A literal one is not looked up; allow_hosts is for file servers of one's own."""
    download = Download(fetch_steps(url, rules(allow_hosts=["files.intranet:8080"])))
    for answer in answers:
        download.resume(answer)

    assert isinstance(download.step, Connect)
    assert download.step.addresses == (address,)


def head(status: int, **headers: str) -> ResponseHead:
    """A response to a request, of a PNG unless it says otherwise."""
    given = {"content_type": "image/png", **headers}
    return ResponseHead(status, [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()])


Answers = list[Sequence[str] | ResponseHead | bytes]
REFUSED: dict[str, tuple[Answers, type[MediaRefused], str]] = {
    "private": ([["10.0.0.1"]], AddressRefused, "its host has the address"),
    "one of two": ([["93.184.216.34", "127.0.0.1"]], AddressRefused, "its host has the address"),
    "wrapped": ([["::ffff:169.254.169.254"]], AddressRefused, "its host has the address"),
    "another name": ([["example.net"]], AddressRefused, "not an IP address"),
    "a number": ([["2130706433"]], AddressRefused, "not an IP address"),
    "hexadecimal": ([["0x7f.1"]], AddressRefused, "not an IP address"),
    "empty": ([[""]], AddressRefused, "not an IP address"),
    "no address": ([[]], FetchFailed, "has no address"),
    "a private hop": ([PUBLIC, moved("http://cdn.example.com/b.png"), ["192.168.0.1"]], AddressRefused,
        r"cdn\.example\.com/b\.png.*'192\.168\.0\.1', a private address"),
    **{f"{status} to this machine": ([PUBLIC, moved("http://127.0.0.1/admin", status)], AddressRefused,
        "a loopback address") for status in (301, 302, 303, 307, 308)},
    "nowhere": ([PUBLIC, ResponseHead(302, [])], FetchFailed, "302 without a Location"),
    "404": ([PUBLIC, head(404)], FetchFailed, "the server answers 404; check the URL"),
    "401": ([PUBLIC, head(401)], FetchFailed, "401; it needs credentials"),
    "429": ([PUBLIC, head(429)], FetchFailed, "429; try again later"),
    "503": ([PUBLIC, head(503)], FetchFailed, "503; try again later"),
    "204": ([PUBLIC, head(204)], FetchFailed, "the server answers 204"),
    "206": ([PUBLIC, head(206)], FetchFailed, "the server answers 206"),
    "300": ([PUBLIC, head(300)], FetchFailed, "the server answers 300"),
    "compressed": ([PUBLIC, head(200, content_encoding="gzip")], FetchFailed, "sent it compressed"),
    "announced as too large": ([PUBLIC, head(200, content_length="11")], SizeRefused,
        "it has 11 bytes, more than the limit of 10 bytes; pass a larger max_bytes="),
    "too large": ([PUBLIC, head(200, content_length="5"), PNG[:10], b"x"], SizeRefused,
        "its body has 11 bytes or more"),
    "a page": ([PUBLIC, head(200, content_type="text/html; charset=utf-8")], TypeRefused,
        "text/html, which can contain scripts"),
}  # fmt: skip
"""What drivers answer → the refusal that the last answer ends in: before anything else is opened or read."""


@pytest.mark.parametrize("case", REFUSED)
def test_a_fetch_ends_at_the_first_rule_that_is_broken(case: str) -> None:  # UP-22
    answers, error, reason = REFUSED[case]
    permitted = ["example.com:443"] if "not an IP address" in reason else []  # a name would be looked up anew
    download = Download(fetch_steps(URL, rules(max_bytes=10, allow_hosts=permitted)))
    for answer in answers[:-1]:
        download.resume(answer)

    with pytest.raises(error, match=reason):
        download.resume(answers[-1])


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_redirects_are_followed_up_to_their_limit(limit: int) -> None:
    """The last one allowed still brings its medium; one more is refused and names the setting."""
    download = Download(fetch_steps(URL, rules(max_redirects=limit)))
    for _ in range(limit):
        download.resume(PUBLIC)
        download.resume(moved("/next"))
    download.resume(PUBLIC)

    with pytest.raises(FetchFailed, match=f"more than {limit} times; .*max_redirects"):
        download.resume(moved("/next"))


@pytest.mark.parametrize("kind", [*FAILURES, httpcore2.ReadTimeout, httpcore2.ConnectTimeout])
def test_every_failure_of_a_driver_becomes_a_refusal_that_names_the_url(kind: type[Exception]) -> None:
    """Law 10; a time limit is told from other failures by its class, so that a caller can try again with more time."""
    error = kind("why\nnot")
    is_late = isinstance(error, TimeoutError | httpcore2.TimeoutException)
    download = Download(fetch_steps(URL, rules()))
    download.resume(PUBLIC)

    with pytest.raises(FetchFailed, match=r"'https://example\.com/a\.png' was not fetched: ") as caught:
        download.fail(error)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is error
    assert (
        (type(caught.value) is FetchTimedOut) == ("it took longer than `timeout`; pass" in str(caught.value)) == is_late
    )


HEADERS = st.lists(
    st.tuples(
        st.sampled_from([b"Content-Type", b"content-length", b"Location", b"content-encoding", b"x"]), st.binary()
    ),
    max_size=4,
)


@given(st.integers(100, 599), HEADERS, st.lists(st.binary(min_size=1, max_size=50), max_size=4))
def test_any_response_is_read_or_refused(status: int, headers: list[tuple[bytes, bytes]], chunks: list[bytes]) -> None:
    download = Download(fetch_steps(URL, rules(max_bytes=100)))
    download.resume(PUBLIC)
    due = iter([*chunks, b""])
    try:
        download.resume(ResponseHead(status, headers))
        while isinstance(download.step, Read):
            download.resume(next(due))
    except MediaRefused as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(download.step, LookUp | Connect) or download.media.mime in ALLOWED_MIMES
