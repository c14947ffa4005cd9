"""The loopback server: it says what it is told, tells what it was asked, notices who hangs up, and leaves nothing."""

import http.client
import os
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from sabir_testing.loopback import PATIENCE, Server, chunk, head, unreachable, whole


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends with the threads and open files that it began with."""
    threads, files = threading.enumerate(), sorted(os.listdir("/proc/self/fd"))
    yield
    assert threading.enumerate() == threads
    assert sorted(os.listdir("/proc/self/fd")) == files


def client(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)


def ask(server: Server, body: bytes = b"{}", **headers: str) -> tuple[int, bytes]:
    connection = client(server)
    connection.request("POST", "/path?a=b", body=body, headers=headers)
    answer = connection.getresponse()
    told = answer.status, answer.read()
    connection.close()
    return told


def test_every_request_is_answered_by_the_same_script_and_told_in_order() -> None:
    large = bytes(range(256)) * 4000
    with Server([head(503, retry_after="7"), b"no"]) as server:
        assert [ask(server, b"\x00first", **{"X-One": "a: b"}), ask(server, large)] == [(503, b"no"), (503, b"no")]
    first, second = server.requests

    assert (first.method, first.path, first.headers["x-one"], first.body) == ("POST", "/path?a=b", "a: b", b"\x00first")
    assert second.body == large
    assert server.arrived.is_set()


def test_a_connection_serves_one_request_unless_it_is_kept() -> None:
    """An answer of a told length on a kept connection leaves it open for the next."""
    with Server([whole(b"ok")], keeps_alive=True) as server:
        connection = client(server)
        sockets = []
        for _ in range(2):
            connection.request("POST", "/")
            assert connection.getresponse().read() == b"ok"
            sockets.append(connection.sock)
        assert sockets[0] is sockets[1] is not None
        assert not server.closed.is_set()
        connection.close()
        assert server.closed.wait(PATIENCE)
    with Server([head(), b"ok"]) as server:
        ask(server)
    assert not server.closed.is_set()


def test_an_event_is_waited_for() -> None:
    """What stands behind it is said when the test sets it, and not before."""
    release = threading.Event()
    with Server([head(), b"one", release, b"two"]) as server:
        connection = client(server)
        connection.request("POST", "/")
        answer = connection.getresponse()
        first = answer.read1()
        release.set()
        rest = answer.read()
        connection.close()

    assert (first, rest) == (b"one", b"two")
    assert not server.gave_up.is_set()


def test_a_client_that_hangs_up_is_noticed() -> None:
    """While the server waits for the test, or in the middle of a request: half a request is none."""
    with Server([head(), b"one", threading.Event()]) as server:
        connection = client(server)
        connection.request("POST", "/")
        answer = connection.getresponse()
        answer.read1()
        answer.close()
        connection.close()
        assert server.closed.wait(PATIENCE)
    with Server([head()]) as server:
        with socket.create_connection((urlsplit(server.url).hostname, urlsplit(server.url).port)) as half:
            half.sendall(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n{")
        assert server.closed.wait(PATIENCE)

    assert server.requests == []


def test_an_event_that_nobody_sets_is_waited_for_no_longer_than_its_patience() -> None:
    """The script goes on, and the server says that it gave up."""
    with Server([head(), threading.Event(), b"late"], patience=0.05) as server:
        assert ask(server) == (200, b"late")
        assert server.gave_up.is_set()


def test_the_end_of_the_block_hangs_up_on_who_still_waits() -> None:
    with Server([threading.Event()]) as server:
        connection = client(server)
        connection.request("POST", "/")
        assert server.arrived.wait(PATIENCE)
    with pytest.raises(http.client.RemoteDisconnected):
        connection.getresponse()
    connection.close()
    assert not server.closed.is_set()

    with Server([whole(b"ok")], keeps_alive=True) as server:
        connection = client(server)
        connection.request("POST", "/")
        connection.getresponse().read()
        kept = connection.sock
        assert kept is not None
    assert kept.recv(1) == b""
    connection.close()
    assert not server.closed.is_set()


def test_nobody_listens_at_an_unreachable_url() -> None:
    """The port stays taken, so that no other program answers in its place."""
    with unreachable() as url:
        address = urlsplit(url)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address.hostname, address.port))
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((address.hostname, address.port))


def test_the_head_of_an_answer_says_how_its_body_ends() -> None:
    assert head(201, "text/html", x_a="1").endswith(b"text/html\r\nconnection: close\r\nx-a: 1\r\n\r\n")
    assert whole(b"ok") == b"HTTP/1.1 200 said\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\nok"
    assert b"connection: close" not in head(transfer_encoding="chunked")


def test_a_body_in_chunks_is_put_together_and_whole_with_an_empty_one() -> None:
    """Some clients announce no length; an answer without an empty chunk broke off."""
    chunked = head(transfer_encoding="chunked")
    with Server([chunked, chunk(b"one "), chunk(b"two"), chunk(b"")]) as server:
        connection = client(server)
        connection.request("POST", "/", body=iter([b"one ", b"two"]), encode_chunked=True)
        assert connection.getresponse().read() == server.requests[0].body == b"one two"
        connection.close()
    with Server([chunked, chunk(b"one ")]) as server:
        connection = client(server)
        connection.request("POST", "/")
        with pytest.raises(http.client.IncompleteRead):
            connection.getresponse().read()
        connection.close()
