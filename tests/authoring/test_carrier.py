"""Ready bytes go through an SDK that has no method for bytes: with a real HTTP client, to a real server.

The SDK is a function that posts what nobody is to read, with a header of its own, and reads the answer.
"""

import asyncio
import gc
import subprocess
import sys
import threading
from typing import Any

import httpx2
import pytest
from sabir.authoring.carrier import OwnConnection, Parcel, carriers
from sabir.contracts import WireRequest
from sabir_testing.loopback import PATIENCE, Server, head, whole

HTTPClient, AsyncHTTPClient = carriers(httpx2.Client, httpx2.AsyncClient, httpx2.Response)
BODY = '{"said" :[ "été" ]}'.encode()
ANSWER = b'{"ok" : true}'


def ask(client: httpx2.Client, url: str) -> Any:
    """A method of an SDK: what it gives is read from the answer."""
    return client.post(f"{url}/v1/chat", json={"dummy": 1}, headers={"authorization": "Bearer k"}, timeout=7).json()


async def ask_async(client: httpx2.AsyncClient, url: str, body: bytes) -> bytes:
    """The same of an async SDK, and the ready bytes instead."""
    with Parcel() as parcel:
        assert (await client.post(f"{url}/v1/chat", json={"dummy": 1})).json() == {}
    answer = await parcel.send(body)
    return bytes(await answer.aread())


def test_the_ready_bytes_go_where_the_sdk_goes_and_the_answer_is_not_read() -> None:
    """Its URL, its headers, its timeout; the length is that of the bytes; the SDK gets an empty answer."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with Parcel() as parcel:
            given = ask(client, server.url)
        answer = parcel.send(BODY)
        was_read, found = answer.is_stream_consumed, answer.read()

    (asked,) = server.asked
    assert (given, was_read, found) == ({}, False, ANSWER)
    assert (asked.method, asked.path, asked.body) == ("POST", "/v1/chat", BODY)
    assert asked.headers["authorization"] == "Bearer k"
    assert asked.headers["content-length"] == str(len(BODY))
    assert answer.request.extensions["timeout"]["read"] == 7


def test_nothing_is_sent_before_the_parcel_is() -> None:
    """So that a call may only look whether a client of the user's carries parcels."""
    with Server([head(), ANSWER]) as server:
        with HTTPClient() as client, Parcel() as carried:
            ask(client, server.url)
        with Parcel() as unseen:
            pass
        assert server.asked == []

    assert str(carried.made.url) == f"{server.url}/v1/chat"
    assert unseen.made is None


def test_a_parcel_may_go_elsewhere() -> None:
    """To another method of the same address."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with Parcel() as parcel:
            ask(client, server.url)
        parcel.url = f"{server.url}/v1/count"
        parcel.send(BODY).close()

    assert server.asked[0].path == "/v1/count"


def test_without_a_parcel_a_client_does_what_it_always_does() -> None:
    """A user's own calls; after a parcel, and within one that is over."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with Parcel(), Parcel():
            ask(client, server.url)
        found = ask(client, server.url)

    assert found == {"ok": True}
    assert [asked.body for asked in server.asked] == [b'{"dummy":1}']


async def test_an_async_client_without_a_parcel_does_what_it_always_does() -> None:
    """As the waiting one."""
    with Server([head(), ANSWER]) as server:
        async with AsyncHTTPClient() as client:
            found = await client.post(server.url, json={"dummy": 1})

    assert found.json() == {"ok": True}


def test_a_parcel_within_another_takes_nothing_from_it() -> None:
    """What is sent after the inner one is the outer one's."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with Parcel() as outer:
            with Parcel():
                pass
            ask(client, server.url)

        assert (outer.made.method, server.asked) == ("POST", [])


def test_an_error_in_the_sdk_ends_the_parcel() -> None:
    """The next call is not caught by it."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        with pytest.raises(ValueError, match="of the SDK"), Parcel():
            raise ValueError("of the SDK")
        assert ask(client, server.url) == {"ok": True}


def test_parcels_in_many_threads_do_not_mix() -> None:
    """Each thread has its own."""
    with Server([head(), ANSWER]) as server, HTTPClient() as client:
        every = threading.Barrier(8)

        def send(number: int) -> None:
            with Parcel() as parcel:
                every.wait(PATIENCE)
                client.post(f"{server.url}/{number}")
                every.wait(PATIENCE)
            parcel.send(b"%d" % number).close()

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)

    assert sorted((asked.path, asked.body) for asked in server.asked) == [(f"/{at}", b"%d" % at) for at in range(8)]


async def test_parcels_in_many_tasks_do_not_mix() -> None:
    """Each task has its own."""
    with Server([head(), ANSWER]) as server:
        async with AsyncHTTPClient() as client:
            bodies = [b"%d" % number for number in range(8)]
            found = await asyncio.gather(*(ask_async(client, f"{server.url}/{body.decode()}", body) for body in bodies))

    assert found == [ANSWER] * 8
    assert sorted((asked.path, asked.body) for asked in server.asked) == [
        (f"/{body.decode()}/v1/chat", body) for body in bodies
    ]


