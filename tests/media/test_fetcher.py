"""Fetches from a real server on the loopback interface, by both drivers, by http and by https (UP-22)."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sabir.errors import MediaRefused, SettingsInvalid
from sabir_media import AddressRefused, FetchFailed, FetchTimedOut, GuardedFetcher, SizeRefused
from sabir_media.network import Deadline

from tests.media.conftest import Fetch
from tests.media.server import PNG, Answer, Loopback, Writer, dripping, redirect, response, serving

ENDLESS = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ntransfer-encoding: chunked\r\n\r\n"


def endless(write: Writer) -> None:
    write(ENDLESS)
    while True:
        write(b"10000\r\n" + PNG[:8] + b"\0" * (0x10000 - 8) + b"\r\n")


def fetcher_for(server: Loopback, timeout: float = 20.0, max_bytes: int = 100_000) -> GuardedFetcher:
    return GuardedFetcher(allow_hosts=[server.host], timeout=timeout, max_bytes=max_bytes)


CHUNKS = b"8\r\n" + PNG[:8] + b"\r\n" + b"%x\r\n" % len(PNG[8:]) + PNG[8:] + b"\r\n0\r\n\r\n"
BODIES: dict[str, tuple[Answer, int | type[MediaRefused]]] = {
    "chunked": (response(CHUNKS, transfer_encoding="chunked"), len(PNG)),
    "closing": (b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n" + PNG, len(PNG)),
    "longer than announced": (response(PNG + b"GET / HTTP/1.1\r\n", content_length=len(PNG)), len(PNG)),
    "shorter than announced": (response(PNG, content_length=len(PNG) + 1), FetchFailed),
    "at the limit": (response(PNG.ljust(100_000, b"\0")), 100_000),
    "endless": (endless, SizeRefused),
}
"""Answers, and how many bytes of each are read, or how it is refused."""


@pytest.mark.parametrize("kind", BODIES)
def test_a_body_ends_where_its_framing_or_the_limit_says(fetch: Fetch, kind: str) -> None:
    """RFC 9112 §6: a length need not be announced, what comes after it is no part of the response, and what is missing
    makes it broken. The limit holds while streaming.
    """
    answer, expected = BODIES[kind]
    with serving({"/a": answer}) as server:
        if isinstance(expected, int):
            assert fetch(fetcher_for(server), server.url("/a")).data == PNG.ljust(expected, b"\0")
        else:
            told = "closed the connection|bytes or more, more than the limit"
            with pytest.raises(expected, match=told):
                fetch(fetcher_for(server), server.url("/a"))


def test_this_machine_is_not_visited_unless_it_was_permitted(fetch: Fetch) -> None:  # UP-22
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
    """The name exists in no DNS (RFC 6761), so that a connection by name could not be made."""
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
    answers = {"/a": redirect("/b?c=1"), "/d": response()}
    with serving(answers) as server:
        server.answers["/b"] = redirect(server.url("/d?e=2#part"), "308 Permanent Redirect")
        media = fetch(fetcher_for(server), server.url("/a"))

    assert (media.data, media.mime, media.url) == (PNG, "image/png", server.url("/d?e=2"))


@pytest.mark.parametrize("path", ["/silent", "/slow", "/moved"])
def test_the_time_limit_holds_for_the_whole_fetch(fetch: Fetch, path: str) -> None:
    """Without a limit on the whole, the dripping answer arrives complete, and no refusal is raised."""
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


def test_a_deadline_that_has_passed_leaves_no_time() -> None:
    with pytest.raises(TimeoutError):
        Deadline.after(0).remaining()


def test_the_time_limit_holds_for_a_look_up(fetch: Fetch) -> None:
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
    answers = {f"/{number}": response(PNG + bytes([number])) for number in range(16)}
    with serving(answers) as server, ThreadPoolExecutor(16) as pool:
        fetcher = fetcher_for(server)
        media = list(pool.map(fetcher.fetch_sync, map(server.url, answers)))
        media += await asyncio.gather(*(fetcher.fetch(server.url(path)) for path in answers))

    assert [found.data[-1] for found in media] == [*range(16), *range(16)]


async def test_cancelling_a_fetch_closes_its_connection() -> None:
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
    loopback.answers["/a"] = answer
    try:
        media = fetch(fetcher_for(loopback, timeout=5.0), loopback.url("/a"))
    except MediaRefused as error:
        assert "\n" not in str(error)
    else:
        assert media.mime == "image/png"


@pytest.fixture(scope="module")
def loopback() -> Iterator[Loopback]:
    with serving({}) as server:
        yield server


WRONG: dict[str, list[Any]] = {
    "max_bytes": [0],
    "max_redirects": [-1],
    "timeout": [0, -1.0, float("inf"), float("nan")],
    "allowed_mimes": ["image/png", ["png"], ["image/svg+xml"], ["Text/HTML"]],
    "allow_hosts": [
        "127.0.0.1:80", ["127.0.0.1"], ["http://127.0.0.1:80"], ["example.com:0"], ["example.com:65536"], ["*:80"],
    ],
}  # fmt: skip


@pytest.mark.parametrize(("setting", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_setting_that_cannot_be_is_named(setting: str, value: Any) -> None:
    with pytest.raises(SettingsInvalid, match=f"^{setting}.*$") as caught:
        GuardedFetcher(**{setting: value})

    assert "\n" not in str(caught.value)


WITHOUT_CERTIFICATES = "AECDH-AES256-SHA:@SECLEVEL=0"
"""The cipher that the server and the context that trusts it agree on, so that no key has to be kept."""


def context(protocol: int) -> ssl.SSLContext:
    """A TLS context that neither shows nor asks for a certificate."""
    made = ssl.SSLContext(protocol)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(WITHOUT_CERTIFICATES)
    return made


@contextlib.contextmanager
def serving_tls(names: list[str]) -> Iterator[int]:
    """A port where a picture is served by TLS; the names that clients asked for are noted."""
    tls = context(ssl.PROTOCOL_TLS_SERVER)
    tls.sni_callback = lambda connection, name, context: names.append(str(name))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with contextlib.suppress(OSError), client:
                        with tls.wrap_socket(client, server_side=True) as secured:
                            names.append(secured.recv(65536).decode().split("\r\n")[1])
                            secured.sendall(response())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_tls_is_spoken_with_the_name_of_the_url_and_the_address_that_was_judged(fetch: Fetch) -> None:
    """Server name and Host header are the URL's; the name itself is in no DNS."""
    names: list[str] = []
    with serving_tls(names) as port:
        fetcher = GuardedFetcher(
            allow_hosts=[f"media.test:{port}"],
            resolver=lambda host, port: ["127.0.0.1"],
            ssl_context=context(ssl.PROTOCOL_TLS_CLIENT),
        )
        media = fetch(fetcher, f"https://media.test:{port}/a.png")

    assert media.data == PNG
    assert names == ["media.test", f"Host: media.test:{port}"]


def test_a_server_that_proves_no_identity_is_refused_by_default(fetch: Fetch) -> None:
    """The system's certificates decide; without one there is no connection."""
    with serving_tls([]) as port:
        with pytest.raises(FetchFailed, match="no connection"):
            fetch(GuardedFetcher(allow_hosts=[f"127.0.0.1:{port}"]), f"https://127.0.0.1:{port}/a.png")


def test_the_time_limit_holds_for_a_handshake(fetch: Fetch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(FetchTimedOut):
            fetch(GuardedFetcher(allow_hosts=[host], timeout=0.2), f"https://{host}/a.png")
