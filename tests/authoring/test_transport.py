"""Ready bytes go out under a head that an SDK writes once: with a real HTTP client, to a real server.

The SDK is an HTTP client with a header of its own, which posts what nobody is to read, and reads the answer.
"""

import asyncio
import gc
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx2
import pytest
from sabir.authoring.credentials import KeySource
from sabir.authoring.failures import ErrorTable
from sabir.authoring.transport import CapturedRequest, Library, OwnClientConnection, raise_captured, send
from sabir.contract.provider import WireRequest
from sabir.errors import ProviderBroken
from sabir_testing.loopback import PATIENCE, Server, head, whole

BODY = '{"said" :[ "été" ]}'.encode()
ANSWER = b'{"ok" : true}'


class Connection(OwnClientConnection[httpx2.Client, httpx2.AsyncClient]):
    """Over an SDK whose clients are HTTP clients; it says how often it was asked, and what sends."""

    def __init__(self, url: str, key: Any = "k") -> None:
        super().__init__("acme", ErrorTable(), KeySource("acme", key))
        self.url = url
        self.asked: list[WireRequest] = []
        self.senders: list[Any] = []

    def library(self) -> Library:
        made = partial(self.made, httpx2.Client), partial(self.made, httpx2.AsyncClient)
        return Library(*made, httpx2.create_ssl_context)

    def made(self, kind: Any, event_hooks: Any = None, verify: Any = None) -> Any:
        client = kind(event_hooks=event_hooks, verify=verify, timeout=7, follow_redirects=True)
        if event_hooks is None:
            self.senders.append(client)
        return client

    def make_sync(self, keys: Mapping[str, str], http_client: httpx2.Client) -> httpx2.Client:
        http_client.headers["authorization"] = f"Bearer {keys['api_key']}"
        return http_client

    def make(self, keys: Mapping[str, str], http_client: httpx2.AsyncClient) -> httpx2.AsyncClient:
        http_client.headers["authorization"] = f"Bearer {keys['api_key']}"
        return http_client

    def ask_sync(self, client: httpx2.Client, request: WireRequest) -> object:
        return client.post(**self.how(request)).json()

    async def ask(self, client: httpx2.AsyncClient, request: WireRequest) -> object:
        await asyncio.sleep(0)  # another task may come in between
        return (await client.post(**self.how(request))).json()

    def how(self, request: WireRequest) -> dict[str, Any]:
        self.asked.append(request)
        how = {} if request.timeout is None else {"timeout": request.timeout}
        return {"url": self.url + request.path, "json": {"dummy": 1}, "headers": request.headers, **how}


def say(connection: Connection, body: bytes = b"{}", **how: Any) -> bytes:
    answer = connection.open_sync(WireRequest(how.pop("path", "/v1"), body, **how))
    try:
        return b"".join(answer.chunks())
    finally:
        answer.close()


async def test_the_sdk_is_asked_once_and_every_body_goes_out_under_what_it_said() -> None:
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url)
        for body in (BODY, b"{}", b""):
            assert say(connection, body) == ANSWER
            answer = await connection.open(WireRequest("/v1", body))
            assert b"".join([chunk async for chunk in answer.chunks()]) == ANSWER
            await answer.aclose()
        await connection.aclose()

    assert len(connection.asked) == 2
    assert [asked.body for asked in server.requests] == [BODY, BODY, b"{}", b"{}", b"", b""]
    assert [int(asked.headers["content-length"]) for asked in server.requests] == [
        len(asked.body) for asked in server.requests
    ]
    first, *others = [{**asked.headers, "content-length": ""} for asked in server.requests]
    assert (first["authorization"], others) == ("Bearer k", [first] * 5)


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
    assert [asked.path for asked in server.requests] == ["/v1", other.get("path", "/v1")] * 2
    assert [asked.headers["x-mine"] for asked in server.requests[:2]] == [
        "1",
        other.get("headers", {}).get("x-mine", "1"),
    ]


