"""Fetches from a real server on the loopback interface, by both drivers (UP-22)."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sabir.errors import MediaRefused, SettingsInvalid
from sabir_media import AddressRefused, FetchFailed, FetchTimedOut, GuardedFetcher, SizeRefused

from tests.media.conftest import Fetch
from tests.media.server import PNG, Loopback, Writer, dripping, redirect, response, serving

ENDLESS = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ntransfer-encoding: chunked\r\n\r\n"


def endless(write: Writer) -> None:
    """A body without a length and without an end."""
    write(ENDLESS)
    while True:
        write(b"10000\r\n" + PNG[:8] + b"\0" * (0x10000 - 8) + b"\r\n")


def fetcher_for(server: Loopback, timeout: float = 20.0, max_bytes: int = 100_000) -> GuardedFetcher:
    """A fetcher that may visit that server."""
    return GuardedFetcher(allow_hosts=[server.host], timeout=timeout, max_bytes=max_bytes)


def test_a_medium_is_fetched_with_its_type_and_final_url(fetch: Fetch) -> None:
    """The bytes, unchanged, from a server of one's own."""
    with serving({"/a.png": response()}) as server:
        media = fetch(fetcher_for(server), server.url("/a.png?size=1#part"))

    assert (media.data, media.mime, media.url) == (PNG, "image/png", server.url("/a.png?size=1"))


def test_a_chunked_body_and_one_that_ends_with_its_connection_are_read_whole(fetch: Fetch) -> None:
    """RFC 9112 §6: a body's length need not be announced."""
    chunks = b"8\r\n" + PNG[:8] + b"\r\n" + b"%x\r\n" % len(PNG[8:]) + PNG[8:] + b"\r\n0\r\n\r\n"
    answers = {
        "/chunked": response(chunks, transfer_encoding="chunked"),
        "/closing": b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n" + PNG,
    }
    with serving(answers) as server:
        for path in answers:
            assert fetch(fetcher_for(server), server.url(path)).data == PNG


def test_this_machine_is_not_visited_unless_it_was_permitted(fetch: Fetch) -> None:
    """UP-22: by its address, or by a name that resolves to it; no request reaches the server."""
    with serving({"/a.png": response()}) as server:
        named = GuardedFetcher(resolver=lambda host, port: ["127.0.0.1"], allow_hosts=[f"other.test:{server.port}"])
        for fetcher, url, reason in (
            (GuardedFetcher(), server.url("/a.png"), "a loopback address"),
            (named, f"http://media.test:{server.port}/a.png", "not 80 or 443"),
            (named, "http://media.test/a.png", r"'127\.0\.0\.1', a loopback address"),
        ):
            with pytest.raises(AddressRefused, match=reason):
                fetch(fetcher, url)

        assert server.requests == []


def test_a_connection_goes_to_the_judged_address_though_the_name_would_now_resolve_elsewhere(fetch: Fetch) -> None:
    """DNS rebinding: the second answer of this resolver is never asked for, and the system's never at all.

    The name exists in no DNS (RFC 6761), so that a connection by name could not be made.
    """
    asked: list[tuple[str, int]] = []

    def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["192.0.2.1"]

    with serving({"/a.png": response()}) as server:
        host = f"media.test:{server.port}"
        media = fetch(GuardedFetcher(allow_hosts=[host], resolver=rebinding), f"http://{host}/a.png")

        assert media.data == PNG
        assert asked == [("media.test", server.port)]
        assert f"\r\nHost: {host}\r\n" in server.requests[0]


def test_the_next_address_is_tried_where_one_takes_no_connection(fetch: Fetch) -> None:
    """All were judged together; a host whose first address is dead is still reached."""
    with serving({"/a.png": response()}) as server:
        host = f"media.test:{server.port}"
        fetcher = GuardedFetcher(allow_hosts=[host], resolver=lambda name, port: ["::1", "127.0.0.1"])

        assert fetch(fetcher, f"http://{host}/a.png").data == PNG