class Connection(OwnConnection[httpx2.Client, httpx2.AsyncClient]):
    """Over an SDK whose clients are HTTP clients; it says how often it was asked."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.asked: list[WireRequest] = []
        self.made: list[httpx2.Client | httpx2.AsyncClient] = []

    def make_sync(self) -> tuple[httpx2.Client, httpx2.Client]:
        client = HTTPClient(follow_redirects=True)
        self.made.append(client)
        return client, client

    def make(self) -> tuple[httpx2.AsyncClient, httpx2.AsyncClient]:
        client = AsyncHTTPClient(follow_redirects=True)
        self.made.append(client)
        return client, client

    def ask_sync(self, client: httpx2.Client, request: WireRequest) -> object:
        return client.post(**self.how(request)).json()

    async def ask(self, client: httpx2.AsyncClient, request: WireRequest) -> object:
        return (await client.post(**self.how(request))).json()

    def how(self, request: WireRequest) -> dict[str, Any]:
        self.asked.append(request)
        return {"url": self.url + request.path, "json": {}, "headers": request.headers, "timeout": request.timeout}


def say(connection: Connection, body: bytes = b"{}", **how: Any) -> bytes:
    """One request, and the whole answer."""
    answer = connection.open_sync(WireRequest(how.pop("path", "/v1"), body, **how))
    try:
        return b"".join(answer.chunks())
    finally:
        answer.close()


async def test_the_sdk_is_asked_once_and_every_body_goes_out_under_what_it_said() -> None:
    """By a waiting client and by an event loop's, each of which the SDK has its own head for."""
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url)
        for body in (BODY, b"{}", b""):
            assert say(connection, body) == ANSWER
            answer = await connection.open(WireRequest("/v1", body))
            assert b"".join([chunk async for chunk in answer.chunks()]) == ANSWER
            await answer.aclose()
        await connection.aclose()

    assert len(connection.asked) == 2
    assert [asked.body for asked in server.asked] == [BODY, BODY, b"{}", b"{}", b"", b""]
    first, *others = [{**asked.headers, "content-length": ""} for asked in server.asked]
    assert others == [first] * 5


@pytest.mark.parametrize(
    "other",
    [{"path": "/v2"}, {"timeout": 9.0}, {"headers": {"x-mine": "2"}}, {"headers": {"x-mine": "1", "x-too": "2"}}],
)
def test_the_sdk_is_asked_for_every_path_header_and_timeout(other: dict[str, Any]) -> None:
    """What it says may depend on all of them; it is asked about none twice."""
    plain: dict[str, Any] = {"path": "/v1", "timeout": 7.0, "headers": {"x-mine": "1"}}
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url)
        for how in (plain, {**plain, **other}) * 2:
            say(connection, **how)
        connection.close()

    assert len(connection.asked) == 2
    assert [asked.path for asked in server.asked] == ["/v1", other.get("path", "/v1")] * 2
    assert [asked.headers["x-mine"] for asked in server.asked[:2]] == ["1", other.get("headers", {}).get("x-mine", "1")]


def test_headers_that_are_never_the_same_fill_no_memory() -> None:
    """As a trace's are: what is kept is forgotten now and then."""
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url)
        for number in range(200):
            say(connection, headers={"traceparent": str(number)})
        kept = connection._clients.sync(pytest.fail)._parcels
        connection.close()

    assert [asked.headers["traceparent"] for asked in server.asked] == [str(number) for number in range(200)]
    assert 0 < len(kept) <= 64


def test_cookies_are_those_of_the_moment() -> None:
    """As the HTTP client has them when it sends, and not as they were when the SDK was asked."""
    with Server([whole(ANSWER, set_cookie="seen=1")], keeps_alive=True) as server:
        connection = Connection(server.url)
        say(connection), say(connection)
        server.script = [whole(ANSWER, set_cookie="seen=2")]
        say(connection, path="/v2"), say(connection, path="/v2")
        say(connection, headers={"cookie": "mine=1"}), say(connection, headers={"cookie": "mine=1"})
        connection.close()

    cookies = [asked.headers.get("cookie") for asked in server.asked]
    assert cookies == [None, "seen=1", "seen=1", "seen=2", "mine=1", "mine=1"]


def test_ready_bytes_follow_a_redirect() -> None:
    """A 307 asks for the same request elsewhere."""
    with Server([whole(ANSWER)], keeps_alive=True) as there, Server([whole(b"", 307, location=there.url)]) as here:
        connection = Connection(here.url)
        assert say(connection, BODY) == ANSWER
        connection.close()

    assert there.asked[0].body == BODY


def test_what_the_sdk_refuses_is_asked_again() -> None:
    """Nothing is kept of a request that it did not make."""
    with Server([head(), ANSWER]) as server:
        connection = Connection(server.url)
        connection.url = "http://127.0.0.1:no"
        with pytest.raises(httpx2.InvalidURL):
            say(connection)
        connection.url = server.url
        assert say(connection) == ANSWER
        connection.close()


async def test_a_closed_connection_makes_new_clients() -> None:
    """And the clients that it had are closed; `close` leaves those of the event loop."""
    with Server([head(), ANSWER]) as server:
        connection = Connection(server.url)
        say(connection), await (await connection.open(WireRequest("/v1", b"{}"))).aclose()
        connection.close()
        assert [client.is_closed for client in connection.made] == [True, False]
        say(connection)
        await connection.aclose()

    assert [client.is_closed for client in connection.made] == [True, True, True]
    assert len(connection.asked) == 3


def test_a_client_that_nobody_closed_closes_itself() -> None:
    """As those that an SDK makes: what a program leaves behind hangs up, and warns of nothing."""
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url)
        say(connection)
        del connection
        gc.collect()
        assert server.closed.wait(PATIENCE)


def test_no_http_client_is_imported() -> None:
    """The plugin says which it is, at its first send."""
    code = "import sys, sabir.authoring.carrier; print([each for each in ('httpx', 'httpx2') if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
