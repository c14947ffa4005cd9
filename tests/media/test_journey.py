"""The decisions of a fetch, step by step and without a network: what is opened is what was judged (UP-22)."""

from collections.abc import Sequence
from ipaddress import IPv4Address

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.protocols import FetchedMedia
from sabir.errors import MediaRefused
from sabir_media import ALLOWED_MIMES, AddressRefused, FetchFailed, FetchTimedOut, SizeRefused, TypeRefused
from sabir_media.journey import FAILURES, Head, LookUp, Open, Read, Walk, journey
from sabir_media.rules import Rules, read_rules
from sabir_media.targets import read_target

from tests.media.server import PNG

PUBLIC = ("93.184.216.34", "2606:4700::1111")
URL = "https://example.com/a.png"
FOUND = Head(200, [(b"Content-Type", b"image/png")])


def rules(max_bytes: int = 1000, max_redirects: int = 3, allow_hosts: Sequence[str] = ()) -> Rules:
    """The usual rules."""
    return read_rules(
        max_bytes=max_bytes,
        max_redirects=max_redirects,
        allowed_mimes=ALLOWED_MIMES,
        allow_hosts=allow_hosts,
    )


def opened(walk: Walk) -> Open:
    """The step that is due, which must be to open a connection."""
    assert isinstance(walk.step, Open)
    return walk.step


def moved(location: str, status: int = 302) -> Head:
    """A redirect."""
    return Head(status, [(b"location", location.encode())])


def test_a_fetch_looks_up_opens_and_reads_to_the_end() -> None:
    """The whole journey of a small image."""
    walk = Walk(journey(URL, rules()))
    steps = []
    for answer in (PUBLIC, FOUND, PNG[:9], PNG[9:], b""):
        steps.append(walk.step)
        walk.answer(answer)

    target = read_target(URL, rules())
    assert steps == [LookUp("example.com", 443), Open(target, PUBLIC), Read(), Read(), Read()]
    assert walk.step is None
    assert walk.media == FetchedMedia(data=PNG, mime="image/png", url=URL)


def test_only_the_addresses_that_were_judged_are_opened_and_no_name_is_asked_twice() -> None:
    """DNS rebinding: between the judgement and the connection there is no second look-up to answer otherwise."""
    walk = Walk(journey(URL, rules()))
    asked = []
    while not isinstance(walk.step, Open):
        assert isinstance(walk.step, LookUp)
        asked.append(walk.step.host)
        walk.answer(PUBLIC)

    assert asked == ["example.com"]
    assert opened(walk).addresses == PUBLIC


@pytest.mark.parametrize("answers", [["10.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:169.254.169.254"]])
def test_a_name_with_one_address_that_is_not_public_is_refused(answers: Sequence[str]) -> None:
    """Even beside public ones: which of them a connection would take is chance."""
    walk = Walk(journey(URL, rules()))

    with pytest.raises(AddressRefused, match="its host has the address"):
        walk.answer(answers)


NOT_PUBLIC = st.ip_addresses(v=4).filter(lambda address: not address.is_global or address.is_multicast)


@given(NOT_PUBLIC, st.sampled_from(["{}", "::ffff:{}"]), st.permutations([0, 1, 2]))
def test_no_address_that_is_not_public_is_ever_opened(address: IPv4Address, spelling: str, order: list[int]) -> None:
    """Whatever a resolver says, and wherever in its answer."""
    walk = Walk(journey(URL, rules()))
    answers = [(*PUBLIC, spelling.format(address))[index] for index in order]

    with pytest.raises(AddressRefused):
        walk.answer(answers)


def test_a_literal_address_is_not_looked_up() -> None:
    """It is opened as it was judged."""
    assert opened(Walk(journey("http://8.8.8.8/a.png", rules()))).addresses == ("8.8.8.8",)


@pytest.mark.parametrize("answers", [["example.net"], ["2130706433"], ["0x7f.1"], [""]])
def test_an_answer_that_is_no_address_is_never_opened(answers: Sequence[str]) -> None:
    """A connection to a name would look it up anew; that holds for permitted hosts too."""
    walk = Walk(journey(URL, rules(allow_hosts=["example.com:443"])))

    with pytest.raises(AddressRefused, match="no IP address"):
        walk.answer(answers)


def test_a_permitted_host_may_have_a_private_address() -> None:
    """allow_hosts is for file servers of one's own."""
    walk = Walk(journey("http://files.intranet:8080/a.png", rules(allow_hosts=["files.intranet:8080"])))
    walk.answer(["10.0.0.7"])

    assert opened(walk).addresses == ("10.0.0.7",)