def test_redirects_are_followed_to_the_medium(fetch: Fetch) -> None:
    """Relative and absolute, and the final URL is told."""
    answers = {"/a": redirect("/b?c=1"), "/d": response()}
    with serving(answers) as server:
        server.answers["/b"] = redirect(server.url("/d"), "308 Permanent Redirect")
        media = fetch(fetcher_for(server), server.url("/a"))

    assert (media.data, media.url) == (PNG, server.url("/d"))


def test_a_body_without_an_end_is_left_at_the_limit(fetch: Fetch) -> None:
    """The limit holds while streaming; this test ends only because it does."""
    with serving({"/a": endless}) as server, pytest.raises(SizeRefused, match="is longer"):
        fetch(fetcher_for(server), server.url("/a"))


def test_a_body_within_the_limit_is_taken(fetch: Fetch) -> None:
    """Up to the last byte."""
    body = PNG.ljust(100_000, b"\0")
    with serving({"/a": response(body)}) as server:
        assert fetch(fetcher_for(server), server.url("/a")).data == body


def test_a_body_longer_than_announced_is_cut_and_one_shorter_is_refused(fetch: Fetch) -> None:
    """A lying Content-Length: what comes after it is no part of the response; what is missing makes it broken."""
    answers = {
        "/longer": response(PNG + b"GET / HTTP/1.1\r\n", content_length=len(PNG)),
        "/shorter": response(PNG, content_length=len(PNG) + 1),
    }
    with serving(answers) as server:
        assert fetch(fetcher_for(server), server.url("/longer")).data == PNG
        with pytest.raises(FetchFailed, match="closed the connection"):
            fetch(fetcher_for(server), server.url("/shorter"))


@pytest.mark.parametrize("path", ["/silent", "/slow", "/moved"])
def test_the_time_limit_holds_for_the_whole_fetch(fetch: Fetch, path: str) -> None:
    """A server that says nothing, one that is never silent for long but never done, and hops that are each fast enough.

    Without a limit on the whole, the dripping answer arrives complete, and no refusal is raised.
    """
    waiting = threading.Event()
    answers = {
        "/silent": lambda write: waiting.wait(),
        "/slow": dripping(response(), 0.01),
        "/moved": dripping(redirect("/moved"), 0.005),
    }
    with serving(answers) as server:
        fetcher = GuardedFetcher(allow_hosts=[server.host], timeout=0.6, max_redirects=20)
        with pytest.raises(FetchTimedOut, match="it took longer than `timeout`"):
            fetch(fetcher, server.url(path))
        waiting.set()


def test_the_time_limit_holds_for_a_look_up(fetch: Fetch) -> None:
    """A resolver may block for longer than a fetch may take."""
    waiting = threading.Event()

    def never(host: str, port: int) -> Sequence[str]:
        waiting.wait()
        return ["93.184.216.34"]

    with pytest.raises(FetchTimedOut, match="it took longer than `timeout`"):
        fetch(GuardedFetcher(resolver=never, timeout=0.2), "http://media.test/a.png")
    waiting.set()


def test_a_host_that_is_not_found_and_a_port_without_a_server_are_refusals(fetch: Fetch) -> None:
    """Through the system's resolver: the name exists in no DNS (RFC 6761). The query is not shown."""
    with serving({}) as server:
        gone = fetcher_for(server)
    with pytest.raises(FetchFailed, match="no connection"):
        fetch(gone, server.url("/a"))
    with pytest.raises(FetchFailed, match=r"'http://media\.invalid/a\.png' was not fetched: its host was not found"):
        fetch(GuardedFetcher(), "http://media.invalid/a.png?token=1")