@pytest.mark.parametrize(("asked", "used"), [(None, 7.0), (9.0, 9.0)])
async def test_the_sdks_timeouts_go_along(asked: float | None, used: float) -> None:
    with Server([whole(ANSWER)], keeps_alive=True) as server, httpx2.Client(timeout=1) as sender:
        client = httpx2.Client(event_hooks={"request": [raise_captured]}, timeout=7)
        with CapturedRequest.caught() as made:
            client.post(server.url, json={}, **({} if asked is None else {"timeout": asked}))
        answer = send(sender, made[0].request, BODY)
        async with httpx2.AsyncClient(timeout=1) as later:
            awaited = await send(later, made[0].request, BODY)
            await awaited.aclose()
        answer.close()

    assert [each.request.extensions["timeout"]["read"] for each in (answer, awaited)] == [used] * 2


def test_headers_that_are_never_the_same_fill_no_memory() -> None:
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url)
        for number in range(200):
            say(connection, headers={"traceparent": str(number)})
        connection.close()

    assert [asked.headers["traceparent"] for asked in server.requests] == [str(number) for number in range(200)]
    assert 0 < len(connection._heads) <= 64


async def test_a_key_that_changes_makes_a_new_head() -> None:
    """A function is asked at each send; the SDK is asked where it gives another key, and not again for one it gave."""
    keys = iter(["old", "old", "new", "new", "old", "old"])
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url, lambda: next(keys))
        for _ in range(3):
            say(connection)
            await (await connection.open(WireRequest("/v1", b"{}"))).aclose()
        await connection.aclose()

    said = [asked.headers["authorization"][7:] for asked in server.requests]
    assert said == ["old"] * 2 + ["new"] * 2 + ["old"] * 2
    assert len(connection.asked) == 4


@pytest.mark.parametrize("way", ["threads", "tasks"])
async def test_callers_that_begin_at_once_ask_the_sdk_once_for_each_path(way: str) -> None:
    """And none of them sends under another's head."""
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection, every = Connection(server.url), threading.Barrier(8)

        def ask(number: int) -> None:
            every.wait(PATIENCE)
            say(connection, b"%d" % (number % 2), path=f"/{number % 2}")

        async def ask_later(number: int) -> None:
            await (await connection.open(WireRequest(f"/{number % 2}", b"%d" % (number % 2)))).aclose()

        if way == "tasks":
            await asyncio.gather(*map(ask_later, range(8)))
        else:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(ask, range(8)))
        await connection.aclose()
        connection.close()

    assert sorted((asked.path, asked.body) for asked in server.requests) == [("/0", b"0")] * 4 + [("/1", b"1")] * 4
    assert sorted(asked.path for asked in connection.asked) == ["/0", "/1"]


def test_an_sdk_that_makes_no_request_is_told_of() -> None:
    class Silent(Connection):
        def ask_sync(self, client: httpx2.Client, request: WireRequest) -> object:
            return None

    connection = Silent("http://127.0.0.1:9")
    with pytest.raises(ProviderBroken, match=r"^Silent called its SDK for /v1, and no request was built$"):
        say(connection)
    connection.close()


def test_cookies_are_those_of_the_moment() -> None:
    with Server([whole(ANSWER, set_cookie="seen=1")], keeps_alive=True) as server:
        connection = Connection(server.url)
        say(connection), say(connection)
        server.script = [whole(ANSWER, set_cookie="seen=2")]
        say(connection, path="/v2"), say(connection, path="/v2")
        say(connection, headers={"cookie": "mine=1"}), say(connection, headers={"cookie": "mine=1"})
        connection.close()

    cookies = [asked.headers.get("cookie") for asked in server.requests]
    assert cookies == [None, "seen=1", "seen=1", "seen=2", "mine=1", "mine=1"]


def test_what_the_sdk_refuses_is_asked_again() -> None:
    with Server([head(), ANSWER]) as server:
        connection = Connection(server.url)
        connection.url = "http://127.0.0.1:no"
        with pytest.raises(httpx2.InvalidURL):
            say(connection)
        connection.url = server.url
        assert say(connection) == ANSWER
        connection.close()


async def test_a_closed_connection_makes_new_clients_and_asks_nothing_again() -> None:
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url)
        say(connection), await (await connection.open(WireRequest("/v1", b"{}"))).aclose()
        connection.close()
        assert [client.is_closed for client in connection.senders] == [True, False]
        say(connection)
        await connection.aclose()

    assert [client.is_closed for client in connection.senders] == [True, True, True]
    assert len(connection.asked) == 2


def test_a_client_that_nobody_closed_closes_itself() -> None:
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = Connection(server.url)
        say(connection)
        del connection
        gc.collect()
        assert server.closed.wait(PATIENCE)