def test_every_hop_is_looked_up_and_judged_anew() -> None:
    """A redirect to a name whose address is private ends there."""
    walk = Walk(journey(URL, rules()))
    walk.answer(PUBLIC)
    walk.answer(moved("http://cdn.example.com/b.png"))
    assert walk.step == LookUp("cdn.example.com", 80)

    with pytest.raises(AddressRefused, match=r"cdn\.example\.com/b\.png.*'192\.168\.0\.1', a private address"):
        walk.answer(["192.168.0.1"])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_this_machine_is_refused(status: int) -> None:
    """UP-22, for every status that redirects."""
    walk = Walk(journey(URL, rules()))
    walk.answer(PUBLIC)

    with pytest.raises(AddressRefused, match="a loopback address"):
        walk.answer(moved("http://127.0.0.1/admin", status))


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_redirects_are_followed_up_to_their_limit(limit: int) -> None:
    """The last one allowed still brings its medium; one more is refused and names the setting."""
    walk = Walk(journey(URL, rules(max_redirects=limit)))
    for _ in range(limit):
        walk.answer(PUBLIC)
        walk.answer(moved("/next"))
    walk.answer(PUBLIC)

    with pytest.raises(FetchFailed, match=f"more than {limit} times; .*max_redirects"):
        walk.answer(moved("/next"))


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (Head(302, []), "302 without a Location"),
        (Head(404, []), "the server answers 404; check the URL"),
        (Head(401, []), "401; it needs credentials"),
        (Head(429, []), "429; try again later"),
        (Head(503, []), "503; try again later"),
        (Head(204, []), "the server answers 204"),
        (Head(206, FOUND.headers), "the server answers 206"),
        (Head(300, FOUND.headers), "the server answers 300"),
        (Head(200, [*FOUND.headers, (b"content-encoding", b"gzip")]), "compresses it"),
    ],
)
def test_a_response_that_is_no_whole_medium_is_refused(head: Head, reason: str) -> None:
    """By its status, and by a compression nobody asked for, which could unpack to any size."""
    walk = Walk(journey(URL, rules()))
    walk.answer(PUBLIC)

    with pytest.raises(FetchFailed, match=reason):
        walk.answer(head)


def test_a_body_announced_as_too_large_is_not_read() -> None:
    """Content-Length is believed where it is a reason to stop."""
    walk = Walk(journey(URL, rules(max_bytes=10)))
    walk.answer(PUBLIC)

    with pytest.raises(SizeRefused, match="it has 11 bytes, beyond the limit of 10 bytes; raise max_bytes"):
        walk.answer(Head(200, [*FOUND.headers, (b"content-length", b"11")]))


def test_a_body_that_turns_out_too_large_is_left() -> None:
    """Whatever was announced, the bytes are counted as they come."""
    walk = Walk(journey(URL, rules(max_bytes=10)))
    walk.answer(PUBLIC)
    walk.answer(Head(200, [*FOUND.headers, (b"content-length", b"5")]))
    walk.answer(PNG[:10])

    with pytest.raises(SizeRefused, match="its body goes on"):
        walk.answer(b"x")


def test_a_refused_type_is_refused_before_its_body() -> None:
    """The server's own word suffices for that."""
    walk = Walk(journey(URL, rules()))
    walk.answer(PUBLIC)

    with pytest.raises(TypeRefused, match="text/html, which can carry scripts"):
        walk.answer(Head(200, [(b"content-type", b"text/html; charset=utf-8")]))


def test_a_name_without_addresses_is_not_fetched() -> None:
    """An empty answer is no address."""
    with pytest.raises(FetchFailed, match="has no address"):
        Walk(journey(URL, rules())).answer([])


@pytest.mark.parametrize("kind", FAILURES)
def test_every_failure_of_a_driver_becomes_a_refusal_that_names_the_url(kind: type[Exception]) -> None:
    """Law 10; a broken look-up, connection, protocol or time limit is one of the library's own errors."""
    error = kind("why\nnot")
    walk = Walk(journey(URL, rules()))
    walk.answer(PUBLIC)

    with pytest.raises(FetchFailed, match=r"'https://example\.com/a\.png' is not fetched: ") as caught:
        walk.fail(error)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is error


def test_a_time_limit_is_told_from_other_failures() -> None:
    """By its class, so that a caller can try again with more time."""
    for error in (TimeoutError(), httpcore2.ReadTimeout(), httpcore2.ConnectTimeout()):
        walk = Walk(journey(URL, rules()))
        with pytest.raises(FetchTimedOut, match="raise timeout"):
            walk.fail(error)


HEADERS = st.lists(
    st.tuples(
        st.sampled_from([b"Content-Type", b"content-length", b"Location", b"content-encoding", b"x"]), st.binary()
    ),
    max_size=4,
)


@given(st.integers(100, 599), HEADERS, st.lists(st.binary(min_size=1, max_size=50), max_size=4))
def test_any_response_ends_in_a_medium_or_a_refusal(
    status: int, headers: list[tuple[bytes, bytes]], chunks: list[bytes]
) -> None:
    """Law 10: whatever a server sends, and without leaving the steps."""
    walk = Walk(journey(URL, rules(max_bytes=100)))
    walk.answer(PUBLIC)
    due = iter([*chunks, b""])
    try:
        walk.answer(Head(status, headers))
        while isinstance(walk.step, Read):
            walk.answer(next(due))
    except MediaRefused as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(walk.step, LookUp | Open) or walk.media.mime in ALLOWED_MIMES