def test_nothing_of_the_environment_is_used(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies are where an address check is bypassed: here each leads to a port where nobody listens."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        for spelling in (name, name.lower()):
            monkeypatch.setenv(spelling, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving({"/a": response()}) as server:
        assert fetch(fetcher_for(server), server.url("/a")).data == PNG


def test_no_cookie_and_no_credentials_are_sent(fetch: Fetch) -> None:
    """Not to the next hop, and not at the next fetch; the request names nothing but itself."""
    answers = {"/a": redirect("/b", set_cookie="id=1"), "/b": response(PNG, "image/png", set_cookie="id=2")}
    with serving(answers) as server:
        fetcher = fetcher_for(server)
        fetch(fetcher, server.url("/a"))
        fetch(fetcher, server.url("/a"))

        assert len(server.requests) == 4
        for request in server.requests:
            names = [line.partition(":")[0].lower() for line in request.split("\r\n")[1:] if line]
            assert names == ["host", "accept", "accept-encoding", "connection", "user-agent"]


async def test_threads_and_tasks_may_share_a_fetcher() -> None:
    """At the same time; nothing of one fetch is seen by another, and a running event loop is in nobody's way."""
    answers = {f"/{number}": response(PNG + bytes([number])) for number in range(16)}
    with serving(answers) as server, ThreadPoolExecutor(16) as pool:
        fetcher = fetcher_for(server)
        media = list(pool.map(fetcher.fetch_sync, map(server.url, answers)))
        media += await asyncio.gather(*(fetcher.fetch(server.url(path)) for path in answers))

    assert [found.data[-1] for found in media] == [*range(16), *range(16)]


async def test_cancelling_a_fetch_closes_its_connection() -> None:
    """The server sees its reader leave, in the middle of a body."""
    begun, left = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    cancelled = threading.Event()

    def write_until_left(write: Writer) -> None:
        write(response(PNG, content_length=10**5))
        loop.call_soon_threadsafe(begun.set)
        cancelled.wait()
        try:
            while True:
                write(b"\0" * 65536)
        except OSError:
            loop.call_soon_threadsafe(left.set)

    with serving({"/a": write_until_left}) as server:
        fetching = asyncio.create_task(fetcher_for(server).fetch(server.url("/a")))
        await begun.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        cancelled.set()
        await asyncio.wait_for(left.wait(), 10)

    assert left.is_set()


FRAGMENTS = st.sampled_from([
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 302 Found\r\n", b"content-type: image/png\r\n", b"location: /a\r\n",
    b"content-length: 8\r\n", b"transfer-encoding: chunked\r\n", b"8\r\n", b"\r\n", PNG[:8], b"0\r\n\r\n",
])  # fmt: skip
BYTES = st.one_of(st.binary(max_size=200), st.lists(st.one_of(FRAGMENTS, st.binary(max_size=9))).map(b"".join))


@example(b"")
@example(b"SSH-2.0-OpenSSH_9.9\r\n")
@example(b"HTTP/1.1 200 OK\r\nbroken")
@example(response(b"", content_length="-1"))
@example(b"\0" * 300_000)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(BYTES)
def test_any_bytes_of_a_server_end_in_a_medium_or_a_refusal(fetch: Fetch, loopback: Loopback, answer: bytes) -> None:
    """Law 10, over a real socket."""
    loopback.answers["/a"] = answer
    try:
        media = fetch(fetcher_for(loopback, timeout=5.0), loopback.url("/a"))
    except MediaRefused as error:
        assert "\n" not in str(error)
    else:
        assert media.mime == "image/png"


@pytest.fixture(scope="module")
def loopback() -> Iterator[Loopback]:
    """One server for many examples."""
    with serving({}) as server:
        yield server


@pytest.mark.parametrize(
    "setting",
    [
        {"max_bytes": 0},
        {"max_redirects": -1},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("inf")},
        {"timeout": float("nan")},
        {"allowed_mimes": "image/png"},
        {"allowed_mimes": ["png"]},
        {"allowed_mimes": ["image/svg+xml"]},
        {"allowed_mimes": ["Text/HTML"]},
        {"allow_hosts": "127.0.0.1:80"},
        {"allow_hosts": ["127.0.0.1"]},
        {"allow_hosts": ["http://127.0.0.1:80"]},
        {"allow_hosts": ["example.com:0"]},
        {"allow_hosts": ["example.com:65536"]},
        {"allow_hosts": ["*:80"]},
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_is_named(setting: Mapping[str, object]) -> None:
    """One line: the setting, what it is, what was expected."""
    with pytest.raises(SettingsInvalid) as caught:
        GuardedFetcher(**setting)  # type: ignore[arg-type]

    assert str(caught.value).startswith(next(iter(setting)))
    assert "\n" not in str(caught.value)
